# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verbs of ``steadygpu mig``, by the code that the Ansible modules run."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.mig import apply as core
from ansible_collections.steadygpu.host.plugins.module_utils.mig import boot, change, view
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import MigError
from steadygpu_agent.table import table

# Exit statuses: 0 done, 1 refused or failed, 2 not understood, 3 a mode waits for a reset.
_FAILED = 1
_USAGE = 2
_PENDING = 3


def show(deadline_s: float, as_json: bool) -> int:
    """Print every GPU's layout, profiles and holders."""
    try:
        found = view.read(deadline_s)
    except MigError as error:
        return _fail(error)
    print(json.dumps(found, indent=2) if as_json else page(found))
    return 0


def plan(arguments: argparse.Namespace) -> int:
    """Print what would be done."""
    if arguments.layout is None:
        return _usage("which layout? For example: steadygpu mig plan all-1g.5gb")
    try:
        outcome = core.foresee(_options(arguments))
    except (MigError, ValueError) as error:
        return _fail(error)
    outcome.status = "nothing would change" if not outcome.changed else "nothing was changed yet"
    _report(outcome)
    return 0


def apply(arguments: argparse.Namespace, previous: bool = False) -> int:
    """Carry a layout out, the one before the last change, or the one kept for boot."""
    if not previous and (arguments.layout is None) != arguments.boot:
        return _usage("wanted is a layout or --boot. For example: steadygpu mig apply all-1g.5gb")
    try:
        outcome = core.apply(_options(arguments, previous, arguments.boot))
    except (MigError, ValueError) as error:
        for action in getattr(error, "actions", []):
            print(action)
        return _fail(error)
    _report(outcome)
    return _PENDING if outcome.pending else 0


def resume(deadline_s: float) -> int:
    """Start what a killed change left stopped."""
    try:
        outcome = core.resume(change.Options(deadline_s=deadline_s))
    except MigError as error:
        return _fail(error)
    _report(outcome)
    return _FAILED if outcome.warnings else 0


def page(found: dict[str, Any]) -> str:
    """What ``show`` prints for a person. Pure."""
    parts = [_gpu(gpu) for gpu in found["gpus"]] or ["no GPU"]
    if found["unfinished"]:
        parts.append("A change did not end: the next one starts again what was stopped for it.")
    kept = "kept" if found["boot"] else "not kept"
    undo = "steadygpu mig undo goes back" if found["previous"] else "nothing to undo"
    parts.append(f"layout {kept} over reboots; {undo}")
    return "\n\n".join(parts)


def _gpu(gpu: dict[str, Any]) -> str:
    mig = gpu["mig"]
    mode = "MIG on" if mig["current"] else "MIG off" if mig["supported"] else "no MIG"
    if mig["current"] != mig["pending"]:
        mode += f", {'on' if mig['pending'] else 'off'} after a reset"
    lines = [f"GPU {gpu['index']}  {gpu['name']}  {gpu['uuid']}  {mode}"]
    rows = [
        [f"  {index}", device["profile"], f"{one['start']}:{one['size']}", device["uuid"] or "-"]
        for index, (one, device) in enumerate(
            (one, device) for one in gpu["instances"] for device in one["devices"]
        )
    ]
    if rows:
        lines.append(table([["  MIG", "PROFILE", "PLACE", "UUID"], *rows]))
    if gpu["profiles"]:
        offers = ", ".join(f"{one['name']} (up to {one['most']})" for one in gpu["profiles"])
        lines.append(f"  offers: {offers}")
    for holder in gpu["holders"]:
        owner = f" of {holder['owner']}" if holder["owner"] else ""
        # The kernel's own module has no pid, and neither have processes that cannot be seen.
        pid = f" (pid {holder['pid']})" if holder["pid"] else ""
        lines.append(f"  held by {holder['name']}{pid}{owner}")
    return "\n".join(lines)


def _options(
    arguments: argparse.Namespace, previous: bool = False, at_boot: bool = False
) -> change.Options:
    """Raises ValueError for a layout that looks like JSON and is none."""
    layout = arguments.layout
    if layout and layout[0] in "[{":
        layout = json.loads(layout)
    kept = boot.read_config() if at_boot else None
    if kept:
        return change.Options(boot=True, deadline_s=boot.DEADLINE_S, specification=kept.cdi)
    return change.Options(
        layout=layout,
        previous=previous,
        boot=at_boot,
        stop=arguments.stop,
        persist=not arguments.no_persist,
        deadline_s=arguments.deadline,
    )


def _report(outcome: change.Outcome) -> None:
    for action in outcome.actions:
        print(action)
    for note in outcome.notes:
        print(f"note: {note}")
    for warning in outcome.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{outcome.status}: {outcome.reason}" if outcome.reason else outcome.status)
    if outcome.after:
        print(outcome.after, end="")


def _fail(error: Exception) -> int:
    print(f"steadygpu: {error}", file=sys.stderr)
    return _FAILED


def _usage(text: str) -> int:
    print(f"steadygpu mig: {text}", file=sys.stderr)
    return _USAGE
