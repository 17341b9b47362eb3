# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the GPUs of a live host say of themselves: errors in the log, modes, what is off."""

from __future__ import annotations

from collections.abc import Iterator

from ..host import HostView
from ..inside import entries, inside
from ..model import Hit, Severity
from ..place import place
from ..registry import rule

# Xids that speak of the hardware, its memory or firmware. Others are mostly a program's fault.
_HARDWARE_XIDS = {
    48: "an uncorrectable memory error",
    61: "an error of the GPU's own processor",
    62: "an error of the GPU's own processor",
    64: "a row or page could not be retired",
    74: "an NVLink error",
    79: "the GPU fell off the bus",
    92: "a high rate of memory errors",
    95: "an uncontained memory error",
    110: "a security fault",
    119: "its GSP firmware does not answer",
    120: "an error in its GSP firmware",
    140: "an unrecovered memory error",
    143: "an error while the GPU was initialised",
    154: "the GPU needs a reset or a reboot",
}


@rule(
    "gpu-xid-seen",
    "The kernel log holds a hardware error of a GPU",
    Severity.WARNING,
    reads=HostView,
    reason="The driver reports errors by number, Xid. Those of the hardware, its memory and its "
    "firmware need a reset, a power cycle or another card; jobs on that GPU may have failed.",
    fix="Keep work off the GPU, reset it when it is idle, and watch whether the error comes back.",
    sources=("NVIDIA Xid errors",),
)
def gpu_xid_seen(host: HostView, known: HostView) -> Iterator[Hit]:
    """Since boot, as far as the log reaches back; a reset since then does not clear it."""
    for device in entries(host.facts, "gpu", "devices"):
        seen = {entry.get("xid") for entry in entries(device, "xids")}
        numbers = sorted(xid for xid in seen if isinstance(xid, int) and xid in _HARDWARE_XIDS)
        if numbers:
            said = ", ".join(f"Xid {xid} ({_HARDWARE_XIDS[xid]})" for xid in numbers)
            yield Hit(
                at=place(host),
                seen=f"GPU {device.get('index')}: {said}",
                commands=("dmesg | grep -i xid",),
            )


@rule(
    "gpu-compute-mode",
    "The compute mode of a GPU keeps processes off",
    Severity.INFO,
    reads=HostView,
    reason="In exclusive_process one process at a time has the GPU: a second one gets error 46, "
    "all CUDA-capable devices are busy or unavailable. Under prohibited none has.",
    fix="nvidia-smi -c DEFAULT, unless MPS or a scheduler wants it so.",
    sources=("nvidia-smi(1) --compute-mode",),
)
def gpu_compute_mode(host: HostView, known: HostView) -> Iterator[Hit]:
    """An info for exclusive modes, which MPS wants; a warning for prohibited."""
    for device in entries(host.facts, "gpu", "devices"):
        mode = device.get("compute_mode")
        if mode in ("exclusive_process", "exclusive_thread", "prohibited"):
            yield Hit(
                at=place(host),
                seen=f"GPU {device.get('index')} is in compute mode {mode}",
                severity=Severity.WARNING if mode == "prohibited" else None,
                commands=(f"nvidia-smi -i {device.get('index')} -c DEFAULT",),
            )


@rule(
    "gpu-ecc-pending",
    "A change of ECC waits for a reset of the GPU",
    Severity.INFO,
    reads=HostView,
    reason="ECC is switched at the next reset. Until then the memory and its size are as before.",
    fix="Reset the GPU when it is idle, or reboot.",
    sources=("nvidia-smi(1) --ecc-config",),
)
def gpu_ecc_pending(host: HostView, known: HostView) -> Iterator[Hit]:
    """Current and pending differ."""
    for device in entries(host.facts, "gpu", "devices"):
        now, then = inside(device, "ecc", "current"), inside(device, "ecc", "pending")
        if isinstance(now, bool) and isinstance(then, bool) and now is not then:
            words = {True: "on", False: "off"}
            yield Hit(
                at=place(host),
                seen=f"GPU {device.get('index')}: ECC is {words[now]} and will be {words[then]}",
            )


@rule(
    "gpu-persistence-off",
    "Nothing keeps the GPUs initialised between jobs",
    Severity.INFO,
    reads=HostView,
    reason="Without persistence the driver takes a GPU down when its last user ends. The next "
    "start pays for it again, for seconds on large hosts, and settings such as power limits are "
    "lost.",
    fix="Enable nvidia-persistenced.",
    sources=("NVIDIA driver persistence documentation",),
)
def gpu_persistence_off(host: HostView, known: HostView) -> Iterator[Hit]:
    """No daemon, no persistence mode, no display."""
    devices = entries(host.facts, "gpu", "devices")
    daemon = inside(host.facts, "gpu", "persistence_daemon", "status")
    off = devices and all(
        device.get("persistence") is False and device.get("display") is not True
        for device in devices
    )
    if off and daemon in ("stopped", "absent"):
        yield Hit(
            at=place(host),
            seen=f"persistence is off, and nvidia-persistenced is {daemon}",
            commands=("systemctl enable --now nvidia-persistenced",),
        )


@rule(
    "memory-controller-off",
    "The memory controller is off: every memory limit is ignored",
    Severity.ERROR,
    reads=HostView,
    reason="Without the controller --memory and MemoryMax= are accepted and have no effect.",
    fix="Remove cgroup_disable=memory from the kernel command line (on a Raspberry Pi add "
    "cgroup_enable=memory) and reboot.",
    sources=("kernel admin-guide/kernel-parameters.txt cgroup_disable", "seen on Docker 26.1.5"),
    told_by=("cmdline-memory-cgroup-off",),
)
def memory_controller_off(host: HostView, known: HostView) -> Iterator[Hit]:
    """As the kernel has it now."""
    listed = inside(host.facts, "cgroup", "controllers")
    if isinstance(listed, list) and listed and "memory" not in listed:
        yield Hit(at=place(host), seen="the controllers are: " + " ".join(map(str, listed)))


@rule(
    "nvidia-docker2-installed",
    "nvidia-docker2 is obsolete",
    Severity.INFO,
    reads=HostView,
    reason="The package was replaced by the NVIDIA Container Toolkit, and brings nothing but a "
    "daemon.json of its own and a wrapper.",
    fix="Remove it after the toolkit is installed and daemon.json is checked.",
    sources=("NVIDIA container toolkit release notes 1.15",),
    row="7",
)
def nvidia_docker2_installed(host: HostView, known: HostView) -> Iterator[Hit]:
    """By its package."""
    package = host.packages.get("nvidia-docker2")
    if package is not None:
        yield Hit(at=place(host), seen=f"nvidia-docker2 {package.version} is installed")


@rule(
    "gpudirect-rdma-module",
    "GPUDirect RDMA may have no module",
    Severity.INFO,
    reads=HostView,
    reason="RDMA cards read GPU memory through nvidia_peermem, or through DMA-BUF with the open "
    "kernel modules. Without either NCCL copies through the host's memory.",
    fix="Load nvidia_peermem, or use the open kernel modules and a kernel from 5.12 on.",
    sources=("NVIDIA GPUDirect RDMA documentation",),
)
def gpudirect_rdma_module(host: HostView, known: HostView) -> Iterator[Hit]:
    """An RDMA card, GPUs, proprietary modules and no nvidia_peermem."""
    cards = [nic for nic in entries(host.facts, "gpu", "nics") if nic.get("rdma")]
    proprietary = inside(host.facts, "gpu", "driver", "flavour") == "proprietary"
    if cards and host.gpus and proprietary and host.modules.get("nvidia_peermem") is False:
        yield Hit(
            at=place(host),
            seen=f"{cards[0].get('name')} is an RDMA card, and nvidia_peermem is not loaded",
            commands=("modprobe nvidia_peermem",),
        )
