# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""May ACS be switched off here, and on which bridges? Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .scene import Scene

# Stands for every bridge above a GPU that has ACS.
GPUS = "gpus"


class AcsError(Exception):
    """ACS cannot be switched off as asked. The message says what was seen and what to do."""


def choose(asked: Sequence[str], scene: Scene) -> list[str]:
    """The addresses that ``asked`` stands for, in order. Raises AcsError with every fault."""
    found: list[str] = []
    faults = []
    for one in asked:
        if one == GPUS:
            found += scene.above_gpus
            if not scene.above_gpus:
                faults.append("no bridge above a GPU has ACS, so there is nothing to switch off")
        elif one not in scene.bridges:
            faults.append(f"{one} is no PCI bridge of this host: see lspci -D -d '*:*:0604'")
        elif scene.bridges[one].control is None:
            faults.append(f"the bridge {one} has no ACS that can be read: leave it out")
        else:
            found.append(one)
    if faults:
        raise AcsError("Nothing was changed:\n" + "\n".join(f"- {one}" for one in faults))
    return list(dict.fromkeys(found))


def refuse(changes: Sequence[str], scene: Scene) -> None:
    """Raises AcsError where these bridges must not be changed on this host, or not now."""
    if scene.virtual:
        raise AcsError(
            f"this host runs in {scene.virtual}: there ACS is what keeps virtual machines apart, "
            "and it must stay on; peer traffic of passed-through GPUs needs ATS, which the "
            "hypervisor gives (NCCL user guide, troubleshooting, PCI Access Control Services)"
        )
    if scene.passed:
        raise AcsError(
            f"vfio-pci has {', '.join(scene.passed)}, so this host gives devices to virtual "
            "machines: without ACS a machine could reach the memory of devices that it was not "
            "given. Nothing was changed"
        )
    if scene.promised:
        raise AcsError(
            f"this host will give devices to virtual machines ({'; '.join(scene.promised)}): "
            "without ACS a machine could reach the memory of devices that it was not given. "
            "Nothing was changed"
        )
    if changes and scene.lockdown:
        raise AcsError(
            f"the kernel is locked down ({scene.lockdown}, /sys/kernel/security/lockdown), as "
            "under Secure Boot, and lets nobody write to a bridge's registers. Nothing was "
            "changed: give the boot parameter pci=disable_acs_redir=ADDRESS instead, or boot "
            "without Secure Boot"
        )
    if changes and scene.holders:
        raise AcsError(
            "GPUs are in use, and the way of their traffic must not change under it: "
            f"{'; '.join(scene.holders)}. Nothing was changed: end them first, or switch ACS off "
            "at a time when nobody uses a GPU"
        )


def price(scene: Scene) -> list[str]:
    """What isolation is lost, in words."""
    shared = {number: names for number, names in scene.groups.items() if names}
    if not shared:
        return []
    told = "; ".join(f"{number}: {' '.join(names)}" for number, names in sorted(shared.items()))
    return [
        "an IOMMU is on. Without ACS the bridges no longer keep the devices below them apart, so "
        "none of these may be given to a virtual machine any more, whatever their IOMMU groups say "
        f"(group: devices: {told})"
    ]
