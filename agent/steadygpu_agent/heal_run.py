# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``steadygpu heal`` does, by the code that the Ansible module runs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Finding, Severity
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output.as_json import masked
from ansible_collections.steadygpu.host.plugins.module_utils.heal import healing
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import (
    CDI_REFRESH,
    CDI_SPEC,
    GPU_ACCESS,
    UVM,
    ByHand,
    Done,
    Step,
)
from ansible_collections.steadygpu.host.plugins.module_utils.heal.plan import UnknownStepError
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import mask

# What a rule finds that a kind of steps is about; it is not said twice.
_SAME = {
    "uvm-missing": UVM,
    "cdi-refresh-off": CDI_REFRESH,
    "cdi-lacks-mig-devices": CDI_SPEC,
    "cdi-spec-driver-differs": CDI_SPEC,
    "cdi-spec-gpu-gone": CDI_SPEC,
    "container-lost-gpu": GPU_ACCESS,
}

_FAILED = 1
_USAGE = 2
_TO_HEAL = 3


def run(arguments: argparse.Namespace) -> int:
    """Look, and with ``--apply`` heal; print what was found and done."""
    if os.geteuid() != 0:
        # A user sees neither containers nor their rules, and "nothing to heal" would be a lie.
        print("steadygpu heal: wanted is root, also to look; nothing was done", file=sys.stderr)
        return _USAGE
    try:
        outcome = healing.heal(arguments.apply, arguments.only, arguments.deadline)
    except UnknownStepError as error:
        print(f"steadygpu heal: {error}", file=sys.stderr)
        return _USAGE
    except healing.HealError as error:
        print(f"steadygpu heal: {error}", file=sys.stderr)
        return _FAILED
    rest = [] if arguments.only else others(outcome, arguments.deadline)
    if arguments.json:
        found = [finding.as_dict() for finding in rest]
        print(json.dumps(masked({**outcome.as_dict(), "findings": found}), indent=2))
    else:
        print(mask.printable(mask.message(page(outcome, rest))))
    return status(outcome)


def others(outcome: healing.Outcome, deadline_s: float) -> list[Finding]:
    """The errors that the checks find on this host and that no entry of the plan is about."""
    from ansible_collections.steadygpu.host.plugins.module_utils.checks import live
    from ansible_collections.steadygpu.host.plugins.module_utils.evidence import gather

    evidence = gather.gather(outcome.facts, deadline_s)
    found = live.judge_host(outcome.facts, evidence).findings
    ids = [step.id for step in outcome.plan.steps] + [one.id for one in outcome.plan.by_hand]
    said = {name.partition(":")[0] for name in ids}
    return [
        one
        for one in found
        if one.severity >= Severity.ERROR and _SAME.get(one.rule, one.rule) not in said
    ]


def status(outcome: healing.Outcome) -> int:
    """The exit status that docs/healing.md names. Pure."""
    if outcome.failed:
        return _FAILED
    if outcome.plan.steps and not outcome.applied:
        return _TO_HEAL
    return _FAILED if outcome.plan.by_hand else 0


def page(outcome: healing.Outcome, rest: Sequence[Finding] = ()) -> str:
    """What a person reads; ``rest`` is what the checks find beside it. Pure."""
    parts = [_done(one) for one in outcome.done]
    if not outcome.applied:
        parts += [_step(step) for step in outcome.plan.steps]
    parts += [_by_hand(one) for one in outcome.plan.by_hand]
    if outcome.plan.recreate:
        names = ", ".join(outcome.plan.recreate)
        parts.append(f"To be recreated at a good time, with the GPU by CDI: {names}")
    parts += [f"not known: {said}" for said in outcome.plan.unclear]
    parts += [_finding(one) for one in rest]
    parts.append(_summary(outcome))
    return "\n\n".join(parts)


def _summary(outcome: healing.Outcome) -> str:
    healed, failed = len(outcome.done) - len(outcome.failed), len(outcome.failed)
    if outcome.applied and outcome.done:
        text = f"healed: {healed}" + (f", failed: {failed}" if failed else "")
    elif outcome.plan.steps:
        text = "Nothing was changed. To carry this out: steadygpu heal --apply"
    else:
        text = "nothing to heal"
    if outcome.plan.by_hand:
        text += f"; left for a person: {len(outcome.plan.by_hand)}"
    return text


def _step(step: Step) -> str:
    lines = [step.id, f"  seen:    {step.seen}", f"  wanted:  {step.wanted}"]
    lines += [f"  to run:  {command}" for command in step.commands]
    lines.append(f"  undo:    {step.undo}")
    if step.note:
        lines.append(f"  note:    {step.note}")
    return "\n".join(lines)


def _done(done: Done) -> str:
    step = done.step
    lines = [
        f"{step.id}: {'healed' if done.healed else 'FAILED'}",
        f"  before:  {step.seen}",
        f"  after:   {done.after}",
    ]
    lines += [f"  did:     {action}" for action in done.actions]
    if done.actions:
        lines.append(f"  undo:    {step.undo}")
    if done.healed and step.note:
        lines.append(f"  note:    {step.note}")
    return "\n".join(lines)


def _finding(one: Finding) -> str:
    lines = [f"{one.rule}: for a person ({one.severity.label}: {one.title})"]
    lines += [f"  seen:    {one.seen}", f"  fix:     {one.fix}"]
    lines += [f"    {command}" for command in one.commands]
    return "\n".join(lines)


def _by_hand(one: ByHand) -> str:
    lines = [f"{one.id}: for a person", f"  seen:    {one.seen}", f"  why:     {one.why}"]
    lines += [f"    {command}" for command in one.commands]
    return "\n".join(lines)
