# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of huge pages for slices, which systemd has no property for.

The file ``hugetlb.<size>.max`` of a slice's control group is there once the controller is switched
on in every group above it. systemd leaves controllers alone that it does not know. At boot a unit
of ours does both with ``systemd-tmpfiles``, before the engines start.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from .. import cgroups
from ..boot_unit import ENGINES, BootUnit
from ..hardware import files
from ..settings.files import header
from ..settings.model import NUMBER, UNSUPPORTED, Target
from ..slices.proof import place
from .model import NumaError

RULES_FILE = "/etc/steadygpu/hugetlb.conf"
UNIT_NAME = "steadygpu-hugetlb.service"
_MOUNT = "/" + cgroups.MOUNT
_CONTROLLER = "hugetlb"

Limits = Mapping[str, Mapping[int, "int | None"]]

# The file is systemd-tmpfiles' own format; it lies elsewhere because tmpfiles.d comes too early.
_UNIT_TEXT = """\
# Written by steadygpu.host.numa_memory, which also removes it.
[Unit]
Description=Limit the huge pages of slices
ConditionPathExists={rules}
Wants={slices}
After={slices}
Before={engines}

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=30
ExecStart=/usr/bin/systemd-tmpfiles --create {rules}

[Install]
WantedBy=multi-user.target
"""


def unit(limits: Limits) -> BootUnit:
    """The unit that sets them at boot."""
    named = " ".join(sorted(limits))
    text = _UNIT_TEXT.format(rules=RULES_FILE, slices=named, engines=ENGINES)
    return BootUnit(UNIT_NAME, text)


def rules_text(limits: Limits) -> str | None:
    """What the unit reads; None without limits."""
    if not limits:
        return None
    lines = [
        f"w {_MOUNT}{group}/cgroup.subtree_control - - - - +{_CONTROLLER}\n"
        for group in _above(limits)
    ]
    for name, size_kib, limit in _each(limits):
        lines.append(f"w {_file(name, size_kib)} - - - - {_written(limit)}\n")
    return header("numa") + "".join(lines)


def targets(limits: Limits, root: str = "/") -> tuple[Target, ...]:
    """How each limit is read back; where the kernel cannot hold one, why."""
    info = cgroups.read_cgroups(root)
    if info.version != 2 or _CONTROLLER not in info.controllers:
        why = (
            "limits of huge pages need cgroup v2"
            if info.version != 2
            else "this kernel has no hugetlb controller (CONFIG_CGROUP_HUGETLB)"
        )
        return tuple(
            Target(_name(name, size), UNSUPPORTED, "", _written(limit), why)
            for name, size, limit in _each(limits)
        )
    there = _sizes(root)
    found = []
    for name, size, limit in _each(limits):
        if size not in there:
            why = f"this kernel has no huge pages of {size} kB"
            found.append(Target(_name(name, size), UNSUPPORTED, "", _written(limit), why))
            continue
        # The kernel keeps whole pages.
        held = limit if limit is None else limit // (size * 1024) * (size * 1024)
        note = (
            f"{name} is not active, or its group has no hugetlb controller: start it and run again"
        )
        path = _file(name, size)
        found.append(Target(_name(name, size), NUMBER, path, _written(held), note, "max"))
    return tuple(found)


def acting(limits: Limits, root: str = "/") -> dict[str, dict[int, int | None]]:
    """Those that this kernel can hold: the others are neither written nor set at boot."""
    live = {target.path for target in targets(limits, root) if target.is_live}
    found: dict[str, dict[int, int | None]] = {}
    for name, size, limit in _each(limits):
        if _file(name, size) in live:
            found.setdefault(name, {})[size] = limit
    return found


def refusals(limits: Limits, root: str = "/") -> list[str]:
    """Limits below what a slice uses now: its jobs would die at the next page they touch."""
    said = []
    for name, size, limit in _each(limits):
        current = files.number(files.text(_below(root, _file(name, size)[:-3] + "current")))
        if limit is not None and current is not None and limit < current:
            said.append(
                f"{_name(name, size)}: {limit} bytes are wanted and the slice uses {current} now; "
                "a process that touches one page more would be ended by SIGBUS"
            )
    return said


def missing(limits: Limits, root: str = "/") -> list[str]:
    """Slices without a control group."""
    return [n for n in sorted(limits) if not os.path.isdir(_below(root, _MOUNT + place(n)))]


def switch_on(limits: Limits, check_mode: bool, root: str = "/") -> list[str]:
    """Give the groups above each slice the controller. Returns the actions; raises NumaError."""
    actions = []
    for group in _above(limits):
        path = f"{_MOUNT}{group}/cgroup.subtree_control"
        text = files.text(_below(root, path))
        if not os.path.exists(_below(root, path)) or _CONTROLLER in text.split():
            continue
        actions.append(f"switch the hugetlb controller on below {group or '/'}")
        if check_mode:
            continue
        try:
            with open(_below(root, path), "w", encoding="ascii") as handle:
                handle.write(f"+{_CONTROLLER}")
        except OSError as error:
            raise NumaError(
                f"{path}: the kernel refused +{_CONTROLLER}: {error.strerror}. Wanted is a group "
                "without processes of its own"
            ) from error
    return actions


def foreseen(limits: Limits, root: str = "/") -> list[str]:
    """Limits whose file comes with the controller, which check mode does not switch on."""
    return [
        f"set {target.name} to {target.wanted} (was max)"
        for target in targets(limits, root)
        if target.is_live
        and not os.path.exists(_below(root, target.path))
        and os.path.isdir(os.path.dirname(_below(root, target.path)))
    ]


def _above(limits: Limits) -> list[str]:
    """The groups above all slices, outermost first; "" is the root."""
    found: set[str] = set()
    for name in limits:
        parts = place(name).split("/")
        found.update("/".join(parts[:count]) for count in range(1, len(parts)))
    return sorted(found, key=lambda group: (group.count("/"), group))


def _each(limits: Limits) -> Iterable[tuple[str, int, int | None]]:
    return [(n, size, limits[n][size]) for n in sorted(limits) for size in sorted(limits[n])]


def _sizes(root: str) -> set[int]:
    names = files.names(os.path.join(root, "sys/kernel/mm/hugepages"))
    texts = (name[len("hugepages-") : -len("kB")] for name in names)
    return {int(text) for text in texts if text.isdecimal()}


def _file(name: str, size_kib: int) -> str:
    return f"{_MOUNT}{place(name)}/hugetlb.{_spelled(size_kib)}.max"


def _name(name: str, size_kib: int) -> str:
    return f"{name} hugetlb.{_spelled(size_kib)}.max"


def _written(limit: int | None) -> str:
    return "max" if limit is None else str(limit)


def _spelled(size_kib: int) -> str:
    """As the kernel names the files: 64KB, 2MB, 1GB (mm/hugetlb_cgroup.c)."""
    if size_kib >= 1 << 20:
        return f"{size_kib >> 20}GB"
    return f"{size_kib >> 10}MB" if size_kib >= 1 << 10 else f"{size_kib}KB"


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
