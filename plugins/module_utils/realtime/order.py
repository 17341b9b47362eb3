# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of settings in the record, which is put back from the last to the first.

A runtime is never above its period, and fair servers never above what the sysctls allow. So the
order depends on the values before and after, and one that sets them need not be one that takes them
back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..settings.model import NUMBER, SYSCTL, Target
from ..settings.readback import live_value, same
from ..settings.record import Former, Record
from .reader import PERIOD, RUNTIME, SERVERS
from .targets import runtime_first

_SYSCTLS = ""


def settled(wanted: Sequence[Target], record: Record | None, root: str = "/") -> list[Target]:
    """``wanted`` in the order of the record where nothing is to be written. Raises OSError."""
    if record is None:
        return list(wanted)
    for one in wanted:
        if one.is_live and not same(one, live_value(one, root)):
            return list(wanted)
    place = {former.target.identity: index for index, former in enumerate(record.formers)}
    return sorted(wanted, key=lambda one: place.get(one.identity, len(place)))


def for_way_back(formers: Sequence[Former]) -> tuple[Former, ...]:
    """The order in which the kernel takes the former values, from the last to the first. Pure."""
    pairs: dict[str, dict[str, Former]] = {}
    others = []
    for one in reversed(formers):
        where = _in_pair(one.target)
        if where is None:
            others.append(one)
        else:
            pairs.setdefault(where[0], {})[where[1]] = one
    sysctls = pairs.pop(_SYSCTLS, {})
    servers = [one for pair in pairs.values() for one in _backwards(pair)]
    # A larger room comes before what needs it, a smaller one after.
    if _widens(sysctls):
        back = [*_backwards(sysctls), *servers]
    else:
        back = [*servers, *_backwards(sysctls)]
    return tuple(reversed([*others, *back]))


def _in_pair(target: Target) -> tuple[str, str] | None:
    """Which pair a target belongs to, and whether as its runtime or its period."""
    if target.kind == SYSCTL and target.path in (RUNTIME, PERIOD):
        return _SYSCTLS, "runtime" if target.path == RUNTIME else "period"
    if target.kind == NUMBER and target.path.startswith(SERVERS + "/"):
        directory, _slash, name = target.path.rpartition("/")
        return directory, name
    return None


def _backwards(pair: Mapping[str, Former]) -> list[Former]:
    """The pair as it must be written to have its former values again."""
    if len(pair) < 2:
        return list(pair.values())
    runtime, period = pair["runtime"], pair["period"]
    value, now = _number(runtime.value), _number(period.target.wanted)
    if value is None or runtime_first(value, now):
        return [runtime, period]
    return [period, runtime]


def _widens(sysctls: Mapping[str, Former]) -> bool:
    """Do the former sysctls allow more than the ones that are wanted?"""
    if len(sysctls) < 2:
        return True
    runtime, period = sysctls["runtime"], sysctls["period"]
    then = _share(runtime.value, period.value)
    now = _share(runtime.target.wanted, period.target.wanted)
    return then is None or now is None or then >= now


def _share(runtime: str | None, period: str | None) -> float | None:
    part, whole = _number(runtime), _number(period)
    if part is None or not whole:
        return None
    # -1 is no limit.
    return part / whole if part >= 0 else float("inf")


def _number(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
