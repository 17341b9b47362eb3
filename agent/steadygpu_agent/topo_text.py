# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine's topology as text and as JSON. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.topology import affinity, levels
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Machine
from steadygpu_agent.draw.words import heading, subtitle
from steadygpu_agent.table import table
from steadygpu_agent.topo_read import Affinity

_WIDTH = 96
_UNKNOWN = "-"
_MEANING = {
    "X": "the device itself",
    "INTERNAL": "two GPUs on one board",
    "PIX": "over one PCIe switch",
    "PXB": "over several PCIe switches, not over a host bridge",
    "PHB": "over one PCIe host bridge, through the CPU",
    "NODE": "over the host bridges of one NUMA node",
    "SYS": "from one NUMA node to another, over the link between the CPUs",
    _UNKNOWN: "unknown",
}


def page(machine: Machine, found: Affinity) -> str:
    """The page a person reads, without a newline at its end."""
    parts = [_heading(machine)]
    if machine.gpus:
        parts.append(_devices(machine))
        parts.append(_matrix(machine))
        parts.append(_legend(machine))
    parts += _remarks(machine)
    if len(machine.gpus) > 1:
        parts.append(_paragraph("affinity", _basis(found) + " (see --affinity)"))
    return "\n\n".join(parts)


def affinity_page(machine: Machine, found: Affinity) -> str:
    """How near the GPUs are, from 0 to 1."""
    names = [gpu.name for gpu in machine.gpus]
    rows = [["", *names]]
    rows += [
        [name, *("-" if value is None else f"{value:.2f}" for value in row)]
        for name, row in zip(names, found.values)
    ]
    return "\n\n".join([_heading(machine), table(rows), _paragraph("affinity", _basis(found))])


def as_json(machine: Machine, found: Affinity) -> dict[str, Any]:
    """Everything: the machine's own fields, ``affinity``, ``affinity_basis``, ``affinity_tool``."""
    return {
        **asdict(machine),
        "affinity": found.values,
        "affinity_basis": found.basis,
        "affinity_tool": found.tool,
    }


def _heading(machine: Machine) -> str:
    return f"{heading(machine)}\n{subtitle(machine)}"


def _devices(machine: Machine) -> str:
    """What each GPU is, as far as it is known."""
    columns: dict[str, list[str]] = {
        "GPU": [gpu.name for gpu in machine.gpus],
        "MODEL": [gpu.model or _UNKNOWN for gpu in machine.gpus],
        "MEMORY": [f"{gpu.memory_mib} MiB" if gpu.memory_mib else _UNKNOWN for gpu in machine.gpus],
        "PCI": [gpu.pci_address or _UNKNOWN for gpu in machine.gpus],
        "NUMA": [_numbers(gpu.numa_nodes) for gpu in machine.gpus],
        "CPU AFFINITY": [gpu.cpus or _UNKNOWN for gpu in machine.gpus],
        "MIG": [_counted(gpu.mig) for gpu in machine.gpus],
    }
    known = {
        name: cells
        for name, cells in columns.items()
        if name == "GPU" or any(cell != _UNKNOWN for cell in cells)
    }
    return table([list(known), *(list(row) for row in zip(*known.values()))])


def _matrix(machine: Machine) -> str:
    rows = [["", *(gpu.name for gpu in machine.gpus)]]
    rows += [_row(gpu.name, row) for gpu, row in zip(machine.gpus, machine.levels)]
    rows += [
        _row(_nic_name(nic.name, nic.rdma), row)
        for nic, row in zip(machine.nics, machine.nic_levels)
    ]
    if any(nic.numa_nodes for nic in machine.nics):
        rows[0].append("NUMA")
        nodes = [gpu.numa_nodes for gpu in machine.gpus] + [nic.numa_nodes for nic in machine.nics]
        for row, numbers in zip(rows[1:], nodes):
            row.append(_numbers(numbers))
    return table(rows)


def _legend(machine: Machine) -> str:
    """The words of the matrix, nearest first, and no others."""
    used = {word or _UNKNOWN for row in (*machine.levels, *machine.nic_levels) for word in row}
    links = sorted((word for word in used if levels.nvlinks(word)), key=levels.nvlinks)
    words = [levels.SELF, *reversed(links), *levels.PCIE_LEVELS, _UNKNOWN]
    return table([[word, _meaning(word)] for word in words if word in used])


def _meaning(word: str) -> str:
    count = levels.nvlinks(word)
    return f"{count} NVLink{'s' * (count > 1)}" if count else _MEANING[word]


def _remarks(machine: Machine) -> Iterable[str]:
    if machine.remarks:
        yield "\n".join(_paragraph("remark", remark) for remark in machine.remarks)


def _basis(found: Affinity) -> str:
    if found.basis == affinity.MEASURED:
        return f"measured by {found.tool}: each pair's bandwidth as a share of the best pair's"
    return "derived from the levels: an order of nearness, not a bandwidth"


def _paragraph(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=f"{label:<10}",
        subsequent_indent=" " * 10,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _row(name: str, words: Sequence[str | None]) -> list[str]:
    return [name, *(word or _UNKNOWN for word in words)]


def _nic_name(name: str, rdma: Sequence[str]) -> str:
    others = [one for one in rdma if one != name]
    return f"{name} ({', '.join(others)})" if others else name


def _numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers)) or _UNKNOWN


def _counted(profiles: Sequence[str]) -> str:
    """``2× 1g.5gb, 3g.20gb``."""
    kinds = dict.fromkeys(profiles)
    words = [f"{profiles.count(one)}× {one}" if profiles.count(one) > 1 else one for one in kinds]
    return ", ".join(words) or _UNKNOWN
