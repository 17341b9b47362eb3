# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parameters that cost a GPU host more than they give it, each with its source. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from . import words

_KERNEL = "kernel Documentation/admin-guide/kernel-parameters.txt"
_OFF = r"(0|n|no|off|false)"
_ON = r"(1|y|yes|on|true)"


@dataclass(frozen=True)
class Refused:
    """``pattern`` is a whole value; for ``listed`` parameters one word of a list with commas."""

    keys: tuple[str, ...]
    pattern: str
    why: str
    instead: str
    source: str
    listed: bool = False


_TABLE: tuple[Refused, ...] = (
    Refused(
        ("pci",),
        "nomsi",
        "it takes message-signalled interrupts from NVMe disks, network cards and GPUs, and the "
        "host may not boot; it has nothing to do with ACS",
        "for GPU to GPU traffic on bare metal use pcie_acs",
        f"{_KERNEL}, pci=nomsi; NCCL user guide, troubleshooting, PCI Access Control Services",
        listed=True,
    ),
    Refused(
        ("pci",),
        "noacpi|off|conf1|nommconf",
        "the kernel then cannot route interrupts or read the extended configuration space of GPUs",
        "leave it out",
        f"{_KERNEL}, pci=",
        listed=True,
    ),
    Refused(
        ("cgroup_disable",),
        "memory|cpu|cpuset|io|blkio|pids|hugetlb|devices",
        "the limits of every container that rest on this controller are gone without a word, and "
        "the kubelet does not start; it gives no control of GPU memory",
        "leave it out; GPU memory is limited by MIG or by the driver",
        f"{_KERNEL}, cgroup_disable=; Documentation/admin-guide/cgroup-v2.rst",
        listed=True,
    ),
    Refused(
        ("systemd.unified_cgroup_hierarchy",),
        _OFF,
        "the host boots into cgroup v1, which has no memory protection, no io.max for buffered "
        "writes and no GPU limits of the driver, and which systemd 258 no longer has",
        "leave it out: cgroup v2 is the default",
        "systemd(1), kernel command line; systemd NEWS 256 and 258",
    ),
    Refused(
        ("systemd.legacy_systemd_cgroup_controller",),
        _ON,
        "the host boots into cgroup v1",
        "leave it out",
        "systemd(1), kernel command line",
    ),
    Refused(
        ("pcie_acs_override",),
        ".*",
        "it belongs to a patch that the kernel does not have; where it acts, devices seem to be "
        "separated which can reach each other's memory",
        "for GPU to GPU traffic on bare metal use pcie_acs",
        f"{_KERNEL} has no such parameter",
    ),
    Refused(
        ("nokaslr",),
        ".*",
        "it takes the randomisation of its addresses from the kernel that all containers share, "
        "and makes nothing faster",
        "leave it out",
        f"{_KERNEL}, nokaslr",
    ),
    Refused(
        ("hugepagesz", "hugepages"),
        ".*",
        "what a hugepages= means depends on the hugepagesz= before it, whoever gave that, and the "
        "pages are spread over all nodes",
        "numa_hugepages reserves them on the node of a GPU, and reads back what the kernel gave",
        f"{_KERNEL}, hugepages=, hugepagesz=",
    ),
    Refused(
        ("acpi",),
        "off",
        "without ACPI the kernel knows neither NUMA nodes nor how interrupts are routed",
        "leave it out",
        f"{_KERNEL}, acpi=",
    ),
    Refused(
        ("numa",),
        "off",
        "the kernel then hides which CPUs and memory are near a GPU",
        "leave it out; numa_balancing is a sysctl",
        f"{_KERNEL}, numa=off",
    ),
    Refused(
        ("noapic", "nolapic", "nosmp"),
        ".*",
        "interrupts of the devices end on one CPU, or the host has only one",
        "leave it out",
        f"{_KERNEL}, noapic, nolapic, nosmp",
    ),
    Refused(
        ("swapaccount",),
        ".*",
        "the kernel no longer has it: with cgroup v2 swap is always accounted",
        "memory.swap.max limits swap",
        "Linux commit b25806dcd3d5",
    ),
    Refused(
        ("init", "root", "rootfstype", "rootflags", "initrd", "boot_image", "ro", "rw", "resume"),
        ".*",
        "it says where the system lies, and a wrong one leaves a host that does not boot",
        "the boot loader's own configuration has it",
        f"{_KERNEL}, root=, init=",
    ),
    Refused(
        ("single", "s", "1", "emergency", "rescue", "systemd.unit", "rd.break"),
        ".*",
        "the host would wait for somebody at its console and start no container",
        "give it by hand, at the one boot for which it is meant",
        "systemd(1), kernel command line",
    ),
)


def faults(wanted: Iterable[str]) -> list[str]:
    """Why these parameters are not written, one sentence for each that must not be."""
    found = []
    for word in wanted:
        found += [
            f"{word} is refused: {one.why}. Instead: {one.instead}. (Source: {one.source})"
            for one in _TABLE
            if _matches(one, word)
        ]
    return found


def _matches(one: Refused, word: str) -> bool:
    if words.key(word).lower() not in one.keys:
        return False
    value = words.value(word).lower()
    parts = value.split(",") if one.listed else [value]
    return any(re.fullmatch(one.pattern, part) for part in parts)
