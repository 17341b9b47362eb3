# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages must have one release of the driver, and which release a version is. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping

from ..packages import NVIDIA_PATTERNS, Installed, matches

# "550.163.01-2", "1:580.95.05-0ubuntu1", "3:595.45.04-1.el9".
_RELEASE = re.compile(r"(?:\d+:)?(\d{3}\.\d+(?:\.\d+)*)(?![\d.])")

# Sources of their own with versions of their own, in one distribution or another.
_LOOSE = (
    "nvidia-modprobe*",
    "nvidia-persistenced*",
    "nvidia-settings*",
    "nvidia-xconfig*",
    "nvidia-installer*",
    "nvidia-kernel-common*",
    "nvidia-support*",
    "nvidia-prime*",
    "nvidia-docker*",
    "linux-modules-nvidia*",
    "linux-objects-nvidia*",
    "linux-signatures-nvidia*",
)
_FABRIC_MANAGER = ("nvidia-fabricmanager*", "nvidia-fabric-manager*", "cuda-drivers-fabricmanager*")
_IMEX = ("nvidia-imex*",)
_KERNEL = (
    "nvidia-*dkms*",
    "nvidia-dkms*",
    "kmod-nvidia*",
    "nvidia-kernel-source*",
    "nvidia-kernel-open*",
    "nvidia-open*",
    "linux-modules-nvidia*",
    "linux-objects-nvidia*",
)

# "linux-modules-nvidia-580-6.8.0-60-generic", "kmod-nvidia-580.95.05-5.14.0-503.11.1": of one
# kernel, beside which the next one's are installed.
_OF_ONE_KERNEL = re.compile(r"(?:linux-[a-z]+-nvidia|kmod-nvidia)[-a-z0-9]*?-\d+\.\d+\.\d+")
# "linux-modules-nvidia-580-server-open-generic-hwe-24.04" brings them for the newest kernel of
# the flavour "generic-hwe-24.04", in step with "linux-image-generic-hwe-24.04".
_FLAVOUR = re.compile(r"linux-modules-nvidia-\d+(?:-server)?(?:-open)?-([a-z].*)")
_KERNEL_OF_FLAVOUR = ("linux-{}", "linux-image-{}", "linux-headers-{}")


def release_of(version: str) -> str | None:
    """The driver's release in a package version, None for a version that is none."""
    match = _RELEASE.match(version)
    return match.group(1) if match else None


def branch_of(release: str | None) -> int | None:
    """The number before the first dot, by which NVIDIA counts branches."""
    first = (release or "").partition(".")[0]
    return int(first) if first.isdigit() else None


def is_in_step(name: str) -> bool:
    """Must this package have the release of the kernel module?"""
    return matches(name, NVIDIA_PATTERNS) and not matches(name, _LOOSE)


def is_fabric_manager(name: str) -> bool:
    """Is it the fabric manager, which refuses another driver than its own?"""
    return matches(name, _FABRIC_MANAGER)


def is_imex(name: str) -> bool:
    """Is it IMEX, which has to be of the driver's release as well?"""
    return matches(name, _IMEX)


def is_kernel_side(name: str) -> bool:
    """Does this package bring the kernel module, or its source?"""
    return matches(name, _KERNEL)


def builds_module(name: str) -> bool:
    """Is the module built on the host, and so signed by nobody that firmware knows?"""
    return "dkms" in name and matches(name, NVIDIA_PATTERNS)


@functools.lru_cache(maxsize=8192)
def is_driver(name: str) -> bool:
    """Is it a package of the driver?"""
    return matches(name, NVIDIA_PATTERNS)


def to_hold(installed: Iterable[str]) -> list[str]:
    """Of these packages those that stay as they are together, by name.

    Modules of one kernel are free. Where modules come with the kernel and none is built here, the
    packages that bring a newer kernel are held as well: it would come without its module.
    """
    there = set(installed)
    found = {one for one in there if is_driver(one) and not _OF_ONE_KERNEL.match(one)}
    if not any(map(builds_module, found)):
        flavours = [match.group(1) for match in map(_FLAVOUR.match, found) if match]
        # linux-virtual has the kernel of linux-generic.
        flavours += [one.replace("generic", "virtual") for one in flavours]
        kernel = {form.format(one) for one in flavours for form in _KERNEL_OF_FLAVOUR}
        found |= kernel & there
    return sorted(found)


def driver_packages(installed: Installed) -> dict[str, str]:
    """All packages of the driver that are here, loose ones too: version by name."""
    return {
        name: package.version
        for name, package in sorted(installed.packages.items())
        if is_driver(name)
    }


def in_step(versions: Mapping[str, str]) -> dict[str, str]:
    """Release by name, of those that must have one release."""
    found = {}
    for name, version in versions.items():
        release = release_of(version)
        if is_in_step(name) and release is not None:
            found[name] = release
    return found


def release_installed(versions: Mapping[str, str]) -> str | None:
    """The release of the packages that bring the module, else of most others; None without any."""
    releases = in_step(versions)
    kernel = [release for name, release in releases.items() if is_kernel_side(name)]
    others = kernel or list(releases.values())
    return max(sorted(set(others)), key=others.count) if others else None
