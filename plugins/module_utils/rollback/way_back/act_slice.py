# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back of a slice: its unit file and what the kernel holds for it, or neither.

A slice's file alone says nothing: systemd applies it to an active slice neither at a daemon-reload
nor later. So it is brought back as the module systemd_slice brings it, with all its refusals.
"""

from __future__ import annotations

import os

from ... import units
from ...atomic import read_text
from ...slices import manage, reader, reload
from ...slices.model import SliceError, Wish
from ...slices.properties import PARSERS, PropertyError, parse_properties
from ...slices.unit_text import assignments
from .. import codec
from ..model import Done, Entry, Left, RollbackError, Step
from . import put_back
from .actors_api import Context


def act(step: Step, context: Context) -> Done:
    """Bring the slice and its unit file at ``step.subject`` to the step's entry.

    Where somebody would be hurt (a slice in use, memory below what is used, a GPU that a
    daemon-reload may take) all stays as it is and is told. Raises RollbackError.
    """
    path = step.subject
    entry = codec.entry_from_json(step.details["entry"])
    if not reader.has_systemd(context.root) or entry.kind not in ("file", "absent"):
        return Done(put_back.put_back(path, entry, context.content, context.root))
    before = read_text(path)
    try:
        if entry.digest is None:
            done = manage.ensure_absent(_wish(path, ""), check_mode=False)
        else:
            done = manage.ensure_present(_wish(path, _text(entry, context)), check_mode=False)
    except (SliceError, PropertyError) as error:
        return Done(left=(Left(path, str(error), pending=True),))
    except OSError as error:
        raise RollbackError(f"{path}: {error.strerror}; nothing was changed") from error
    notes = [*done.warnings]
    rendered = read_text(path)
    changed = put_back.put_back(path, entry, context.content, context.root) or done.changed
    if read_text(path) not in (rendered, before):
        # Its bytes were not those of this module. What they set is in force already.
        notes += _reread(path)
    return Done(changed, notes=tuple(notes))


def _text(entry: Entry, context: Context) -> str:
    with context.content(entry.digest or "") as handle:
        return handle.read().decode("utf-8", errors="replace")


def _wish(path: str, text: str) -> Wish:
    """What a unit file asks for. What the module does not know in it is put back all the same.

    ``takeover``: whether the file that is there now may go, the plan has decided.
    """
    said: dict[str, list[str]] = {}
    description = ""
    for key, value in assignments(text):
        if key == "Description":
            description = value.replace("%%", "%")
        elif key in PARSERS:
            # An empty value forgets those before it (systemd.unit(5)).
            said[key] = [*said.get(key, ()), value] if value else []
    raw = {key: _value(key, values) for key, values in said.items() if values}
    directory, name = os.path.split(path)
    return Wish(name, description, parse_properties(raw), directory, takeover=True)


def _value(key: str, values: list[str]) -> object:
    """A list grows by each line, of anything else the last line counts."""
    grows = key.startswith("Allowed") or (key.startswith("IO") and key != "IOWeight")
    return values if grows else values[-1]


def _reread(path: str) -> list[str]:
    endangered = reload.endangered()
    if endangered:
        return [
            f"systemd reads {path} again at its next daemon-reload: none was run, since it may "
            "take the GPU from {}".format(", ".join(endangered))
        ]
    try:
        units.daemon_reload()
    except units.UnitError as error:
        return [str(error)]
    return []
