# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry one step out, and look whether it helped."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Mapping

from .. import vouched
from ..engine import cdi, cdi_generate
from ..evidence.files import text as text_of
from ..hardware import files
from ..hardware.nodes import parse_majors
from ..process import CommandMissingError, Completed, run
from . import containers, given, plan, sight, specs
from .model import (
    CDI_ORDER,
    CDI_REFRESH,
    CDI_SPEC,
    GPU_ACCESS,
    UVM,
    DeviceNode,
    Done,
    GpuContainer,
    Sight,
    Step,
)


class StepFailedError(Exception):
    """A step could not be carried out; says what was answered."""


_PAUSES_S = (0.1, 0.3, 0.6)

# Did it help, and what the second look showed.
Result = tuple[bool, str]


def carry_out(step: Step, seen: Sight, deadline_s: float) -> Done:
    """Do it and prove it. Raises nothing: what fails is said in the result."""
    act: dict[str, Callable[[Step, Sight, float, list[str]], Result]] = {
        UVM: _uvm,
        CDI_SPEC: _spec,
        CDI_REFRESH: _refresh,
        CDI_ORDER: _order,
        GPU_ACCESS: _access,
    }
    # Each adds what it has done, so that a later failure does not hide it.
    actions: list[str] = []
    try:
        healed, after = act[step.kind](step, seen, deadline_s, actions)
    except (StepFailedError, CommandMissingError, cdi_generate.SpecError, OSError) as error:
        healed, after = False, str(error)
    return Done(step, healed, after, tuple(actions))


def _ran(argv: list[str], deadline_s: float) -> Completed:
    done = run(argv, deadline_s)
    if not done.ok:
        raise StepFailedError(f"{' '.join(argv)} failed: {done.said}")
    return done


# -- uvm ---------------------------------------------------------------------------------


def _uvm(step: Step, seen: Sight, deadline_s: float, actions: list[str]) -> Result:
    """nvidia-modprobe loads the module and makes its nodes; without it, both by ourselves."""
    argv = step.commands[0].split()
    _ran(argv, deadline_s)
    actions.append(step.commands[0])
    major = parse_majors(files.text("/proc/devices")).get("nvidia-uvm")
    if major is None:
        return False, "the kernel still lists no nvidia-uvm in /proc/devices"
    for path, minor in (("/dev/nvidia-uvm", 0), ("/dev/nvidia-uvm-tools", 1)):
        if not os.path.exists(path):
            # The driver's own tools make them so (NVIDIA driver README, "device nodes").
            former = os.umask(0)  # With its mode from the first moment on.
            try:
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
            finally:
                os.umask(former)
            actions.append(f"mknod -m 666 {path} c {major} {minor}")
    number = os.stat("/dev/nvidia-uvm").st_rdev
    healed = os.major(number) == major
    after = f"nvidia_uvm is loaded, /dev/nvidia-uvm is {os.major(number)}:{os.minor(number)}"
    return healed, after if healed else f"{after}, but wanted is {major}:0"


# -- CDI ---------------------------------------------------------------------------------


def _spec(step: Step, seen: Sight, deadline_s: float, actions: list[str]) -> Result:
    """Replace the file only by one in which nothing is wrong."""
    path, gpu = step.subject, seen.facts.get("gpu") or {}
    docker = seen.facts.get("docker") or {}
    before = text_of(path)
    names = cdi.parse_spec(path, before).devices
    if not names:
        raise StepFailedError(f"{path} is not what it was; look again")
    found = cdi_generate.plan_present(
        path,
        "nvidia-ctk",
        specs.strategies(names),
        docker.get("version") if docker.get("status") == "running" else None,
        max(deadline_s, 60.0),
    )
    left = specs.faults(found.devices, found.after or "", gpu)
    lacks = specs.worse(names, before, found.devices, found.after or "", gpu)
    if lacks:
        raise StepFailedError(
            f"{path} was left as it is: what nvidia-ctk makes lacks {', '.join(lacks)}"
        )
    if left:
        raise StepFailedError(
            f"{path} was left as it is: what nvidia-ctk makes does not fit either: "
            + "; ".join(left)
        )
    if (found.before or "") != before:
        raise StepFailedError(f"{path} was changed by another meanwhile; look again")
    vouched.write(path + plan.KEPT, before)
    cdi_generate.carry_out(found)
    actions.extend(found.actions)
    written = text_of(path)
    again = cdi.parse_spec(path, written)
    wrong = specs.faults(again.devices, written, gpu)
    after = f"{path} names {', '.join(again.devices)}"
    return not wrong, "; ".join(wrong) or after


def _refresh(step: Step, seen: Sight, deadline_s: float, actions: list[str]) -> Result:
    for command in step.commands:
        _ran(command.split(), deadline_s)
        actions.append(command)
    state = sight.read_units(deadline_s).get(step.subject)
    told = state.file_state if state else "unknown"
    return told == "enabled", f"{step.subject} is {told}"


def _order(step: Step, seen: Sight, deadline_s: float, actions: list[str]) -> Result:
    """Write the drop-in if systemd sees no new cycle with it in the next boot.

    It is tried in a directory of its own first: after a kill in between nothing is left that
    could keep Docker from starting.
    """
    with tempfile.TemporaryDirectory(prefix="steadygpu-heal-") as directory:
        before = _cycles(deadline_s)
        name = os.path.join(directory, *plan.DROP_IN.split(os.sep)[-2:])
        os.mkdir(os.path.dirname(name))
        with open(name, "w", encoding="utf-8") as handle:
            handle.write(plan.DROP_IN_TEXT)
        # With an empty part at its end, systemd's own directories follow.
        cycles = sorted(_cycles(deadline_s, {"SYSTEMD_UNIT_PATH": f"{directory}:"}) - before)
    if cycles:
        raise StepFailedError(f"the order would be a cycle, so nothing was written: {cycles[0]}")
    vouched.write(plan.DROP_IN, plan.DROP_IN_TEXT)
    actions.append(f"write {plan.DROP_IN}")
    return True, f"{plan.DROP_IN} is written and makes no ordering cycle"


def _cycles(deadline_s: float, env: Mapping[str, str] | None = None) -> set[str]:
    """The ordering cycles of a boot as systemd tells them.

    It reads the unit files anew by itself and starts nothing; it exits 0 on warnings. Raises
    CommandMissingError and StepFailedError where it does not tell.
    """
    told = run(["systemd-analyze", "verify", "multi-user.target"], max(deadline_s, 60.0), env=env)
    if told.timed_out:
        raise StepFailedError(
            f"systemd-analyze verify did not end; nothing was written: {told.said}"
        )
    lines = (told.stderr + told.stdout).splitlines()
    return {line.strip() for line in lines if "ordering cycle" in line}


# -- containers --------------------------------------------------------------------------


def _access(step: Step, seen: Sight, deadline_s: float, actions: list[str]) -> Result:
    """Give the devices back, and see that nothing else was taken by that."""
    named = [one for one in seen.containers if one.name == step.subject and one.is_dockers]
    if len(named) != 1:
        raise StepFailedError(f"{len(named)} containers of Docker are called {step.subject}")
    container = named[0]
    now = containers.again(container)
    if now.unclear:
        raise StepFailedError(f"container {container.name}: {now.unclear}")
    if not now.lost:
        return True, f"container {container.name} may open all its devices"
    scope = str(container.scope)
    for node in container.given:
        _must_be(given.host_path(node), node)
    paths = [given.host_path(node) for node in container.given]
    actions.append(_grant(scope, paths, deadline_s))
    after = _settled(now)
    taken = _taken(now, after)
    if taken:
        # Foreseen not to happen; a job must not pay for it if it does.
        # By number: what the host has under the same path may be another device.
        paths += [given.numbered(one.kind, one.major, one.minor).path for one in taken]
        actions.append(_grant(scope, paths, deadline_s))
        after = _settled(now)
        taken = _taken(now, after)
    return _said(container, after, taken)


def _said(
    container: GpuContainer,
    after: GpuContainer,
    taken: tuple[DeviceNode, ...],
) -> Result:
    name = container.name
    if after.unclear:
        return False, f"container {name}: {after.unclear}"
    if after.lost:
        lost = ", ".join(node.path for node in after.lost)
        return False, f"container {name} still may not open {lost}; recreate it"
    if taken:
        names = ", ".join(node.path for node in taken)
        return False, f"container {name} has its GPU, and lost {names}; recreate it"
    opened = ", ".join(node.path for node in container.given)
    return True, f"container {name} may open {opened}"


def _grant(scope: str, paths: list[str], deadline_s: float) -> str:
    rules = [f"DeviceAllow={path} rwm" for path in paths]
    _ran(["systemctl", "set-property", "--runtime", scope, *rules], deadline_s)
    return plan.grant_command(scope, paths)


def _settled(container: GpuContainer) -> GpuContainer:
    """A look after systemd has written the rules, which it does after it has answered."""
    for pause in _PAUSES_S:
        time.sleep(pause)
        seen = containers.again(container)
        if not seen.lost and not _taken(container, seen):
            break
    return seen


def _taken(before: GpuContainer, after: GpuContainer) -> tuple[DeviceNode, ...]:
    if after.unclear:
        return ()
    return tuple(node for node in before.others if node not in after.others)


def _must_be(path: str, node: DeviceNode) -> None:
    """The host's node, whose number systemd takes, must be the container's device."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise StepFailedError(f"{path}: {error.strerror}; nothing was changed") from error
    number = (os.major(status.st_rdev), os.minor(status.st_rdev))
    if not stat.S_ISCHR(status.st_mode) or number != (node.major, node.minor):
        raise StepFailedError(
            f"{path} is {number[0]}:{number[1]} on the host and {node.major}:{node.minor} in the "
            "container; nothing was changed. Recreate the container"
        )
