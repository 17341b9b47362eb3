# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the host, ask its package manager, carry out a plan, and see that it came true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import packages, upgrade_guard
from ..engine.docker_api import DEFAULT_SOCKET
from ..engine.services import Service, read_services
from ..packages import Installed
from ..slices import reader, reload
from . import archives, dnf, guard, managers, occupants, plan, record
from .apt import Apt
from .managers import Manager
from .model import (
    CANDIDATE,
    PRESENT,
    FetchError,
    MissingError,
    PackageError,
    RefusedError,
    Solution,
    Wish,
)
from .plan import Plan

# What runs containers, and must run on untouched.
_WATCHED = ("docker.service", "containerd.service")


@dataclass(frozen=True)
class Outcome:
    """``after`` are the versions there now, ``restarted`` units that should have run on."""

    plan: Plan
    after: Mapping[str, str | None]
    restart_pending: Sequence[str] = ()
    restarted: Sequence[str] = ()


class Host:
    """The host below ``root`` and the engine behind ``socket``."""

    def __init__(self, root: str = "/", socket: str = DEFAULT_SOCKET) -> None:
        self.root = root
        self._socket = socket

    def installed(self) -> Installed:
        """What the package database says. Raises RefusedError without one."""
        found = packages.read_installed(self.root)
        if found.manager is None or not found.packages:
            raise RefusedError(
                "neither dpkg nor rpm could tell what is installed on this host, so nothing is "
                "installed on it"
            )
        return found

    def manager(self, kind: str | None, wish: Wish, found: Sequence[archives.Archive]) -> Manager:
        """The package manager, with the options of the wish."""
        if kind == "dpkg":
            timeouts = {"lock_timeout_s": wish.lock_timeout_s, "deadline_s": wish.deadline_s}
            return Apt(self.root, wish.options, found, wish.offline, **timeouts)
        return dnf.Dnf(wish.options, found, wish.offline, wish.deadline_s)

    def endangered(self) -> list[str]:
        """Who may lose a GPU by the daemon-reload of a package's script."""
        return reload.endangered(self._socket) if reader.has_systemd(self.root) else []

    def containers(self) -> list[str]:
        """All containers, stopped ones too."""
        return occupants.all_containers(self._socket, self.root)

    def services(self) -> dict[str, Service]:
        """The engines' units."""
        return read_services(_WATCHED)


def make_plan(wish: Wish, host: Host, check_mode: bool) -> Plan:
    """Decide. Without check mode the package lists are read anew where they are too old.

    Raises RefusedError, PackageError, CommandMissingError, OSError.
    """
    installed = host.installed()
    known = record.read(host.root)
    found = [] if check_mode and archives.missing(wish.files) else _archives(wish, installed)
    if not wish.packages and wish.present:
        wish = replace(wish, packages={one.name: one.version for one in found})
    manager = host.manager(installed.manager, wish, found)
    if not wish.present:
        return _plan_absent(wish, host, manager, installed, known)
    before = {name: _version(name, installed) for name in wish.packages}
    start = Plan(
        wish,
        before,
        before,
        held=_held(before, installed),
        holds=plan.holds(wish, installed, known),
        record=known,
        unfinished=tuple(installed.unfinished) if manager.interrupted() else (),
        adopted=plan.is_adopted(wish, installed, known, manager.compare),
        guards=upgrade_guard.missing(installed.manager, host.root) if wish.guard_upgrades else (),
    )
    names = [] if start.adopted else plan.drifted(wish, installed)
    made = start
    if names and check_mode and archives.missing(wish.files):
        made = _not_known(start, names)
    elif names:
        made = _plan_install(start, names, host, manager, installed, check_mode)
    if made.transaction or made.unknown or made.unfinished:
        plan.refuse_endangered(names or made.unfinished, host.endangered())
    return made


def foresee(wish: Wish, host: Host) -> Outcome:
    """What :func:`carry_out` would do. Changes nothing; raises what :func:`make_plan` raises."""
    made = make_plan(wish, host, check_mode=True)
    services = host.services() if made.transaction else {}
    pending = [unit for unit in services if services[unit].active and unit in made.units]
    return Outcome(made, made.after, pending)


def difference(outcome: Outcome) -> dict[str, str]:
    """Versions and holds before and after, as Ansible's diff."""
    made = outcome.plan
    before = [
        f"{name} {version}{' (held)' if name in made.held else ''}\n"
        for name, version in sorted(made.before.items())
        if version is not None
    ]
    after = [
        f"{name} {version}{' (held)' if made.will_hold(name) else ''}\n"
        for name, version in sorted(outcome.after.items())
        if version is not None
    ]
    beyond = made.solution.versions
    after += [f"{name} {beyond.get(name, '')}\n" for name in (*made.new, *made.also_changed)]
    before += [f"{name}\n" for name in (*made.also_changed, *made.also_removed)]
    header = "packages"
    return {
        "before_header": header,
        "after_header": header,
        "before": "".join(before),
        "after": "".join(after),
    }


def carry_out(wish: Wish, host: Host) -> Outcome:
    """Make a plan and do it, alone. Raises what :func:`make_plan` raises."""
    with managers.alone(host.root, wish.lock_timeout_s):
        unfinished = _settle(wish, host)
        made = make_plan(wish, host, check_mode=False)
        try:
            outcome = _do(made, host)
        except FetchError:
            if wish.offline or not wish.update_cache:
                raise
            # The lists name files that the source no longer has.
            host.manager(host.installed().manager, wish, ()).refresh()
            outcome = _do(make_plan(wish, host, check_mode=False), host)
    return replace(outcome, plan=replace(outcome.plan, unfinished=unfinished))


def _settle(wish: Wish, host: Host) -> tuple[str, ...]:
    """End what a killed run left; what was half done. Without anything to do nobody is asked."""
    installed = host.installed()
    drift = plan.drifted(wish, installed) or installed.unfinished or not wish.present
    if not drift and not guard.left_behind(host.root):
        return ()
    manager = host.manager(installed.manager, wish, ())
    managers.wait_until_free(manager, host.root, wish.lock_timeout_s)
    return managers.finish(manager, host.root, host.endangered)


def _plan_install(
    start: Plan,
    names: Sequence[str],
    host: Host,
    manager: Manager,
    installed: Installed,
    check_mode: bool,
) -> Plan:
    wish = start.wish
    try:
        made = _solved(start, names, manager, installed)
    except MissingError as error:
        if wish.offline or not wish.update_cache:
            raise
        if check_mode:
            return _not_known(start, names)
        said = manager.refresh()
        try:
            made = _solved(start, names, manager, installed)
        except MissingError as still:
            told = f"{still}. Reading the lists anew, it was said: {said}" if said else str(still)
            raise RefusedError(told) from error
    plan.judge(wish, made.solution, names)
    if plan.engines_removed(made.solution.removed):
        plan.refuse_engine_removal(made.solution.removed, host.containers())
    return made


def _solved(start: Plan, names: Sequence[str], manager: Manager, installed: Installed) -> Plan:
    wish = start.wish
    asked = [name for name in names if wish.packages[name] not in (PRESENT, CANDIDATE)]
    offered = manager.offered(asked) if asked else {}
    arguments, versions = plan.choose(
        wish, names, installed, offered, start.record, manager.compare
    )
    solution = manager.solve("install", list(arguments.values()))
    after = dict(start.before)
    for name, version in versions.items():
        after[name] = version or solution.versions.get(name) or start.before[name]
    # One that is as it was wanted changes too, and may: then that is what has to be there.
    for name in (solution.changed & set(after)) - set(versions):
        after[name] = solution.versions.get(name) or after[name]
    # Nothing is left to do where the candidate is installed already.
    given = () if solution == Solution() else tuple(arguments.values())
    return replace(start, after=after, arguments=given, solution=solution)


def _not_known(start: Plan, names: Sequence[str]) -> Plan:
    after = dict(start.before)
    for name in names:
        wanted = start.wish.packages[name]
        after[name] = wanted if plan.is_exact(wanted) else None
    return replace(start, after=after, unknown=True)


def _plan_absent(
    wish: Wish,
    host: Host,
    manager: Manager,
    installed: Installed,
    known: Mapping[str, record.Entry],
) -> Plan:
    going, released, notes = plan.to_take_back(wish, installed, known)
    whole = not wish.packages
    named = sorted(known if whole else set(wish.packages) & set(known))
    before = {name: _version(name, installed) for name in named}
    after = {name: None if name in going else version for name, version in before.items()}
    wish = replace(wish, packages=dict.fromkeys(named, PRESENT))
    left = {name: entry for name, entry in known.items() if name not in named}
    made = Plan(
        wish,
        before,
        after,
        held=_held(before, installed),
        removing=tuple(going),
        holds=released,
        record=left,
        notes=tuple(notes),
        guards=upgrade_guard.there(host.root) if whole else (),
    )
    if not going:
        return made
    plan.refuse_endangered(going, host.endangered())
    if plan.engines_removed(going):
        plan.refuse_engine_removal(going, host.containers())
    solution = manager.solve("remove", going)
    plan.judge(wish, solution, (), going)
    return replace(made, solution=solution)


def _do(made: Plan, host: Host) -> Outcome:
    wish, root = made.wish, host.root
    installed = host.installed()
    manager = host.manager(installed.manager, wish, _archives(wish, installed))
    services = host.services() if made.transaction else {}
    if made.guards and wish.present:
        upgrade_guard.install(installed.manager, root)
    if wish.present:
        record.write(plan.recorded(made), root)
    if made.removing:
        going = {*made.removing, *made.solution.removed}
        with managers.engines_kept(manager, root, going) as environment:
            manager.do("remove", made.removing, environment)
    elif made.transaction:
        with managers.engines_kept(manager, root) as environment:
            manager.do("install", made.arguments, environment)
        installed = host.installed()
        _see(made, installed)
    # A package manager may release what it changes.
    wanted = {**made.holds, **(plan.holds(wish, installed, made.record) if wish.present else {})}
    wanted = {name: held for name, held in wanted.items() if name in installed.packages}
    if wanted:
        manager.hold(wanted)
    after = {name: _version(name, installed) for name in made.before}
    if wish.present:
        record.write(plan.recorded(replace(made, after=after)), root)
        return _outcome(made, after, services, host)
    if made.guards:
        upgrade_guard.remove(root)
    record.write(made.record, root)
    gone = {name: None if name in made.removing else version for name, version in after.items()}
    return Outcome(made, gone)


def _outcome(
    made: Plan, after: Mapping[str, str | None], services: Mapping[str, Service], host: Host
) -> Outcome:
    if not made.transaction:
        return Outcome(made, after)
    now = host.services()
    ran = [unit for unit in services if services[unit].active and services[unit].main_pid]
    restarted = [unit for unit in ran if now[unit].main_pid != services[unit].main_pid]
    pending = [unit for unit in ran if unit in made.units and unit not in restarted]
    return Outcome(made, after, pending, restarted)


def _see(made: Plan, installed: Installed) -> None:
    """Raises PackageError if the package manager did not do what it was told."""
    wrong = [
        f"{name} is at {_version(name, installed) or 'no version'} (wanted {version})"
        for name, version in made.after.items()
        if version is not None and _version(name, installed) != version
    ]
    if wrong:
        raise PackageError(
            f"the package manager ended without a complaint, but {', '.join(wrong)}. Look at its "
            "log (/var/log/apt/term.log, /var/log/dnf.log) and run again"
        )


def _archives(wish: Wish, installed: Installed) -> list[archives.Archive]:
    return archives.read(wish.files, installed.manager)


def _held(names: Iterable[str], installed: Installed) -> frozenset[str]:
    there = installed.packages
    return frozenset(name for name in names if name in there and there[name].held)


def _version(name: str, installed: Installed) -> str | None:
    have = installed.packages.get(name)
    return have.version if have else None
