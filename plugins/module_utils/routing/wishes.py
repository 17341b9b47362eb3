# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a host from having its runtimes as wanted, and keys for daemon.json. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .runtimes import NAME, Program, Verdict, judge

_MOST_NAMES = 10


@dataclass(frozen=True)
class Wish:
    """Runtimes as ``daemon.json`` has them, the default ("": as it is), and names to take away.

    ``unsafe_allowed`` are names of runtimes that may have known holes, ``routed`` those that the
    routing policy names. With ``lenient`` a program
    that is missing is only told: it may come with what has not been installed yet.
    """

    runtimes: Mapping[str, Any]
    default: str = ""
    absent: Sequence[str] = ()
    unsafe_allowed: Sequence[str] = ()
    routed: Sequence[str] = ()
    lenient: bool = False


@dataclass(frozen=True)
class Answer:
    """``refusals`` forbid all of it; ``present`` and ``absent`` are keys of ``daemon.json``."""

    verdicts: tuple[Verdict, ...]
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    present: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, Any] = field(default_factory=dict)


def decide(
    wish: Wish,
    programs: Mapping[str, Program],
    carried: Mapping[str, Sequence[str]],
    defined: Collection[str] | None,
    default_now: str | None,
    os: str | None,
) -> Answer:
    """Judge a wish. Pure.

    ``carried`` are the containers by runtime, ``defined`` the engine's runtimes and
    ``default_now`` its default (None: no engine answers).
    """
    refusals: list[str] = []
    warnings: list[str] = []
    verdicts = []
    usable: dict[str, Any] = {}
    for name, definition in wish.runtimes.items():
        one = judge(name, definition, programs.get(name), os, carried.get(name, ()))
        verdicts.append(one)
        lenient = wish.lenient and one.missing
        (warnings if lenient else refusals).extend(f"runtime {name}: {s}" for s in one.refused)
        allowed = name in wish.unsafe_allowed
        way = "" if allowed else f" (or take it as it is: runtimes_unsafe_allowed: [{name}])"
        (warnings if allowed else refusals).extend(f"runtime {name}: {s}{way}" for s in one.unsafe)
        warnings.extend(f"runtime {name}: {s}" for s in one.warnings)
        if not one.missing:
            usable[name] = definition
    refusals += _absent(wish, carried, default_now)
    refusals += _default(wish, defined)
    present: dict[str, Any] = {"runtimes": usable} if usable else {}
    if wish.default and (wish.default not in wish.runtimes or wish.default in usable):
        present["default-runtime"] = wish.default
    absent: dict[str, Any] = {"runtimes": {name: {} for name in wish.absent}} if wish.absent else {}
    return Answer(tuple(verdicts), tuple(refusals), tuple(warnings), present, absent)


def _absent(wish: Wish, carried: Mapping[str, Sequence[str]], default_now: str | None) -> list[str]:
    found = []
    for name in wish.absent:
        names = list(carried.get(name, ()))
        default = wish.default or default_now
        if name in wish.runtimes:
            found.append(f"runtime {name} is wanted and to be taken away; name it once")
        elif not NAME.fullmatch(name):
            found.append(f"{name!r} is no name of a runtime")
        elif names:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            found.append(
                f"runtime {name} stays: {len(names)} container(s) carry its name and would not "
                f"start again without it: {', '.join(names[:_MOST_NAMES])}{more}. Remove or "
                "recreate them with another runtime first"
            )
        elif name in wish.routed:
            found.append(f"runtime {name} stays: the routing policy names it; change a route first")
        elif default == name:
            found.append(
                f"runtime {name} is the default runtime; name another first: runtimes_default: runc"
            )
    return found


def _default(wish: Wish, defined: Collection[str] | None) -> list[str]:
    name = wish.default
    if not name or name == "runc" or name.startswith("io.containerd.") or name in wish.runtimes:
        return []
    if name in wish.absent:
        return [f"runtime {name} is to be the default and to be taken away"]
    if defined is not None and name not in defined:
        known = ", ".join(sorted({"runc", *defined, *wish.runtimes}))
        return [f"runtime {name} is to be the default and nobody defines it; known are {known}"]
    return []
