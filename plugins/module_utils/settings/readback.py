# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel, a cgroup or a driver holds of a setting, compared with what is wanted."""

from __future__ import annotations

import os
import re

from ..atomic import read_text
from .model import (
    CHOICE,
    DIFFERS,
    EFFECTIVE,
    INDICES,
    INERT,
    LINE,
    NUMBER,
    SYSCTL,
    UNSUPPORTED,
    Setting,
    Target,
)

_BRACKETED = re.compile(r"\[([^\]]+)\]")


def read_back(target: Target, root: str = "/") -> Setting:
    """The setting as the machine has it. Never raises: what cannot be read is said."""
    if target.kind in (INERT, UNSUPPORTED):
        return Setting(target.name, target.wanted, target.path or None, target.kind, target.note)
    if not target.is_live:
        # Few hosts have such, and Ansible compiles what is imported at each run.
        from . import looked_at

        return looked_at.read(target, root)
    path = live_path(target)
    try:
        raw = read_text(below(root, path))
    except OSError as error:
        why = f"{path} cannot be read: {error.strerror}"
        return Setting(target.name, target.wanted, None, DIFFERS, why, path)
    if raw is None:
        why = target.note or f"this kernel has no {path}"
        return Setting(target.name, target.wanted, None, UNSUPPORTED, why, path)
    seen = value_in(target, raw)
    shown = _of_interest(target, seen)
    if same(target, seen):
        return Setting(target.name, target.wanted, shown, EFFECTIVE, "", path)
    why = target.note or f"{path} holds another value"
    return Setting(target.name, target.wanted, shown, DIFFERS, why, path)


def live_value(target: Target, root: str = "/") -> str | None:
    """What the kernel holds now, None where it has no such file or line. Raises OSError."""
    raw = read_text(below(root, live_path(target)))
    if raw is None:
        return None
    return value_in(target, raw)


def live_path(target: Target) -> str:
    """The file of a live setting, as the host sees it."""
    return sysctl_path(target.path) if target.kind == SYSCTL else target.path


def sysctl_path(key: str) -> str:
    """``net.ipv4.ip_forward``, or sysctl's other form with slashes, as a path below /proc/sys."""
    first = re.search("[./]", key)
    if first and first.group() == ".":
        # In a dotted key, a slash stands for a dot in a name, such as that of a VLAN.
        key = key.translate(str.maketrans("./", "/."))
    return f"/proc/sys/{key}"


def value_in(target: Target, raw: str) -> str | None:
    """The value of ``target`` in the text of its file, blanks normalised; None without a line."""
    if target.kind == LINE:
        key = target.wanted.split()[:1]
        lines = [line.split() for line in raw.splitlines()]
        return next((" ".join(words) for words in lines if words[:1] == key), None)
    if target.kind == CHOICE:
        chosen = _BRACKETED.search(raw)
        if chosen:
            return chosen.group(1).strip()
    return " ".join(raw.split())


def _of_interest(target: Target, seen: str | None) -> str | None:
    """Of a long line the name and the fields that are wanted, whatever they hold."""
    if target.kind != LINE or seen is None:
        return seen
    wanted = {word.partition("=")[0] for word in target.wanted.split()}
    return " ".join(word for word in seen.split() if word.partition("=")[0] in wanted)


def same(target: Target, seen: str | None) -> bool:
    """Is ``seen`` what is wanted?"""
    return same_value(target, seen, target.wanted)


def same_value(target: Target, seen: str | None, wanted: str | None) -> bool:
    """Do two values of ``target`` mean the same?"""
    if seen is None or wanted is None:
        return seen is wanted
    seen, wanted = " ".join(seen.split()), " ".join(wanted.split())
    if seen == wanted:
        return True
    if target.kind == NUMBER:
        numbers = (_integer(seen), _integer(wanted))
        return None not in numbers and numbers[0] == numbers[1]
    if target.kind == INDICES:
        lists = (_indices(seen), _indices(wanted))
        return None not in lists and lists[0] == lists[1]
    if target.kind == LINE:
        return seen.split()[:1] == wanted.split()[:1] and set(wanted.split()) <= set(seen.split())
    return False


def below(root: str, path: str) -> str:
    """``path`` in the tree of ``root``."""
    return os.path.join(root, path.lstrip("/"))


def _integer(text: str) -> int | None:
    try:
        return int(text, 0) if text.lower().startswith("0x") else int(text)
    except ValueError:
        return None


def _indices(text: str) -> frozenset[int] | None:
    found: set[int] = set()
    for part in text.replace(" ", ",").split(","):
        first, _dash, last = part.partition("-")
        if not part:
            continue
        if not first.isdigit() or not (last or first).isdigit():
            return None
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
