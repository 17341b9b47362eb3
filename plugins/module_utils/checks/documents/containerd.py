# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd's config.toml with what it imports. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...containerd.config import Config, ConfigFile, Runtime
from ..model import Position
from .tree_document import NOTHING, TreeDocument

_DROP_IN = re.compile(r"/(conf|config)\.d/|\.d/[^/]+\.toml$")


@dataclass(frozen=True)
class ContainerdConfig(TreeDocument):
    """One config.toml. ``config`` is it with its imports; the root is that of the file itself."""

    config: Config = field(default_factory=lambda: Config((ConfigFile("", NOTHING),)))

    @property
    def version(self) -> int:
        """The version of the file, 1 where it says none."""
        return self.config.main.version

    @property
    def is_drop_in(self) -> bool:
        """Is it a file that another one imports? Then it need not be whole."""
        return bool(_DROP_IN.search(self.at.file))

    @property
    def is_fragment(self) -> bool:
        """Is it a piece to put into a file, as articles show it, rather than a whole file?"""
        return frozenset(self.root.value) == {"plugins"} and not self.at.file.endswith(
            "/config.toml"
        )

    def own_runtimes(self) -> Iterator[Runtime]:
        """The runtimes that stand in this file itself."""
        return (found for found in self.config.runtimes() if found.file is self.config.main)

    def runtime_place(self, runtime: Runtime) -> Position:
        """Where a runtime's table begins."""
        return Position(runtime.file.path, runtime.node.line, runtime.node.column)
