# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible plays, tasks and variables, as a model for rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...trees.node import Key, Node
from ..model import Given, Position


@dataclass(frozen=True)
class AnsibleTask:
    """One task. ``module`` is its module's name as written; ``args`` its arguments (a mapping, or
    text where they are written free); ``keywords`` what stands beside them (``when``, ``notify``).
    """

    at: Position
    module: Given
    args: Node
    name: str = ""
    keywords: Mapping[str, Node] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """The module's name without its collection."""
        return self.module.value.rpartition(".")[2]

    @property
    def collection(self) -> str:
        """The collection that the module is named with; "" where it is named alone."""
        return self.module.value.rpartition(".")[0]

    def given(self, *path: str) -> Given | None:
        """The text of an argument with the place of its key; None where there is none."""
        node, around = self.args.get(*path), self.args
        for step in path[:-1]:
            around = around.get(step) or around
        if node is None or node.is_map or node.is_list:
            return None
        key = around.keys.get(path[-1], Key(path[-1], node.line, node.column))
        return Given(node.words(), Position(self.at.file, key.line, key.column), path[-1])

    def text(self, *path: str) -> str:
        """The text of an argument; "" where there is none."""
        given = self.given(*path)
        return given.value if given is not None else ""

    @property
    def free(self) -> str:
        """What a command or shell task runs, however it is written."""
        return self.args.words() or self.text("cmd") or self.text("_raw_params")


@dataclass(frozen=True)
class AnsibleFile:
    """One file of plays, tasks or variables.

    ``tasks`` are in the order in which they stand, those of blocks and handlers among them.
    ``values`` are the variables that it sets, those of plays too. ``comments`` are its comments:
    where somebody noted what the hosts are. ``required`` are the collections that a requirements
    file beside it names; None where no such file was found.
    """

    at: Position
    tasks: tuple[AnsibleTask, ...] = ()
    values: Mapping[str, Given] = field(default_factory=dict)
    comments: tuple[Given, ...] = ()
    required: frozenset[str] | None = None
