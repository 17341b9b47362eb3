# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVIDIA driver's lines of a kernel log: ``dmesg``, the journal, a ticket. Pure."""

from __future__ import annotations

import bisect
import re
from dataclasses import replace

from ..documents.dumps import DriverLog, ModuleMismatch, Refusal, XidLine
from ..model import Position

# "[ 7386.259769] NVRM: ", "Dec 01 07:00:00 host kernel: NVRM: ", "[Tue Dec  1 07:00:00 2026] "
_PREFIX = re.compile(
    r"^\s*(?:[A-Z][a-z]{2} +\d+ [\d:]+ \S+ kernel: |\S+T\S+ \S+ kernel: )?(?:<\d+>)?"
    r"(?:\[[^\]\n]{1,40}\]\s*)?(?:NVRM:\s*)?"
)
_XID = re.compile(
    r"\bXid \((?:PCI:)?(?P<slot>[0-9a-fA-F]+(?::[0-9a-fA-F]+)+(?:\.\d)?)\):? ?(?P<number>\d{1,4})\b"
    r",?\s*(?P<text>.*)"
)
_WHO = re.compile(r"^(?:pid=[^,]*,?\s*)?(?:name=[^,]*,?\s*)?(?:channel \S+,?\s*)?", re.IGNORECASE)
_REFUSED = re.compile(
    r"The NVIDIA (?P<card>.{0,120}?)\s*installed in this system (?:is|requires)\s+"
    r"(?:(?P<open>not supported by open)|supported through the NVIDIA (?P<legacy>\S{1,20}) Legacy"
    r"|(?P<needs>use of the NVIDIA open kernel modules)|(?P<unsupported>not supported))",
    re.IGNORECASE,
)
_MISMATCH = re.compile(
    r"API mismatch: the client(?: '[^']{0,80}' \(pid \d+\))? has the version (?P<library>[\d.]+\d)"
    r",? but this kernel module has the version (?P<module>[\d.]+\d)",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"GPU (?P<slot>[0-9a-fA-F:.]+): RmInitAdapter failed! \((?P<code>[^)\s]{1,40})\)"
)
_REJECTED = re.compile(
    r"nvidia\S*: (?:module verification failed: (?!signature and/or required key missing - "
    r"tainting)"
    r"|Loading of (?:unsigned )?module.{0,40}rejected)"
    r"|Loading of module with unavailable key is rejected"
    r"|Lockdown: (?:modprobe|insmod): unsigned module loading is restricted"
)


def read_driver_log(text: str, file: str) -> DriverLog | None:
    """What the driver says in ``text``; None where it says nothing that we know."""
    flat = _Flat(text, file)
    log = DriverLog(
        at=Position(file, 1, 1),
        xids=_xids(text, file),
        refusals=_refusals(flat),
        mismatches=_mismatches(flat),
        failed=tuple(
            XidLine(0, match["slot"], match["code"], flat.place(match.start()))
            for match in _FAILED.finditer(flat.text)
        ),
        rejected=tuple(flat.place(m.start()) for m in _REJECTED.finditer(flat.text)),
    )
    return log if any((log.xids, log.refusals, log.mismatches, log.failed, log.rejected)) else None


class _Flat:
    """The text in one line, each line's prefix removed, and the way back to the places.

    The driver breaks its sentences into lines, and the kernel puts a prefix before each.
    """

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.starts: list[int] = []
        self.lines: list[tuple[int, int]] = []
        parts: list[str] = []
        length = 0
        for number, line in enumerate(text.splitlines(), 1):
            prefix = _PREFIX.match(line)
            cut = prefix.end() if prefix else 0
            said = " ".join(line[cut:].split())
            if not said:
                continue
            self.starts.append(length)
            self.lines.append((number, cut + 1))
            parts.append(said)
            length += len(said) + 1
        self.text = " ".join(parts)

    def place(self, offset: int) -> Position:
        """The line on which the character at ``offset`` stands."""
        index = bisect.bisect_right(self.starts, offset) - 1
        number, column = self.lines[index] if 0 <= index < len(self.lines) else (0, 0)
        return Position(self.file, number, column)


def _xids(text: str, file: str) -> tuple[XidLine, ...]:
    found: dict[tuple[int, str], XidLine] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _XID.search(line) if "Xid" in line else None
        if match is None:
            continue
        key = (int(match["number"]), match["slot"].lower())
        if key in found:
            found[key] = replace(found[key], times=found[key].times + 1)
            continue
        said = _WHO.sub("", match["text"]).strip()
        found[key] = XidLine(*key, said[:200], Position(file, number, match.start() + 1))
    return tuple(found.values())


def _refusals(flat: _Flat) -> tuple[Refusal, ...]:
    found: dict[tuple[str, str], Refusal] = {}
    for match in _REFUSED.finditer(flat.text):
        why = next(
            word
            for group, word in (
                ("open", "open"),
                ("legacy", "legacy"),
                ("needs", "needs-open"),
                ("unsupported", "unsupported"),
            )
            if match[group]
        )
        card = " ".join(match["card"].split()) or "GPU"
        found.setdefault(
            (why, card), Refusal(why, card, match["legacy"] or "", flat.place(match.start()))
        )
    return tuple(found.values())


def _mismatches(flat: _Flat) -> tuple[ModuleMismatch, ...]:
    found: dict[tuple[str, str], ModuleMismatch] = {}
    for match in _MISMATCH.finditer(flat.text):
        key = (match["library"], match["module"])
        found.setdefault(key, ModuleMismatch(*key, flat.place(match.start())))
    return tuple(found.values())
