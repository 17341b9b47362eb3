# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is, as far as switching ACS off depends on it. Reads, decides nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ..hardware import files, holders, pci, procfs
from ..process import CommandMissingError, run
from . import passthrough, registers

# These hold a GPU and do no work on it that could break.
_NO_WORK = ("persistence",)
_BRIDGE = "0604"
_DEADLINE_S = 10.0


@dataclass(frozen=True)
class Bridge:
    """A PCI bridge. ``control`` is its ACS control register, None without ACS.

    ``subsystem`` is what the card says it is, ``way`` the bridges above it, ``gpus`` those below.
    """

    address: str
    vendor: str
    device: str
    control: int | None
    subsystem: str = ""
    way: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """By which another card at the same address is known to be another.

        All ports of a switch have one vendor, device and subsystem: the way to it tells them apart.
        """
        said = [f"{self.vendor}:{self.device}"]
        said += [f"of {self.subsystem}"] if self.subsystem else []
        said += [f"below {' '.join(self.way)}"] if self.way else []
        return " ".join(said)

    @property
    def below(self) -> str:
        """The GPUs below it. At a boot that numbered the buses anew they are others."""
        return " ".join(self.gpus)


@dataclass(frozen=True)
class Scene:
    """``bridges`` by address; ``above_gpus`` are those on the way to a GPU, and have ACS.

    ``virtual`` names the hypervisor or container that this is in, "" on bare metal. ``passed`` are
    devices that vfio-pci has, ``promised`` what will be given to a virtual machine later,
    ``holders`` who works on a GPU, in words. ``groups`` are the members of each IOMMU group that
    has a GPU; empty where no IOMMU is on. ``lockdown`` is the kernel's, "" for none.
    """

    bridges: dict[str, Bridge] = field(default_factory=dict)
    above_gpus: tuple[str, ...] = ()
    virtual: str = ""
    passed: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    groups: dict[int, list[str]] = field(default_factory=dict)
    promised: tuple[str, ...] = ()
    lockdown: str = ""

    def only_work(self) -> Scene:
        """What counts where isolation comes back."""
        return Scene(holders=self.holders, lockdown=self.lockdown)


def look(root: str = "/") -> Scene:
    """Look at the host."""
    bridges = {address: _bridge(address, root) for address in _bridges(root)}
    paths = [gpu.path for gpu in pci.read_display_devices(root)]
    above = {address for path in paths for address in path[:-1] if address in bridges}
    return Scene(
        bridges,
        tuple(sorted(one for one in above if bridges[one].control is not None)),
        virtual(root),
        tuple(passthrough.bound(root)),
        tuple(_holders(root)),
        _groups([path[-1] for path in paths if path], root),
        tuple(passthrough.promised(root)),
        lockdown(root),
    )


def lockdown(root: str = "/") -> str:
    """The kernel's lockdown, as under Secure Boot: nobody writes to a device's registers then."""
    said = files.text(os.path.join(root, "sys/kernel/security/lockdown"))
    chosen = said.partition("[")[2].partition("]")[0]
    return "" if chosen == "none" else chosen


def virtual(root: str = "/") -> str:
    """What this host runs in, as systemd-detect-virt names it; "" on bare metal."""
    if os.path.abspath(root) == "/":
        try:
            done = run(["systemd-detect-virt"])
        except CommandMissingError:
            pass
        else:
            said = done.stdout.strip()
            if said:
                return "" if said == "none" else said
    # x86 processors say so themselves (CPUID leaf 1, ECX bit 31).
    flags = [
        line.split()
        for line in files.text(os.path.join(root, "proc/cpuinfo")).splitlines()
        if line.startswith("flags")
    ]
    return "a virtual machine" if any("hypervisor" in words for words in flags) else ""


def bridge(address: str, root: str = "/") -> Bridge | None:
    """One bridge, None where there is none."""
    if not pci.identity(address, "class", root).startswith(_BRIDGE):
        return None
    return _bridge(address, root)


def _bridges(root: str) -> list[str]:
    names = files.names(os.path.join(root, "sys/bus/pci/devices"))
    return [name for name in names if pci.identity(name, "class", root).startswith(_BRIDGE)]


def _bridge(address: str, root: str) -> Bridge:
    gpus = [gpu for gpu in pci.read_display_devices(root) if address in gpu.path]
    subsystem = [pci.identity(address, f"subsystem_{one}", root) for one in ("vendor", "device")]
    return Bridge(
        address,
        pci.identity(address, "vendor", root),
        pci.identity(address, "device", root),
        registers.read_control(address, root),
        ":".join(filter(None, subsystem)),
        tuple(pci.read_path(address, root)[:-1]),
        tuple(f"{gpu.address} {gpu.vendor}:{gpu.device}" for gpu in gpus),
    )


def _holders(root: str) -> list[str]:
    gpus = procfs.read(_DEADLINE_S, root).gpus
    minors = {gpu.minor: index for index, gpu in enumerate(gpus) if gpu.minor is not None}
    return [
        f"{one.name} (process {one.pid}) on GPU {index}"
        for index, found in sorted(holders.find(minors, root).items())
        for one in found
        if one.kind not in _NO_WORK
    ]


def _groups(gpus: list[str], root: str) -> dict[int, list[str]]:
    found = {}
    for address in gpus:
        group = os.path.join(root, "sys/bus/pci/devices", address, "iommu_group")
        number = files.number(files.target(group) or "")
        if number is not None:
            found[number] = files.names(os.path.join(group, "devices"))
    return found
