# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real time as it is wanted, and a kernel as it shows itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Whose settings these are.
OWNER = "realtime"

# What happens to a FIFO or RR task that never sleeps.
THROTTLING = "throttling"
FAIR_SERVER = "fair_server"
GROUPS = "groups"
UNKNOWN = "unknown"

DEFAULT_PERIOD_US = 1_000_000
# What must be left to everybody else, in percent of each period: the kernel's own default.
LEAST_MARGIN = 5.0
# The articles' three values at a period of one second; the name is what they leave to others.
PRESETS: Mapping[str, int] = {"margin-60": 400_000, "margin-30": 700_000, "margin-5": 950_000}


class RealtimeError(Exception):
    """Real time cannot be what was asked. The message says what was seen and what to do."""


@dataclass(frozen=True)
class Server:
    """The fair server of one CPU: in each period, other tasks get the runtime."""

    cpu: int
    runtime_ns: int
    period_ns: int


@dataclass(frozen=True)
class Kernel:
    """What the running kernel shows of itself.

    ``groups`` says whether it has real-time groups that are on (None: not known), ``groups_told``
    where that was read. ``servers`` are the fair servers, and ``no_servers`` says why none could be
    seen. ``runtime_us`` and ``period_us`` are the sysctls now, None without them.
    """

    release: str
    groups: bool | None = None
    groups_told: str = ""
    servers: tuple[Server, ...] = ()
    no_servers: str = ""
    runtime_us: int | None = None
    period_us: int | None = None
    cgroup_version: int | None = 2

    @property
    def version(self) -> tuple[int, int] | None:
        """(6, 12) of ``6.12.94+deb13-amd64``, or None."""
        words = self.release.split("-", 1)[0].split(".")
        digits = [word.rstrip("+") for word in words[:2]]
        if len(digits) < 2 or not all(word.isdigit() for word in digits):
            return None
        return int(digits[0]), int(digits[1])


@dataclass(frozen=True)
class Partition:
    """CPUs of one slice alone. ``kind`` is ``isolated`` (no load balancing) or ``root``."""

    cpus: tuple[int, ...]
    slice: str = "realtime.slice"
    kind: str = "isolated"


@dataclass(frozen=True)
class Wish:
    """What is asked; None, or no partition, is not asked.

    ``bound_deadline`` writes the sysctls also where they bound nothing but SCHED_DEADLINE.
    """

    runtime_us: int | None = None
    period_us: int = DEFAULT_PERIOD_US
    bound_deadline: bool = False
    fair_runtime_us: int | None = None
    fair_period_us: int = DEFAULT_PERIOD_US
    partition: Partition | None = None
    rtprio: int | None = None
    take_from_running: bool = False


@dataclass(frozen=True)
class Class:
    """How the kernel is classified: ``kind`` with the sentence a person needs."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class Margin:
    """What is left to normal tasks, in percent of each period, and against whom it holds."""

    name: str
    percent: float
    holds_against: tuple[str, ...]
    sentence: str

    def as_dict(self) -> dict[str, object]:
        """As the module returns it."""
        return {
            "name": self.name,
            "percent": self.percent,
            "holds_against": list(self.holds_against),
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class Machine:
    """``cpus`` that are online; ``nodes`` maps a NUMA node to its online CPUs."""

    cpus: frozenset[int] = frozenset()
    nodes: Mapping[int, frozenset[int]] = field(default_factory=dict)
