# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Former values follow their disk when it has another name or number after a boot. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..settings.model import LINE, Target
from ..settings.record import Former, Record
from .model import Disk

# In the record's ``extra``: name of a disk, and what it said of itself.
DISKS = "disks"


def known_disks(disks: Sequence[Disk]) -> dict[str, str]:
    """What tells these disks from others under any name; those that say nothing are left out."""
    return {disk.name: "=".join(disk.identity) for disk in disks if disk.identity}


def follow(record: Record, disks: Sequence[Disk]) -> tuple[Record, list[str]]:
    """The record with the names and numbers of today, and the disks that it no longer has.

    Those are gone while another disk has their name, which is not to get their former values. A
    disk that says nothing of itself is taken for the one that has its name.
    """
    told = record.extra.get(DISKS, {})
    told = told if isinstance(told, Mapping) else {}
    by_identity = {identity: disk for disk in disks for identity in known_disks([disk]).values()}
    by_name = {disk.name: disk for disk in disks}
    lost: list[str] = []
    names: dict[str, str] = {}

    def moved(formers: Sequence[Former]) -> tuple[Former, ...]:
        found = []
        for former in formers:
            name = former.target.name.partition(" ")[0]
            disk = by_name.get(name)
            if name in told:
                disk = by_identity.get(told[name])
                if disk is None and name in by_name:
                    lost.append(name)
                    continue
            names[name] = disk.name if disk else name
            found.append(_on(disk, name, former) if disk else former)
        return tuple(found)

    formers, returning = moved(record.formers), moved(record.returning)
    extra = dict(record.extra)
    if told:
        extra[DISKS] = {names[name]: said for name, said in told.items() if name in names}
    return replace(record, formers=formers, returning=returning, extra=extra), lost


def _on(disk: Disk, name: str, former: Former) -> Former:
    target = former.target
    path = target.path.replace(f"/sys/block/{name}/", f"/sys/block/{disk.name}/")
    title = disk.name + target.name[len(name) :]
    if target.kind != LINE:
        return replace(former, target=replace(target, name=title, path=path))
    number = target.wanted.partition(" ")[0]

    def numbered(line: str) -> str:
        first, space, rest = line.partition(" ")
        return f"{disk.number}{space}{rest}" if first == number else line

    moved = Target(
        title, LINE, path, numbered(target.wanted), target.note, numbered(target.neutral)
    )
    value = None if former.value is None else numbered(former.value)
    left = None if former.left is None else numbered(former.left)
    return Former(moved, value, left)
