# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""dockerd's configuration: its file, and the flags that a unit or a command gives it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...engine.daemon_keys import KEPT_WHOLE
from ...engine.daemon_rules import cgroup_driver
from ...trees.node import Node
from .tree_document import TreeDocument


@dataclass(frozen=True)
class DaemonConfig(TreeDocument):
    """One daemon.json."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The file as dockerd gets it, without places; {} where it cannot be read."""
        plain = self.root.plain()
        return plain if isinstance(plain, dict) else {}

    @property
    def cgroup_driver(self) -> str | None:
        """The driver that ``exec-opts`` asks for."""
        words = self.value("exec-opts")
        return cgroup_driver({"exec-opts": words if isinstance(words, list) else []})

    def runtimes(self) -> Iterator[tuple[str, Node]]:
        """Each runtime's name and its object."""
        runtimes = self.get("runtimes")
        if runtimes is not None:
            for key, node in runtimes.items():
                yield key.name, node

    def texts(self, name: str) -> list[Node]:
        """The texts in the list of a key, with their places."""
        node = self.get(name)
        inside = node.elements() if node is not None else []
        return [element for element in inside if isinstance(element.value, str)]

    def keys_looked_at(self) -> Iterator[tuple[tuple[str, ...], Node]]:
        """The paths whose last name dockerd compares with its options, as it flattens them."""
        for key, node in self.root.items():
            if node.is_map and key.name not in KEPT_WHOLE:
                for inner, inside in node.items():
                    yield (key.name, inner.name), inside
            else:
                yield (key.name,), node
