# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Further rules on the kernel's command line: modules, IOMMU, isolated CPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.kernel import KernelCmdline
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_PARAMETERS = "kernel Documentation/admin-guide/kernel-parameters.txt"


@rule(
    "cmdline-nvidia-blacklisted",
    "The command line keeps the NVIDIA driver from loading",
    Severity.ERROR,
    reads=KernelCmdline,
    reason="A module that is blacklisted is not loaded at boot, and module_blacklist refuses it "
    "for ever: there is no GPU.",
    fix="Take the NVIDIA modules out of the list; nouveau is the one that belongs there.",
    sources=(_PARAMETERS, "modprobe(8)"),
)
def cmdline_nvidia_blacklisted(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """modprobe.blacklist and module_blacklist with a module of the driver."""
    for name in ("modprobe.blacklist", "module_blacklist"):
        for word, given in line.words(name):
            if word.replace("-", "_") in ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"):
                yield Hit(given.at, f"{name} has {word}.")


@rule(
    "cmdline-nomodeset-amd",
    "nomodeset keeps amdgpu from loading",
    Severity.ERROR,
    reads=KernelCmdline,
    reason="amdgpu refuses to load with nomodeset: there is no /dev/kfd and no /dev/dri/render*.",
    fix="Remove it.",
    sources=("Linux drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c",),
)
def cmdline_nomodeset_amd(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """Only where there is a GPU of AMD's, or where nobody knows: then it is told."""
    for given in line.all("nomodeset"):
        if "amd" in host.vendors:
            yield Hit(given.at, "The command line has nomodeset.")
        elif not host.vendors and not host.live:
            seen = "The command line has nomodeset."
            yield Hit(given.at, seen, severity=Severity.INFO, assumed=("a GPU of AMD's",))


@rule(
    "cmdline-iommu-translated",
    "GPUs talk to each other through the IOMMU",
    Severity.INFO,
    reads=KernelCmdline,
    reason="With the IOMMU on and translating, transfers between GPUs and network cards go up to "
    "the root and may hang or be slow; NCCL and RCCL want it off or in pass-through on bare "
    "metal.",
    fix="Add iommu=pt, unless this host gives devices to virtual machines.",
    sources=("NCCL docs, GPU troubleshooting", "ROCm docs, RCCL usage tips"),
    row="11",
)
def cmdline_iommu_translated(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """intel_iommu=on or amd_iommu=on without iommu=pt."""
    passed = {word for word, _given in line.words("iommu")}
    if passed & {"pt", "off"} or any(g.value in ("1",) for g in line.all("iommu.passthrough")):
        return
    for name in ("intel_iommu", "amd_iommu"):
        for word, given in line.words(name):
            if word in ("on", "force", "force_enable"):
                yield Hit(given.at, f"{name} is {given.value}, without iommu=pt.")


@rule(
    "cmdline-isolcpus",
    "Threads on isolated CPUs stay where they start",
    Severity.INFO,
    reads=KernelCmdline,
    reason="isolcpus takes the CPUs out of load balancing: a container with --cpuset-cpus on them "
    "runs all its threads on the first one, unless it pins each thread itself.",
    fix="Isolate by cgroup instead: cpuset.cpus.partition=isolated, or AllowedCPUs= for the rest.",
    sources=(_PARAMETERS, "kernel Documentation/admin-guide/cgroup-v2.rst, Cpuset"),
)
def cmdline_isolcpus(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """The parameter with load balancing off."""
    for given in line.all("isolcpus"):
        words = given.value.split(",")
        flags = [word for word in words if word[:1].isalpha()]
        if given.value and (not flags or "domain" in flags):
            yield Hit(given.at, f"isolcpus is {given.value}.")


@rule(
    "cmdline-acs-override",
    "pcie_acs_override pretends that devices are separated",
    Severity.WARNING,
    reads=KernelCmdline,
    reason="The parameter comes with a patch that the kernel does not have: either it does "
    "nothing, or devices of one group can reach each other's memory although they seem to be "
    "separated.",
    fix="Remove it. For peer-to-peer on bare metal switch ACS off per bridge with setpci.",
    sources=(_PARAMETERS, "NCCL docs, GPU troubleshooting"),
    row="11",
)
def cmdline_acs_override(line: KernelCmdline, host: HostView) -> Iterator[Hit]:
    """A patch of others."""
    for given in line.all("pcie_acs_override"):
        yield Hit(given.at, f"The command line has pcie_acs_override={given.value}.")
