# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which checkpoint a person means. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence

from ..model import BEFORE_CHANGE, RollbackError

_LABEL = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# What could be meant as an id, or as the beginning of one.
_LIKE_AN_ID = re.compile(r"[0-9]+(-[0-9a-f]{0,8})?")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")
_SHOWN = 10


def check_label(name: str) -> None:
    """Raise RollbackError for what cannot be a label."""
    if name == "now":
        raise RollbackError(
            "'now' cannot be a label: it stands for the host as it is; choose another word"
        )
    if not _LABEL.fullmatch(name):
        raise RollbackError(
            f"{name!r} cannot be a label: wanted are 1 to 64 of a-z, 0-9, dot, dash and "
            "underscore, the first of them a letter or a digit"
        )
    if _LIKE_AN_ID.fullmatch(name):
        raise RollbackError(
            f"{name!r} cannot be a label: it could be the id of a checkpoint; put a letter in "
            "front of it"
        )


def find(
    selector: str,
    ids: Sequence[str],
    labels: Mapping[str, str],
    base: str | None,
    times: Callable[[], Mapping[str, float]],
) -> str:
    """The id that ``selector`` names among ``ids``, which are the oldest first.

    It may be an id, a sequence number, the beginning of an id, a label, or ``@`` with a time: the
    newest checkpoint that was taken then or before. ``before-change`` is the ``base`` of the open
    window where there is one. ``times`` gives seconds since the epoch by id. Raises RollbackError,
    which names what there is.
    """
    if selector in ids:
        return selector
    if selector == BEFORE_CHANGE and base is not None:
        return _there(base, ids, "the base of the open window", labels)
    if selector in labels:
        return _there(labels[selector], ids, f"the label {selector}", labels)
    if selector.startswith("@"):
        return _at(selector, ids, labels, times())
    if _LIKE_AN_ID.fullmatch(selector):
        # 12 means 12-…, also where there is a 120-….
        found = [one for one in ids if one.startswith(selector.partition("-")[0] + "-")]
        found = [one for one in found or ids if one.startswith(selector)]
        if len(found) == 1:
            return found[0]
        if found:
            raise RollbackError(
                f"{selector} could be any of {', '.join(found)}; give more of the id"
            )
    raise RollbackError(f"there is no checkpoint {selector!r}; {_what_there_is(ids, labels)}")


def time_of(text: str) -> float:
    """Seconds since the epoch of ``2026-12-01T03:00``, with or without a zone, or of a number.

    Without a zone it is the host's local time. Raises RollbackError.
    """
    try:
        return float(text) if _NUMBER.fullmatch(text) else _iso(text).timestamp()
    except (ValueError, OverflowError):
        raise RollbackError(
            f"@{text} is no time; wanted is one such as @2026-12-01T03:00 (local time), "
            "@2026-12-01T03:00Z or @1796094000 (seconds since 1970)"
        ) from None


def _iso(text: str) -> datetime.datetime:
    # Python 3.9 does not know Z.
    return datetime.datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text))


def _at(
    selector: str, ids: Sequence[str], labels: Mapping[str, str], times: Mapping[str, float]
) -> str:
    limit = time_of(selector[1:])
    early = [one for one in ids if one in times and times[one] <= limit]
    if not early:
        raise RollbackError(
            f"no checkpoint was taken at {selector[1:]} or before; {_what_there_is(ids, labels)}"
        )
    return early[-1]


def _there(found: str, ids: Sequence[str], who: str, labels: Mapping[str, str]) -> str:
    if found in ids:
        return found
    raise RollbackError(f"{who} is {found}, which is gone; {_what_there_is(ids, labels)}")


def _what_there_is(ids: Sequence[str], labels: Mapping[str, str]) -> str:
    if not ids:
        return "there are no checkpoints yet: steadygpu checkpoint take"
    told = []
    for one in ids[-_SHOWN:]:
        names = sorted(name for name, labelled in labels.items() if labelled == one)
        told.append(f"{one} ({', '.join(names)})" if names else one)
    more = f"{len(ids) - _SHOWN} older ones and " if len(ids) > _SHOWN else ""
    return f"there are {more}{', '.join(told)}"
