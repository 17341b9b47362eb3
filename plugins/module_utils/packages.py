# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages are installed and which are held: one read of the package database.

Asking apt or dnf costs a lab host 14 to 40 seconds, asking the database one short
process. So nothing here starts a package manager.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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
    "docker-ce-rootless-extras",
    "moby-engine",
    "moby-cli",
    "moby-containerd",
    "moby-runc",
    "containerd",
    "containerd-app",
    "containerd.io",
    "runc",
    "runc-app",
)

# All that NVIDIA's driver may be called in Debian, Ubuntu, EL and NVIDIA's own repositories. The
# container toolkit (nvidia-container-…, libnvidia-container…) is no part of it.
NVIDIA_PATTERNS = (
    "nvidia-[!c]*",
    "nvidia-c[!o]*",
    "nvidia-com*",
    "libnvidia-[!c]*",
    "libnvidia-c[!o]*",
    "libnvidia-com*",
    "cuda-drivers*",
    "firmware-nvidia*",
    "kmod-nvidia*",
    "libcuda1*",
    "libnvcuvid*",
    "libnvfm*",
    "libnvoptix*",
    "libnvsdm*",
    "linux-modules-nvidia*",
    "linux-objects-nvidia*",
    "linux-signatures-nvidia*",
    "xserver-xorg-video-nvidia*",
)
KERNEL_PATTERNS = (
    "kernel",
    "kernel-*",
    "linux-generic*",
    "linux-headers*",
    "linux-image*",
    "linux-kbuild*",
    "linux-modules*",
)

# Driver and kernel: another version takes a reboot, or takes the GPUs from those who use them, so
# nothing of ours changes them.
DRIVER_PATTERNS = NVIDIA_PATTERNS + KERNEL_PATTERNS

_DPKG_FORMAT = "${db:Status-Abbrev}\t${Package}\t${Version}\n"
_RPM_FORMAT = "%{NAME}\t%|EPOCH?{%{EPOCH}}:{0}|\t%{VERSION}-%{RELEASE}\t%{ARCH}\n"


@dataclass(frozen=True)
class Package:
    """An installed package: its full version, and whether upgrades pass it by."""

    version: str
    held: bool


@dataclass(frozen=True)
class Installed:
    """All installed packages by name; ``manager`` is ``dpkg``, ``rpm`` or None (neither).

    ``half_done`` are those that a package manager which was killed has left so, with their version:
    "" for one that was cut while it was unpacked for the first time.
    """

    manager: str | None
    packages: Mapping[str, Package]
    half_done: Mapping[str, str] = field(default_factory=dict)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The names of what is half done."""
        return tuple(self.half_done)


def read_installed(root: str = "/", deadline_s: float = 30.0) -> Installed:
    """Read the package database under ``root``. Never fails: no database is an answer.

    rpm holds are those of dnf 4's versionlock plugin; dnf 5's are not read.
    """
    if find_program("dpkg-query") and os.path.exists(os.path.join(root, "var/lib/dpkg/status")):
        admin = "--admindir=" + os.path.join(root, "var/lib/dpkg")
        done = run(["dpkg-query", admin, "-W", "-f", _DPKG_FORMAT], deadline_s)
        return Installed("dpkg", parse_dpkg(done.stdout), parse_unfinished(done.stdout))
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


def parse_unfinished(text: str) -> dict[str, str]:
    """Of the same lines the packages that are neither wholly there nor wholly gone, by version.

    Half-installed, unpacked, half-configured, or waiting for a trigger (dpkg(1), "States").
    """
    fields = (line.split("\t") for line in text.splitlines())
    found = {words[1]: words[2] for words in fields if len(words) == 3 and words[0][1:2] in "HUFWt"}
    return dict(sorted(found.items()))


def never_changed(name: str) -> bool:
    """Is it a driver or kernel package, which nobody but its owner may change?"""
    return matches(name, DRIVER_PATTERNS)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Does one of the shell patterns name this package?"""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def pins(root: str = "/") -> list[str]:
    """The files that prefer some source for a package of the engine or the toolkit.

    apt prefers one from priority 501 on (apt_preferences(5)). Empty on a host without apt.
    """
    below = root.rstrip("/")
    found = []
    for pattern in ("/etc/apt/preferences", "/etc/apt/preferences.d/*"):
        for path in sorted(glob.glob(glob.escape(below) + pattern)):
            # apt passes over a name with another ending.
            if os.path.splitext(path)[1] in ("", ".pref") and _prefers(read_text(path) or ""):
                found.append(path[len(below) :])
    return found


def _prefers(text: str) -> bool:
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.split("\n") if not line.startswith("#")]
        # A field goes on in lines that begin with a space.
        joined = re.sub(r"\n[ \t]+", " ", "\n".join(lines))
        fields = dict(re.findall(r"^([A-Za-z-]+)\s*:\s*(.*)$", joined, re.MULTILINE))
        priority = fields.get("Pin-Priority", "").strip()
        patterns = fields.get("Package", "").split()
        named = [name for name in (*ENGINE_PACKAGES, *TOOLKIT_PACKAGES) if matches(name, patterns)]
        if re.fullmatch(r"\d+", priority) and int(priority) > 500 and named:
            return True
    return False


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
