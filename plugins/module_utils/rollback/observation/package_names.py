# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages a checkpoint names, and which a restore leaves alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ...packages import (
    ENGINE_PACKAGES,
    KERNEL_PATTERNS,
    NVIDIA_PATTERNS,
    TOOLKIT_PACKAGES,
    matches,
    never_changed,
)

# What comes with an engine and has its version.
_ENGINE_EXTRAS = (
    "docker-buildx",
    "docker-buildx-plugin",
    "docker-ce-rootless-extras",
    "docker-compose",
    "docker-compose-plugin",
)


def never_alone(name: str) -> bool:
    """Is it a driver or kernel package, which nobody but its owner may change?"""
    return never_changed(name)


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
        or matches(name, NVIDIA_PATTERNS)
        or (kernel_release and name.endswith(kernel_release) and matches(name, KERNEL_PATTERNS))
        # rpm keeps the release in the version; of several kernels the newest is named.
        or name in ("kernel", "kernel-core")
    }
