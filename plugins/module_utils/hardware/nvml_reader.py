# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVML asked with a deadline. Nothing of ours keeps it open: that blocks MIG and resets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from . import guarded, nvml


@dataclass(frozen=True)
class Answer:
    """``report`` is what ``nvml.read_all`` returns, or None; then ``reason`` says why.

    ``unresponsive`` means that NVML was asked and did not answer in time.
    """

    report: dict[str, Any] | None = None
    reason: str | None = None
    unresponsive: bool = False


def read(
    deadline_s: float,
    ask: Callable[[Any], dict[str, Any]] = nvml.read_all,
    load: Callable[[], Any | None] = nvml.load,
) -> Answer:
    """Everything NVML knows, within ``deadline_s`` seconds. Never raises for NVML's sake."""
    library = load()
    if library is None:
        return Answer(
            reason="no pynvml on this host; the agent that role steadygpu.host.agent installs "
            "carries one, or install the package nvidia-ml-py"
        )
    outcome = guarded.call(lambda: ask(library), deadline_s)
    if outcome.unresponsive:
        return Answer(reason=f"unresponsive: {outcome.reason}", unresponsive=True)
    if outcome.reason is not None:
        return Answer(reason=f"the NVML reader {outcome.reason}")
    return Answer(report=outcome.value)
