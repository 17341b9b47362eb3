# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages a checkpoint names, and which a restore leaves alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from ...packages import ENGINE_PACKAGES, TOOLKIT_PACKAGES

# What comes with an engine and has its version.
_ENGINE_EXTRAS = (
    "docker-buildx",
    "docker-buildx-plugin",
    "docker-ce-rootless-extras",
    "docker-compose",
    "docker-compose-plugin",
)

# All that NVIDIA's driver may be called in Debian, Ubuntu, EL and NVIDIA's own repositories. The
# container toolkit (nvidia-container-…, libnvidia-container…) is no part of it.
_NVIDIA_PATTERNS = (
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
_KERNEL_PATTERNS = (
    "kernel",
    "kernel-*",
    "linux-generic*",
    "linux-headers*",
    "linux-image*",
    "linux-kbuild*",
    "linux-modules*",
)

# Driver and kernel: another version takes a reboot, or takes the GPUs from those who use them, so
# a restore tells the difference and changes nothing.
DRIVER_PATTERNS = _NVIDIA_PATTERNS + _KERNEL_PATTERNS


def never_alone(name: str) -> bool:
    """Is it a driver or kernel package, which nobody but its owner may change?"""
    return _matches(name, DRIVER_PATTERNS)


def recorded(installed: Iterable[str], kernel_release: str) -> set[str]:
    """The installed packages that a checkpoint names.

    They are the engine's, the container toolkit's, the driver's, and those of the running kernel:
    deb packages have ``kernel_release`` (``uname -r``) in their name.
    """
    known = {*ENGINE_PACKAGES, *TOOLKIT_PACKAGES, *_ENGINE_EXTRAS}
    return {
        name
        for name in installed
        if name in known
        or _matches(name, _NVIDIA_PATTERNS)
        or (kernel_release and name.endswith(kernel_release) and _matches(name, _KERNEL_PATTERNS))
        # rpm keeps the release in the version; of several kernels the newest is named.
        or name in ("kernel", "kernel-core")
    }


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
