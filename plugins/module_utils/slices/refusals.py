# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused, and why: all of it before anything of the host is touched."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

from ..atomic import write_atomic
from ..process import CommandMissingError, run
from . import reader, reload
from .effective import Machine
from .model import SliceError, Wish
from .squeeze import crowding_fault, slowing_warning, squeeze_fault, squeeze_warning
from .unit_text import complaints, is_ours, overridden


def refuse_foreign(wish: Wish, text: str | None, state: Mapping[str, str]) -> None:
    """Refuse a name whose unit file somebody else wrote."""
    if wish.takeover:
        return
    foreign = wish.unit_path if text is not None and not is_ours(text) else None
    fragment = state.get("FragmentPath", "")
    if text is None and fragment and fragment != wish.unit_path:
        foreign = fragment
    if foreign:
        raise SliceError(
            f"{foreign} exists and was not written by this module. Wanted: a name of its own, or "
            "`takeover: true` to replace it"
        )


def judge_drop_ins(wish: Wish) -> dict[str, str]:
    """The properties that a drop-in of somebody else overrides, with its words; {} for none.

    They are refused, unless the wish lets them win.
    """
    found: dict[str, str] = {}
    for path, text in reader.drop_ins(wish.name).items():
        for key, value in overridden(text, wish.settings).items():
            found[key] = f"{path} sets {key}={value}"
    if found and not wish.drop_ins_win:
        lines = (
            "{} (wanted {})".format(said, ", ".join(wish.settings[key].lines))
            for key, said in found.items()
        )
        raise SliceError(
            "{} has drop-ins that override what is asked for:\n  {}\nDelete those lines, leave "
            "the property out here, or set `drop_ins: win` to let them be; this module never "
            "edits other people's drop-ins".format(wish.name, "\n  ".join(lines))
        )
    return found


def refuse_occupied(name: str, control_group: str) -> None:
    """Refuse to stop a slice in which somebody lives."""
    inside = reader.processes(control_group) if control_group else {}
    if inside:
        lines = []
        for place, pids in sorted(inside.items()):
            named = (f"{pid} ({reader.process_name(pid)})" for pid in pids[:5])
            more = f" and {len(pids) - 5} more" if len(pids) > 5 else ""
            lines.append(f"  {place}: {', '.join(named)}{more}")
        raise SliceError(
            "{} is in use; stopping it would kill:\n{}\nStop these first, then run again".format(
                name, "\n".join(lines)
            )
        )


def refuse_old_cgroup() -> None:
    """Refuse a host whose cgroups cannot be read back."""
    fault = reader.cgroup_fault()
    if fault:
        raise SliceError(fault)


def refuse_misread(name: str, text: str) -> None:
    """Let systemd itself read the unit, under its real name and away from the real place."""
    with tempfile.TemporaryDirectory(prefix="steadygpu-slice-") as directory:
        path = os.path.join(directory, name)
        write_atomic(path, text)
        try:
            done = run(["systemd-analyze", "verify", path], deadline_s=60)
        except CommandMissingError:
            return
    found = complaints(done.stdout + done.stderr, path)
    if found:
        raise SliceError(
            "systemd would not take this slice as it is meant: {}. The unit was:\n{}".format(
                "; ".join(found), text
            )
        )


def refuse_reload(wish: Wish) -> list[str]:
    """Refuse a daemon-reload that could cost a container its GPU; the warnings when asked to."""
    found = reload.endangered()
    if not found:
        return []
    loss = "systemctl daemon-reload may take the GPU from {}".format(", ".join(found))
    if wish.daemon_reload_anyway:
        return [f"{loss}: look whether they still have it, and create those that lost it anew."]
    raise SliceError(
        f"{wish.name}: its unit file changes, and {loss}, which may have got it from the legacy "
        "NVIDIA hook instead of CDI. Create those containers anew with CDI devices (--device "
        "nvidia.com/gpu=…), or run again when they have ended, or set `daemon_reload_anyway: "
        "true` when they may lose it. An engine that does not answer must answer first"
    )


def refuse_squeeze(wish: Wish, control_group: str, machine: Machine) -> list[str]:
    """Refuse what would cost the tasks of an active slice; the warnings otherwise."""
    warnings = []
    memory = reader.memory_use(control_group)
    if memory is not None:
        fault = squeeze_fault(wish.name, wish.settings, memory, machine)
        if fault and not wish.below_current_use:
            raise SliceError(fault)
        warnings.append(squeeze_warning(wish.name, wish.settings, memory, machine))
    tasks = reader.task_use(control_group)
    if tasks is not None:
        fault = crowding_fault(wish.name, wish.settings, tasks, machine)
        if fault and not wish.below_current_use:
            raise SliceError(fault)
        warnings.append(slowing_warning(wish.name, wish.settings, tasks))
    return [warning for warning in warnings if warning]
