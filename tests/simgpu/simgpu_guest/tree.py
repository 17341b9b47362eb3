# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The PCIe tree of a lab machine: eight end points, and how near two of them are.

Two NUMA nodes; on each one host bridge (pxb-pcie) with two root ports, behind each root port
one switch with two end points. In ascending address order the end points are slots 0..7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

#: Red Hat's pci-testdev, which qemu puts at the ends of the tree.
TESTDEV = ("0x1b36", "0x0005")

#: NVML topology levels, as `nvidia-smi topo -m` names them.
LEVELS = {"X": 0, "PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}

_HOST_BRIDGE = re.compile(r"^pci[0-9a-f]{4}:[0-9a-f]{2}$")


@dataclass(frozen=True)
class Slot:
    """One end point: its address, the bridges above it (host bridge first), node and near CPUs."""

    address: str
    path: tuple[str, ...]
    numa_node: int
    cpus: str


def level(one: Slot, other: Slot) -> str:
    """PIX, PXB, PHB, NODE or SYS: what a driver would say of these two end points.

    A switch is two bridges deep (upstream and downstream port), so the deepest shared bridge
    is an upstream port for neighbours, a root port for switches under one port.
    """
    if one.numa_node != other.numa_node:
        return "SYS"
    shared = 0
    while one.path[: shared + 1] == other.path[: shared + 1] and shared < len(one.path):
        shared += 1
    if shared == 0:
        return "NODE"
    if shared == 1:
        return "PHB"
    between = max(len(one.path), len(other.path)) - shared
    return "PIX" if between <= 1 else "PXB"


def mask_words(cpus: str) -> str:
    """A CPU list ("0-3,8") as 64-bit words, lowest first, the way NVML hands out affinity."""
    mask = 0
    for part in filter(None, cpus.strip().split(",")):
        first, _dash, last = part.partition("-")
        for cpu in range(int(first), int(last or first) + 1):
            mask |= 1 << cpu
    words: list[str] = []
    while mask or not words:
        words.append(f"{mask & (2**64 - 1):#x}")
        mask >>= 64
    return " ".join(words)


def find_slots(root: Path) -> list[Slot]:
    """The lab machine's end points in slot order, read from sysfs under `root`.

    A slot that a loaded profile covers with an NVIDIA id still counts: the configuration space
    behind it cannot be covered and says what the device really is.
    """
    devices = root / "sys/bus/pci/devices"
    if not devices.is_dir():
        return []
    return [_slot(device) for device in sorted(devices.iterdir()) if _is_testdev(device)]


def _is_testdev(device: Path) -> bool:
    identity = (device / "config").read_bytes()[:4]
    vendor, product = (int(text, 16).to_bytes(2, "little") for text in TESTDEV)
    return identity == vendor + product


def _slot(device: Path) -> Slot:
    parts = device.resolve().parts
    host = next(index for index, part in enumerate(parts) if _HOST_BRIDGE.match(part))
    return Slot(
        address=device.name,
        path=parts[host:-1],
        numa_node=max(0, int((device / "numa_node").read_text(encoding="ascii"))),
        cpus=(device / "local_cpulist").read_text(encoding="ascii").strip(),
    )


def model_slots() -> list[Slot]:
    """The same tree without a machine, for tests of the library alone."""
    slots = []
    for node, bus in ((0, 0x20), (1, 0x40)):
        for switch in (0, 1):
            first = bus + 1 + switch * 4
            bridges = (
                f"pci0000:{bus:02x}",
                f"0000:{bus:02x}:{switch:02x}.0",
                f"0000:{first:02x}:00.0",
            )
            for port in (0, 1):
                downstream = f"0000:{first + 1:02x}:{port:02x}.0"
                address = f"0000:{first + 2 + port:02x}:00.0"
                slots.append(Slot(address, (*bridges, downstream), node, str(node)))
    return slots
