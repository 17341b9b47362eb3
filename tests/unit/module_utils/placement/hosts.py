# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines to place on: recorded ones, and made ones for traps that no recording has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.placement import inventory
from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import (
    Device,
    Gpu,
    Host,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Gpu as SeenGpu,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Machine
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import Recorded

MIB = 81920


def of_recorded(machine: Recorded) -> Host:
    """A recorded machine with nobody on it."""
    nodes = [int(text) if text and text.isdigit() else None for text in machine.numa]
    return made(machine.matrix, nodes)


def made(matrix: Sequence[Sequence[str | None]], nodes: Sequence[int | None]) -> Host:
    """A machine of alike GPUs with these words between them."""
    seen = Machine(
        "made",
        tuple(
            SeenGpu(
                f"GPU{i}",
                "NVIDIA B200",
                f"GPU-{i:08x}",
                numa_nodes=() if node is None else (node,),
                memory_mib=MIB,
            )
            for i, node in enumerate(nodes)
        ),
        tuple(tuple(row) for row in matrix),
    )
    return inventory.of_machine(seen)


def lost_links() -> Host:
    """Eight B200 on NVSwitch of which GPU 2 has lost all its NVLinks."""
    words = [
        ["X" if i == j else _pcie(i, j) if 2 in (i, j) else "NV18" for j in range(8)]
        for i in range(8)
    ]
    return made(words, [0, 0, 0, 0, 1, 1, 1, 1])


def bridged(pairs: Sequence[tuple[int, int]], size: int = 8) -> Host:
    """PCIe cards on two sockets with NVLink bridges between some."""
    linked = {frozenset(pair) for pair in pairs}
    words = [
        [
            "X" if i == j else "NV12" if frozenset((i, j)) in linked else _pcie(i, j, size // 2)
            for j in range(size)
        ]
        for i in range(size)
    ]
    return made(words, [i // (size // 2) for i in range(size)])


def busy(host: Host, taken: Collection[int], said: str = "held by python (pid 1)") -> Host:
    """The same host with somebody on these GPUs."""
    return with_devices(host, {i: {"foreign": said} for i in taken})


def with_devices(host: Host, changes: dict[int, dict[str, Any]]) -> Host:
    """The same host with some of its devices changed."""
    return replace(
        host,
        gpus=tuple(
            replace(gpu, device=replace(gpu.device, **changes.get(i, {})))
            for i, gpu in enumerate(host.gpus)
        ),
    )


def relabelled(host: Host, order: Sequence[int]) -> Host:
    """The same machine with its GPUs in another order, and numbered by it."""
    gpus = tuple(
        Gpu(new, replace(host.gpus[old].device, name=f"GPU{new}")) for new, old in enumerate(order)
    )
    return Host(gpus, tuple(tuple(host.levels[i][j] for j in order) for i in order))


def names(devices: Sequence[Device]) -> list[int]:
    """The numbers of whole GPUs."""
    return [int(device.name[3:]) for device in devices]


def _pcie(i: int, j: int, half: int = 4) -> str:
    return "NODE" if i // half == j // half else "SYS"
