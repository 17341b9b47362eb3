# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A measured bandwidth matrix to keep, and whether it still speaks of this machine. Pure.

It is kept with the GPUs' UUIDs and the words between them at that time. A matrix of other GPUs,
or from before an NVLink was lost or a card was moved, would be a wrong number that looks exact.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Callable, Optional, TypeVar

from .bandwidth import Measured
from .levels import is_level
from .model import Gpu, TopologyError

FORMAT = 1
_AGAIN = (
    "run nvbandwidth again (steadygpu topo --bandwidth FILE --remember), or drop what is "
    "remembered (steadygpu topo --forget)"
)
# Above any link there will be for a long time; a JSON number may have a thousand digits.
_MOST_GB_S = 1e6
_LONGEST_TEXT = 100

_Cell = TypeVar("_Cell")
Words = Sequence[Sequence[Optional[str]]]


@dataclass(frozen=True)
class Record:
    """``gb_s[i][j]`` from GPU i to GPU j of ``gpus`` (UUIDs) as ``tool`` measured it.

    ``levels[i][j]`` is the word between the two at that time. None is unknown in both.
    """

    tool: str
    gpus: list[str]
    levels: list[list[str | None]]
    gb_s: list[list[float | None]]


def record(measured: Measured, gpus: Sequence[Gpu], levels: Words) -> Record:
    """What to keep of a measurement on this machine, whose ``gpus`` are in the matrix's order.

    Raises TopologyError where the matrix cannot be that of these GPUs, or nothing was measured.
    """
    if len(measured.gb_s) != len(gpus):
        raise TopologyError(
            f"the matrix is of {len(measured.gb_s)} GPUs and this host has {len(gpus)}: run "
            "nvbandwidth here with all of them (no CUDA_VISIBLE_DEVICES, no MIG)"
        )
    uuids = [gpu.uuid for gpu in gpus if gpu.uuid]
    if len(set(uuids)) != len(gpus):
        unnamed = ", ".join(gpu.name for gpu in gpus if not gpu.uuid) or "two of them share one"
        raise TopologyError(
            f"not every GPU has a UUID of its own ({unnamed}): a measurement is kept by UUID. See "
            "steadygpu facts for what is wrong with the driver"
        )
    if all(speed is None for row in measured.gb_s for speed in row):
        raise TopologyError(f"{measured.tool} measured no pair of GPUs: there is nothing to keep")
    return Record(measured.tool, uuids, [list(row) for row in levels], measured.gb_s)


def stale(kept: Record, gpus: Sequence[Gpu], levels: Words) -> str | None:
    """Why ``kept`` says nothing of this machine, as a sentence; None where it is of this one."""
    uuids = [gpu.uuid or f"{gpu.name} without UUID" for gpu in gpus]
    if sorted(uuids) != sorted(kept.gpus):
        differ = [
            f"{word} {', '.join(sorted(names))}"
            for word, names in (
                ("gone", set(kept.gpus) - set(uuids)),
                ("new", set(uuids) - set(kept.gpus)),
            )
            if names
        ]
        return _unused(f"other GPUs ({'; '.join(differ) or 'two share a UUID'})")
    former = _ordered(kept.levels, kept.gpus, uuids)
    for i, row in enumerate(levels):
        for j, word in enumerate(row[:i]):
            if word != former[i][j]:
                pair = f"{gpus[j].name} and {gpus[i].name}"
                then = former[i][j]
                return _unused(f"other links ({pair}: {then or '-'} then, {word or '-'} now)")
    return None


def in_order(kept: Record, gpus: Sequence[Gpu]) -> list[list[float | None]]:
    """The bandwidth matrix in the order of ``gpus``, of which ``kept`` must not be stale."""
    return _ordered(kept.gb_s, kept.gpus, [gpu.uuid for gpu in gpus])


def render(kept: Record) -> str:
    """The text of the file: JSON of one record."""
    return json.dumps({"format": FORMAT, **asdict(kept)}) + "\n"


def parse(text: str) -> Record:
    """The record that :func:`render` wrote. Raises TopologyError, which says what was seen."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _garbled(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _garbled(f"a JSON {type(found).__name__}, wanted is an object")
    if found.get("format") != FORMAT:
        raise _garbled(f"format {str(found.get('format'))[:20]!r}, wanted is {FORMAT}")
    gpus = found.get("gpus")
    if not _is_text(found.get("tool")):
        raise _garbled("no name of a tool")
    if not isinstance(gpus, list) or not all(map(_is_text, gpus)) or len(set(gpus)) != len(gpus):
        raise _garbled("gpus is no list of different UUIDs")
    for key, is_cell in (("levels", _is_word), ("gb_s", _is_speed)):
        if not _is_square(found.get(key), len(gpus), is_cell):
            raise _garbled(f"{key} is no matrix of {len(gpus)} rows and columns")
    return Record(found["tool"], gpus, found["levels"], found["gb_s"])


def _unused(of_what: str) -> str:
    return (
        f"the remembered bandwidth was measured on {of_what} and is not used. If that is to stay, "
        f"{_AGAIN}"
    )


def _garbled(seen: str) -> TopologyError:
    return TopologyError(f"{seen}; {_AGAIN}")


def _ordered(
    matrix: Sequence[Sequence[_Cell]], there: list[str], here: Sequence[str | None]
) -> list[list[_Cell]]:
    """A matrix over ``there`` as one over ``here``, which has the same UUIDs."""
    places = [there.index(uuid or "") for uuid in here]
    return [[matrix[i][j] for j in places] for i in places]


def _is_square(matrix: Any, size: int, is_cell: Callable[[Any], bool]) -> bool:
    return (
        isinstance(matrix, list)
        and len(matrix) == size
        and all(isinstance(row, list) and len(row) == size for row in matrix)
        and all(is_cell(cell) for row in matrix for cell in row)
    )


def _is_text(value: Any) -> bool:
    """A text a terminal may show."""
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST_TEXT


def _is_word(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and is_level(cell))


def _is_speed(cell: Any) -> bool:
    # A bool is an int to Python, and NaN is below nothing.
    return cell is None or (type(cell) in (int, float) and 0 < cell < _MOST_GB_S)
