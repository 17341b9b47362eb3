# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back of packages: to a version that the host still has, the whole set at once.

Driver and kernel are never touched, and an engine only while no container exists, since its
packages restart it. Packages with units tell systemd of them, so nothing at all is done while a
daemon-reload may take somebody's GPU. What apt or dnf would do beyond the set is refused before it
begins. Images and volumes stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from ... import packages
from ...package_sets import apt, dnf, managers, occupants
from ...package_sets.model import PackageError
from ...process import CommandMissingError
from ...slices import reader, reload
from ...units import UnitError
from ..model import Done, Left, RollbackError, Step
from ..observation import package_names
from . import put_back
from .actors_api import Context

# Packages whose versions belong together: only all of a set go to another version, or none.
_SETS: Mapping[str, frozenset[str]] = {
    "the container toolkit": frozenset(packages.TOOLKIT_PACKAGES),
    "the engine": frozenset(packages.ENGINE_PACKAGES),
}

# Purging it deletes all images and volumes: its postrm runs nuke-graph-directory.sh (Debian,
# Ubuntu). Docker's own packages leave them (docs.docker.com, "Uninstall Docker Engine").
_PURGE_DELETES_DATA = frozenset({"docker.io"})

# What is under way by somebody else, or by a restore that was killed, is waited for so long.
_WAIT_S = 300.0
_FAILURES = (CommandMissingError, PackageError, UnitError)


def install(step: Step, context: Context, socket: str) -> Done:
    """Bring packages to their former versions, where these can still be had.

    Raises RollbackError when the package manager failed.
    """
    try:
        return _install(step.details["packages"], context, socket)
    except _FAILURES as error:
        raise RollbackError(str(error)) from error


def remove(step: Step, context: Context, socket: str) -> Done:
    """Remove packages that were not there. Raises RollbackError when the manager failed."""
    try:
        return _remove(step.details["packages"], context, socket)
    except _FAILURES as error:
        raise RollbackError(str(error)) from error


def hold(step: Step, context: Context) -> Done:
    """Hold or release packages, as far as they are installed. Raises RollbackError."""
    installed = packages.read_installed(context.root)
    wanted = {
        name: bool(held)
        for name, held in step.details["packages"].items()
        if name in installed.packages and installed.packages[name].held != held
    }
    if not wanted:
        return Done()
    try:
        if installed.manager == "dpkg":
            apt.Apt(context.root).hold(wanted)
        else:
            dnf.Dnf().hold(wanted)
    except _FAILURES as error:
        raise RollbackError(str(error)) from error
    return Done(True)


def endangered(root: str, socket: str) -> list[str]:
    """Who may lose a GPU by the scripts of packages; while anybody may, no package changes."""
    return reload.endangered(socket) if reader.has_systemd(root) else []


def owner_of(path: str) -> str | None:
    """The package that brought a file; None for a file of nobody, and where it cannot be asked."""
    manager = packages.read_installed().manager
    try:
        if manager == "dpkg":
            return apt.owner_of(path)
        return dnf.owner_of(path) if manager == "rpm" else None
    except CommandMissingError:
        return None


def choose(
    wanted: Mapping[str, str],
    available: Mapping[str, Mapping[str, str]],
    containers: Sequence[str],
) -> tuple[dict[str, str], list[Left]]:
    """What the package manager is to be given by package, and what stays and why. Pure.

    ``wanted`` are versions by name, ``available`` what can be had as the readers tell it.
    """
    chosen: dict[str, str] = {}
    left: list[Left] = []
    for what, names in _sets(wanted):
        missing = [name for name in names if wanted[name] not in available.get(name, {})]
        reason = None
        if any(package_names.never_alone(name) for name in names):
            reason = "packages of the driver and the kernel are never changed by a restore"
        elif missing:
            told = ", ".join(f"{name} {wanted[name]}" for name in missing)
            there = {version for name in missing for version in available.get(name, {})}
            reason = (
                f"{what} stays at its version: no package source of this host has {told} any more "
                f"(it has {', '.join(sorted(there)) or 'none'})"
            )
        elif what == "the engine" and containers:
            reason = _engine_stays(containers)
        if reason:
            left += [Left(name, reason, pending=bool(containers)) for name in names]
        else:
            chosen.update({name: available[name][wanted[name]] for name in names})
    return chosen, left


def _install(versions: Mapping[str, str], context: Context, socket: str) -> Done:
    wanted = _differing(versions, packages.read_installed(context.root))
    if not wanted:
        return Done()
    victims = endangered(context.root, socket)
    if victims:
        return Done(left=_wait(wanted, victims))
    with managers.alone(context.root, _WAIT_S):
        return _bring(wanted, context, socket)


def _bring(versions: Mapping[str, str], context: Context, socket: str) -> Done:
    deb = packages.read_installed(context.root).manager == "dpkg"
    manager: managers.Manager = apt.Apt(context.root) if deb else dnf.Dnf()
    # The package manager of a restore that was killed may be at it still.
    managers.wait_until_free(manager, context.root, _WAIT_S)
    wanted = _differing(versions, packages.read_installed(context.root))
    if not wanted:
        return Done(True)
    found = manager.offered(sorted(wanted))
    chosen, left = choose(wanted, found, _containers(wanted, socket, context))
    if not chosen:
        return Done(left=tuple(left))
    arguments = [chosen[name] for name in sorted(chosen)]
    if deb:
        simulated = manager.solve("install", arguments)
        also = (simulated.changed | simulated.removed) - set(chosen)
        also |= {n for n in simulated.new | simulated.configured if package_names.never_alone(n)}
        if also:
            return Done(left=(*left, *_refused(chosen, also)))
    _finish(manager, context, socket)
    with _engines_kept(manager, chosen, context) as environment:
        manager.do("install", arguments, environment)
    return Done(True, tuple(left))


def _remove(names: Collection[str], context: Context, socket: str) -> Done:
    installed = packages.read_installed(context.root)
    going = sorted({*installed.packages, *installed.half_done} & set(names))
    if not going:
        return Done()
    victims = endangered(context.root, socket)
    if victims:
        return Done(left=_wait(going, victims))
    left: list[Left] = []
    containers = _containers(going, socket, context)
    for what, members in _sets(going):
        reason = None
        if any(package_names.never_alone(name) for name in members):
            reason = "packages of the driver and the kernel are never changed by a restore"
        elif what == "the engine" and containers:
            reason = _engine_stays(containers)
        if reason:
            left += [Left(name, reason, pending=bool(containers)) for name in members]
            going = [name for name in going if name not in members]
    if not going:
        return Done(left=tuple(left))
    with managers.alone(context.root, _WAIT_S):
        if installed.manager != "dpkg":
            dnf.remove(going)
            return Done(True, tuple(left))
        return _purge(going, left, context, socket)


def _purge(going: Sequence[str], left: Sequence[Left], context: Context, socket: str) -> Done:
    manager = apt.Apt(context.root)
    managers.wait_until_free(manager, context.root, _WAIT_S)
    solved = manager.solve("purge", going)
    also = solved.removed - set(going)
    also |= {name for name in solved.configured if package_names.never_alone(name)}
    if also:
        return Done(left=(*left, *_refused(going, also)))
    notes = []
    with_data = [name for name in going if name in _PURGE_DELETES_DATA]
    purged = [name for name in going if name not in _PURGE_DELETES_DATA]
    _finish(manager, context, socket)
    if with_data:
        _take(manager, "remove", with_data, context)
        names = ", ".join(with_data)
        notes.append(f"{names} was removed, not purged: a purge would delete images and volumes")
    if purged:
        for path in apt.edited_conffiles(purged, context.root):
            kept = put_back.keep_conflict(path, context.root)
            if kept:
                notes.append(f"{path} was edited; it is kept as {kept}, since its package goes")
        _take(manager, "purge", purged, context)
    return Done(True, tuple(left), tuple(notes))


def _take(manager: apt.Apt, verb: str, names: Sequence[str], context: Context) -> None:
    with managers.engines_kept(manager, context.root, names) as environment:
        manager.do(verb, names, environment)


def _finish(manager: managers.Manager, context: Context, socket: str) -> None:
    managers.finish(manager, context.root, lambda: endangered(context.root, socket))


def _engines_kept(
    manager: managers.Manager, names: Collection[str], context: Context
) -> AbstractContextManager[Mapping[str, str]]:
    """An engine runs on, unless it is what changes: that is only done while nobody has a container,
    and its packages restart it.
    """
    if _SETS["the engine"] & set(names):
        return nullcontext({})
    return managers.engines_kept(manager, context.root)


def _differing(versions: Mapping[str, str], installed: packages.Installed) -> dict[str, str]:
    """Those that are at another version, or not there."""
    there = installed.packages
    return {
        name: version
        for name, version in versions.items()
        if name not in there or there[name].version != version
    }


def _sets(names: Collection[str]) -> list[tuple[str, list[str]]]:
    """The names by set, each other package as a set of its own."""
    found = []
    rest = set(names)
    for what, members in _SETS.items():
        inside = sorted(rest & members)
        if inside:
            found.append((what, inside))
            rest -= members
    return [*found, *((name, [name]) for name in sorted(rest))]


def _engine_stays(containers: Sequence[str]) -> str:
    listed = ", ".join(containers[:10])
    more = f" and {len(containers) - 10} more" if len(containers) > 10 else ""
    return (
        f"the engine stays as it is while there are containers: {listed}{more}. Once they may end, "
        "remove them and restore again"
    )


def _refused(names: Collection[str], also: Collection[str]) -> list[Left]:
    reason = "the package manager would also change or remove {}; do it by hand".format(
        ", ".join(sorted(also))
    )
    return [Left(name, reason) for name in sorted(names)]


def _wait(names: Collection[str], victims: Sequence[str]) -> tuple[Left, ...]:
    reason = (
        "packages stay as they are for now: their scripts run systemctl daemon-reload, which may "
        "take the GPU from {}".format(", ".join(victims))
    )
    return tuple(Left(name, reason, pending=True) for name in sorted(names))


def _containers(names: Collection[str], socket: str, context: Context) -> list[str]:
    """All containers of the host, if one of the packages is an engine's."""
    if not _SETS["the engine"] & set(names):
        return []
    return occupants.all_containers(socket, context.root, context.options.deadline_s)
