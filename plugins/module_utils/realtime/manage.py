# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bring a host's real-time settings to what is wanted, or leave it as it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from .. import boot_unit, cgroups, units
from ..settings import record as records
from ..settings.apply import Keeper, Outcome
from ..settings.model import DIFFERS, PENDING, Setting, SettingsError, Target
from ..settings.readback import read_back
from ..slices import manage as slices
from ..slices import model as slices_model
from ..slices import reader as slices_reader
from ..slices import refusals
from ..slices.properties import parse_properties
from ..slices.quantities import QuantityError, format_indices, parse_indices
from . import boot, judge, order, reader, running, targets
from .apply import fold
from .model import OWNER, Class, Kernel, Margin, Partition, RealtimeError, Wish

# In the record from before a slice is made until it is gone.
_SLICES = "partition_slices"
# Of the role slices, whose record names the unit files of its slices.
_OTHER_OWNER = "slices"


@dataclass
class Result:
    """What came of it, how the kernel is classified, and what containers are started with."""

    outcome: Outcome
    kernel: Kernel
    kind: Class
    margins: list[Margin] = field(default_factory=list)
    container_options: list[str] = field(default_factory=list)


def ensure_present(wish: Wish, check_mode: bool, root: str = "/") -> Result:
    """Set what is asked where it acts; take back what is not asked any more.

    Raises RealtimeError before the first write for what is refused, and SettingsError, with the
    host as it was, for what the kernel does not take.
    """
    kernel, machine = reader.kernel(root), reader.machine(root)
    faults = judge.faults(wish, kernel, machine)
    if faults:
        raise RealtimeError("\n".join(faults))
    result = Result(
        Outcome(),
        kernel,
        judge.classify(kernel),
        judge.margins(wish, kernel),
        judge.container_options(wish),
    )
    try:
        result.outcome = _plain_errors(lambda: _present(wish, kernel, check_mode, root))
    except SettingsError as error:
        raise _explained(error) from error
    result.outcome.warnings += judge.advice(wish, machine)
    return result


def ensure_absent(check_mode: bool, root: str = "/") -> Result:
    """Give everything its former value back. Raises RealtimeError and SettingsError."""
    kernel = reader.kernel(root)

    def act() -> Outcome:
        kept = _kept_slices(root)
        for name in kept:
            _refuse_occupied(name, root)
        first = Outcome(actions=boot_unit.remove(boot.unit(), check_mode, root))
        # With its slice a partition ends, and its CPUs go back to everybody.
        for name in kept:
            _take_slice_away(name, first, check_mode)
        outcome = Keeper(OWNER, check_mode, root).absent()
        _fold_cpus(outcome)
        return _joined(first, outcome)

    return Result(_plain_errors(act), kernel, judge.classify(kernel))


def _fold_cpus(outcome: Outcome) -> None:
    """Say once what is said of each CPU: a host may have hundreds."""
    outcome.settings = fold(outcome.settings)
    outcome.actions = list(dict.fromkeys(outcome.actions))
    for one in outcome.diff:
        if one["before_header"] == "live values":
            for side in ("before", "after"):
                one[side] = "".join(dict.fromkeys(one[side].splitlines(keepends=True)))


def _present(wish: Wish, kernel: Kernel, check_mode: bool, root: str) -> Outcome:
    wanted = targets.all_targets(wish, kernel)
    partition = wish.partition
    how = None
    if partition is not None:
        how = targets.partition_target(partition, kernel, slices_reader.cgroup_fault(root))
    makes = partition if how is not None and how.is_live else None
    former_slices = _kept_slices(root)
    leaving = [name for name in former_slices if makes is None or makes.slice != name]
    _refuse_losers(wish, kernel, makes, root)
    for name in leaving:
        _refuse_occupied(name, root)
    new_slice = makes is not None and makes.slice not in former_slices
    if makes is not None:
        _refuse_taken_name(makes.slice, new_slice, root)
    unit = _unit(wanted, makes)
    boot_unit.refuse_foreign(unit or boot.unit(), root)

    outcome = Outcome()
    if makes is not None:
        if new_slice and not check_mode:
            _announce(makes.slice, root)
        _slice(makes, outcome, check_mode)
    later = how is not None and makes is not None and not _there(how, root)
    kept = wanted if how is None or later else [*wanted, how]
    try:
        names = [*leaving, *([makes.slice] if makes is not None else [])]
        done = _keep(wish, kernel, kept, names, check_mode, root)
    except SettingsError:
        if makes is not None and new_slice and not check_mode:
            _take_slice_away(makes.slice, outcome, check_mode)
            _note_slices([name for name in former_slices if name != makes.slice], root)
        raise
    outcome = _joined(outcome, done)
    if later and how is not None:
        outcome.actions.append(f"set {how.name} to {how.wanted}")
        why = "the slice is not there yet: a run without check mode makes it"
        outcome.settings.append(Setting(how.name, how.wanted, None, PENDING, why, how.path))
    elif how is not None and makes is not None and not check_mode:
        _refuse_invalid(wish, kernel, how, makes, former_slices, root)
    for name in leaving:
        _take_slice_away(name, outcome, check_mode)
    if leaving and not check_mode:
        _note_slices([makes.slice] if makes is not None else [], root)
    if unit is None:
        outcome.actions += boot_unit.remove(boot.unit(), check_mode, root)
    else:
        outcome.actions += boot_unit.install(unit, check_mode, root)
        if not os.path.exists(os.path.join(root, boot_unit.COMMAND.lstrip("/"))):
            outcome.warnings.append(
                f"there is no {boot_unit.COMMAND}: fair servers and the partition are set now, and "
                "not after a reboot; the role steadygpu.host.agent installs the command"
            )
    _fold_cpus(outcome)
    return outcome


def _keep(
    wish: Wish,
    kernel: Kernel,
    kept: Sequence[Target],
    slice_names: Sequence[str],
    check_mode: bool,
    root: str,
) -> Outcome:
    files = {targets.SYSCTL_FILE: targets.sysctl_text(wish, kernel)}
    extra = {_SLICES: list(slice_names)} if slice_names else {}
    if not kept and not extra:
        return Keeper(OWNER, check_mode, root).absent()
    kept = order.settled(kept, records.load(OWNER, root), root)
    outcome = Keeper(OWNER, check_mode, root).keep(kept, files, extra)
    record = None if check_mode else records.load(OWNER, root)
    if record is not None:
        records.save(replace(record, formers=order.for_way_back(record.formers)), root)
    return outcome


def _unit(wanted: Sequence[Target], partition: Partition | None) -> boot_unit.BootUnit | None:
    servers = any(one.path.startswith(reader.SERVERS) for one in wanted)
    if not servers and partition is None:
        return None
    return boot.unit(partition.slice if partition is not None else None)


# -- the partition ------------------------------------------------------------------------


def _slice(partition: Partition, outcome: Outcome, check_mode: bool) -> None:
    wish = slices_model.Wish(
        name=partition.slice,
        description="Real-time work, on CPUs of its own",
        settings=parse_properties({"AllowedCPUs": format_indices(partition.cpus)}),
    )
    done = slices.ensure_present(wish, check_mode)
    outcome.actions += done.actions
    outcome.diff += done.diff
    outcome.warnings += done.warnings


def _take_slice_away(name: str, outcome: Outcome, check_mode: bool) -> None:
    done = slices.ensure_absent(slices_model.Wish(name, "", {}), check_mode)
    outcome.actions += done.actions
    outcome.diff += done.diff
    outcome.warnings += done.warnings


def _refuse_invalid(
    wish: Wish,
    kernel: Kernel,
    how: Target,
    partition: Partition,
    former_slices: Sequence[str],
    root: str,
) -> None:
    """The kernel takes the word and then says ``isolated invalid (reason)``: that is a refusal."""
    seen = read_back(how, root)
    if seen.verdict != DIFFERS:
        return
    others = targets.all_targets(wish, kernel)
    staying = [name for name in former_slices if name != partition.slice]
    if partition.slice not in former_slices:
        _take_slice_away(partition.slice, Outcome(), False)
    else:
        staying.append(partition.slice)
    _keep(wish, kernel, others, staying, False, root)
    raise SettingsError(
        f"{how.name}: wanted {how.wanted}, the kernel says {seen.effective!r}. The slice is no "
        "partition now, and its CPUs belong to everybody again. Free the CPUs (cpuset.cpus of the "
        "groups beside it), or choose others"
    )


def _refuse_losers(wish: Wish, kernel: Kernel, partition: Partition | None, root: str) -> None:
    """Raises RealtimeError where running work would lose CPU time that nobody gave away."""
    found = []
    if targets.takes_from_real_time(wish, kernel) and not wish.take_from_running:
        tasks = running.real_time(root)
        if tasks:
            found.append(f"real-time tasks would have less CPU time than now: {_listed(tasks)}")
    if partition is not None:
        group = f"/{partition.slice}"
        new = set(partition.cpus) - _own_cpus(partition, root)
        seen = running.on_cpus(new, group, root) if new else running.OnCpus()
        if seen.groups:
            raise RealtimeError(
                f"CPUs {format_indices(new)} cannot belong to {partition.slice} alone: they are "
                f"given to {_listed(seen.groups)}. Choose other CPUs, or take these away from there"
            )
        if seen.pinned and not wish.take_from_running:
            found.append(
                f"processes would lose the only CPUs they may run on: {_listed(seen.pinned)}"
            )
        if seen.containers and not wish.take_from_running:
            found.append(
                f"containers run that could no longer use CPUs {format_indices(new)}: "
                f"{_listed(seen.containers)}"
            )
    if found:
        raise RealtimeError(
            "{}. Run again when they have ended, or set take_from_running: true when they may "
            "lose it".format("; ".join(found))
        )


def _own_cpus(partition: Partition, root: str) -> frozenset[int]:
    """The CPUs that belong to the slice alone already."""
    names = ("cpuset.cpus.partition", "cpuset.cpus.effective")
    files = cgroups.read_files(f"/{partition.slice}", names, root)
    if files["cpuset.cpus.partition"] not in ("root", "isolated"):
        return frozenset()
    try:
        return frozenset(parse_indices(files["cpuset.cpus.effective"] or ""))
    except QuantityError:
        return frozenset()


def _refuse_occupied(name: str, root: str) -> None:
    group = f"/{name}"
    if os.path.isdir(cgroups.directory(group, root)):
        refusals.refuse_occupied(name, group)


def _refuse_taken_name(name: str, is_new: bool, root: str) -> None:
    path = slices_model.Wish(name, "", {}).unit_path
    shared = records.load(_OTHER_OWNER, root)
    if shared is not None and path in shared.files:
        raise RealtimeError(
            f"{name} is one of the slices of the role slices too, which would write it without its "
            "CPUs: take it out of slices_units, or name another one by partition_slice"
        )
    if is_new and os.path.lexists(os.path.join(root, path.lstrip("/"))):
        raise RealtimeError(
            f"{path} is there already and was not written for this: wanted a slice of its own, "
            "named by partition_slice"
        )


def _kept_slices(root: str) -> list[str]:
    record = records.load(OWNER, root)
    names = record.extra.get(_SLICES) if record else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _announce(name: str, root: str) -> None:
    """Who is killed between here and the slice finds it again as his own."""
    _note_slices([*_kept_slices(root), name], root)


def _note_slices(names: Sequence[str], root: str) -> None:
    record = records.load(OWNER, root) or records.Record(OWNER)
    extra = {key: value for key, value in record.extra.items() if key != _SLICES}
    if names:
        extra[_SLICES] = list(names)
    if record.formers or record.files or record.returning or extra:
        records.save(replace(record, extra=extra), root)
    else:
        records.forget(OWNER, root)


def _joined(first: Outcome, second: Outcome) -> Outcome:
    return Outcome(
        actions=[*first.actions, *second.actions],
        diff=[*first.diff, *second.diff],
        warnings=[*first.warnings, *second.warnings],
        settings=[*first.settings, *second.settings],
    )


def _there(target: Target, root: str) -> bool:
    return os.path.exists(os.path.join(root, target.path.lstrip("/")))


# -- errors -------------------------------------------------------------------------------


def _plain_errors(act: Callable[[], Outcome]) -> Outcome:
    try:
        return act()
    except (boot_unit.ForeignUnitError, slices_model.SliceError, units.UnitError) as error:
        raise RealtimeError(str(error)) from error
    except OSError as error:
        raise RealtimeError(f"{error.filename}: {error.strerror}") from error


def _explained(error: SettingsError) -> SettingsError:
    if "cpuset.cpus.partition: the kernel refused 'isolated'" in str(error):
        if "(EINVAL)" in str(error):
            return SettingsError(
                f"{error}\nThis kernel knows no isolated partition (Linux 6.1 and later do): "
                "wanted partition_kind root"
            )
        return error
    if "(EBUSY)" not in str(error):
        return error
    return SettingsError(
        f"{error}\nEBUSY: SCHED_DEADLINE tasks and fair servers have been promised more than would "
        "be left. A fair server counts as a promise of its share on each CPU; wanted a larger "
        "runtime_us, or fewer promises (chrt --deadline tasks)"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
