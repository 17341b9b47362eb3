# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who makes the specification anew: at boot before the engines, and after a change of the driver.

The toolkit has units for it since 1.18. Those are adopted: enabled, and ordered before Docker by
the same steps as ``steadygpu heal`` (:mod:`..heal.plan`). Where there are none, two units of ours
do it. Neither way makes systemd reload: that could cost a container its GPU, and a new unit, a
link and a drop-in all count at the next boot.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .. import boot_unit, vouched
from ..atomic import read_text
from ..engine.cdi_generate import command
from ..heal import plan as heal_plan
from ..heal import unit_states
from ..heal.model import CDI_ORDER, CDI_REFRESH, ByHand, Sight, Step, UnitState
from ..process import run
from . import env_file

VENDOR = "vendor"
OWN = "own"
NOBODY = "nobody"

SERVICE = "steadygpu-cdi.service"
PATH_UNIT = "steadygpu-cdi.path"
_NAMES = (heal_plan.REFRESH_SERVICE, heal_plan.REFRESH_PATH, heal_plan.ENGINE, PATH_UNIT)
_DIRECTORIES = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system")
_MASKED = ("masked", "masked-runtime")
_TIMEOUT_S = 90

# nvidia-ctk opens the driver, which makes the GPUs' nodes; those of uvm only nvidia-modprobe does.
# Engines wait for the first try only: a driver that comes late is tried again beside them.
# A driver that hangs leaves a process at each try that nobody can end. So there are five tries, and
# the limit reaches over five of them at their longest: each command may take TimeoutStartSec, then
# comes TimeoutStopSec twice. A try that went well does not count: the path unit may ask for many.
_SERVICE_TEXT = """\
# Written by steadygpu.host.cdi_spec, which also removes it.
[Unit]
Description=Make the CDI specification of the NVIDIA GPUs
ConditionPathExists={ctk}
After=local-fs.target systemd-modules-load.service systemd-udev-settle.service
After=nvidia-persistenced.service steadygpu-mig.service
Before={engines}
StartLimitIntervalSec=1800
StartLimitBurst=5

[Service]
Type=oneshot
TimeoutStartSec={timeout_s}
TimeoutStopSec=15
ExecStartPre=-/usr/bin/udevadm settle --timeout=30
ExecStartPre=-/usr/bin/nvidia-modprobe -c 0 -u
ExecStart={command}
ExecStartPost=-/usr/bin/systemctl reset-failed {service}
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
"""
# What a new driver and a new tool touch: the kernel's index of modules, and the tool.
_PATH_TEXT = """\
# Written by steadygpu.host.cdi_spec, which also removes it.
[Unit]
Description=Make the CDI specification anew after a change of the NVIDIA driver

[Path]
PathChanged=/lib/modules/%v/modules.dep
PathChanged={ctk}
Unit={service}

[Install]
WantedBy=multi-user.target
"""


class UnitsError(Exception):
    """The units could not be brought to what is wanted. The message says what to do."""


@dataclass(frozen=True)
class Upkeep:
    """What is asked of the units: the specification, the tool by its path, and its options."""

    path: str
    ctk: str
    strategies: Sequence[str]
    flags: Sequence[str] = ()


@dataclass(frozen=True)
class UnitsPlan:
    """Who makes the specification anew (``by``), and what is to be done for that.

    ``steps`` are for the vendor's units, ``install`` and ``remove`` are units of ours, ``start`` is
    the path unit that does not run yet.
    """

    by: str
    env: env_file.EnvPlan
    steps: tuple[Step, ...] = ()
    install: tuple[boot_unit.BootUnit, ...] = ()
    remove: tuple[boot_unit.BootUnit, ...] = ()
    drop_in: bool = False
    start: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass
class Done:
    """What was done, and what could not be."""

    actions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_units(deadline_s: float = 20.0) -> dict[str, UnitState]:
    """The units that matter here, by name; {} without systemd."""
    return unit_states.read(_NAMES, deadline_s)


def read_drop_ins(root: str = "/") -> dict[str, str]:
    """The drop-ins of the vendor's unit and of Docker, by path."""
    found = {}
    for directory in _DIRECTORIES:
        for unit in (heal_plan.REFRESH_SERVICE, heal_plan.ENGINE):
            for path in glob.glob(os.path.join(root, directory, f"{unit}.d", "*.conf")):
                found["/" + os.path.relpath(path, root)] = read_text(path) or ""
    return found


def own_units(upkeep: Upkeep) -> tuple[boot_unit.BootUnit, boot_unit.BootUnit]:
    """The service and the path unit of ours. Pure."""
    words = command(upkeep.ctk, upkeep.strategies, upkeep.flags, output=upkeep.path)
    service = _SERVICE_TEXT.format(
        ctk=_escaped(upkeep.ctk),
        engines=boot_unit.ENGINES,
        service=SERVICE,
        timeout_s=_TIMEOUT_S,
        command=" ".join(_quoted(word) for word in words),
    )
    path = _PATH_TEXT.format(ctk=_escaped(upkeep.ctk), service=SERVICE)
    return boot_unit.BootUnit(SERVICE, service), boot_unit.BootUnit(PATH_UNIT, path)


def plan_present(
    upkeep: Upkeep,
    units: Mapping[str, UnitState],
    drop_ins: Mapping[str, str],
    env_text: str | None,
) -> UnitsPlan:
    """What makes the specification come back. Pure; raises UnitsError."""
    vendor = units.get(heal_plan.REFRESH_SERVICE, UnitState())
    if not units:
        why = "there is no systemd here: nothing makes the specification anew at boot"
        return UnitsPlan(NOBODY, env_file.EnvPlan(env_text, env_text), warnings=(why,))
    if vendor.load_state == "not-found":
        started = units.get(PATH_UNIT, UnitState()).active_state == "active"
        return UnitsPlan(
            OWN,
            env_file.EnvPlan(env_text, env_text),
            install=own_units(upkeep),
            start=None if started else PATH_UNIT,
        )
    try:
        variables = env_file.wanted(upkeep.path, upkeep.strategies, upkeep.flags)
        env = env_file.plan(env_text, variables)
    except env_file.ForeignValueError as error:
        raise UnitsError(str(error)) from error
    found = heal_plan.make(
        # The order is right in any case, also where the engine is told of CDI later.
        Sight({"docker": {"cdi": {"enabled": True}}}, units=units, drop_ins=drop_ins),
        only=(CDI_REFRESH, CDI_ORDER),
    )
    by_hand = [one for one in found.by_hand if one.id in (CDI_REFRESH, CDI_ORDER)]
    return UnitsPlan(
        VENDOR,
        env,
        steps=found.steps,
        remove=own_units(upkeep),
        start=_stopped(units),
        warnings=(*_masked(units), *map(_told, by_hand)),
    )


def plan_absent(
    upkeep: Upkeep,
    units: Mapping[str, UnitState],
    drop_ins: Mapping[str, str],
    env_text: str | None,
) -> UnitsPlan:
    """Take back what is ours. Pure. The vendor's units stay as they are."""
    vendor = units.get(heal_plan.REFRESH_SERVICE, UnitState())
    warnings: tuple[str, ...] = ()
    if vendor.there and vendor.file_state == "enabled":
        warnings = (
            f"{heal_plan.REFRESH_SERVICE} of the toolkit is enabled and makes a specification "
            f"again at the next boot; if it shall not: systemctl disable --no-reload "
            f"{heal_plan.REFRESH_PATH} {heal_plan.REFRESH_SERVICE}",
        )
    return UnitsPlan(
        VENDOR if vendor.there else NOBODY,
        env_file.plan_absent(env_text),
        remove=own_units(upkeep),
        drop_in=drop_ins.get(heal_plan.DROP_IN) == heal_plan.DROP_IN_TEXT,
        warnings=warnings,
    )


def refuse_foreign(plan: UnitsPlan, root: str = "/") -> None:
    """Raises UnitsError where a unit of our name is somebody else's, and OSError."""
    for unit in plan.install:
        try:
            boot_unit.refuse_foreign(unit, root)
        except boot_unit.ForeignUnitError as error:
            raise UnitsError(str(error)) from error


def texts(plan: UnitsPlan, root: str = "/") -> list[tuple[str, str, str]]:
    """The files that change, with what they hold and will hold, "" for none. Raises OSError.

    To be asked before it is done.
    """
    found = []
    if plan.env.changed:
        found.append((env_file.PATH, plan.env.before or "", plan.env.after or ""))
    wanted = {unit.path: unit.text for unit in plan.install}
    ours = [unit.path for unit in plan.remove if boot_unit.is_ours(unit, root)]
    wanted.update(dict.fromkeys(ours, ""))
    if plan.drop_in or any(step.kind == CDI_ORDER for step in plan.steps):
        wanted[heal_plan.DROP_IN] = "" if plan.drop_in else heal_plan.DROP_IN_TEXT
    for path, after in wanted.items():
        before = read_text(os.path.join(root, path.lstrip("/"))) or ""
        if before != after:
            found.append((path, before, after))
    return found


def carry_out(plan: UnitsPlan, check_mode: bool, deadline_s: float, root: str = "/") -> Done:
    """Do it, or say what would be done. Raises UnitsError and OSError."""
    refuse_foreign(plan, root)
    done = Done(_remove(plan, check_mode, root))
    if plan.env.changed:
        verb = "write" if plan.env.after is not None else "remove"
        done.actions.append(f"{verb} {env_file.PATH}")
        if not check_mode:
            _write(env_file.PATH, plan.env.after, root)
    for unit in plan.install:
        done.actions += boot_unit.install(unit, check_mode, root)
    if plan.start:
        done.actions.append(f"start {plan.start}")
        if not check_mode:
            _systemctl("start", plan.start, deadline_s)
    for step in plan.steps:
        if check_mode:
            done.actions += step.commands
        else:
            _heal(step, deadline_s, done)
    return done


def _remove(plan: UnitsPlan, check_mode: bool, root: str) -> list[str]:
    actions: list[str] = []
    for unit in reversed(plan.remove):
        if unit.name == PATH_UNIT and not check_mode and _is_there(unit, root):
            # Not an error where systemd never saw it.
            run(["systemctl", "stop", unit.name])
        actions += boot_unit.remove(unit, check_mode, root)
    if plan.drop_in:
        actions.append(f"remove {heal_plan.DROP_IN}")
        if not check_mode:
            _write(heal_plan.DROP_IN, None, root)
    return actions


def _heal(step: Step, deadline_s: float, done: Done) -> None:
    # It is large, and needed once in the life of a host.
    from ..heal import act

    result = act.carry_out(step, Sight({}), deadline_s)
    done.actions += result.actions
    if not result.healed:
        # The specification is right today; a play is not to fail for the next boot.
        done.warnings.append(f"{step.seen}. That could not be changed: {result.after}")


def _systemctl(verb: str, unit: str, deadline_s: float) -> None:
    done = run(["systemctl", verb, unit], max(deadline_s, 60.0))
    if not done.ok:
        raise UnitsError(
            f"systemctl {verb} {unit} failed: {done.said}. See: systemctl status {unit}"
        )


def _stopped(units: Mapping[str, UnitState]) -> str | None:
    """The vendor's path unit, where it is enabled and does not watch."""
    state = units.get(heal_plan.REFRESH_PATH, UnitState())
    watches = state.active_state in ("active", "activating")
    enabled = state.there and state.file_state == "enabled"
    return heal_plan.REFRESH_PATH if enabled and not watches else None


def _masked(units: Mapping[str, UnitState]) -> list[str]:
    names = (heal_plan.REFRESH_SERVICE, heal_plan.REFRESH_PATH)
    masked = [name for name in names if units.get(name, UnitState()).file_state in _MASKED]
    if not masked:
        return []
    return [
        f"{' and '.join(masked)} {'is' if len(masked) == 1 else 'are'} masked, which is "
        "somebody's decision: after a change of the driver the specification is stale until the "
        f"next play. To have it back: systemctl unmask {' '.join(masked)}"
    ]


def _told(one: ByHand) -> str:
    return f"{one.seen}: {one.why}"


def _is_there(unit: boot_unit.BootUnit, root: str) -> bool:
    return os.path.exists(os.path.join(root, unit.path.lstrip("/")))


def _write(path: str, text: str | None, root: str) -> None:
    place = os.path.join(root, path.lstrip("/"))
    if text is None:
        vouched.remove(place, root)
    else:
        vouched.write(place, text, root=root)


def _escaped(path: str) -> str:
    return path.replace("%", "%%")


def _quoted(word: str) -> str:
    """One argument of ExecStart= (systemd.service(5), "Command lines")."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{word}"' if set(word) & set(" \t;'\"\\") else word
