# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture of a machine that every source is brought to, and every view is drawn from."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Gpu:
    """One GPU. What the source does not say is None or empty, never 0.

    ``numa_nodes`` has several entries where a VM says ``0-1``. ``cpus`` is a kernel list as
    printed. ``mig`` are the MIG devices' profile names in index order.
    """

    name: str
    model: str | None = None
    uuid: str | None = None
    pci_address: str | None = None
    pci_path: tuple[str, ...] = ()
    numa_nodes: tuple[int, ...] = ()
    cpus: str | None = None
    memory_mib: int | None = None
    mig: tuple[str, ...] = ()


@dataclass(frozen=True)
class Nic:
    """One network adapter; ``rdma`` are its RDMA devices (``mlx5_0``)."""

    name: str
    pci_address: str | None = None
    pci_path: tuple[str, ...] = ()
    numa_nodes: tuple[int, ...] = ()
    rdma: tuple[str, ...] = ()


@dataclass(frozen=True)
class Node:
    """One NUMA node that has CPUs."""

    number: int
    cpus: str = ""
    memory_mib: int | None = None


@dataclass(frozen=True)
class Machine:
    """``levels[i][j]`` is the word between GPU i and j (levels.py), None where the source does
    not say; ``nic_levels[k][i]`` between NIC k and GPU i. ``source`` names where it came from.
    ``remarks`` are things a reader of the picture should know ("the PCIe tree is flat …").
    """

    source: str
    gpus: tuple[Gpu, ...]
    levels: tuple[tuple[str | None, ...], ...]
    nics: tuple[Nic, ...] = ()
    nic_levels: tuple[tuple[str | None, ...], ...] = ()
    nodes: tuple[Node, ...] = ()
    nvswitches: int = 0
    title: str | None = None
    remarks: tuple[str, ...] = field(default_factory=tuple)


class TopologyError(Exception):
    """The text is not what it should be; the message names the line and what was wanted."""
