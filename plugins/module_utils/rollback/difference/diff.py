# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between two states of a host, in words and without secrets. Pure.

Files are here, everything else in :mod:`.diff_parts`. A part that could not be read on one side is
told and does not count, since nobody knows whether it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...secrets import redact
from .. import scope
from ..model import ABSENT, Area, Change, Difference, Entry, Left, RollbackError, State
from ..observation.package_names import never_alone
from . import diff_parts
from .diff_parts import ADDED, CHANGED, REMOVED

Content = Callable[[str], "bytes | None"]

# Larger texts are only said to differ: nobody reads on, and comparing them takes seconds.
MOST_TEXT = 256 * 1024
# Of a value that is no text.
_MOST_ATTRIBUTE = 64

# The parts of State.unknown and what they are called in a Change.
_PARTS = {
    "units": "unit",
    "sysctls": "sysctl",
    "packages": "package",
    "mig": "mig",
    "kernel_cmdline": "kernel",
    "devices": "device",
    "driver": "driver",
    "toolkit": "toolkit",
    "containers": "container",
}

_NEVER_RESTORED = {
    "kernel": "the boot loader sets it, from the next boot on",
    "device": "device nodes are made by the driver's own tools",
    "driver": "a driver is never changed on its own: that takes the GPUs from those who use them",
    "toolkit": "programs come with their packages",
    "container": "containers belong to those who run them",
}


def difference(
    before: State,
    after: State,
    names: tuple[str, str],
    content_before: Content,
    content_after: Content,
    areas: Sequence[Area],
) -> Difference:
    """All that differs, files first, each part in the order of its subjects.

    ``names`` are what the two are called. The contents give what a digest stands for, None where it
    was not kept. ``areas`` say of which files nothing may be shown.
    """
    unknown = {**before.unknown, **after.unknown}
    sides = _Sides(content_before, content_after, areas)
    changes = [change for path in _paths(before, after) for change in _file(path, sides)]
    for part, found in diff_parts.differences(before, after):
        if part not in unknown:
            changes.extend(found)
    changes.extend(_unknown(before, after))
    return Difference(names[0], names[1], tuple(changes))


def not_restored(found: Difference, areas: Sequence[Area]) -> tuple[Left, ...]:
    """Which of the differences a restore leaves as they are by their kind, and why.

    What it leaves besides depends on who wrote it since, which :mod:`..way_back.plan` knows.
    """
    left: list[Left] = []
    for change in found.changes:
        reason = _NEVER_RESTORED.get(change.part, "")
        if change.part == "file":
            area = scope.area_of(change.subject, areas)
            if area is None or area.owner == "seen":
                reason = "looked at, but others own it"
        elif change.part == "package":
            reason = "packages are only changed when told (--packages)"
            if never_alone(change.subject):
                reason = "driver and kernel packages are never changed on their own"
        if reason and change.counts:
            title = "kernel command line, " if change.part == "kernel" else ""
            left.append(Left(f"{title}{change.subject}", reason))
    return tuple(left)


# -- files ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sides:
    before: Content
    after: Content
    areas: Sequence[Area]


def _paths(before: State, after: State) -> list[tuple[str, Entry, Entry]]:
    """What differs. A path that a state does not name is not there."""
    found = []
    for path in sorted({*before.files, *after.files}):
        was, now = before.files.get(path, ABSENT), after.files.get(path, ABSENT)
        if was != now and (was.there or now.there):
            found.append((path, was, now))
    return found


def _file(found: tuple[str, Entry, Entry], sides: _Sides) -> Iterator[Change]:
    path, was, now = found
    area = scope.area_of(path, sides.areas)
    hidden = area is not None and area.secret
    lines: tuple[str, ...] = ()
    told: list[tuple[str, str]] = []
    if (was.kind, was.target) != (now.kind, now.target):
        told.append((_what(was, hidden), _what(now, hidden)))
    if was.digest != now.digest:
        lines, content = _content(path, was, now, hidden, sides)
        if was.kind == now.kind:
            told.append(content)
    if was.there and now.there:
        told.extend(_clothes(was, now))
    yield Change(
        part="file",
        subject=path,
        kind=ADDED if not was.there else REMOVED if not now.there else CHANGED,
        before=", ".join(one for one, _now in told if one) if was.there else "",
        after=", ".join(one for _was, one in told if one) if now.there else "",
        lines=lines,
    )


def _what(entry: Entry, hidden: bool) -> str:
    if entry.kind == "absent":
        return ""
    if entry.kind == "link":
        return f"link to {redact.phrase(entry.target or '')}"
    owner = f"mode {entry.mode:04o}, owner {entry.uid}:{entry.gid}"
    if entry.kind == "file":
        return f"file, {owner}" if hidden else f"file of {_size(entry.size)}, {owner}"
    return f"{'directory' if entry.kind == 'directory' else 'device, socket or FIFO'}, {owner}"


def _clothes(was: Entry, now: Entry) -> Iterator[tuple[str, str]]:
    """Mode, owner and extended attributes, where both sides have them."""
    if "link" not in (was.kind, now.kind) and was.kind == now.kind and was.mode != now.mode:
        yield f"mode {was.mode:04o}", f"mode {now.mode:04o}"
    if was.kind == now.kind and (was.uid, was.gid) != (now.uid, now.gid):
        yield f"owner {was.uid}:{was.gid}", f"owner {now.uid}:{now.gid}"
    for name in sorted({*was.xattrs, *now.xattrs}):
        old, new = was.xattrs.get(name), now.xattrs.get(name)
        if old != new:
            yield _attribute(name, old), _attribute(name, new)


def _attribute(name: str, value: bytes | None) -> str:
    if value is None:
        return f"no {name}"
    if name != "security.selinux":
        return f"{name} of {len(value)} bytes"
    text = value.rstrip(b"\0").decode("ascii", "replace")
    return f"{name} {redact.phrase(text[:_MOST_ATTRIBUTE])}"


def _content(
    path: str, was: Entry, now: Entry, hidden: bool, sides: _Sides
) -> tuple[tuple[str, ...], tuple[str, str]]:
    """The lines that differ; and, in a line each, what the contents are."""
    if hidden:
        return (), ("content not shown", "content not shown, changed")
    before, why_before = _text(was, sides.before)
    after, why_after = _text(now, sides.after)
    lines: tuple[str, ...] = ()
    if before is not None and after is not None:
        lines = redact.unified(path, before, after)
    old = ", ".join(filter(None, (why_before, _size(was.size))))
    new = ", ".join(filter(None, (why_after, _size(now.size))))
    return lines, (old, new if old != new or lines else f"{new}, changed")


def _text(entry: Entry, content: Content) -> tuple[str | None, str]:
    """A file's text, None with a reason where it has none; what is no file has an empty one."""
    if entry.digest is None:
        return "", ""
    if entry.size > MOST_TEXT:
        return None, "large"
    try:
        found = content(entry.digest)
    except RollbackError:
        return None, "content damaged"
    if found is None:
        return None, "content not kept"
    try:
        text = found.decode("utf-8")
    except UnicodeDecodeError:
        return None, "binary"
    return (None, "binary") if "\0" in text else (text, "")


def _size(size: int) -> str:
    if size < 1024:
        return "1 byte" if size == 1 else f"{size} bytes"
    value, unit = size / 1024, "KiB"
    if value >= 1000:
        value, unit = value / 1024, "MiB"
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


# -- what was not read ------------------------------------------------------------------


def _unknown(before: State, after: State) -> Iterator[Change]:
    for part in sorted({*before.unknown, *after.unknown}):
        was, now = _why(before, part), _why(after, part)
        yield Change(
            part=_PARTS.get(part, part.split(" ")[0]),
            subject=part,
            kind=CHANGED,
            before=was,
            after="not known either" if was == now else now,
            counts=False,
        )


def _why(state: State, part: str) -> str:
    reason = state.unknown.get(part)
    return "known" if reason is None else f"not known: {redact.phrase(' '.join(reason.split()))}"
