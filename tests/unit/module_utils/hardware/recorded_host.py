# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recorded hosts as small trees of /proc, /sys and /dev. Free of pytest: a benchmark uses it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

OPEN_550 = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  Release Build  "
    "(dvs-builder@U16)  Tue Apr  8 12:41:17 UTC 2025\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
)


class Host:
    """A root directory that tests fill with what a kernel would show."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def write(self, path: str, text: str) -> None:
        """A file below the root, with its directories."""
        target = Path(self.root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def pci(
        self,
        chain: Sequence[str],
        vendor: str = "10de",
        pci_class: str = "030200",
        numa_node: int = 0,
        cpus: str = "0",
        kernel_driver: str | None = None,
    ) -> str:
        """A PCI function at the end of ``chain``; returns its address."""
        address = chain[-1]
        directory = "/".join([f"sys/devices/pci{chain[0][:7]}", *chain])
        self.write(directory + "/vendor", f"0x{vendor}\n")
        self.write(directory + "/device", "0x20b0\n")
        self.write(directory + "/class", f"0x{pci_class}\n")
        self.write(directory + "/numa_node", f"{numa_node}\n")
        self.write(directory + "/local_cpulist", f"{cpus}\n")
        bus = Path(self.root, "sys/bus/pci/devices")
        bus.mkdir(parents=True, exist_ok=True)
        (bus / address).symlink_to(os.path.join("../../../..", directory))
        if kernel_driver:
            Path(self.root, directory, "driver").symlink_to(f"../../../bus/drivers/{kernel_driver}")
        return address

    def link(self, path: str, target: str) -> None:
        """A symbolic link below the root; a ``target`` that begins with / lies below it too."""
        place = Path(self.root, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(self.root + target if target.startswith("/") else target)

    def function(self, address: str) -> str:
        """The directory of a PCI function, below the root."""
        real = os.path.realpath(os.path.join(self.root, "sys/bus/pci/devices", address))
        return os.path.relpath(real, self.root)

    def dgx_a100(self) -> None:
        """The lab's PCIe tree and a driver: two GPUs a switch, two switches a NUMA node."""
        self.driver()
        minor = 0
        for node, bus in ((0, 0x20), (1, 0x40)):
            for switch in (0, 1):
                first = bus + 1 + switch * 4
                above = [f"0000:{bus:02x}:{switch:02x}.0", f"0000:{first:02x}:00.0"]
                for port in (0, 1):
                    address = f"0000:{first + 2 + port:02x}:00.0"
                    below = [f"0000:{first + 1:02x}:{port:02x}.0", address]
                    self.pci([*above, *below], numa_node=node)
                    self.proc_gpu(address, minor, f"GPU-{minor}")
                    minor += 1

    def driver(self, text: str = OPEN_550) -> None:
        """/proc/driver/nvidia/version: the kernel module is loaded."""
        self.write("proc/driver/nvidia/version", text)

    def proc_gpu(self, address: str, minor: int, uuid: str) -> None:
        """One GPU as the kernel module lists it."""
        self.write(
            f"proc/driver/nvidia/gpus/{address}/information",
            "Model: \t\t NVIDIA A100-SXM4-40GB\n"
            "IRQ:   \t\t 48\n"
            f"GPU UUID: \t {uuid}\n"
            "Bus Type: \t PCIe\n"
            f"Bus Location: \t {address}\n"
            f"Device Minor: \t {minor}\n",
        )
