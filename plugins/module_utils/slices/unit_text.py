# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of a slice unit: rendered, read, and judged by systemd-analyze's words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .properties import Setting, means

MARK = "# Managed by steadygpu.host.systemd_slice"
_HEADER = MARK + ": changes made here are lost at the next run.\n"

_NAME = re.compile(r"[A-Za-z0-9:_.\\]+(-[A-Za-z0-9:_.\\]+)*\.slice")
_SYSTEMDS_OWN = ("system.slice", "user.slice", "machine.slice", "-.slice")


def name_fault(name: str) -> str | None:
    """Why ``name`` cannot be a slice of ours, or None."""
    if name in _SYSTEMDS_OWN:
        return f"{name} belongs to systemd itself: wanted a slice of its own"
    if len(name) > 255 or not _NAME.fullmatch(name):
        return (
            f"{name!r} is no slice name: wanted words joined by single dashes and the ending "
            ".slice, such as ai-workload.slice (which lies inside ai.slice)"
        )
    return None


def render(description: str, settings: Iterable[Setting]) -> str:
    """The whole unit file. ``description`` is one line, taken as it is written."""
    # A bare % would begin one of systemd's specifiers.
    lines = [_HEADER + "[Unit]", "Description=" + description.replace("%", "%%"), "", "[Slice]"]
    for setting in settings:
        lines.extend(f"{setting.key}={text}" for text in setting.lines)
    return "\n".join(lines) + "\n"


def is_ours(text: str) -> bool:
    """Was this unit file written by :func:`render`?"""
    return text.startswith(MARK)


def assignments(text: str) -> list[tuple[str, str]]:
    """The (key, value) pairs of all sections, in order, as systemd.syntax(7) reads them."""
    pairs: list[tuple[str, str]] = []
    pending = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(("#", ";")):
            continue
        if line.endswith("\\"):
            pending += line[:-1].rstrip() + " "
            continue
        line, pending = pending + line, ""
        key, equals, value = line.partition("=")
        if equals and not line.startswith("["):
            pairs.append((key.strip(), value.strip()))
    return pairs


def overridden(text: str, settings: Mapping[str, Setting]) -> dict[str, str]:
    """The managed keys to which a drop-in gives a value that differs from ours.

    Values are compared, not their spelling: ``8589934592`` agrees with ``8G``.
    """
    said: dict[str, list[str]] = {}
    for key, value in assignments(text):
        if key in settings:
            said.setdefault(key, []).append(value)
    return {
        key: ", ".join(values) for key, values in said.items() if not means(values, settings[key])
    }


def drop_in_directories(name: str) -> list[str]:
    """The directory names, without path, whose drop-ins apply to ``name`` (systemd.unit(5))."""
    stem = name[: -len(".slice")]
    words = stem.split("-")
    prefixes = ["-".join(words[:count]) + "-.slice.d" for count in range(1, len(words))]
    return ["slice.d", *prefixes, name + ".d"]


def complaints(analyze_output: str, unit_path: str) -> list[str]:
    """What ``systemd-analyze verify`` says of the file ``unit_path``.

    It exits 0 on unknown keys and bad values and only prints ``PATH:LINE: …, ignoring``,
    so its words are the verdict. Lines about other units of the host are not ours.
    """
    name = unit_path.rsplit("/", 1)[-1]
    found = []
    for line in analyze_output.splitlines():
        if line.startswith(unit_path + ":"):
            found.append("line " + line[len(unit_path) + 1 :].strip())
        elif line.startswith(name + ":") or unit_path in line:
            found.append(line.strip())
    return found
