# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVIDIA Container Toolkit's config.toml. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...engine import toolkit_keys
from ...trees.node import Node
from .tree_document import TreeDocument

# Keys by their whole name and the first release that has them; "" for 1.10 and older.
KEYS: Mapping[str, str] = MappingProxyType(
    {
        **{name: key.since for name, key in toolkit_keys.KEYS.items()},
        # Found in files of hosts; no release has it typed.
        "nvidia-container-runtime.modes.jit-cdi.load-kernel-modules": "",
    }
)

# Modes and the first release that has them.
MODES = toolkit_keys.MODES

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
