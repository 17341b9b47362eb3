# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs, memory and buses of a live host: settings that spoil placement."""

from __future__ import annotations

from collections.abc import Iterator

from ...versions import at_least
from ..host import HostView
from ..inside import entries, inside, values
from ..model import Hit, Severity
from ..place import place
from ..registry import rule


def _sysctl(host: HostView, name: str) -> str | None:
    value = inside(host.evidence, "sysctl", name)
    return value if isinstance(value, str) else None


@rule(
    "rt-runtime-unlimited-now",
    "Real-time tasks have no limit on this host",
    Severity.ERROR,
    reads=HostView,
    reason="kernel.sched_rt_runtime_us = -1 takes the limit away; it does not switch real-time "
    "scheduling off. One task that spins takes a CPU for good. From kernel 6.12 on the fair "
    "server still leaves the others 5 % of it.",
    fix="Set it back to the kernel's default of 950000.",
    sources=("kernel sched-rt-group.rst", "kernel commits 5f6bd380c7bd and d741f297bcea"),
)
def rt_runtime_unlimited_now(host: HostView, known: HostView) -> Iterator[Hit]:
    """As the kernel has it now."""
    if _sysctl(host, "kernel.sched_rt_runtime_us") == "-1":
        yield Hit(
            at=place(host),
            seen="kernel.sched_rt_runtime_us is -1",
            severity=Severity.WARNING if at_least(host.version("kernel"), "6.12") else None,
            commands=("sysctl -w kernel.sched_rt_runtime_us=950000",),
        )


@rule(
    "numa-balancing-on",
    "Automatic NUMA balancing moves the memory of pinned jobs",
    Severity.INFO,
    reads=HostView,
    reason="The kernel unmaps pages to find out who uses them. For jobs that are already placed "
    "beside their GPU it costs faults and gains nothing.",
    fix="Where all GPU jobs are pinned, set kernel.numa_balancing=0 and measure.",
    sources=("kernel admin-guide/sysctl/kernel.rst numa_balancing",),
)
def numa_balancing_on(host: HostView, known: HostView) -> Iterator[Hit]:
    """Only where there is more than one node and a GPU."""
    value = _sysctl(host, "kernel.numa_balancing")
    if value not in (None, "0") and len(host.nodes) > 1 and host.gpus:
        yield Hit(
            at=place(host),
            seen=f"kernel.numa_balancing is {value} on {len(host.nodes)} NUMA nodes",
            commands=("sysctl -w kernel.numa_balancing=0",),
        )


@rule(
    "gpu-numa-unknown",
    "The firmware does not say beside which NUMA node a GPU is",
    Severity.INFO,
    reads=HostView,
    reason="On a host of several nodes the kernel then shows -1, and nothing can place jobs near "
    "the GPU by itself. Virtual machines often have it so.",
    fix="Look for NUMA or ACPI SLIT/PXM settings in the firmware, or of the hypervisor.",
    sources=("kernel Documentation/ABI/testing/sysfs-bus-pci numa_node",),
    cases=("TP-009",),
)
def gpu_numa_unknown(host: HostView, known: HostView) -> Iterator[Hit]:
    """NVML's own answer "not supported" means nothing here: it is of memory on the GPU."""
    unknown = [str(g.index) for g in host.gpus or () if g.numa_node is None and not g.error]
    if unknown and len(host.nodes) > 1:
        yield Hit(at=place(host), seen=f"no NUMA node is named for GPU {', '.join(unknown)}")


@rule(
    "acs-redirects",
    "Traffic between GPUs takes the way through the root complex",
    Severity.INFO,
    reads=HostView,
    reason="A bridge above several GPUs has Access Control Services on. On bare metal that slows "
    "peer-to-peer copies or makes them hang; under a hypervisor it must stay.",
    fix="On bare metal switch IO virtualisation off in the firmware, or clear ACS of that bridge "
    "after each boot; leave it in a virtual machine.",
    sources=("NCCL user guide, GPU troubleshooting",),
)
def acs_redirects(host: HostView, known: HostView) -> Iterator[Hit]:
    """A bridge that two GPUs without NVLink share, at any height."""
    devices = entries(host.facts, "gpu", "devices")
    for bridge in entries(host.facts, "gpu", "bridges"):
        if inside(bridge, "acs", "redirects") is not True:
            continue
        address = bridge.get("address")
        below = [device for device in devices if address in values(device, "pci_path")]
        if len(below) > 1 and not any(d.get("nvlink") for d in below):
            indexes = ", ".join(str(d.get("index")) for d in below)
            yield Hit(
                at=place(host),
                seen=f"bridge {address} above GPU {indexes} redirects",
                commands=(f"setpci -s {address} ECAP_ACS+0x6.w=0000",),
            )
