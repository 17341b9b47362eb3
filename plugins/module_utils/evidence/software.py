# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages, programs and units beyond those of the facts."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..engine.containerd import program_version
from ..engine.services import parse_show
from ..packages import Installed
from ..process import CommandMissingError, find_program, run
from . import files

# Names of packages that rules judge.
_PACKAGES = re.compile(
    r"(?:lib)?nvidia-.*|libcuda.*|cuda-(?:drivers|keyring|compat).*|docker.*|podman.*|containerd.*"
    r"|runc|crun|datacenter-gpu-manager.*|libxnvctrl.*|rocm-core|amd-container-toolkit"
    r"|unattended-upgrades|irqbalance|libnvcuvid.*|xserver-xorg-video-nvidia.*|kmod-nvidia.*"
)

UNITS = (
    "docker.service",
    "containerd.service",
    "nvidia-persistenced.service",
    "nvidia-fabricmanager.service",
    "nvidia-cdi-refresh.path",
    "nvidia-cdi-refresh.service",
    "nvidia-mig-manager.service",
    "unattended-upgrades.service",
    "apt-daily-upgrade.timer",
    "dnf-automatic.timer",
    "irqbalance.service",
)

_HOOKS = ("nvidia-container-runtime-hook", "nvidia-cdi-hook", "nvidia-container-runtime")
_COMPOSE = (
    "/usr/libexec/docker/cli-plugins/docker-compose",
    "/usr/lib/docker/cli-plugins/docker-compose",
    "/usr/local/lib/docker/cli-plugins/docker-compose",
)


# Else apt writes its cache anew where it is old; only looking changes nothing.
_NO_CACHE = ("-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=")


def read_packages(installed: Installed, deadline_s: float = 30.0) -> dict[str, dict[str, Any]]:
    """Name to version, hold, and for a held one what the package lists offer (None: not known)."""
    found: dict[str, dict[str, Any]] = {
        name: {"version": package.version, "held": package.held, "candidate": None}
        for name, package in sorted(installed.packages.items())
        if _PACKAGES.fullmatch(name)
    }
    held = [name for name, package in found.items() if package["held"]]
    if held and installed.manager == "dpkg":
        for name, candidate in _candidates(held, deadline_s).items():
            found[name]["candidate"] = candidate
    return found


def _candidates(names: Sequence[str], deadline_s: float) -> dict[str, str]:
    # The one question here that starts a package manager, and only where something is held.
    try:
        done = run(["apt-cache", *_NO_CACHE, "policy", *names], deadline_s)
    except CommandMissingError:
        return {}
    return parse_policy(done.stdout)


def parse_policy(text: str) -> dict[str, str]:
    """``apt-cache policy``: package to candidate; ``(none)`` is left out."""
    found, name = {}, ""
    for line in text.splitlines():
        if line and not line[0].isspace():
            name = line.rstrip(":").strip()
        match = re.match(r"\s+Candidate: (\S+)", line)
        if match and match.group(1) != "(none)":
            found[name] = match.group(1)
    return found


def read_programs(installed: Installed, deadline_s: float = 30.0) -> dict[str, str | None]:
    """Versions of Docker's CLI, Compose and Podman, and the paths of the toolkit's hooks."""
    have = installed.packages
    found: dict[str, str | None] = {
        "docker_cli": _packaged(have, ("docker-ce-cli", "docker-cli"))
        or _docker_version(deadline_s),
        "compose": _packaged(have, ("docker-compose-plugin", "docker-compose-v2", "docker-compose"))
        or _compose(deadline_s),
        "podman": _packaged(have, ("podman",)),
        "docker": find_program("docker"),
        "snap_docker": "/snap/bin/docker" if glob.glob("/snap/bin/docker") else None,
    }
    found.update({hook: find_program(hook) for hook in _HOOKS})
    return found


def read_kind_of_docker(installed: Installed) -> dict[str, Any]:
    """``podman_docker``: is docker Podman? ``rootless``: is the only daemon a user's?"""
    own = bool(glob.glob("/run/docker.sock"))
    users = bool(glob.glob("/run/user/*/docker.sock"))
    return {
        "podman_docker": "podman-docker" in installed.packages,
        "rootless": True if users and not own else False if own else None,
    }


def _packaged(have: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The upstream part of the first package that is installed: no epoch, no revision."""
    name = next((name for name in names if name in have), None)
    if name is None:
        return None
    return str(have[name].version).rpartition(":")[2].rpartition("-")[0] or str(have[name].version)


def _docker_version(deadline_s: float) -> str | None:
    try:
        return program_version("docker", deadline_s)
    except (CommandMissingError, OSError):
        return None


def _compose(deadline_s: float) -> str | None:
    path = next((path for path in _COMPOSE if glob.glob(path)), None)
    if path is None:
        return None
    try:
        said = run([path, "version"], deadline_s).stdout
    except (CommandMissingError, OSError):  # It is no program of this machine.
        return None
    match = re.search(r"v?(\d+\.\d+\.\d+)", said)
    return match.group(1) if match else None


def read_units(deadline_s: float = 30.0) -> dict[str, Any]:
    """``units``: name to ``enabled``, ``disabled`` … or ``absent``; ``active``: those that run.

    Both are empty without systemd.
    """
    properties = "--property=Id,LoadState,ActiveState,UnitFileState"
    try:
        done = run(["systemctl", "show", properties, *UNITS], deadline_s)
    except CommandMissingError:
        return {"units": {}, "active": []}
    states, active = {}, []
    for name, shown in zip(UNITS, parse_show(done.stdout)):
        if "LoadState" in shown:
            absent = shown["LoadState"] == "not-found"
            states[name] = "absent" if absent else shown.get("UnitFileState") or "disabled"
            if shown.get("ActiveState") in ("active", "activating", "reloading"):
                active.append(name)
    return {"units": states, "active": active}


def read_unattended(pattern: str = "/etc/apt/apt.conf.d/*") -> dict[str, Any]:
    """Does apt upgrade by itself (``enabled``), and which packages does it pass by?"""
    text = "\n".join(files.text(path) for path in sorted(glob.glob(pattern)))
    return parse_unattended(text)


def parse_unattended(text: str) -> dict[str, Any]:
    """The joined configuration files of apt: periodic upgrades on, and the blacklist's patterns."""
    lines = [line for line in text.splitlines() if not line.strip().startswith(("//", "#"))]
    bare = "\n".join(lines)
    periodic = re.findall(r'APT::Periodic::Unattended-Upgrade\s+"(\d+|always)"', bare)
    blocks = re.findall(r"Unattended-Upgrade::Package-Blacklist\s*\{(.*?)\}", bare, re.DOTALL)
    single = re.findall(r'Unattended-Upgrade::Package-Blacklist::\s*"([^"]*)"', bare)
    named = [name for block in blocks for name in re.findall(r'"([^"]*)"', block)]
    return {"enabled": bool(periodic) and periodic[-1] != "0", "blacklist": named + single}
