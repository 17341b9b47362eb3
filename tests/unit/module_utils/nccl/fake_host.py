# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts as trees of /sys and /proc below a temporary root, and the recorded topology files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

RECORDED = Path(__file__).parents[3] / "data/topologies/nccl_xml"
# A file each for a whole machine type; the graph file is no topology.
TOPOLOGIES = (
    "aws-g5.48xl-topo.xml",
    "aws-p4d-24xl-topo.xml",
    "aws-p4de-24xl-topo.xml",
    "azure-ncv4-topo.xml",
    "azure-ndv2-topo.xml",
    "azure-ndv4-topo.xml",
    "azure-ndv5-topo.xml",
)
GRAPH = "azure-ncv4-graph.xml"

# The g5.48xl file gives addresses only; these are the host's GPUs, 0000:00:15.0 is its NIC.
_CLASSLESS_NIC = "0000:00:15.0"


def recorded(name: str) -> str:
    """The text of one recorded file."""
    return (RECORDED / name).read_text()


class FakeHost:
    """Fills a root directory with what a kernel would show."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def write(self, path: str, text: str) -> None:
        """A file below the root, with its directories."""
        target = Path(self.root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def cpus(self, count: int, nodes: Sequence[int] = (0,), virtual: bool = True) -> None:
        """``count`` CPUs, shared out over NUMA nodes in order."""
        self.write("sys/devices/system/cpu/present", f"0-{count - 1}\n")
        flags = "fpu hypervisor lm" if virtual else "fpu lm"
        self.write(
            "proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n"
            f"flags\t\t: {flags}\n",
        )
        each = count // len(nodes)
        for place, node in enumerate(nodes):
            bits = ((1 << each) - 1) << (place * each)
            words = [
                f"{bits >> (32 * word) & 0xFFFFFFFF:08x}" for word in range((count + 31) // 32)
            ]
            mask = ",".join(reversed(words))
            self.write(f"sys/devices/system/node/node{node}/cpumap", f"{mask}\n")

    def add(
        self,
        chain: Sequence[str],
        pci_class: str = "030200",
        vendor: str = "10de",
        numa_node: int = -1,
        rdma: bool = False,
        speed: str = "16.0 GT/s PCIe",
        driver: str | None = None,
    ) -> None:
        """The function at the end of ``chain``, which begins at its root port."""
        address = chain[-1]
        below = "/".join([f"sys/devices/pci{chain[0][:7]}", *chain])
        for name, text in {
            "vendor": f"0x{vendor}",
            "device": "0x20b0",
            "subsystem_vendor": f"0x{vendor}",
            "subsystem_device": "0x134f",
            "class": f"0x{pci_class}",
            "numa_node": str(numa_node),
            "max_link_speed": speed,
            "max_link_width": "16",
        }.items():
            self.write(f"{below}/{name}", text + "\n")
        if rdma:
            self.write(f"{below}/infiniband/mlx5_0/node_guid", "0\n")
        if driver:
            Path(self.root, below, "driver").symlink_to(f"../../../bus/drivers/{driver}")
        bus = Path(self.root, "sys/bus/pci/devices")
        bus.mkdir(parents=True, exist_ok=True)
        (bus / address).symlink_to(os.path.join("../../../..", below))

    def remove(self, address: str) -> None:
        """The function is gone from the bus."""
        Path(self.root, "sys/bus/pci/devices", address).unlink()

    def as_in(self, text: str) -> None:
        """A virtual machine with the devices of a topology file, side by side, one NUMA node."""
        self.cpus(96)
        for busid, rest in re.findall(r'<pci busid="([0-9a-f:.]+)"([^>]*)>', text):
            if busid.startswith("ffff:"):
                continue
            nic = busid == _CLASSLESS_NIC or 'class="0x02' in rest
            found = re.search(r'class="0x(\w+)"', rest)
            pci_class = found.group(1) if found else "020000" if nic else "030200"
            self.add([busid], pci_class, vendor="15b3" if nic else "10de", rdma=nic)

    def dgx(self) -> None:
        """Two sockets, a switch below each, two GPUs and a NIC below each switch."""
        self.cpus(8, nodes=(0, 1), virtual=False)
        for node, bus in ((0, "0"), (1, "8")):
            port, up = f"0000:{bus}0:01.0", f"0000:{bus}1:00.0"
            for place, pci_class in ((0, "030200"), (1, "030200"), (2, "020700")):
                down, end = f"0000:{bus}2:0{place}.0", f"0000:{bus}{place + 3}:00.0"
                nic = place == 2
                for depth, bridge in enumerate((port, up, down), 1):
                    if not Path(self.root, "sys/bus/pci/devices", bridge).exists():
                        chain = [port, up, down][:depth]
                        self.add(chain, "060400", vendor="1000", numa_node=node)
                self.add(
                    [port, up, down, end],
                    pci_class,
                    vendor="15b3" if nic else "10de",
                    numa_node=node,
                    rdma=nic,
                    speed="32.0 GT/s PCIe" if nic else "16.0 GT/s PCIe",
                )
