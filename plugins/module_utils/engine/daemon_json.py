# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our keys in dockerd's configuration file; :mod:`.owned_keys` says how. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..secrets import by_key
from . import json_text, owned_keys
from .json_text import Path
from .owned_keys import ForeignOwnerError, Layout, Merge, Show, show_key
from .owned_record import Owned, Record, RecordError, dump_record, load_record

__all__ = [
    "ATOMS",
    "CONFIG_PATH",
    "KEYED_LISTS",
    "LAYOUT",
    "NEUTRAL",
    "ForeignOwnerError",
    "Merge",
    "Owned",
    "Record",
    "RecordError",
    "document",
    "dump_record",
    "load_record",
    "put",
    "show_key",
    "take_back",
]

# Where dockerd looks unless its unit says --config-file.
CONFIG_PATH = "/etc/docker/daemon.json"

# Objects that are one thing: half of somebody's runtime under our path would be neither
# theirs nor ours.
ATOMS: tuple[Path, ...] = (("runtimes", "*"), ("default-ulimits", "*"))

# Lists of ``name=value`` words where each name has its own owner.
KEYED_LISTS = ("exec-opts",)

# Explicit values that make dockerd forget a key on reload; an absent key keeps its old one.
NEUTRAL: Mapping[str, Any] = {
    "runtimes": {},
    "default-runtime": "runc",
    "live-restore": False,
    "labels": [],
    "debug": False,
    "insecure-registries": [],
    "registry-mirrors": [],
}

LAYOUT = Layout(json_text, ATOMS, KEYED_LISTS, NEUTRAL)


def document(text: str | None) -> dict[str, Any]:
    """The configuration in a file's text; {} for no file and, as dockerd has it, a blank one."""
    return LAYOUT.document(text)


def put(
    text: str | None,
    record: Record,
    wanted: Mapping[str, Any],
    takeover: bool = False,
    show: Show = by_key.show,
) -> Merge:
    """:func:`.owned_keys.put` for ``daemon.json``. Raises ForeignOwnerError or JsonTextError."""
    return owned_keys.put(LAYOUT, text, record, wanted, takeover, show)


def take_back(
    text: str | None,
    record: Record,
    wanted: Mapping[str, Any] | None = None,
    show: Show = by_key.show,
) -> Merge:
    """:func:`.owned_keys.take_back` for ``daemon.json``. Raises JsonTextError."""
    return owned_keys.take_back(LAYOUT, text, record, wanted, show)
