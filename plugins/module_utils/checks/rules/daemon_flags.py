# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the flags of dockerd, in a unit's ExecStart, a script or an article. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...engine.daemon_keys import (
    KEYS,
    NEWEST,
    SHORT_FLAGS,
    all_flags,
    flag_in_release,
    is_flag,
    key_of_flag,
)
from ...versions import at_least, parse
from ..documents.commands import CommandLine
from ..documents.daemon_listeners import is_loopback, is_tcp
from ..documents.units import UnitFile
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule
from .daemon_listen import TCP_FIX, TCP_REASON

_SEEN = "seen on Docker 26.1.5 and 28.5.2"

_INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "ai-scheduler": "No Docker release schedules GPUs: leave the flag out.",
        "ai-metrics": "No Docker release schedules GPUs: leave the flag out.",
        "ai-metrics-interval": "No Docker release schedules GPUs: leave the flag out.",
        "gpu-scheduler": "No Docker release schedules GPUs: leave the flag out.",
        "feature-gates": "The flag is --feature NAME=true (from 27.3.0), its only name for GPUs "
        "is cdi; none schedules GPUs.",
        "gpu-manager": "Docker has no GPU manager: CDI specifications or the nvidia runtime give "
        "containers their GPUs.",
        "gpus": "The daemon has no such flag: ask for GPUs per container, with --gpus or "
        "--device nvidia.com/gpu=0.",
        "cgroup-manager": "That is Podman's; Docker's is --exec-opt native.cgroupdriver=systemd.",
        "cgroup-driver": "Write --exec-opt native.cgroupdriver=systemd.",
        "ipv6-masq": "Docker has no such flag.",
    }
)


def _flag(given: Given) -> str:
    return given.spelled.lstrip("-").partition("=")[0]


@rule(
    "dockerd-unknown-flag",
    "dockerd has no such flag",
    Severity.FATAL,
    reads=CommandLine,
    reason="dockerd ends with unknown flag, and its unit goes into a loop of restarts.",
    fix="Remove the flag, or write the one that is meant.",
    sources=("moby cmd/dockerd and daemon/command from 18.09 to 29.7.2", _SEEN),
    row="44,45,80",
)
def dockerd_unknown_flag(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A flag of no release."""
    if line.name != "dockerd":
        return
    newer = parse(host.version("docker"))[:2] > parse(NEWEST)[:2]
    for given in line.unknown:
        name = _flag(given)
        if is_flag(name) or (len(name) == 1 and name in SHORT_FLAGS):
            continue
        near = difflib.get_close_matches(name, all_flags(), 1, 0.75)
        fix = _INSTEAD.get(name) or (f"Write --{near[0]} if that is meant." if near else "")
        if not near and name in KEYS and KEYS[name].flag:
            fix = f"Write --{KEYS[name].flag}."
        severity = Severity.INFO if newer else None
        yield Hit(given.at, f"{given.spelled} is no flag of dockerd.", fix, severity=severity)


@rule(
    "dockerd-flag-release",
    "This flag of dockerd is not in every release",
    Severity.FATAL,
    reads=CommandLine,
    reason="dockerd ends with unknown flag when its release does not have the flag.",
    fix="Remove the flag on hosts whose Docker does not have it.",
    sources=("moby cmd/dockerd and daemon/command from 18.09 to 29.7.2",),
)
def dockerd_flag_release(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A flag that came later, or was removed."""
    if line.name != "dockerd":
        return
    docker = host.version("docker")
    for name, places in line.flags.items():
        key = key_of_flag(name)
        gone = key.gone if key is not None else ""
        if docker is not None and not flag_in_release(name, docker):
            yield Hit(places[0].at, f"Docker {docker} has no flag --{name}.")
        elif docker is None and gone:
            old = not at_least(gone, "25.0.0")
            yield Hit(
                places[0].at,
                f"--{name} was removed in Docker {gone}.",
                severity=Severity.WARNING if old else Severity.INFO,
                assumed=(f"docker >={gone}",),
            )


@rule(
    "dockerd-host-without-tls",
    "The Docker API listens on TCP without TLS",
    Severity.ERROR,
    reads=CommandLine,
    reason=TCP_REASON,
    fix=TCP_FIX,
    sources=(
        "moby daemon/command/daemon.go loadListeners",
        "docs.docker.com, Protect the Docker daemon socket",
    ),
)
def dockerd_host_without_tls(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """-H tcp:// and no client certificates asked for."""
    if (
        line.name != "dockerd"
        or _on(line, "tlsverify")
        or (_on(line, "tls") and not _off(line, "tlsverify"))
    ):
        return
    for given in line.flags.get("host", ()):
        if is_tcp(given.value):
            local = is_loopback(given.value)
            seen = f"It listens on {given.value}; --tlsverify is not set."
            yield Hit(given.at, seen, severity=Severity.WARNING if local else None)


def _on(line: CommandLine, flag: str) -> bool:
    given = line.last(flag)
    return given is not None and given.value.lower() in ("", "true", "1", "t")


def _off(line: CommandLine, flag: str) -> bool:
    given = line.last(flag)
    return given is not None and given.value.lower() in ("false", "0", "f")


@rule(
    "dockerd-cgroup-driver-unknown",
    "native.cgroupdriver has no such driver",
    Severity.FATAL,
    reads=CommandLine,
    reason="dockerd knows systemd and cgroupfs, and does not start with another one.",
    fix="Write --exec-opt native.cgroupdriver=systemd.",
    sources=("moby daemon/daemon_unix.go verifyCgroupDriver", _SEEN),
)
def dockerd_cgroup_driver_unknown(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A driver that is neither of the two."""
    for given in line.flags.get("exec-opt", ()) if line.name == "dockerd" else ():
        name, _equals, value = given.value.partition("=")
        unknown = value not in ("systemd", "cgroupfs") and "$" not in value
        if name == "native.cgroupdriver" and unknown:
            yield Hit(given.at, f"native.cgroupdriver is {value or 'empty'}.")


@rule(
    "docker-unit-overrides",
    "A drop-in of docker.service starts dockerd with settings of its own",
    Severity.INFO,
    reads=UnitFile,
    reason="The same setting as a flag and in daemon.json keeps dockerd from starting (runtimes "
    "are merged). Tools such as nvidia-ctk write to daemon.json and do not see the drop-in.",
    fix="Keep the settings in daemon.json and remove the drop-in, then systemctl daemon-reload "
    "and restart docker.",
    sources=(
        "NVIDIA/nvidia-container-toolkit issue 631",
        "NVIDIA/nvidia-docker issue 712",
        "moby daemon/config/config.go findConfigurationConflicts",
    ),
    cases=("RT-009",),
)
def docker_unit_overrides(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """An ExecStart that replaces the unit's own and has flags."""
    reset = [s for s in unit.settings if s.key == "ExecStart" and not s.value]
    if not reset:
        return
    for line in unit.named("dockerd"):
        both = [name for name in line.flags if key_of_flag(name) is not None]
        if "add-runtime" in both or len(both) > 1:
            flags = ", ".join(f"--{name}" for name in both)
            yield Hit(
                line.at,
                f"dockerd gets {flags} here.",
                commands=("systemctl cat docker.service", "cat /etc/docker/daemon.json"),
            )


@rule(
    "dockerd-runtime-reserved",
    "The runtime name runc is reserved",
    Severity.FATAL,
    reads=CommandLine,
    reason="runc is built in: dockerd does not start with a runtime of that name.",
    fix="Choose another name and make it the default with --default-runtime.",
    sources=("moby daemon/pkg/opts/runtime.go", "docker/for-linux issue 144"),
)
def dockerd_runtime_reserved(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """The name runc, or no path."""
    for given in line.flags.get("add-runtime", ()) if line.name == "dockerd" else ():
        name, equals, path = given.value.partition("=")
        if name.strip().lower() == "runc":
            yield Hit(given.at, "It defines runc anew.")
        elif (not equals or not path) and "$" not in given.value:
            yield Hit(given.at, f"{given.value!r} is not NAME=PATH.", "Write NAME=PATH.")
