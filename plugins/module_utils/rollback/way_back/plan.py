# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back from what a host is now to a checkpoint. Pure; :mod:`.restore` carries it out.

Order: packages come first, since they bring files; then units whose file will go are stopped, files
put back, slices, systemd told, live settings, MIG; Docker after all that its configuration names;
units are started when their configuration is in place; directories and packages go last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..model import (
    Area,
    Checkpoint,
    Left,
    PackageState,
    Plan,
    RestoreOptions,
    RollbackError,
    State,
    Step,
    UnitState,
)
from ..observation.package_names import never_alone
from ..scope import area_of
from .actors_api import (
    BOOT,
    CONTAINERD,
    HOLD,
    MIG,
    PACKAGE_INSTALL,
    PACKAGE_REMOVE,
    SYSCTL,
    SYSTEMD_RELOAD,
    UNIT,
)
from .plan_files import PathPlan, Writers, ask_docker_again, leave_specifications, plan_paths

_UNIT_DIRECTORY = "/etc/systemd/system"
# Parts of a state that a restore brings back beside the files.
_PARTS = ("units", "sysctls", "packages", "mig")
# What UnitFileState can be set to; ``static``, ``masked`` … are not a switch.
_SWITCH = frozenset({"enabled", "disabled"})


def make_plan(
    target: Checkpoint,
    now: State,
    vouched: Mapping[str, Sequence[str]],
    settled: Checkpoint | None,
    options: RestoreOptions,
    areas: Sequence[Area],
    machine: str,
    *,
    since_settled: Mapping[str, Sequence[str]] | None = None,
    window_open: bool = False,
    again: Mapping[str, Mapping[str, Any]] | None = None,
) -> Plan:
    """What to do, in order, and what stays as it is, and why.

    ``vouched`` are the digests (or ``absent``) by path that this collection wrote since the target,
    ``since_settled`` those since ``settled``, the last state that a confirm or restore left behind.
    ``machine`` is this host's machine-id. ``again`` are, by subject, details for the steps of which
    an earlier restore has left something: nothing of them shows in the states. Raises RollbackError
    for another host's checkpoint unless ``options.other_host``: then packages, units and MIG stay
    as they are.
    """
    refuse_foreign(target, options, machine)
    foreign = target.host.machine != machine
    later = settled is not None and settled.sequence > target.sequence
    writers = Writers(
        vouched=vouched,
        since_settled=since_settled or {},
        settled=None if settled is None else settled.state.files,
        settled_later=later and not foreign,
        window_open=window_open,
    )
    paths = plan_paths(target.state.files, now.files, areas, writers, target.looked)
    leave_specifications(paths, _driver(target.state), _driver(now))
    again = again or {}
    ask_docker_again(paths, target.state.files, now.files, areas, again)
    left = [*paths.left]
    skipped = _skipped(target.state, now, foreign, left)
    stops: list[Step] = []
    units: list[Step] = []
    if "units" not in skipped:
        stops = _stops(now, paths)
        units = _units(target.state, now, paths, left)
    settings: list[Step] = []
    if "sysctls" not in skipped:
        left_behind = settled.state if settled is not None and writers.settled_later else None
        settings = _sysctls(target.state, now, paths, writers, left_behind, areas, left)
    gpus = [] if "mig" in skipped else _mig(target.state, now, left)
    installs: list[Step] = []
    removes: list[Step] = []
    if "packages" not in skipped:
        installs, removes = _packages(target.state, now, options, left)
    if target.state.kernel_cmdline != now.kernel_cmdline:
        was, has = (_shown("", state.kernel_cmdline) for state in (target.state, now))
        left.append(
            Left(
                "kernel command line",
                f"was {was!r}, is {has!r}; a restore never writes the boot loader: change it by "
                "hand and reboot",
            )
        )
    steps = (
        *installs,
        *stops,
        *paths.parents,
        *paths.files,
        # Before the slices: a CPU burst bars a lower quota.
        *paths.settings,
        *paths.slices,
        *_reload(paths, again),
        *_boot(paths),
        *settings,
        *gpus,
        *paths.docker,
        *_containerd(paths, now, again),
        *units,
        *paths.removals,
        *removes,
        *_forget_units(removes),
    )
    return Plan(steps, tuple(sorted(paths.conflicts)), tuple(left))


def refuse_foreign(target: Checkpoint, options: RestoreOptions, machine: str) -> None:
    """Raises RollbackError for another machine's checkpoint, unless ``options.other_host``."""
    if target.host.machine != machine and not options.other_host:
        raise RollbackError(
            f"checkpoint {target.id} is of another machine ({target.host.hostname}, machine-id "
            f"{target.host.machine}; this host has {machine}); nothing was changed. To bring its "
            "files and settings here nevertheless say other_host: true (--other-host)"
        )


def _driver(state: State) -> str:
    driver = state.runtime.get("driver") or {}
    return str(driver.get("version") or "")


def _skipped(target: State, now: State, foreign: bool, left: list[Left]) -> set[str]:
    """The parts that are not restored; why goes to ``left``."""
    skipped = set()
    for part in _PARTS:
        if foreign and part != "sysctls":
            if getattr(target, part) != getattr(now, part):
                left.append(Left(part, "of another host; left as they are here"))
            skipped.add(part)
        elif part in target.unknown:
            why = target.unknown[part]
            left.append(Left(part, f"could not be read when the checkpoint was taken: {why}"))
            skipped.add(part)
        elif part in now.unknown:
            why = now.unknown[part]
            left.append(Left(part, f"cannot be read now: {why}", pending=True))
            skipped.add(part)
    return skipped


# -- systemd ----------------------------------------------------------------------------


def _stops(now: State, paths: PathPlan) -> list[Step]:
    """Units whose file is about to go: one that runs without a file cannot be managed."""
    going = []
    for path in paths.removed:
        unit = path.rpartition("/")[2]
        have = now.units.get(unit)
        if path != f"{_UNIT_DIRECTORY}/{unit}" or unit.endswith(".slice") or have is None:
            continue
        if have.active not in ("inactive", "failed"):
            going.append(Step(UNIT, unit, f"stop {unit}", {"active": "inactive"}))
    return sorted(going, key=lambda step: _in_order(step.subject))


def _units(target: State, now: State, paths: PathPlan, left: list[Left]) -> list[Step]:
    steps = []
    linked = {path.rpartition("/")[2] for path in paths.made if path.count(".wants/")}
    for unit in sorted(target.units, key=_in_order):
        want, have = target.units[unit], now.units.get(unit)
        # A slice is active while something is in it.
        if unit.endswith(".slice") or want.load == "not-found":
            continue
        if have is None or have.load == "not-found":
            if f"{_UNIT_DIRECTORY}/{unit}" not in paths.made:
                left.append(Left(unit, "is not installed any more"))
                continue
            have = UnitState("not-found", "inactive", "disabled")
        details: dict[str, Any] = {}
        if want.enabled != have.enabled and unit not in linked:
            if {want.enabled, have.enabled} <= _SWITCH:
                details["enabled"] = want.enabled
            else:
                left.append(Left(unit, f"was {want.enabled}, is {have.enabled}; left as it is"))
        if (want.active, have.active) in (
            ("active", "inactive"),
            ("active", "failed"),
            ("inactive", "active"),
        ):
            details["active"] = want.active
        if details:
            steps.append(Step(UNIT, unit, _unit_text(unit, details), details))
    return steps


def _in_order(unit: str) -> tuple[bool, str]:
    """What starts a service by itself comes before it: a socket would wake what was stopped."""
    return unit.endswith(".service"), unit


def _unit_text(unit: str, details: Mapping[str, Any]) -> str:
    words = {"enabled": "enable", "disabled": "disable", "active": "start", "inactive": "stop"}
    return f"{' and '.join(words[details[key]] for key in sorted(details))} {unit}"


def _reload(paths: PathPlan, again: Mapping[str, Any]) -> list[Step]:
    slices = {step.subject for step in paths.slices}  # their actor sees to systemd itself
    changed = [path for path in paths.telling("systemd") if path not in slices]
    if "systemd" in again:
        changed.append("what was put back before")
    if not changed:
        return []
    return [
        Step(SYSTEMD_RELOAD, "systemd", "tell systemd of its changed files", {"paths": changed})
    ]


def _boot(paths: PathPlan) -> list[Step]:
    changed = paths.telling("boot")
    if not changed:
        return []
    text = "make what the boot loader reads fit its files"
    return [Step(BOOT, "boot", text, {"paths": changed})]


def _forget_units(removes: Sequence[Step]) -> list[Step]:
    """Packages bring units; not every one tells systemd when it goes."""
    if not removes:
        return []
    text = "tell systemd that units of removed packages are gone"
    return [Step(SYSTEMD_RELOAD, "systemd", text, {"paths": ["units of removed packages"]})]


def _containerd(paths: PathPlan, now: State, again: Mapping[str, Any]) -> list[Step]:
    # Of a file that went before, its directory tells.
    former = now.files if "containerd.service" in again else ()
    changed = [
        path
        for path in sorted({*paths.made, *paths.removed, *former})
        if path.startswith("/etc/containerd/")
    ]
    if not changed:
        return []
    text = "see whether containerd runs with its configuration"
    return [Step(CONTAINERD, "containerd.service", text, {"paths": changed})]


# -- live settings ----------------------------------------------------------------------


def _kernel_files(vouched: Mapping[str, Sequence[str]], areas: Sequence[Area]) -> bool:
    """Has this collection written a sysctl file?"""
    found = (area_of(path, areas) for path in vouched)
    return any(area is not None and area.tells == "sysctl" for area in found)


def _sysctls(
    target: State,
    now: State,
    paths: PathPlan,
    writers: Writers,
    settled: State | None,
    areas: Sequence[Area],
    left: list[Left],
) -> list[Step]:
    """Live values that went with a file of ours; what others set by hand is theirs.

    ``settled`` is what we left behind since the target, if anything.
    """
    change = bool(paths.telling("sysctl"))
    since_target = change or _kernel_files(writers.vouched, areas)
    since_settled = change or _kernel_files(writers.since_settled, areas)
    steps = []
    for name in sorted({*target.sysctls, *now.sysctls}):
        want, have = target.sysctls.get(name), now.sysctls.get(name)
        if want == have:
            continue
        # An earlier restore has undone our change; what differs now came later.
        back = settled is not None and settled.sysctls.get(name) == want
        was, has = (_shown(name, value or "") for value in (want, have))
        if want is None:
            reason = f"is {has}; its value before is not known, the next boot decides"
            left.append(Left(name, reason))
        elif have is None:
            left.append(Left(name, f"was {was}; this kernel does not have it now"))
        elif not (since_settled if back else since_target):
            reason = f"was {was}, is {has}: changed since, but not by this collection"
            left.append(Left(name, f"{reason}; left as it is"))
        else:
            steps.append(Step(SYSCTL, name, f"set {name} to {was} (is {has})", {"value": want}))
    return steps


def _shown(name: str, value: str) -> str:
    """The value of a setting as anybody may read it."""
    # Without a difference nobody needs it, and Ansible compiles what is imported at each run.
    from ...secrets import redact

    return redact.value(name, value)


def _mig(target: State, now: State, left: list[Left]) -> list[Step]:
    if target.mig == now.mig:
        return []
    if target.mig is None:
        left.append(Left("MIG", "there was no driver to ask at the checkpoint; left as it is"))
        return []
    if now.mig is None:
        left.append(Left("MIG", "there is no driver to ask now", pending=True))
        return []
    have = {str(gpu["uuid"]): gpu for gpu in now.mig}
    differing = []
    for gpu in target.mig:
        uuid = str(gpu["uuid"])
        if uuid not in have:
            reason = "this GPU is not in the host now, or does not answer"
            left.append(Left(uuid, reason, pending=True))
        elif dict(gpu) != dict(have[uuid]):
            differing.append(dict(gpu))
    known = {str(gpu["uuid"]) for gpu in target.mig}
    left += [Left(uuid, "this GPU was not in the host") for uuid in sorted({*have} - known)]
    if not differing:
        return []
    subject = ",".join(str(gpu["uuid"]) for gpu in differing)
    return [Step(MIG, subject, f"bring back the MIG layout of {subject}", {"gpus": differing})]


# -- packages ---------------------------------------------------------------------------


def _packages(
    target: State, now: State, options: RestoreOptions, left: list[Left]
) -> tuple[list[Step], list[Step]]:
    """Steps that come first, and steps that come last."""
    versions: dict[str, str] = {}
    removes: list[str] = []
    holds: dict[str, bool] = {}
    for name in sorted({*target.packages, *now.packages}):
        want, have = target.packages.get(name), now.packages.get(name)
        if want == have:
            continue
        told = f"was {_package_text(want)}, is {_package_text(have)}"
        if never_alone(name):
            told += "; packages of the driver and the kernel are never changed by a restore"
            left.append(Left(name, told))
        elif not options.packages:
            told += "; packages are only changed when told (packages: true, --packages)"
            left.append(Left(name, told))
        elif want is None:
            removes.append(name)
        elif not want.version:
            left.append(Left(name, told + "; to bring that back would help nobody"))
        else:
            if have is None or have.version != want.version:
                versions[name] = want.version
            # To install a held package is to release it.
            if want.held or (have is not None and have.held):
                holds[name] = want.held
    first, last = [], []
    if versions:
        text = "install " + " ".join(f"{name}={version}" for name, version in versions.items())
        first.append(Step(PACKAGE_INSTALL, " ".join(versions), text, {"packages": versions}))
    if removes:
        names = " ".join(removes)
        last.append(Step(PACKAGE_REMOVE, names, f"remove {names}", {"packages": removes}))
    if holds:
        text = ", ".join(f"{'hold' if held else 'release'} {name}" for name, held in holds.items())
        last.append(Step(HOLD, " ".join(holds), text, {"packages": holds}))
    return first, last


def _package_text(package: PackageState | None) -> str:
    if package is None:
        return "not installed"
    if not package.version:
        return "half done by an interrupted package manager"
    return f"{package.version}, held" if package.held else package.version
