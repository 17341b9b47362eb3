# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that keeps a specification right, decided first and then done.

The order of what is done: the specification, what stood in its way, the units. Each is whole by
itself, so that after a kill in between the next run goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .. import vouched
from ..atomic import read_text
from ..engine import cdi, cdi_generate, cdi_versions
from ..engine.cdi_generate import SpecError, SpecPlan
from ..engine.containerd import program_version
from ..process import find_program
from . import env_file, host, stale, twins, units
from .named import named

# Who reads specifications beside Docker, by the program that says its version. containerd does
# for Kubernetes alone.
_OTHERS = {"podman": "podman", "crio": "crio"}
_KUBERNETES = ("kubelet", "k3s", "rke2")


@dataclass(frozen=True)
class Wanted:
    """The specification that shall be there; ``refresh``: also after a boot or a new driver.

    ``engines`` are the versions of who reads it, ``directories`` where they look, in their order.
    """

    path: str
    ctk: str = "nvidia-ctk"
    strategies: Sequence[str] = ("index", "uuid")
    refresh: bool = False
    deadline_s: float = 60.0
    engines: Mapping[str, str] = field(default_factory=dict)
    directories: Sequence[str] = cdi.DEFAULT_DIRECTORIES


@dataclass(frozen=True)
class KeepPlan:
    """What is to be done. ``stale`` says why the specification is made anew."""

    spec: SpecPlan
    stale: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()
    units: units.UnitsPlan | None = None
    warnings: tuple[str, ...] = ()

    @property
    def refreshed_by(self) -> str:
        """``vendor``, ``own`` or ``nobody``."""
        return self.units.by if self.units else units.NOBODY


def engines(docker_version: str | None) -> dict[str, str]:
    """The engines of this host that read CDI specifications, with their versions."""
    found = {"docker": docker_version or program_version("dockerd")}
    for engine, program in _OTHERS.items():
        found[engine] = program_version(program)
    if any(find_program(program) for program in _KUBERNETES):
        found["containerd"] = program_version("containerd")
    return {
        engine: version
        for engine, version in found.items()
        # Docker without CDI is a refusal; another engine without it asks for nothing.
        if version and (engine == "docker" or cdi_versions.highest(engine, version))
    }


def plan_present(wanted: Wanted, check_mode: bool) -> KeepPlan:
    """Look, judge, and run the tool only where that is needed.

    Raises SpecError, UnitsError, OSError.
    """
    plan = _plan_spec(wanted, check_mode)
    if plan.spec.unknown:
        return plan
    devices = plan.spec.devices
    beside = twins.find(wanted.path, stale.KIND, devices, wanted.directories)
    if beside.foreign:
        raise SpecError(beside.foreign)
    warnings = [*plan.warnings, *beside.warnings]
    unread = plan.spec.unread
    if unread:
        warnings.append(f"{wanted.path}: {unread}")
    upkeep = _plan_units(wanted) if wanted.refresh else None
    warnings += upkeep.warnings if upkeep else ()
    return replace(plan, twins=beside.ours, units=upkeep, warnings=tuple(warnings))


def plan_absent(wanted: Wanted) -> KeepPlan:
    """Take the specification away, and what makes it anew. Raises SpecError, OSError."""
    _refuse_foreign(wanted.path, read_text(wanted.path))
    upkeep = None
    if wanted.refresh:
        upkeep = units.plan_absent(
            _upkeep(wanted), units.read_units(), units.read_drop_ins(), env_file.read()
        )
    return KeepPlan(
        cdi_generate.plan_absent(wanted.path),
        units=upkeep,
        warnings=upkeep.warnings if upkeep else (),
    )


def carry_out(plan: KeepPlan, check_mode: bool, deadline_s: float = 60.0) -> units.Done:
    """Do it, or say what would be done. Raises UnitsError, OSError."""
    done = units.Done(list(plan.spec.actions), list(plan.warnings))
    if not check_mode:
        cdi_generate.carry_out(plan.spec)
    for path in plan.twins:
        done.actions.append(f"remove {path}, which named the same devices")
        if not check_mode:
            vouched.remove(path)
    if plan.units is not None:
        of_units = units.carry_out(plan.units, check_mode, deadline_s)
        done.actions += of_units.actions
        done.warnings += of_units.warnings
    return done


def _plan_spec(wanted: Wanted, check_mode: bool) -> KeepPlan:
    path, tool = wanted.path, find_program(wanted.ctk)
    before = read_text(path)
    seen = host.Seen()
    why: tuple[str, ...] = ()
    spec = _refuse_foreign(path, before)
    if before is not None and spec is not None:
        files = named(before)
        seen = host.read(path, files.files, tool)
        why = tuple(stale.reasons(spec, files, wanted.strategies, wanted.engines, seen))
        if not why:
            kept = SpecPlan(path, before, before, (), tuple(spec.devices), False, spec.cdi_version)
            return KeepPlan(kept, warnings=tuple(stale.remarks(seen)))
    if tool is None and check_mode:
        return KeepPlan(cdi_generate.plan_without_tool(path, wanted.ctk), why)
    if tool is None:
        raise SpecError(
            f"{wanted.ctk} is not on this host: install nvidia-container-toolkit-base first"
        )
    plan = _generated(wanted)
    if before is None or plan.after is None:
        return KeepPlan(plan, why)
    if plan.after == before:
        # What looked wrong is what the tool makes of this host.
        return KeepPlan(plan, warnings=_odd(path, seen.missing, wanted.ctk))
    lacks = stale.worse(named(before), named(plan.after), seen)
    if lacks:
        raise SpecError(
            f"{path} was left as it is: what {wanted.ctk} makes now lacks {', '.join(lacks)}, "
            f"which it had. Are the driver's packages whole? If that is meant, remove {path} first"
        )
    return KeepPlan(plan, why)


def _refuse_foreign(path: str, text: str | None) -> cdi.Spec | None:
    """What the file holds. Raises SpecError for devices of another kind: somebody's own work."""
    if text is None:
        return None
    spec = cdi.parse_spec(path, text)
    if spec.kind not in (None, stale.KIND):
        raise SpecError(
            f"{path} describes {spec.kind}, not {stale.KIND}, and was left alone: choose another "
            "path"
        )
    return spec


def _odd(path: str, missing: Sequence[str], ctk: str) -> tuple[str, ...]:
    if not missing:
        return ()
    return (
        f"{path} names {', '.join(missing[:3])}, which is not there, and {ctk} makes it so: "
        "containers that get it do not start",
    )


def _generated(wanted: Wanted) -> SpecPlan:
    others = {name: version for name, version in wanted.engines.items() if name != "docker"}
    return cdi_generate.plan_present(
        wanted.path,
        wanted.ctk,
        wanted.strategies,
        wanted.engines.get("docker"),
        wanted.deadline_s,
        others,
    )


def _plan_units(wanted: Wanted) -> units.UnitsPlan:
    found = units.plan_present(
        _upkeep(wanted), units.read_units(), units.read_drop_ins(), env_file.read()
    )
    units.refuse_foreign(found)
    return found


def _upkeep(wanted: Wanted) -> units.Upkeep:
    """What the units must ask the tool for, whichever release of it they will find."""
    old = any(
        not cdi_versions.reads(engine, version, cdi_generate.WRITES)
        for engine, version in wanted.engines.items()
    )
    flags = (cdi_generate.NO_GROUPS,) if old else ()
    ctk = find_program(wanted.ctk) or wanted.ctk
    return units.Upkeep(wanted.path, ctk, wanted.strategies, flags)
