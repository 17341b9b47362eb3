# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recorded machines, and how ``nvidia-smi topo -m`` and people's copies of it look."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

DATA = Path(__file__).parents[3] / "data" / "topologies"

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""


@dataclass(frozen=True)
class Recorded:
    """One machine of topo_matrices.json; ``numa`` and ``cpus`` hold None where none was read."""

    name: str
    matrix: list[list[str]]
    cpus: list[str | None]
    numa: list[str | None]
    nics: dict[str, list[str]]

    @property
    def size(self) -> int:
        """How many GPUs it has."""
        return len(self.matrix)


def _machines() -> list[Recorded]:
    told = json.loads((DATA / "topo_matrices.json").read_text(encoding="utf-8"))["machines"]
    return [
        Recorded(
            one["name"],
            one["matrix"],
            one["cpu_affinity"],
            one["numa_affinity"],
            # A NIC of which not every cell was read cannot stand in a whole table.
            {k: v for k, v in (one["nic_links"] or {}).items() if None not in v},
        )
        for one in told
    ]


MACHINES = _machines()
IDS = [machine.name for machine in MACHINES]


def by_name(part: str) -> Recorded:
    """The one machine whose name has this in it."""
    (found,) = [machine for machine in MACHINES if part in machine.name]
    return found


def table(
    machine: Recorded, columns: int = 3, with_nics: bool = True, header: str = "\t{}"
) -> list[str]:
    """The lines of the table, with tabs as nvidia-smi prints them.

    ``columns``: 1 is CPU Affinity alone (before R418), 2 has NUMA Affinity, 3 GPU NUMA ID (R525).
    """
    nics = machine.nics if with_nics else {}
    labels = [f"GPU{i}" for i in range(machine.size)]
    tail = ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"][:columns]
    lines = [header.format("\t".join([*labels, *nics, *tail]))]
    for i, label in enumerate(labels):
        words = [_cell(word) for word in machine.matrix[i]] + [nics[nic][i] for nic in nics]
        # nvidia-smi sets an extra tab before its last column.
        beside = [machine.cpus[i] or "N/A", machine.numa[i] or "N/A", "\tN/A"][:columns]
        lines.append("\t".join([label, *words, *beside]))
    for nic, words in nics.items():
        between = [_cell("X" if other == nic else "PIX") for other in nics]
        lines.append("\t".join([nic, *words, *between]))
    return lines


def _cell(word: str) -> str:
    return " X " if word == "X" else word


def _tabs(lines: list[str]) -> str:
    return "\n".join(lines) + "\n" + LEGEND


def _spaces(lines: list[str]) -> str:
    return "\n".join(line.expandtabs(8) for line in lines) + "\n" + LEGEND


def _underlined(lines: list[str]) -> str:
    head = "\t\x1b[4m" + lines[0].lstrip("\t") + "\x1b[0m"
    return "\n".join([head, *lines[1:]]) + "\n" + LEGEND


def _indented(lines: list[str]) -> str:
    return textwrap.indent(_spaces(lines), "    ")


def _quoted(lines: list[str]) -> str:
    return textwrap.indent(_spaces(lines), "> > ", lambda _line: True)


def _markdown(lines: list[str]) -> str:
    rows = ["| " + " | ".join(line.replace("\t\t", "\t").split("\t")) + " |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * rows[0].count("|"), *rows[1:]])


def _pasted(lines: list[str]) -> str:
    prompt = "Hello, GPU0 and GPU1 are slow here:\n\n```\nroot@gpu-7:~# nvidia-smi topo -m\n"
    return prompt + _spaces(lines) + "```\nroot@gpu-7:~# nvidia-smi nvlink -s\nGPU 0: A100\n"


def _wrapped(lines: list[str]) -> str:
    return "\n".join(
        part for line in lines for part in textwrap.wrap(line.expandtabs(8), 60) or [""]
    )


def _windows(lines: list[str]) -> str:
    return _tabs(lines).replace("\n", "\r\n")


def _doubled(lines: list[str]) -> str:
    return _spaces(lines).replace("\n", "\n\n")


def _logged(lines: list[str]) -> str:
    return "\n".join(f"2026-05-01T10:00:00Z gpu-7 topo[812]: {line}" for line in lines)


def _escaped(lines: list[str]) -> str:
    return "\n".join(lines).replace("\n", "\\n").replace("\t", "\\t")


STYLES: dict[str, Callable[[list[str]], str]] = {
    "tabs": _tabs,
    "spaces": _spaces,
    "underlined": _underlined,
    "indented": _indented,
    "quoted": _quoted,
    "markdown": _markdown,
    "pasted": _pasted,
    "wrapped": _wrapped,
    "windows": _windows,
    "doubled": _doubled,
    "logged": _logged,
    "escaped": _escaped,
}
