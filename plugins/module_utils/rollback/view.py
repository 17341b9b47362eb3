# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checkpoints, windows and differences in JSON types, as modules and commands show them. Pure."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from .codec import left_to_json, reason_to_json
from .model import Difference, Moment, Outcome, Window
from .storage.store import Summary


def checkpoint(summary: Summary) -> dict[str, Any]:
    """One of a list of checkpoints."""
    return {
        "id": summary.id,
        "sequence": summary.sequence,
        "taken_at": iso(summary.taken_at),
        "labels": list(summary.labels),
        "files": summary.files,
        "paths": list(summary.declared),
        "hostname": summary.host.hostname,
        "machine": summary.host.machine,
        **reason_to_json(summary.reason),
    }


def window(opened: Window | None, now: Moment) -> dict[str, Any] | None:
    """The open window. ``seconds_left`` is 0 when it has expired."""
    if opened is None:
        return None
    return {
        "id": opened.id,
        "base": opened.base,
        "run": opened.run,
        "opened_at": iso(opened.opened.wall),
        "confirm_within_s": opened.confirm_within_s,
        "seconds_left": max(0, round(opened.seconds_left(now))),
        "joined": list(opened.joined),
        **reason_to_json(opened.reason),
    }


def difference(found: Difference) -> dict[str, Any]:
    """What differs; ``empty`` when nothing that counts does."""
    return {
        "before": found.before,
        "after": found.after,
        "empty": found.empty,
        "changes": [
            {**dataclasses.asdict(change), "lines": list(change.lines)} for change in found.changes
        ],
    }


def outcome(came: Outcome, open_window: Window | None, now: Moment) -> dict[str, Any]:
    """What came of taking, begin, confirm or restore; ``open_window`` is what is open after it.

    Warnings are left out: whoever shows this has a way of its own for them.
    """
    return {
        "changed": came.changed,
        "checkpoint": came.checkpoint,
        "actions": list(came.actions),
        "conflicts": list(came.conflicts),
        "left": [left_to_json(one) for one in came.left],
        "notes": list(came.notes),
        "opened": came.opened,
        "window": window(open_window, now),
    }


def iso(seconds: float) -> str:
    """Seconds since the epoch as ``2026-12-01T03:00:00Z``."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
