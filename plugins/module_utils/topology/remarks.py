# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a reader of a picture should know before he trusts it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .compare import flat
from .levels import nvlinks
from .model import Machine

# Two linked GPUs are a bridged pair, and a third beside it need not have lost anything.
_LEAST_MESH = 3


def remarked(machine: Machine, judge_tree: bool = True) -> Machine:
    """The same picture with the remarks that follow from it, each once.

    ``judge_tree`` is False for a source whose PCIe words mean less than nvidia-smi's.
    """
    found = [flat(machine) if judge_tree else None, *weakened(machine).values()]
    new = [text for text in found if text is not None and text not in machine.remarks]
    return replace(machine, remarks=(*machine.remarks, *new))


def weakened(machine: Machine) -> dict[int, str]:
    """GPUs of an NVLink mesh that have lost NVLinks: index in ``gpus`` to a sentence.

    Judged only where the linked GPUs are all joined to each other (NVSwitch, or a full mesh)
    and are the most: a bridged pair beside single cards, or a hybrid cube mesh, says nothing
    about the others. Such a GPU is never worth a place in a set of several.
    """
    links = [_best(row) for row in machine.levels]
    linked = [i for i, count in enumerate(links) if count]
    if len(linked) < _LEAST_MESH or 2 * len(linked) <= len(links):
        return {}
    if not _all_joined(machine.levels, linked):
        return {}
    usual = sorted(links[i] for i in linked)[len(linked) // 2]
    # A display card beside them (DGX Station) never had an NVLink.
    models = {machine.gpus[i].model for i in linked} | {None}
    return {
        i: _sentence(machine.gpus[i].name, count, usual)
        for i, count in enumerate(links)
        if count < usual
        and machine.gpus[i].model in models
        and (count or _is_known(machine.levels[i]))
    }


def _sentence(name: str, count: int, usual: int) -> str:
    has = f"has at most {count} NVLinks to another GPU" if count else "has no NVLink"
    return (
        f"{name} {has} where the others have {usual}: keep it out of sets of several GPUs, and "
        "look at nvidia-smi nvlink -s and the kernel log"
    )


def _best(row: Sequence[str | None]) -> int:
    return max((nvlinks(word) for word in row if word), default=0)


def _is_known(row: Sequence[str | None]) -> bool:
    return all(word is not None for word in row)


def _all_joined(levels: Sequence[Sequence[str | None]], among: Sequence[int]) -> bool:
    return all(nvlinks(levels[i][j] or "") for i in among for j in among if i != j)
