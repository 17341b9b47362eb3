# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which paths go back, which stay, and whose content is kept beside. Pure.

A path with a name of ours goes back. A path that others write too goes back only if this
collection has written it since (the ledger of :mod:`...vouched` says so): a user's own change to
Docker's daemon.json is nobody's to undo.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..codec import entry_to_json
from ..model import ABSENT, Area, Entry, Left, Step
from ..scope import area_of, is_aside, looked_at
from .actors_api import DOCKER, FILE, SETTINGS, SLICE, token
from .dress import alike

_RECORD = re.compile(r"/var/lib/steadygpu/owned/settings-[^/]+\.json")
_SLICE_UNIT = re.compile(r"/etc/systemd/system/[^/]+\.slice")

# Those of ours do not name the driver's libraries.
_CDI = re.compile(r"/(?:etc|run)/cdi/(?!steadygpu-)[^/]+")

_NOT_OURS = "changed since, but not by this collection; left as it is"


@dataclass(frozen=True)
class Writers:
    """What is known of who wrote a path since the target was taken.

    ``vouched`` are the tokens that this collection wrote, by path; ``since_settled`` the same since
    the last state that it left behind (of a confirm or a restore), which is ``settled``, None if
    there is none. ``settled_later``: is that state younger than the target? ``window_open``: is a
    change under way?
    """

    vouched: Mapping[str, Sequence[str]] = field(default_factory=dict)
    since_settled: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settled: Mapping[str, Entry] | None = None
    settled_later: bool = False
    window_open: bool = False

    def ours_since(self, path: str, want: Entry) -> Sequence[str]:
        """What we wrote to a shared path that has not been taken back since."""
        back = self.settled_later and self.settled is not None
        if back and token((self.settled or {}).get(path)) == token(want):
            # An earlier restore has undone our change; what differs now came later.
            return self.since_settled.get(path, ())
        return self.vouched.get(path, ())

    def written_by_others(self, path: str, have: Entry, owner: str) -> bool:
        """Did somebody else write the content that is at the path now?"""
        vouched = self.vouched.get(path, ())
        if token(have) in vouched:
            return False
        if owner != "own":
            return True
        if self.settled is not None and token(have) == token(self.settled.get(path)):
            return False
        # Roles also write files of ours with Ansible's own modules, which do not vouch, but only
        # while a change is open; afterwards the settled state knows them.
        return bool(vouched) or not self.window_open


@dataclass
class PathPlan:
    """Steps in the order of their lists; ``removals`` are directories, after all else."""

    parents: list[Step] = field(default_factory=list)
    files: list[Step] = field(default_factory=list)
    slices: list[Step] = field(default_factory=list)
    settings: list[Step] = field(default_factory=list)
    docker: list[Step] = field(default_factory=list)
    removals: list[Step] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    # Paths that were made, and that are removed, with whom to tell.
    made: dict[str, str] = field(default_factory=dict)
    removed: dict[str, str] = field(default_factory=dict)

    def telling(self, whom: str) -> list[str]:
        """The paths whose change ``whom`` must learn of."""
        return sorted(p for p, tells in {**self.made, **self.removed}.items() if tells == whom)


def plan_paths(
    target: Mapping[str, Entry],
    now: Mapping[str, Entry],
    areas: Sequence[Area],
    writers: Writers,
    looked: Sequence[str] = (),
) -> PathPlan:
    """The way from ``now`` to ``target`` for every path that either knows.

    ``looked`` are the patterns that the target's program looked at, empty for all of today's.
    """
    plan = PathPlan()
    directories = []
    for path in sorted({*target, *now}):
        want, have = target.get(path, ABSENT), now.get(path, ABSENT)
        # What put_back has kept for a person is theirs to delete.
        if alike(have, want) or is_aside(path.rpartition("/")[2]):
            continue
        if path not in target and not looked_at(path, looked):
            plan.left.append(Left(path, "was not looked at when the checkpoint was taken"))
            continue
        if {want.kind, have.kind} <= {"directory", "absent"}:
            directories.append(path)
            continue
        area = area_of(path, areas)
        reason = _why_left(path, want, have, area, writers)
        if area is None or reason:
            plan.left.append(Left(path, reason or "no longer looked at; left as it is"))
            continue
        _add(plan, path, want, have, area, writers)
    _plan_directories(plan, directories, target, now, areas)
    return plan


def leave_specifications(plan: PathPlan, made_for: str, loaded: str) -> None:
    """Take the vendor's CDI specifications out of a plan that would bring back another driver's.

    A specification names the libraries of one driver version, so with another driver loaded every
    new container with a GPU would fail. The arguments are what the drivers say of themselves.
    """
    if not made_for or not loaded or made_for == loaded:
        return
    for step in list(plan.files):
        if _CDI.fullmatch(step.subject) and step.subject in plan.made:
            plan.files.remove(step)
            del plan.made[step.subject]
            plan.conflicts = [path for path in plan.conflicts if path != step.subject]
            reason = (
                f"was made for another driver ({made_for}) than the one that is loaded ({loaded}); "
                "left as it is. Make it anew: nvidia-ctk cdi generate"
            )
            plan.left.append(Left(step.subject, reason))


def ask_docker_again(
    plan: PathPlan,
    target: Mapping[str, Entry],
    now: Mapping[str, Entry],
    areas: Sequence[Area],
    again: Mapping[str, Mapping[str, Any]],
) -> None:
    """Ask a daemon again whose file is back, and which waited for its restart the last time."""
    for path, details in again.items():
        want, have = target.get(path, ABSENT), now.get(path, ABSENT)
        area = area_of(path, areas)
        if area is not None and area.tells == "docker" and alike(have, want):
            step = _step(DOCKER, path, f"see whether Docker runs with {path}", want, have)
            plan.docker.append(replace(step, details={**step.details, **details}))


def _why_left(
    path: str, want: Entry, have: Entry, area: Area | None, writers: Writers
) -> str | None:
    if "other" in (want.kind, have.kind):
        return "not a file that can be put back (a device, socket or FIFO, or too large)"
    if area is None or area.owner == "seen":
        return "changed since; such files are saved and compared, never put back"
    if area.owner == "shared":
        if not writers.ours_since(path, want):
            return _NOT_OURS
        if have.kind not in ("file", "absent"):
            return f"is a {have.kind} now, which this collection did not make; left as it is"
    return None


def _add(plan: PathPlan, path: str, want: Entry, have: Entry, area: Area, writers: Writers) -> None:
    conflict = (
        have.kind == "file"
        and token(have) != token(want)
        and writers.written_by_others(path, have, area.owner)
    )
    if conflict:
        plan.conflicts.append(path)
    text = _text(path, want, have)
    if conflict:
        text += "; what others wrote there is kept beside it"
    (plan.made if want.there else plan.removed)[path] = area.tells
    if area.tells == "docker":
        plan.docker.append(_step(DOCKER, path, text, want, have, conflict))
    elif _SLICE_UNIT.fullmatch(path):
        plan.slices.append(_step(SLICE, path, text, want, have, conflict))
    elif _RECORD.fullmatch(path):
        plan.settings.append(_step(SETTINGS, path, text, want, have, conflict))
    else:
        plan.files.append(_step(FILE, path, text, want, have, conflict))


def _step(
    kind: str, path: str, text: str, want: Entry, have: Entry, conflict: bool = False
) -> Step:
    entry = entry_to_json(want)
    return Step(kind, path, text, {"entry": entry, "expected": token(have), "conflict": conflict})


def _text(path: str, want: Entry, have: Entry) -> str:
    if not want.there:
        return f"remove {path}, which was not there"
    if not have.there:
        return f"bring back {path}"
    if token(want) != token(have):
        return f"put back {path} as it was"
    changes = []
    if want.mode != have.mode:
        changes.append(f"mode {want.mode:04o} (is {have.mode:04o})")
    if (want.uid, want.gid) != (have.uid, have.gid):
        changes.append(f"owner {want.uid}:{want.gid} (is {have.uid}:{have.gid})")
    if dict(want.xattrs) != dict(have.xattrs):
        changes.append("extended attributes")
    return f"give back to {path} its {', '.join(changes)}"


def _plan_directories(
    plan: PathPlan,
    paths: Sequence[str],
    target: Mapping[str, Entry],
    now: Mapping[str, Entry],
    areas: Sequence[Area],
) -> None:
    """Parents of what comes back; and those that we made, once they are empty."""
    if not paths:
        return
    emptied = _ancestors(plan.removed)
    for path in paths:  # parents sort before what is below them
        want, have = target.get(path, ABSENT), now.get(path, ABSENT)
        if not want.there:
            continue
        owner = _owner(path, areas)
        if owner == "own" or (owner == "shared" and not have.there):
            plan.parents.append(_step(FILE, path, _text(path, want, have), want, have))
        else:
            plan.left.append(Left(path, _NOT_OURS))
    staying = {path for path, entry in now.items() if entry.there and path not in plan.removed}
    occupied: dict[str, str] = {}
    gone = {path for path in paths if not target.get(path, ABSENT).there}
    for path in sorted(staying - gone):
        for parent in _ancestors([path]):
            occupied.setdefault(parent, path)
    for path in sorted(gone, reverse=True):  # what is below comes before its parents
        if _owner(path, areas) != "own" and path not in emptied:
            reason = _NOT_OURS
        elif path in occupied:
            reason = f"made since, but holds {occupied[path]}, which stays"
        else:
            have = now.get(path, ABSENT)
            text = f"remove the directory {path}, which was not there"
            plan.removals.append(_step(FILE, path, text, ABSENT, have))
            continue
        plan.left.append(Left(path, reason))
        for parent in _ancestors([path]):
            occupied.setdefault(parent, path)


def _owner(path: str, areas: Sequence[Area]) -> str:
    area = area_of(path, areas)
    return area.owner if area else "seen"


def _ancestors(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found
