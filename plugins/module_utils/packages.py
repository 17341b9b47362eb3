# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages are installed and which are held: one read of the package database.

Asking apt or dnf costs a lab host 14 to 40 seconds, asking the database one short
process. So nothing here starts a package manager.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .atomic import read_text
from .process import find_program, run

# The container toolkit. Versions must match exactly: since 1.18 the runtime refuses otherwise.
TOOLKIT_PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)

# Those of the engine, by whoever makes them.
ENGINE_PACKAGES = (
    "docker.io",
    "docker-cli",
    "docker-ce",
    "docker-ce-cli",
    "containerd",
    "containerd.io",
    "runc",
)

_DPKG_FORMAT = "${db:Status-Abbrev}\t${Package}\t${Version}\n"
_RPM_FORMAT = "%{NAME}\t%|EPOCH?{%{EPOCH}}:{0}|\t%{VERSION}-%{RELEASE}\t%{ARCH}\n"


@dataclass(frozen=True)
class Package:
    """An installed package: its full version, and whether upgrades pass it by."""

    version: str
    held: bool


@dataclass(frozen=True)
class Installed:
    """All installed packages by name; ``manager`` is ``dpkg``, ``rpm`` or None (neither)."""

    manager: str | None
    packages: Mapping[str, Package]


def read_installed(root: str = "/", deadline_s: float = 30.0) -> Installed:
    """Read the package database under ``root``. Never fails: no database is an answer.

    rpm holds are those of dnf 4's versionlock plugin; dnf 5's are not read.
    """
    if find_program("dpkg-query") and os.path.exists(os.path.join(root, "var/lib/dpkg/status")):
        admin = "--admindir=" + os.path.join(root, "var/lib/dpkg")
        done = run(["dpkg-query", admin, "-W", "-f", _DPKG_FORMAT], deadline_s)
        return Installed("dpkg", parse_dpkg(done.stdout))
    if find_program("rpm"):
        done = run(["rpm", "--root", os.path.abspath(root), "-qa", "--qf", _RPM_FORMAT], deadline_s)
        locks = read_text(os.path.join(root, "etc/dnf/plugins/versionlock.list"))
        return Installed("rpm", parse_rpm(done.stdout, parse_versionlock(locks or "")))
    return Installed(None, {})


def parse_dpkg(text: str) -> dict[str, Package]:
    """Lines of ``STATUS<tab>NAME<tab>VERSION``; status ``hi`` is held and installed.

    Only what is wholly installed counts: a removed package with its configuration left
    (``rc``) or a half-configured one (``iF``) is not there for our purposes.
    """
    found = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3 and fields[0][1:2] == "i":
            found[fields[1]] = Package(fields[2], held=fields[0][0] == "h")
    return found


def parse_rpm(text: str, locks: Sequence[str] = ()) -> dict[str, Package]:
    """Lines of ``NAME<tab>EPOCH<tab>VERSION-RELEASE<tab>ARCH``; the newest line wins.

    Epoch 0 is left out of the version, as rpm itself prints it.
    """
    found = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) != 4 or fields[0] == "gpg-pubkey":
            continue
        name, epoch, version, arch = fields
        spellings = _rpm_spellings(name, epoch, version, arch)
        held = any(fnmatch.fnmatchcase(s, lock) for s in spellings for lock in locks)
        shown = version if epoch == "0" else f"{epoch}:{version}"
        found[name] = Package(shown, held)
    return found


def _rpm_spellings(name: str, epoch: str, version: str, arch: str) -> tuple[str, ...]:
    """The ways versionlock may name a package, with and without epoch and architecture."""
    with_epoch = f"{name}-{epoch}:{version}"
    without = f"{name}-{version}"
    return (name, with_epoch, without, with_epoch + "." + arch, without + "." + arch)


def parse_versionlock(text: str) -> list[str]:
    """The patterns of a versionlock list; exclusions (``!``) hold nothing in place."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and line[0] not in "#!"]
