# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong in a policy that can be read: runtimes, routes that never count, overlaps. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from . import globs
from .model import Condition, Fault, Level, Policy, Route

# Runtimes that every dockerd has: runc by its name, and shims by their type.
_SHIM = "io.containerd."
# More overlaps are one sentence; nobody reads a hundred.
_MOST_OVERLAPS = 20


def judge(policy: Policy, known: Collection[str] | None = None) -> list[Fault]:
    """The faults in the order of the routes; ``known`` runtimes are None where nobody was asked."""
    found = []
    for route in policy.routes:
        found += list(_unknown(route.runtime, route, known))
        found += list(_named_users(route))
    found += list(_unknown(policy.default or "", None, known))
    overlaps: list[Fault] = []
    for number, later in enumerate(policy.routes):
        for earlier in policy.routes[:number]:
            if covered(later, earlier):
                found.append(_unreachable(later, earlier))
                break
        else:
            for earlier in policy.routes[:number]:
                if earlier.runtime != later.runtime:
                    overlaps += list(_overlap(later, earlier))
    if len(overlaps) > _MOST_OVERLAPS:
        said = f"and {len(overlaps) - _MOST_OVERLAPS} more pairs of routes overlap"
        overlaps = [*overlaps[:_MOST_OVERLAPS], Fault(Level.NOTE, "routes", said)]
    return found + overlaps


def covered(inner: Route, outer: Route) -> bool:
    """Is every container of ``inner`` one of ``outer`` as well? False where not proven."""
    return all(
        any(_implies(strict, wide) for strict in inner.conditions) for wide in outer.conditions
    )


def _implies(strict: Condition, wide: Condition) -> bool:
    if strict.subject != wide.subject:
        return False
    return all(
        any(_covers(strict.subject, outer, inner) for outer in wide.patterns)
        for inner in strict.patterns
    )


def _covers(subject: str, outer: str, inner: str) -> bool:
    return outer == inner if subject == "user" else globs.covers(outer, inner)


def _unreachable(later: Route, earlier: Route) -> Fault:
    return Fault(
        Level.ERROR,
        later.path,
        f"no container gets here: {earlier.title} takes all that match",
        "put the narrower route first, or remove it",
        later.line,
        later.column,
    )


def _unknown(name: str, route: Route | None, known: Collection[str] | None) -> Iterator[Fault]:
    if not name or known is None or name in known or name == "runc" or name.startswith(_SHIM):
        return
    near = difflib.get_close_matches(name, sorted(known), n=1)
    advice = f"is it {near[0]}?" if near else f"known are {', '.join(sorted({'runc', *known}))}"
    path = f"{route.path}.runtime" if route else "default"
    line, column = (route.line, route.column) if route else (0, 0)
    yield Fault(Level.ERROR, path, f"no runtime {name!r} is defined", advice, line, column)


def _named_users(route: Route) -> Iterator[Fault]:
    for one in route.conditions:
        names = [name for name in one.patterns if not name.isdigit()]
        if one.subject == "user" and names:
            said = f"{names[0]!r} is only met by containers that were given this very name"
            advice = "a uid is safer: what a name stands for, each image says for itself"
            yield Fault(Level.NOTE, one.path, said, advice, one.line, one.column)


def _overlap(later: Route, earlier: Route) -> Iterator[Fault]:
    """A warning where both speak of the same thing and meet, a note where nothing parts them."""
    shared = []
    for one in later.conditions:
        for other in earlier.conditions:
            if one.subject == other.subject:
                example = _example(one, other)
                if example is None:
                    return
                shared.append(f"{one.subject} {example}")
    # An exception before its rule is how a list is meant to be written.
    if covered(earlier, later):
        return
    said = f"{earlier.title} comes first and has {earlier.runtime}, here it is {later.runtime}"
    if shared:
        said = f"both match {', '.join(shared)}: {said}"
        yield Fault(Level.WARNING, later.path, said, "", later.line, later.column)
    else:
        said = f"a container can match both: {said}"
        yield Fault(Level.NOTE, later.path, said, "", later.line, later.column)


def _example(one: Condition, other: Condition) -> str | None:
    for left in one.patterns:
        for right in other.patterns:
            if one.subject == "user":
                found = left if left == right else None
            else:
                found = globs.common(left, right)
            if found is not None:
                return found
    return None
