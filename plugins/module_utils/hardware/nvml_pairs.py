# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVML says of pairs of GPUs: how near they are, and whether they may talk directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

from ..topology.levels import NVML_LEVELS, SELF
from .nvml_library import Library, RefusedError

Matrix = list[list[Optional[str]]]

# nvml.h, nvmlGpuP2PCapsIndex_t and nvmlGpuP2PStatus_t; the words are those of
# `nvidia-smi topo -p2p r`: chipset, GPU, topology not supported; disabled by registry key.
_P2P_READ = 0
_P2P_WORDS = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}


def levels(library: Library, handles: Sequence[Any | None]) -> Matrix | None:
    """The word of each pair (``topology.levels``) by NVML's common ancestor."""

    def level(one: Any, other: Any) -> str | None:
        return NVML_LEVELS.get(library.ask("nvmlDeviceGetTopologyCommonAncestor", one, other))

    return _matrix(handles, level)


def p2p(library: Library, handles: Sequence[Any | None]) -> Matrix | None:
    """Whether each pair may read the other's memory, in the words of ``topo -p2p``."""

    def status(one: Any, other: Any) -> str | None:
        return _P2P_WORDS.get(library.ask("nvmlDeviceGetP2PStatus", one, other, _P2P_READ), "U")

    return _matrix(handles, status)


def _matrix(handles: Sequence[Any | None], ask: Callable[[Any, Any], str | None]) -> Matrix | None:
    """Both halves of a symmetric matrix from one question a pair.

    A pair NVML says nothing of is None; all of it is, when that is so for every pair.
    """
    count = len(handles)
    cells: Matrix = [
        [SELF if row == column else None for column in range(count)] for row in range(count)
    ]
    answered = count == 1
    for row in range(count):
        for column in range(row + 1, count):
            if handles[row] is None or handles[column] is None:
                continue
            try:
                word = ask(handles[row], handles[column])
            except RefusedError:
                continue
            cells[row][column] = cells[column][row] = word
            answered = answered or word is not None
    return cells if answered else None
