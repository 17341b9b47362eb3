# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A difference as text, for a file or a terminal. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from ..model import Change, Difference, Left

# In the order of a page; every part of Change has its title here.
TITLES = {
    "file": "Files",
    "unit": "Units",
    "sysctl": "Kernel settings",
    "package": "Packages",
    "mig": "MIG layout",
    "kernel": "Kernel command line",
    "driver": "GPU driver",
    "device": "Device nodes",
    "toolkit": "Container toolkit",
    "container": "GPU containers",
}
_NOUNS = {
    "file": ("file", "files"),
    "unit": ("unit", "units"),
    "sysctl": ("kernel setting", "kernel settings"),
    "package": ("package", "packages"),
    "mig": ("MIG layout", "MIG layouts"),
    "kernel": ("word of the kernel command line", "words of the kernel command line"),
    "driver": ("value of the driver", "values of the driver"),
    "device": ("device node", "device nodes"),
    "toolkit": ("program of the toolkit", "programs of the toolkit"),
    "container": ("detail of GPU containers", "details of GPU containers"),
}
# Of one change. A generated file of a thousand lines would bury what a person looks for.
_LINES = 40
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_COLOURS = {"+": "32", "-": "31", "~": "33", "@": "36"}
# Direction marks of Unicode make a line read other than it is.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def plain(difference: Difference, left: Sequence[Left] = ()) -> str:
    """The whole difference, ending with a newline; ``left`` is what a restore would leave."""
    return "\n".join(_lines(difference, left)) + "\n"


def coloured(difference: Difference, left: Sequence[Left] = ()) -> str:
    """The same for a terminal."""
    return "\n".join(_colour(line) for line in _lines(difference, left)) + "\n"


def summary(difference: Difference) -> str:
    """One line: what differs, in numbers."""
    names = f"{visible(difference.before)} → {visible(difference.after)}"
    if difference.empty:
        return f"{names}: no difference"
    counted = [change for change in difference.changes if change.counts]
    numbers = []
    for part in parts(counted):
        many = len({change.subject for change in counted if change.part == part})
        one, more = _NOUNS.get(part, (part, part))
        numbers.append(f"{many} {one if many == 1 else more}")
    return f"{names}: {', '.join(numbers)}"


def parts(changes: Sequence[Change]) -> list[str]:
    """The parts that the changes belong to, in the order of a page."""
    found = {change.part for change in changes}
    return [part for part in TITLES if part in found] + sorted(found - TITLES.keys())


def visible(text: str) -> str:
    """Text that does to a terminal or a page what it looks like: control characters, bytes that
    are no UTF-8 and marks that turn a line around are written out. A tab stays.
    """
    return "".join(
        char
        if char == "\t" or unicodedata.category(char) not in _UNSEEN
        else f"\\x{ord(char) & 0xFF:02x}"
        if ord(char) < 0x100 or 0xDC80 <= ord(char) <= 0xDCFF
        else f"\\u{ord(char):04x}"
        for char in text
    )


def told(change: Change) -> str:
    """What is said about a change behind its subject; "" when the sign in front says it all."""
    before, after = visible(change.before), visible(change.after)
    if change.kind == "added":
        return after
    if change.kind == "removed":
        return before
    if change.lines and change.part == "mig":
        return ""
    return f"{before or 'nothing'} → {after or 'nothing'}" if before or after else ""


def _lines(difference: Difference, left: Sequence[Left]) -> Iterator[str]:
    yield summary(difference)
    counted = [change for change in difference.changes if change.counts]
    for part in parts(counted):
        yield ""
        yield TITLES.get(part, part)
        for change in counted:
            if change.part == part:
                yield from _change(change)
    aside = [change for change in difference.changes if not change.counts]
    if aside:
        yield ""
        yield "Comes and goes by itself, or is not known"
        for part in parts(aside):
            for change in aside:
                if change.part == part:
                    yield from _change(change)
    if left:
        yield ""
        yield "Not restored"
        for one in left:
            later = "later: " if one.pending else ""
            yield f"  {later}{visible(one.subject)}: {visible(one.reason)}"


def _change(change: Change) -> Iterator[str]:
    text = told(change)
    yield f"  {_SIGNS.get(change.kind, '~')} {visible(change.subject)}" + (text and f": {text}")
    for line in change.lines[:_LINES]:
        yield f"      {visible(line)}".rstrip()
    more = len(change.lines) - _LINES
    if more > 0:
        yield f"      … {more} more lines; the page (--html) and JSON have them all"


def _colour(line: str) -> str:
    if line.startswith("      "):
        sign = line[6:7]
    elif line.startswith("  "):
        sign = line[2:3]
    elif line:
        return f"\033[1m{line}\033[0m"
    else:
        return line
    code = _COLOURS.get(sign)
    return f"\033[{code}m{line}\033[0m" if code else line
