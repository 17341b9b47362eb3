# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Physical network cards with their RDMA devices, from sysfs."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..topology import levels
from . import pci
from .host_model import Nic
from .model import Device


@dataclass
class _Names:
    """What one PCI function is called by the kernel's subsystems."""

    interfaces: list[str] = field(default_factory=list)
    rdma: list[str] = field(default_factory=list)
    uverbs: list[str] = field(default_factory=list)


def read_nics(gpus: Sequence[Device], root: str = "/") -> list[Nic]:
    """Every network card, in the order of addresses, with its level to each of ``gpus``.

    Left out are virtual interfaces, USB adapters, and virtual functions of a card that is
    itself here. A card in a virtual machine is listed whatever it is on the host.
    """
    cards: dict[str, _Names] = {}
    for kind, pattern in (
        ("interfaces", "sys/class/net/*"),
        ("rdma", "sys/class/infiniband/*"),
        ("uverbs", "sys/class/infiniband_verbs/uverbs*"),
    ):
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            address = _function(os.path.join(path, "device"))
            if address is not None:
                getattr(cards.setdefault(address, _Names()), kind).append(os.path.basename(path))
    return [_nic(address, names, gpus, root) for address, names in sorted(cards.items())]


def _function(link: str) -> str | None:
    """The PCI function behind a ``device`` link, None where there is none to list."""
    if not os.path.islink(link):
        return None
    device = os.path.realpath(link)
    # A virtio device hangs below the PCI function that carries it.
    if os.path.basename(device).startswith("virtio"):
        device = os.path.dirname(device)
    address = os.path.basename(device)
    if not pci.is_address(address) or os.path.exists(os.path.join(device, "physfn")):
        return None
    return address


def _nic(address: str, names: _Names, gpus: Sequence[Device], root: str) -> Nic:
    path, node = pci.read_path(address, root), pci.numa_node(address, root)
    return Nic(
        name=(names.rdma or names.interfaces or [address])[0],
        interfaces=names.interfaces,
        rdma=names.rdma,
        uverbs=[f"/dev/infiniband/{name}" for name in names.uverbs],
        pci_address=address,
        pci_path=path,
        numa_node=node,
        levels=[levels.pcie_level(path, gpu.pci_path, node, gpu.numa_node) for gpu in gpus],
    )
