# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A MIG change as it is asked for, and what came of it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..engine.docker_api import DEFAULT_SOCKET, DockerClient
from . import cdi, targets
from .journal import DIRECTORY
from .model import GpuLayout, MigError


class ApplyError(MigError):
    """The change failed after it had begun; ``actions`` tells what was done all the same."""

    def __init__(self, text: str, actions: Sequence[str]) -> None:
        super().__init__(text)
        self.actions = list(actions)


def check_seconds(deadline_s: float) -> None:
    """Raises MigError for a deadline that never comes, or is over before it begins."""
    if not (math.isfinite(deadline_s) and deadline_s > 0):
        raise MigError(f"deadline_s is {deadline_s}; wanted are seconds, more than 0")


@dataclass(frozen=True)
class Clock:
    """How long one question may take, ``each_s``, and when the whole run must have ended.

    ``end`` is a time of ``time.monotonic``; None for a run that nobody ends.
    """

    each_s: float
    end: float | None = None

    def wait(self, questions: int = 1) -> float:
        """The seconds that so many questions may take. Raises MigError when time is up."""
        return self.within(self.each_s * questions)

    def within(self, seconds: float) -> float:
        """So many seconds, or what is left of the run's time. Raises MigError when none is."""
        if self.end is None:
            return seconds
        left = self.end - time.monotonic()
        if left <= 0:
            raise MigError("the time that this run may take at boot is used up")
        return min(seconds, left)


@dataclass(frozen=True)
class Options:
    """What is wanted of a run.

    Which layout is said by one of ``layout``, ``exactly``, ``previous`` and ``boot``. ``layout`` is
    a name or a structure as ``resolve`` takes it, ``configs`` a mig-parted document or what is
    below its ``mig-configs``. With ``exactly`` what comes back at boot is left to its giver.
    ``deadline_s`` bounds the reading of all GPUs, the change of each, and the wait for another run.
    ``specification`` None leaves CDI alone.
    """

    layout: Any = None
    configs: Mapping[str, Any] = field(default_factory=dict)
    exactly: Sequence[targets.Target] = ()
    previous: bool = False
    boot: bool = False
    stop: Sequence[str] = ()
    persist: bool = True
    deadline_s: float = 120.0
    specification: cdi.Settings | None = field(default_factory=cdi.Settings)
    socket: str = DEFAULT_SOCKET
    directory: str = DIRECTORY
    root: str = "/"

    def check(self) -> None:
        """Raises MigError for what no run can work with."""
        check_seconds(self.deadline_s)
        path = self.specification.path if self.specification else "/"
        if not os.path.isabs(path):
            raise MigError(
                f"cdi_path is {path!r}; wanted is an absolute path, such as {cdi.DEFAULT_PATH}"
            )

    @property
    def client(self) -> DockerClient:
        """The engine that is asked for the names of containers."""
        return DockerClient(self.socket)


@dataclass
class Outcome:
    """What came of a run. ``status`` is ``applied``, ``pending``, ``unchanged`` or ``unknown``.

    ``pending`` has one entry ``{gpu, uuid, needs, reason}`` for each GPU whose mode waits for
    a ``reset`` or a ``reboot``. ``layouts`` are all GPUs afterwards. ``before`` and ``after``
    are texts of the planned GPUs for a diff. ``warnings`` tell of what is wrong or needs a hand,
    ``notes`` of what is as it was asked for and worth knowing.
    """

    status: str = "unchanged"
    actions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pending: list[dict[str, Any]] = field(default_factory=list)
    layouts: tuple[GpuLayout, ...] = ()
    before: str = ""
    after: str = ""

    @property
    def changed(self) -> bool:
        """Was, or would, anything be done?"""
        return bool(self.actions)

    @property
    def needs(self) -> str | None:
        """What the pending modes wait for: ``reboot`` as soon as one of them needs it."""
        return min((entry["needs"] for entry in self.pending), default=None)

    @property
    def reason(self) -> str:
        """Why they wait and what to do; empty when nothing is pending."""
        return "\n".join(entry["reason"] for entry in self.pending)
