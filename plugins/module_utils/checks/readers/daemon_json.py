# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""daemon.json into its model. Pure.

Whether the file can be read is what engine/daemon_json.py says, which writes such files; the tree
adds the places. A file that cannot be read is a document too: that the daemon does not start with
it is a finding.
"""

from __future__ import annotations

from ...engine.daemon_json import document
from ...engine.json_text import JsonTextError
from ...trees import json_tree
from ...trees.node import TreeError
from ..documents.daemon import DaemonConfig
from ..documents.tree_document import NOTHING, Broken, broken, cut_short
from ..model import Position, Reading


def read_daemon_json(text: str, file: str) -> Reading:
    """One :class:`DaemonConfig`. An empty file is one without keys, as dockerd has it."""
    at = Position(file, 1, 1)
    # The mark is judged by a rule of its own: releases from 23.0 on read over it.
    plain = text[1:] if text.startswith("\ufeff") else text
    # Go decodes null into an empty configuration.
    if plain.strip() in ("", "null"):
        return Reading((DaemonConfig(at, NOTHING, text),))
    refused = _refused(plain)
    try:
        root = json_tree.parse(plain)
    except TreeError as error:
        excerpt = cut_short(text, error, file)
        if excerpt is not None:
            return Reading(problems=(excerpt,))
        return Reading((DaemonConfig(at, NOTHING, text, broken(error, file)),))
    if refused is not None:
        return Reading((DaemonConfig(at, NOTHING, text, Broken(at, refused)),))
    return Reading((DaemonConfig(at, root, text),))


def _refused(text: str) -> str | None:
    try:
        document(text)
    except JsonTextError as error:
        return str(error)
    except ValueError as error:  # a number of more digits than Python converts
        return str(error)
    return None
