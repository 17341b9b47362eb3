# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rule on logs: messages that ``steadygpu explain`` knows."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.dumps import LogText
from ..explain import explain
from ..host import HostView
from ..model import Hit, Position, Severity
from ..registry import rule

# A log of a busy host repeats itself: its beginning shows what it is about.
_LOOKED_AT = 32 * 1024
_MOST = 12
# Rules of their own name these, with their places and numbers.
_NAMED_ELSEWHERE = ("xid-", "apt-held", "apt-key", "apt-signed-by", "kernel-refuses-card")


@rule(
    "known-message",
    "A message whose causes are known",
    Severity.INFO,
    reads=LogText,
    reason="The text has a message that steadygpu explain has an entry for: its causes in the "
    "order of "
    "likelihood, how to prove each, and what to do.",
    fix="Run steadygpu explain on this file.",
    sources=("the tables in checks/symptoms",),
)
def known_message(log: LogText, host: HostView) -> Iterator[Hit]:
    """Each symptom once, at the line where it stands."""
    lines = log.text[:_LOOKED_AT].splitlines()
    explained = explain("\n".join(lines), host)
    shown = [
        one
        for one in explained
        if not one.symptom.normal and not one.symptom.id.startswith(_NAMED_ELSEWHERE)
    ]
    for found in shown[:_MOST]:
        likely = found.causes[0].cause.title if found.causes else ""
        yield Hit(
            _place(lines, found.quoted, log.at.file),
            f"{found.symptom.title}; likeliest: {likely}",
            commands=(f"steadygpu explain {log.at.file}",),
        )


def _place(lines: list[str], quoted: str, file: str) -> Position:
    start = quoted[:24].split(" NVRM:")[0].strip()
    for number, line in enumerate(lines, 1):
        column = line.find(start)
        if start and column >= 0:
            return Position(file, number, column + 1)
    return Position(file)
