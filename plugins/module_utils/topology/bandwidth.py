# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a copy or a collective was measured to carry, out of the tools' output. Pure.

Read are ``nvbandwidth`` (text and ``-j``), ``p2pBandwidthLatencyTest`` of the CUDA samples, and
the result line of the nccl-tests. Numbers are GB/s (10^9 bytes) as the tools print them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .model import TopologyError

# One copy at a time from pair to pair; the first of these that ran is taken. Copy engines
# come before kernels, because kernels measure the SMs too.
TESTS = (
    "device_to_device_memcpy_read_ce",
    "device_to_device_memcpy_write_ce",
    "device_to_device_memcpy_read_sm",
    "device_to_device_memcpy_write_sm",
)
_SAMPLE = "p2pBandwidthLatencyTest"
_WANTED = "run: nvbandwidth -t " + TESTS[0]

_RUNNING = re.compile(r"\s*Running (\w+?)\.?\s*$")
_SAMPLE_TITLE = re.compile(r"\s*(Unidirectional P2P=Enabled Bandwidth.*Matrix)", re.IGNORECASE)
_BUS = re.compile(r"#\s*Avg bus bandwidth\s*:\s*(\S+)")
_BOUNDS = re.compile(r"#\s*Out of bounds values\s*:\s*(\d+)\s*(\S*)")


@dataclass(frozen=True)
class Measured:
    """``gb_s[i][j]`` between GPU i and j as ``tool`` measured it; None where it did not."""

    tool: str
    gb_s: list[list[float | None]]


def parse(text: str) -> Measured:
    """The matrix of one-way copies between GPUs. Raises TopologyError.

    GPUs are in CUDA's order; run the tool with CUDA_DEVICE_ORDER=PCI_BUS_ID to have nvidia-smi's.
    """
    found = dict(_of_json(text) if _is_json(text) else _of_text(text))
    for name in (*TESTS, _SAMPLE):
        if name in found:
            return Measured(name, _checked(name, found[name]))
    seen = ", ".join(found) or "none"
    raise TopologyError(
        f"no matrix of copies from GPU to GPU in the text (matrices seen: {seen}); {_WANTED}. On a "
        "host with one GPU, or without peer access, the test is waived"
    )


def bus_bandwidth(text: str) -> float:
    """The average bus bandwidth of an nccl-tests run. Raises TopologyError.

    A run that found wrong values is no measurement.
    """
    wrong = [match for match in _BOUNDS.finditer(text) if int(match.group(1))]
    if wrong:
        raise TopologyError(
            f"the run found {wrong[0].group(1)} wrong values: its bandwidth says nothing, and the "
            "data path is broken. Look for ACS and IOMMU settings and Xid errors"
        )
    values = [_number(match.group(1)) for match in _BUS.finditer(text)]
    if not values or values[-1] is None:
        raise TopologyError(
            "no line 'Avg bus bandwidth' with a number in the output of the nccl-tests: the run "
            "did not end"
        )
    return values[-1]


def _is_json(text: str) -> bool:
    return '"nvbandwidth"' in text and "{" in text


def _of_json(text: str) -> Iterator[tuple[str, list[list[float | None]]]]:
    try:
        report, _end = json.JSONDecoder().raw_decode(text[text.index("{") :])
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"the JSON of nvbandwidth is cut off: {error}. {_WANTED} -j") from None
    tool = report.get("nvbandwidth")
    cases = tool.get("testcases") if isinstance(tool, dict) else None
    for case in cases if isinstance(cases, list) else []:
        matrix = case.get("bandwidth_matrix") if isinstance(case, dict) else None
        if isinstance(matrix, list) and all(isinstance(row, list) for row in matrix):
            yield str(case.get("name")), [[_number(cell) for cell in row] for row in matrix]


def _of_text(text: str) -> Iterator[tuple[str, list[list[float | None]]]]:
    """Each matrix of a text by the name of its test; the first of a test is its result."""
    lines = text.splitlines()
    name = None
    for place, line in enumerate(lines):
        running = _RUNNING.match(line)
        if running is not None:
            name = running.group(1)
        elif _SAMPLE_TITLE.match(line):
            name = _SAMPLE
        elif name is not None and _columns(line):
            yield name, list(_rows(lines[place + 1 :], _columns(line)))
            name = None


def _columns(line: str) -> int:
    r"""How many columns a line of column numbers announces (``D\D 0 1 2``); 0 for any other."""
    words = line.replace("D\\D", " ").split()
    return len(words) if words and words == [str(i) for i in range(len(words))] else 0


def _rows(lines: Sequence[str], columns: int) -> Iterator[list[float | None]]:
    """The rows below a line of column numbers; one that is cut short ends the matrix."""
    for number, line in enumerate(lines):
        words = line.split()
        if len(words) != columns + 1 or words[0] != str(number):
            return
        yield [_number(word) for word in words[1:]]


def _number(cell: Any) -> float | None:
    """A bandwidth; None for N/A, for 0 (a pair that was not measured) and for nonsense."""
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) and value > 0 else None


def _checked(name: str, matrix: list[list[float | None]]) -> list[list[float | None]]:
    size = len(matrix)
    if not size or any(len(row) != size for row in matrix):
        raise TopologyError(
            f"the matrix of {name} has {size} rows and is not square: it is cut off. {_WANTED}"
        )
    # The sample measures a GPU's own memory on the diagonal.
    return [
        [None if i == j else cell for j, cell in enumerate(row)] for i, row in enumerate(matrix)
    ]
