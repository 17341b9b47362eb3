# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All packages of the driver at one release: planned, judged, and carried out by apt or dnf.

:mod:`..package_sets` never changes a driver. Here it is what is asked, so the rules are others:
everything that has to be in step goes along, the kernel stays, and nothing outside the driver
moves.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..atomic import read_text
from ..checks.versions import order
from ..package_sets.managers import Manager
from ..package_sets.model import MissingError, Solution
from ..packages import NVIDIA_PATTERNS, matches
from ..settings.files import header
from . import judge, names, tables
from .model import DriverError, DriverRefusedError, View, Wish

PIN = "/etc/apt/preferences.d/steadygpu-driver"
_PREFERENCES = "etc/apt/preferences"
# A pin above 1000 allows the way down (apt_preferences(5)); the one of a plan beats one on disk.
_PRIORITY = 1001
_PRIORITY_OF_PLAN = 1002
Managers = Callable[[Sequence[str]], Manager]

# Another image of these is another kernel at the next boot.
_KERNELS = ("linux-image*", "linux-modules-[0-9]*", "linux-generic*", "kernel", "kernel-core*")


@dataclass(frozen=True)
class Transaction:
    """``before`` and ``after`` are versions by name; with ``unknown`` only newer lists can tell."""

    release: str | None
    arguments: tuple[str, ...] = ()
    before: Mapping[str, str | None] = field(default_factory=dict)
    after: Mapping[str, str | None] = field(default_factory=dict)
    solution: Solution = field(default_factory=Solution)
    unknown: bool = False

    @property
    def brings_module(self) -> bool:
        """Does the kernel get a module by it?"""
        touched = {*self.solution.new, *self.solution.changed}
        return any(map(names.is_kernel_side, self.after if self.unknown else touched))

    def told(self) -> list[str]:
        """In words."""
        lines = []
        if self.unknown:
            lines.append("read the package lists anew first, since they do not have all of it")
        for name, version in sorted(self.after.items()):
            before = self.before.get(name)
            if version != before or self.unknown:
                was = f" (was {before})" if before else ""
                of = version or self.release or "of the newest release"
                lines.append(f"install {name} {of}{was}")
        others = sorted((self.solution.new | self.solution.changed) - set(self.after))
        if others:
            shown = ", ".join(others[:12])
            more = f" and {len(others) - 12} more" if len(others) > 12 else ""
            lines.append(f"install what they need: {shown}{more}")
        if self.solution.removed:
            lines.append(f"remove {', '.join(sorted(self.solution.removed))}")
        return lines


def pin_text(release: str, priority: int = _PRIORITY) -> str:
    """Preferences by which apt takes this release of every package of the driver."""
    patterns = " ".join(NVIDIA_PATTERNS)
    return (
        f"{header('driver')}"
        f"Package: {patterns}\n"
        f"Pin: version /^([0-9]+:)?{release.replace('.', '[.]')}([^0-9.]|$)/\n"
        f"Pin-Priority: {priority}\n"
    )


def wanted_names(wish: Wish, view: View) -> list[str]:
    """The packages that are to be there: those that were named, and what has to go along."""
    named = _named(wish, view)
    if not named:
        raise DriverRefusedError(
            f"which packages make a driver on {view.os.name or 'this system'} is not known here: "
            "name them in packages, with the module, the libraries, and nvidia-smi"
        )
    chosen = any(map(names.is_kernel_side, named))
    along = [
        name for name in names.in_step(view.versions) if not (chosen and names.is_kernel_side(name))
    ]
    return sorted({*named, *along})


def drifted(wish: Wish, view: View, wanted: Sequence[str]) -> bool:
    """Is anything missing, or not of the one release that is wanted?"""
    there = view.versions
    named = set(_named(wish, view))
    if named - set(there):
        return True
    releases = {release for name, release in names.in_step(there).items() if name in wanted}
    if len(releases) > 1:
        return True
    if wish.version is None:
        return False
    if names.release_of(wish.version) == wish.version:
        return releases != {wish.version}
    return any(
        there[name] != wish.version for name in named if names.is_in_step(name) and name in there
    )


def plan(
    wish: Wish, view: View, managers: Managers, root: str, check_mode: bool
) -> Transaction | None:
    """What the package manager would do, judged; None when there is nothing to do.

    ``managers`` makes one with further options. Raises DriverRefusedError, PackageError.
    """
    wanted = wanted_names(wish, view)
    if not drifted(wish, view, wanted):
        return None
    try:
        made = _solved(wish, view, managers, wanted, root)
    except MissingError as error:
        if wish.offline or not wish.update_cache:
            raise DriverRefusedError(str(error)) from error
        if check_mode:
            before = {name: view.versions.get(name) for name in wanted}
            release = names.release_of(wish.version) if wish.version else None
            after: dict[str, str | None] = dict.fromkeys(wanted, None)
            return Transaction(release, (), before, after, unknown=True)
        managers(()).refresh()
        try:
            made = _solved(wish, view, managers, wanted, root)
        except MissingError as still:
            raise DriverRefusedError(str(still)) from still
    wrong = [*refuse_solution(wish, view, made), *refuse_now(view, made)]
    if wrong:
        raise DriverRefusedError("; ".join(wrong))
    return made


def refuse_now(view: View, made: Transaction) -> list[str]:
    """Why it may not be done at this moment, or not to this kernel. Pure."""
    touched = made.solution.new | made.solution.changed | made.solution.configured
    return judge.refuse_change(view, touched, made.solution.new, made.release)


def refuse_solution(wish: Wish, view: View, made: Transaction) -> list[str]:
    """Why what the package manager would do is not what was asked. Pure."""
    solution = made.solution
    wrong = []
    kernels = sorted(n for n in solution.new | solution.changed if matches(n, _KERNELS))
    if kernels:
        wrong.append(
            f"the package manager would bring another kernel ({', '.join(kernels)}), which the "
            "next boot would start: bring the kernel first, reboot into it, and run again"
        )
    beyond = sorted(
        name
        for name in solution.changed
        if not matches(name, (*NVIDIA_PATTERNS, *wish.also_change)) and name not in kernels
    )
    if beyond:
        shown = [f"{name} to {solution.versions.get(name) or '?'}" for name in beyond]
        wrong.append(
            f"beyond the driver it would change {', '.join(shown)}: name them in also_change if "
            "that is right"
        )
    gone = sorted(
        name
        for name in solution.removed
        if name in made.after or not matches(name, NVIDIA_PATTERNS)
    )
    if gone:
        wrong.append(f"it would remove {', '.join(gone)}: choose packages that fit each other")
    after = {**view.versions, **solution.versions}
    left = {
        name: release
        for name, release in names.in_step(after).items()
        if release != made.release and name not in solution.removed
    }
    if left:
        shown = [f"{name} ({release})" for name, release in sorted(left.items())]
        wrong.append(
            f"{', '.join(shown)} would not be of release {made.release}, and a driver of two "
            "releases does not work: add a source that has them in that release, or remove them"
        )
    return wrong


def see(made: Transaction, view: View, log: str | None) -> None:
    """Raises DriverError where the package manager did not do what it was told."""
    there = view.versions
    wrong = [
        f"{name} is at {there.get(name) or 'no version'} (wanted {version})"
        for name, version in sorted(made.after.items())
        if version is not None and there.get(name) != version
    ]
    building = any(map(names.builds_module, {*made.solution.new, *made.solution.changed}))
    if building and view.on_disk != made.release:
        where = f"look at {log}" if log else "run dkms autoinstall, and look at what it says"
        wrong.append(
            f"DKMS has built no module {made.release} for kernel {view.kernel} "
            f"(there is {view.on_disk or 'none'}): {where}"
        )
    if wrong:
        raise DriverError(f"the package manager ended without a complaint, but {'; '.join(wrong)}")


def _solved(
    wish: Wish, view: View, managers: Managers, wanted: Sequence[str], root: str
) -> Transaction:
    offered = managers(()).offered([*wanted, *_headers(view)])
    named = set(_named(wish, view))
    steps = {
        name: _by_release(offered.get(name, {}), wish.version)
        for name in wanted
        if names.is_in_step(name)
    }
    release = _release(wish, steps, named)
    arguments: list[str] = []
    after: dict[str, str | None] = {}
    for name in wanted:
        have = view.versions.get(name)
        if name in steps and release in steps[name]:
            version = steps[name][release]
            after[name] = version
            if version != have:
                arguments.append(offered[name][version])
        elif name not in steps and have is None:
            arguments.append(name)
            after[name] = next(iter(offered.get(name, {})), None)
    building = any(names.builds_module(name) for name in after)
    kernel = view.running
    if building and (kernel is None or not kernel.headers):
        arguments += [
            next(iter(offered[name].values())) for name in _headers(view) if offered[name]
        ]
    if view.installed.manager == "dpkg":
        with _preferring(release, root) as path:
            options = ("-o", f"Dir::Etc::preferences={path}")
            solution = managers(options).solve("install", arguments)
    else:
        solution = managers(()).solve("install", arguments)
    before = {name: view.versions.get(name) for name in after}
    return Transaction(release, tuple(arguments), before, after, solution)


def _named(wish: Wish, view: View) -> tuple[str, ...]:
    flavour = judge.flavour_of(wish, view)
    return wish.packages or tables.packages_for(view.os.id, flavour)


def _release(wish: Wish, steps: Mapping[str, Mapping[str, str]], named: Collection[str]) -> str:
    asked = {name: releases for name, releases in steps.items() if name in named}
    if wish.version is not None:
        release = names.release_of(wish.version)
        if release is None:
            raise DriverRefusedError(
                f"{wish.version} is no version of a driver; wanted is one such as 580.95.05 or "
                "580.95.05-1"
            )
        lacking = {name: found for name, found in asked.items() if release not in found}
        if lacking:
            told = [
                f"{name} {wish.version} (there is {', '.join(list(found)[:4]) or 'no version'})"
                for name, found in sorted(lacking.items())
            ]
            raise MissingError(
                f"no package source of this host has {', nor '.join(told)}. Correct the version, "
                "add a source, or give the packages in files"
            )
        return release
    common = set.intersection(*(set(found) for found in asked.values())) if asked else set()
    if not common:
        told = [f"{name}: {', '.join(found) or 'nothing'}" for name, found in sorted(asked.items())]
        raise MissingError(
            f"the package sources of this host have no release of all packages ({'; '.join(told)})."
            " Add a source that has"
        )
    return max(common, key=functools.cmp_to_key(order.compare))


def _by_release(offered: Mapping[str, str], version: str | None) -> dict[str, str]:
    """The newest version of each release; a whole version names itself alone."""
    exact = version is not None and names.release_of(version) != version
    found: dict[str, str] = {}
    for one in offered:
        release = names.release_of(one)
        if release is not None and (not exact or one == version):
            found.setdefault(release, one)
    return found


def _headers(view: View) -> list[str]:
    """The package with the headers of the running kernel, by dpkg's name."""
    if view.kernel is None or view.installed.manager != "dpkg":
        return []
    return [f"linux-headers-{view.kernel}"]


@contextlib.contextmanager
def _preferring(release: str, root: str) -> Iterator[str]:
    """A file of preferences with the pin, for a plan: nothing is written on the host for that."""
    own = read_text(os.path.join(root, _PREFERENCES)) or ""
    with tempfile.NamedTemporaryFile("w", suffix=".pref") as handle:
        handle.write(f"{own}\n\n{pin_text(release, _PRIORITY_OF_PLAN)}")
        handle.flush()
        yield handle.name
