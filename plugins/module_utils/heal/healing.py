# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Heal a host: look, plan, and on request carry out, one run at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import file_lock
from ..engine.docker_api import DEFAULT_SOCKET
from . import act, plan, sight
from .model import GPU_ACCESS, Done, Plan

# Not in /run/lock, where every user may put a link of this name.
_LOCK = "/run/steadygpu-heal.lock"
# How often containers are looked at again for what a repair of another one may have cost them.
_ROUNDS = 3


class HealError(Exception):
    """Nothing was looked at or changed; says why."""


@dataclass(frozen=True)
class Outcome:
    """What was found and, where ``applied``, what was done about it.

    ``facts`` is the ``gpu_host`` that the plan was made from.
    """

    plan: Plan
    done: tuple[Done, ...] = ()
    applied: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Done, ...]:
        """The steps that did not heal."""
        return tuple(one for one in self.done if not one.healed)

    @property
    def actions(self) -> list[str]:
        """What was done, or would be, one line each."""
        if self.applied:
            return [action for one in self.done for action in one.actions]
        return [command for step in self.plan.steps for command in step.commands]

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON types."""
        return {
            "applied": self.applied,
            "steps": [step.as_dict() for step in self.plan.steps],
            "done": [one.as_dict() for one in self.done],
            "by_hand": [one.as_dict() for one in self.plan.by_hand],
            "recreate": list(self.plan.recreate),
            "unclear": list(self.plan.unclear),
        }


def heal(
    apply: bool,
    only: Sequence[str] = (),
    deadline_s: float = 20.0,
    socket: str = DEFAULT_SOCKET,
) -> Outcome:
    """Look at this host; with ``apply`` carry the steps out.

    Each step is proved by a second look and a failed one does not stop the others. Raises
    HealError, and :class:`.plan.UnknownStepError` for an ``only`` that names nothing.
    """
    if not apply:
        seen = sight.read(deadline_s, socket)
        return Outcome(plan.make(seen, only), facts=seen.facts)
    with _lock():
        seen = sight.read(deadline_s, socket)
        found = plan.make(seen, only)
        done = [act.carry_out(step, seen, deadline_s) for step in found.steps]
        # A grant makes systemd write rules, and after a reload it may then write those of other
        # containers as well, without the GPU that the hook gave them.
        known = {one.id for one in seen.containers if one.lost}
        for _round in range(_ROUNDS if any(one.actions for one in done) else 0):
            again = sight.read(deadline_s, socket)
            new = {one.name for one in again.containers if one.lost and one.id not in known}
            steps = [step for step in plan.make(again, [GPU_ACCESS]).steps if step.subject in new]
            if not steps:
                break
            known |= {one.id for one in again.containers if one.lost}
            late = tuple(f"container {step.subject}" for step in steps)
            found = replace(found, steps=(*found.steps, *steps), recreate=(*found.recreate, *late))
            done += [act.carry_out(step, again, deadline_s) for step in steps]
    return Outcome(found, tuple(done), True, seen.facts)


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    try:
        descriptor = file_lock.acquire(_LOCK, 0.0)
    except file_lock.HeldError as error:
        raise HealError(f"another steadygpu heal runs here (process {error.owner})") from error
    except OSError as error:
        raise HealError(f"{_LOCK}: {error.strerror}; healing needs root") from error
    try:
        yield
    finally:
        file_lock.release(descriptor)
