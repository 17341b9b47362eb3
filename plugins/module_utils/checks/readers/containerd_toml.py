# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd's config.toml into its model. Pure."""

from __future__ import annotations

from ...containerd.config import ListFiles, ReadFile, load
from ...trees.node import TreeError
from ..documents.containerd import ContainerdConfig
from ..documents.tree_document import NOTHING, broken, cut_short
from ..model import Position, Reading


def read_containerd_toml(
    text: str,
    file: str,
    read_file: ReadFile | None = None,
    list_files: ListFiles | None = None,
) -> Reading:
    """One :class:`ContainerdConfig`; a file that is no TOML is one that is broken."""
    at = Position(file, 1, 1)
    try:
        config = load(text, file, read_file, list_files)
    except TreeError as error:
        excerpt = cut_short(text, error, file)
        if excerpt is not None:
            return Reading(problems=(excerpt,))
        return Reading((ContainerdConfig(at, NOTHING, text, broken(error, file)),))
    return Reading((ContainerdConfig(at, config.main.root, text, config=config),))
