# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be done about a set of packages, and what is refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..packages import ENGINE_PACKAGES, Installed, matches, never_changed
from .model import CANDIDATE, PRESENT, MissingError, RefusedError, Solution, Wish
from .record import Entry

Compare = Callable[[str, str], int]

# Which running unit executes the program of a package.
UNIT_OF: Mapping[str, str] = {
    "docker.io": "docker.service",
    "docker-ce": "docker.service",
    "moby-engine": "docker.service",
    "containerd": "containerd.service",
    "containerd.io": "containerd.service",
    "moby-containerd": "containerd.service",
    "containerd-app": "containerd.service",
}


@dataclass(frozen=True)
class Plan:
    """What will be done.

    ``before`` and ``after`` are versions of the set by name, None for a package that is not there
    or a version that nobody can tell yet; ``held`` are those that are held now. ``arguments`` are
    for the package manager, ``removing`` what it is to remove, ``holds`` what is to be held or
    released. ``unfinished`` was left half done by a run that was killed. With ``unknown`` the
    package lists must be read anew first. ``guards`` are files that :mod:`..upgrade_guard` is to
    write, or to remove for ``absent``.
    """

    wish: Wish
    before: Mapping[str, str | None] = field(default_factory=dict)
    after: Mapping[str, str | None] = field(default_factory=dict)
    held: Collection[str] = ()
    arguments: Sequence[str] = ()
    removing: Sequence[str] = ()
    holds: Mapping[str, bool] = field(default_factory=dict)
    solution: Solution = field(default_factory=Solution)
    record: Mapping[str, Entry] = field(default_factory=dict)
    unfinished: Sequence[str] = ()
    adopted: bool = False
    unknown: bool = False
    notes: Sequence[str] = ()
    guards: Sequence[str] = ()

    @property
    def transaction(self) -> bool:
        """Must the package manager run?"""
        return bool(self.arguments or self.removing)

    @property
    def changed(self) -> bool:
        """Is there anything to do?"""
        moves = any(self.before.get(name) != self.after.get(name) for name in self.after)
        also = self.solution.new | self.solution.changed | self.solution.removed
        left = self.unfinished or self.unknown
        return bool(moves or also or self.removing or self.holds or self.guards or left)

    def will_hold(self, name: str) -> bool:
        """Is this package of the set held once all is done?"""
        return name not in self.removing and self.holds.get(name, name in self.held)

    @property
    def also_changed(self) -> list[str]:
        """Packages outside the set that get another version."""
        return sorted(self.solution.changed - set(self.wish.packages))

    @property
    def also_removed(self) -> list[str]:
        """Packages that were not named and go."""
        return sorted(self.solution.removed - set(self.removing))

    @property
    def new(self) -> list[str]:
        """Packages outside the set that come with it."""
        return sorted(self.solution.new - set(self.wish.packages))

    @property
    def units(self) -> list[str]:
        """Units whose program gets another version."""
        touched = self.solution.changed | self.solution.new
        return sorted({UNIT_OF[name] for name in touched if name in UNIT_OF})


def drifted(wish: Wish, installed: Installed) -> list[str]:
    """The packages that are not as wanted, or of which only the manager can tell."""
    return sorted(n for n, wanted in wish.packages.items() if not _is(wanted, n, installed))


def is_adopted(
    wish: Wish, installed: Installed, record: Mapping[str, Entry], compare: Compare
) -> bool:
    """Is the whole set at the wanted versions or newer, and not by our doing?

    Then it came from somebody who looks after it, such as the vendor of the machine's image.
    Packages that are wanted at one version must be at one version: else they do not fit together.
    """
    if wish.on_newer != "adopt" or not wish.packages:
        return False
    newer = False
    together: dict[str, str] = {}
    for name, wanted in wish.packages.items():
        have = installed.packages.get(name)
        if have is None or not is_exact(wanted):
            return False
        brought = record.get(name)
        if brought is not None and brought.version == have.version:
            return False
        order = compare(have.version, wanted)
        if order < 0 or together.setdefault(wanted, have.version) != have.version:
            return False
        newer = newer or order > 0
    return newer


def choose(
    wish: Wish,
    names: Sequence[str],
    installed: Installed,
    offered: Mapping[str, Mapping[str, str]],
    record: Mapping[str, Entry],
    compare: Compare,
) -> tuple[dict[str, str], dict[str, str | None]]:
    """What to give the package manager, and the versions that come of it, by name.

    Raises MissingError for what nobody offers, RefusedError for a way down that nobody asked for.
    """
    arguments: dict[str, str] = {}
    versions: dict[str, str | None] = {}
    missing = []
    for name in names:
        wanted = wish.packages[name]
        if wanted in (PRESENT, CANDIDATE):
            arguments[name], versions[name] = name, None
            continue
        fitting = [one for one in offered.get(name, {}) if _fits(one, wanted)]
        if fitting:
            arguments[name], versions[name] = offered[name][fitting[0]], fitting[0]
        else:
            there = ", ".join(list(offered.get(name, {}))[:6]) or "no version at all"
            missing.append(f"{name} {wanted} (there is {there})")
    if missing:
        raise MissingError(_not_offered(wish, missing))
    _refuse_down(wish, versions, installed, record, compare)
    return arguments, versions


def judge(
    wish: Wish, solution: Solution, own: Collection[str], removing: Sequence[str] = ()
) -> None:
    """Raises RefusedError where the package manager would do more than it may.

    ``own`` are the packages of the set that are to change, ``removing`` those that are to go. One
    that is as it is wanted stays: it may change by ``also_change`` alone, and not to a version that
    is not wanted.
    """
    touched = solution.changed | solution.removed | solution.new | solution.configured
    drivers = sorted(name for name in touched | set(removing) if never_changed(name))
    if drivers:
        raise RefusedError(
            f"the package manager would change {', '.join(drivers)}: packages of the driver and "
            "the kernel are never changed here, since another version takes a reboot or the GPUs "
            "of those who use them. Bring them to their version by themselves, then run again",
            would_change=drivers,
        )
    kept = wish.packages if wish.present else {}
    spoiled = {
        name
        for name in (solution.changed & set(kept)) - set(own)
        if kept[name] != PRESENT and not _fits(solution.versions.get(name) or "", kept[name])
    }
    changed = sorted(spoiled | set(_outside(solution.changed - set(own), wish.also_change)))
    gone = solution.removed - set(removing)
    removed = sorted((gone & set(kept)) | set(_outside(gone, wish.also_remove)))
    if not changed and not removed:
        return
    told = []
    if changed:
        with_versions = [f"{name} to {solution.versions.get(name) or '?'}" for name in changed]
        told.append(f"change {', '.join(with_versions)}")
    if removed:
        told.append(f"remove {', '.join(removed)}")
    options = [*(["also_change"] if changed else []), *(["also_remove"] if removed else [])]
    raise RefusedError(
        f"beyond what was asked the package manager would {' and '.join(told)}. Nothing was "
        f"changed. Name them in {' and '.join(options)} if that is right, or choose versions "
        "that fit what is installed",
        would_change=changed,
        would_remove=removed,
    )


def engines_removed(names: Collection[str]) -> list[str]:
    """Those of the packages that an engine cannot do without."""
    return sorted(set(names) & set(ENGINE_PACKAGES))


def refuse_engine_removal(names: Collection[str], containers: Sequence[str]) -> None:
    """Raises RefusedError while there is a container that would end or be lost."""
    engines = engines_removed(names)
    if not engines or not containers:
        return
    more = f" and {len(containers) - 10} more" if len(containers) > 10 else ""
    raise RefusedError(
        f"{', '.join(engines)} would be removed while there are containers: "
        f"{', '.join(containers[:10])}{more}. Once they may end, remove them and run again",
        would_remove=engines,
    )


def refuse_endangered(names: Sequence[str], victims: Sequence[str]) -> None:
    """Raises RefusedError where scripts of packages may take somebody's GPU."""
    if victims:
        raise RefusedError(
            f"{', '.join(names)} was not touched: scripts of packages run systemctl daemon-reload, "
            f"which may take the GPU from {', '.join(victims)}. Let them end, or start them again "
            "with a GPU by CDI, then run again"
        )


def holds(wish: Wish, installed: Installed, record: Mapping[str, Entry]) -> dict[str, bool]:
    """What is to be held or released; packages that are not there yet are held."""
    wanted = {}
    for name in wish.packages:
        have = installed.packages.get(name)
        held = have is not None and have.held
        ours = name in record and record[name].hold
        if wish.hold and not held:
            wanted[name] = True
        elif not wish.hold and held and ours:
            wanted[name] = False
    return wanted


def recorded(plan: Plan) -> dict[str, Entry]:
    """The record as it must be before the plan is carried out."""
    entries = dict(plan.record)
    for name, version in plan.after.items():
        before = plan.before.get(name)
        entry = entries.get(name, Entry(before, None))
        if version != before or version is None:
            entry = replace(entry, version=version or PRESENT)
        if name in plan.holds:
            entry = replace(entry, hold=plan.holds[name])
        if entry.version is not None or entry.hold:
            entries[name] = entry
        else:
            entries.pop(name, None)
    for name in plan.removing:
        entries.pop(name, None)
    return entries


def to_take_back(
    wish: Wish, installed: Installed, record: Mapping[str, Entry]
) -> tuple[list[str], dict[str, bool], list[str]]:
    """For ``absent``: the packages that go, the holds that are released, and what stays and why."""
    names = sorted(set(wish.packages) & set(record) if wish.packages else record)
    there = [name for name in names if name in installed.packages]
    going = [name for name in there if record[name].installed]
    released = {
        name: False
        for name in there
        if name not in going and record[name].hold and installed.packages[name].held
    }
    notes = [
        f"{name} stays at {installed.packages[name].version}: it was there before, at "
        f"{record[name].former}"
        for name in there
        if name not in going and record[name].version is not None
    ]
    return going, released, notes


def told(plan: Plan) -> list[str]:
    """The plan in words."""
    lines = []
    if plan.unfinished:
        lines.append(f"finish what an interrupted run left half done: {_listed(plan.unfinished)}")
    for name, version in sorted(plan.after.items()):
        before = plan.before.get(name)
        if version == before:
            continue
        wanted = version or "the version that the sources offer"
        lines.append(f"install {name} {wanted}" + (f" (was {before})" if before else ""))
    if plan.unknown:
        lines.append("read the package lists anew first, since they do not have all of it")
    lines += [f"remove {name} {plan.before.get(name) or ''}".rstrip() for name in plan.removing]
    if plan.new:
        lines.append(f"install what they need: {_listed(plan.new)}")
    if plan.also_changed:
        lines.append(f"change beyond the set: {_listed(plan.also_changed)}")
    if plan.also_removed:
        lines.append(f"remove beyond the set: {_listed(plan.also_removed)}")
    for verb, held in (("hold", True), ("no longer hold", False)):
        names = sorted(name for name, wanted in plan.holds.items() if wanted is held)
        if names:
            lines.append(f"{verb} {_listed(names)}")
    verb = "write" if plan.wish.present else "remove"
    return lines + [f"{verb} {path}" for path in plan.guards]


def _is(wanted: str, name: str, installed: Installed) -> bool:
    have = installed.packages.get(name)
    if have is None or wanted == CANDIDATE:
        return False
    return wanted == PRESENT or _fits(have.version, wanted)


def is_exact(wanted: str) -> bool:
    """Does it name one version?"""
    return wanted not in (PRESENT, CANDIDATE) and "*" not in wanted


def _fits(version: str, wanted: str) -> bool:
    if is_exact(wanted):
        return version == wanted
    # Nothing but the star has a meaning; versions may hold any other character.
    return re.fullmatch(re.escape(wanted).replace(r"\*", ".*"), version) is not None


def _not_offered(wish: Wish, missing: Sequence[str]) -> str:
    if wish.offline:
        return (
            f"the files hold no {', no '.join(missing)}. Add the file to `files`, or correct the "
            "version"
        )
    return (
        f"no package source of this host has {', nor '.join(missing)}. Correct the version, add a "
        "source, or give the package itself in `files`"
    )


def _refuse_down(
    wish: Wish,
    versions: Mapping[str, str | None],
    installed: Installed,
    record: Mapping[str, Entry],
    compare: Compare,
) -> None:
    down = []
    for name, version in versions.items():
        have = installed.packages.get(name)
        if version is None or have is None or compare(have.version, version) <= 0:
            continue
        ours = name in record and record[name].version == have.version
        # With `adopt` an exact set that is only partly newer is brought together.
        repaired = wish.on_newer == "adopt" and (ours or is_exact(wish.packages[name]))
        if wish.on_newer != "downgrade" and not repaired:
            down.append(f"{name} {have.version} (wanted {wish.packages[name]})")
    if down:
        raise RefusedError(
            f"newer than wanted: {', '.join(down)}. Set on_newer: downgrade to go back to the "
            "older version, or want the newer one"
        )


def _outside(names: Collection[str], allowed: Sequence[str]) -> list[str]:
    return sorted(name for name in names if not matches(name, allowed))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"
