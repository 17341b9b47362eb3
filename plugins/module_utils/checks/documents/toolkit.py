# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVIDIA Container Toolkit's config.toml. Pure.

Sources: the fields in NVIDIA/nvidia-container-toolkit ``api/config/v1`` (before 1.18:
``internal/config``) of each release from 1.10.0 to 1.20.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...trees.node import Node
from .tree_document import TreeDocument

# Keys by their whole name and the first release that has them; "" for 1.10 and older.
KEYS: Mapping[str, str] = MappingProxyType(
    {
        "disable-require": "",
        "swarm-resource": "",
        "accept-nvidia-visible-devices-envvar-when-unprivileged": "",
        "accept-nvidia-visible-devices-as-volume-mounts": "",
        "supported-driver-capabilities": "",
        **{
            f"nvidia-container-cli.{name}": ""
            for name in [
                "root",
                "path",
                "environment",
                "debug",
                "ldcache",
                "load-kmods",
                "no-cgroups",
                "no-pivot",
                "user",
                "ldconfig",
            ]
        },
        "nvidia-container-runtime.debug": "",
        "nvidia-container-runtime.log-level": "",
        "nvidia-container-runtime.runtimes": "",
        "nvidia-container-runtime.mode": "",
        # Of 1.6 to 1.9; ignored since.
        "nvidia-container-runtime.experimental": "",
        "nvidia-container-runtime.discover-mode": "",
        "nvidia-container-runtime.modes.csv.mount-spec-path": "",
        "nvidia-container-runtime.modes.csv.compat-container-root": "1.19.0",
        "nvidia-container-runtime.modes.cdi.spec-dirs": "1.11.0",
        "nvidia-container-runtime.modes.cdi.default-kind": "1.13.0",
        "nvidia-container-runtime.modes.cdi.annotation-prefixes": "1.13.0",
        "nvidia-container-runtime.modes.legacy.cuda-compat-mode": "1.17.7",
        "nvidia-container-runtime.modes.jit-cdi.nvcdi-feature-flags": "1.18.1",
        "nvidia-container-runtime.modes.jit-cdi.nvcdi-disable-hooks": "1.20.0",
        "nvidia-container-runtime.modes.jit-cdi.load-kernel-modules": "",
        "nvidia-container-runtime-hook.path": "1.13.0",
        "nvidia-container-runtime-hook.skip-mode-detection": "1.13.0",
        "nvidia-ctk.path": "",
        # Of 1.15 and 1.16.
        **{f"features.{name}": "1.15.0" for name in ("gds", "mofed", "gdrcopy", "nvswitch")},
        "features.allow-cuda-compat-libs-from-container": "1.17.4",
        "features.allow-ldconfig-from-container": "1.17.3",
        "features.allow-unknown-oci-spec-fields": "1.19.0",
        "features.disable-cuda-compat-lib-hook": "1.17.5",
        "features.disable-imex-channel-creation": "1.17.0",
        "features.ignore-imex-channel-requests": "1.17.5",
        "features.no-additional-gids-for-device-nodes": "1.19.0",
    }
)

# Modes and the first release that has them.
MODES: Mapping[str, str] = MappingProxyType(
    {"auto": "", "legacy": "", "csv": "", "cdi": "1.11.0", "jit-cdi": "1.18.0"}
)

_SYSTEM_FILE = "/etc/nvidia-container-runtime/"
_USER_FILE = re.compile(r"/(home/[^/]+|root)/\.config/")


@dataclass(frozen=True)
class ToolkitConfig(TreeDocument):
    """One config.toml."""

    @property
    def is_system_file(self) -> bool:
        """Is it the one that the root engine reads?"""
        return self.at.file.startswith(_SYSTEM_FILE)

    @property
    def is_user_file(self) -> bool:
        """Is it one in somebody's home, which only a rootless engine reads?"""
        return bool(_USER_FILE.match(self.at.file))

    @property
    def mode(self) -> str | None:
        """The runtime's mode as written; None where it is left to the default, auto."""
        found = self.value("nvidia-container-runtime", "mode")
        return found if isinstance(found, str) else None

    def truth(self, *path: str) -> bool | None:
        """A switch; None where it is not set."""
        found: Any = self.value(*path)
        return found if isinstance(found, bool) else None

    def leaves(self) -> Iterator[tuple[tuple[str, ...], Node]]:
        """Every key that is no table, with its path."""
        yield from _leaves(self.root, ())


def _leaves(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    for key, inside in node.items():
        if inside.is_map:
            yield from _leaves(inside, (*path, key.name))
        else:
            yield (*path, key.name), inside
