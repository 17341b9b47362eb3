# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one machine every lab host is: two NUMA nodes, four PCIe switches, eight end points.

The tree is fixed, so that any frozen machine can carry any profile of simulated GPUs::

    node 0: pxb bus 0x20 ─ root port ─ switch ─ slots 0, 1     node 1: pxb bus 0x40, slots 4-7
                         └ root port ─ switch ─ slots 2, 3
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

QEMU = "qemu-system-x86_64"
NUMA_NODES = 2
NODE_MEMORY_MIB = 1024
MEMORY_MIB = NUMA_NODES * NODE_MEMORY_MIB
SWITCHES_PER_NODE = 2
SLOTS_PER_SWITCH = 2
# Far enough apart for the buses below each expander: 1 + per switch 2 + its slots.
_FIRST_BUS = (32, 64)
_KERNEL_ARGS = ("root=/dev/vda", "rw", "console=ttyS0", "net.ifnames=0")


def pcie_tree() -> list[str]:
    """Arguments for the expanders, root ports, switches and the end points the GPUs replace."""
    argv: list[str] = []
    chassis = 0
    for node in range(NUMA_NODES):
        expander = f"pxb{node}"
        argv += [
            "-device",
            f"pxb-pcie,id={expander},bus_nr={_FIRST_BUS[node]},numa_node={node},bus=pcie.0",
        ]
        for switch in range(SWITCHES_PER_NODE):
            name = f"{node}{switch}"
            chassis += 1
            argv += [
                "-device",
                f"pcie-root-port,id=rp{name},bus={expander},chassis={chassis},slot={chassis}",
                "-device",
                f"x3130-upstream,id=up{name},bus=rp{name}",
            ]
            for slot in range(SLOTS_PER_SWITCH):
                chassis += 1
                port = f"dn{name}{slot}"
                argv += [
                    "-device",
                    f"xio3130-downstream,id={port},bus=up{name},chassis={chassis},slot={chassis}",
                    "-device",
                    f"pci-testdev,bus={port}",
                ]
    return argv


def hardware(accelerator: str) -> list[str]:
    """What must be equal between the machine that was frozen and the one that resumes it."""
    # Exactly `max`: with svm=off, static programs of a guest abort under qemu 7.2's emulation.
    argv = ["-M", "q35", "-cpu", "max", "-m", str(MEMORY_MIB)]
    argv += ["-accel", "tcg,thread=multi" if accelerator == "tcg" else accelerator]
    argv += ["-smp", f"{NUMA_NODES},sockets={NUMA_NODES},cores=1"]
    for node in range(NUMA_NODES):
        argv += ["-object", f"memory-backend-ram,id=m{node},size={NODE_MEMORY_MIB}M"]
        argv += ["-numa", f"node,nodeid={node},cpus={node},memdev=m{node}"]
    argv += ["-nodefaults", "-display", "none", "-rtc", "base=utc"]
    argv += ["-device", "virtio-blk-pci,drive=root", "-device", "virtio-net-pci,netdev=user"]
    argv += ["-device", "virtio-rng-pci"]
    return argv + pcie_tree()


@dataclass(frozen=True)
class Boot:
    """The kernel a machine starts with, and starts again at a reboot from within."""

    kernel: Path
    initrd: Path
    kernel_args: tuple[str, ...]

    def argv(self) -> list[str]:
        """Qemu's arguments for it."""
        append = " ".join(_KERNEL_ARGS + self.kernel_args)
        return ["-kernel", str(self.kernel), "-initrd", str(self.initrd), "-append", append]


def _escape(path: Path) -> str:
    """A path inside a qemu option list, where a comma separates."""
    return str(path).replace(",", ",,")


def command(
    hardware_argv: Sequence[str],
    boot: Boot,
    disk: Path,
    ssh_port: int,
    resume_from: Path | None = None,
) -> list[str]:
    """The whole command line of one machine.

    Monitor, console log and pid file are relative: the process runs in its own directory, and
    so a deep cache directory cannot exceed the 107 bytes of a unix socket's path.
    """
    argv = [QEMU, *hardware_argv, *boot.argv()]
    # The disk is a copy nobody needs after a power failure: unsafe saves every flush.
    argv += [
        "-drive",
        "id=root,if=none,format=qcow2,cache=unsafe,discard=unmap,file=" + _escape(disk),
        "-netdev",
        f"user,id=user,hostfwd=tcp:127.0.0.1:{ssh_port}-:22",
        "-qmp",
        "unix:qmp.sock,server=on,wait=off",
        "-serial",
        "file:console.log",
        "-pidfile",
        "qemu.pid",
    ]
    if resume_from is not None:
        argv += ["-incoming", "exec:cat < " + shlex.quote(str(resume_from))]
    return argv
