# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVIDIA Container Toolkit's config.toml into its model. Pure."""

from __future__ import annotations

from ...trees import toml_tree
from ...trees.node import TreeError
from ..documents.toolkit import ToolkitConfig
from ..documents.tree_document import NOTHING, broken, cut_short
from ..model import Position, Reading


def read_toolkit_toml(text: str, file: str) -> Reading:
    """One :class:`ToolkitConfig`; a file that is no TOML is one that is broken."""
    at = Position(file, 1, 1)
    try:
        root = toml_tree.parse(text)
    except TreeError as error:
        excerpt = cut_short(text, error, file)
        if excerpt is not None:
            return Reading(problems=(excerpt,))
        return Reading((ToolkitConfig(at, NOTHING, text, broken(error, file)),))
    return Reading((ToolkitConfig(at, root, text),))
