# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a kernel command line: split, compared, judged by their form. Pure.

Kernel Documentation/admin-guide/kernel-parameters.rst: words are parted by blanks outside of double
quotes, and ``-`` and ``_`` in a name are the same letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
# What neither a shell nor a boot loader's script takes for something else.
_SAFE = re.compile(r"[A-Za-z0-9_.,:=+/@%^*~!?\[\]-]+")

# Parameters that may be given several times, each of which counts.
_CUMULATIVE = frozenset(
    {
        "blacklist",
        "cgroup_disable",
        "cgroup_no_v1",
        "console",
        "earlycon",
        "efi",
        "initcall_blacklist",
        "memmap",
        "modprobe.blacklist",
        "module_blacklist",
        "pci",
        "systemd.mask",
        "systemd.setenv",
        "systemd.wants",
    }
)


def split(line: str) -> list[str]:
    """The words of a command line, in order."""
    return _WORD.findall(line)


def key(word: str) -> str:
    """The name of a parameter, by which the kernel tells it from others."""
    return word.partition("=")[0].replace("-", "_")


def value(word: str) -> str:
    """What is after the first ``=``, without quotes around it; "" for a word without one."""
    return word.partition("=")[2].strip('"')


def fault(word: str) -> str:
    """Why this cannot be a parameter that is written to a boot loader, "" where it can."""
    if not word or not key(word):
        return f"{word!r} is no kernel parameter: wanted a name, or NAME=VALUE"
    if not _SAFE.fullmatch(word):
        bad = "".join(sorted(set(_SAFE.sub("", word))))
        return (
            f"{word!r} holds {bad!r}, which a boot loader's script would take for its own; one "
            "parameter is one word of letters, digits and _ . , : = + / @ % ^ * ~ ! ? [ ] -"
        )
    return ""


def is_cumulative(word: str) -> bool:
    """Does the parameter count each time it is given?"""
    name = key(word)
    return name in _CUMULATIVE or name.startswith("rd.")


def conflicts(wanted: Iterable[str], others: Iterable[str]) -> list[tuple[str, str]]:
    """Words that give one parameter two values, of which the kernel takes only one."""
    given = list(others)
    return [
        (word, other)
        for word in wanted
        if not is_cumulative(word)
        for other in given
        if key(other) == key(word) and other != word
    ]


def without(line: Iterable[str], taken: Iterable[str]) -> list[str]:
    """The words of a line but those in ``taken``."""
    gone = set(taken)
    return [word for word in line if word not in gone]
