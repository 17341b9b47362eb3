# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A service level objective of one service, and what is said of a text that holds some. Pure.

One schema, version 1. Availability is a ratio over a window, the number of replicas a count:
neither follows from the other, so a policy has both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from .values import duration_text, ratio_text

VERSION = 1
QUANTILES = ("p50", "p90", "p95", "p99", "p99.9")
# What an availability is counted over when nobody says.
WINDOW_US = 30 * 86_400_000_000


@dataclass(frozen=True)
class Objective:
    """What one ``target`` is to keep. None: nothing is asked of it.

    ``latency_us`` is by quantile, ``window_us`` what availability and latency are counted over.
    """

    target: str
    availability: Decimal | None = None
    min_replicas: int | None = None
    latency_us: dict[str, int] = field(default_factory=dict)
    window_us: int = WINDOW_US

    def as_dict(self) -> dict[str, Any]:
        """The objective as a file has it."""
        found: dict[str, Any] = {"target": self.target}
        if self.availability is not None:
            found["availability"] = ratio_text(self.availability)
        if self.min_replicas is not None:
            found["min_replicas"] = self.min_replicas
        if self.latency_us:
            found["latency"] = {
                name: duration_text(self.latency_us[name])
                for name in QUANTILES
                if name in self.latency_us
            }
        found["window"] = duration_text(self.window_us)
        return found


def document(objectives: tuple[Objective, ...]) -> dict[str, Any]:
    """A whole file as JSON types."""
    return {"version": VERSION, "objectives": [one.as_dict() for one in objectives]}


@dataclass(frozen=True)
class Remark:
    """What is said of one place of a text.

    ``kind``: ``error`` (it cannot be taken), ``needed`` (it does not say what a policy should
    have), ``no_equal`` (nothing here means this), ``changed`` (it means a little else here) and
    ``kept``.
    """

    kind: str
    path: str
    said: str
    advice: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.said}; {self.advice}" if self.advice else f"{where}{self.said}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return vars(self).copy()
