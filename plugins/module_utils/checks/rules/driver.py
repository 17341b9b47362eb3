# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver of a live host: loaded, whole, of one version, and not about to change."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...versions import parse
from ..host import HostView
from ..inside import entries, inside, mapping, words
from ..model import Hit, Severity
from ..place import place
from ..registry import rule


def _driver(host: HostView) -> Mapping[str, Any]:
    return mapping(host.facts, "gpu", "driver")


def _cards(host: HostView) -> list[Mapping[str, Any]]:
    return entries(host.facts, "gpu", "pci")


@rule(
    "driver-library-mismatch",
    "The NVIDIA kernel module and its libraries are of two releases",
    Severity.ERROR,
    reads=HostView,
    reason="The user-space libraries work with the kernel module of exactly their own release. "
    "After an upgrade the old module stays loaded until it is unloaded or the host reboots; in a "
    "container the image may bring a library of its own.",
    fix="Stop what uses the GPUs, then reload the module or reboot. In a container remove the "
    "driver packages from the image.",
    sources=("NVIDIA open kernel modules README", "nvml.h NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    cases=("DR-004", "DR-005"),
)
def driver_library_mismatch(host: HostView, known: HostView) -> Iterator[Hit]:
    """The loaded module and the libraries differ."""
    module = host.version("nvidia_kernel_module") or host.version("driver")
    library = host.version("library")
    if not module or not library or _driver(host).get("status") not in (None, "mismatch"):
        return  # the facts module knows better than two numbers
    # NVML shortens some versions (570.124), and people write a branch (535.x).
    have, want = parse(module), parse(library)
    width = min(len(have), len(want))
    if have[:width] != want[:width]:
        yield Hit(
            at=place(host, "library"),
            seen=f"the kernel module is {module} and the library is {library}",
            commands=("cat /proc/driver/nvidia/version", "modinfo -F version nvidia"),
        )


@rule(
    "driver-not-loaded",
    "The NVIDIA driver is installed and not loaded",
    Severity.ERROR,
    reads=HostView,
    reason="Without its kernel module the driver serves nothing: nvidia-smi cannot communicate "
    "with the driver, and no container gets a GPU.",
    fix="Load it with modprobe nvidia; where that fails the kernel log says why: a module that "
    "was not built for this kernel, or one that Secure Boot refuses.",
    sources=("NVIDIA driver README, kernel modules",),
)
def driver_not_loaded(host: HostView, known: HostView) -> Iterator[Hit]:
    """A card on the bus, the library installed, no module."""
    driver = _driver(host)
    if driver.get("status") != "not_loaded" or not _cards(host) or _nouveau(host):
        return
    if host.version("library") is None:
        return
    yield Hit(
        at=place(host),
        seen=str(driver.get("reason") or "a GPU is on the bus and the module is not loaded"),
        commands=("modprobe nvidia", "dmesg | grep -iE 'nvrm|nvidia|secure boot|lockdown'"),
    )


def _nouveau(host: HostView) -> list[str]:
    return [str(card.get("address")) for card in _cards(host) if card.get("driver") == "nouveau"]


@rule(
    "nouveau-bound",
    "nouveau holds the GPU in place of the NVIDIA driver",
    Severity.ERROR,
    reads=HostView,
    reason="nouveau was loaded from the initramfs and has bound the card, so that the NVIDIA "
    "module cannot take it.",
    fix="Forbid nouveau, rebuild the initramfs and reboot.",
    sources=("NVIDIA driver installation guide, disabling nouveau",),
    cases=("DR-015",),
)
def nouveau_bound(host: HostView, known: HostView) -> Iterator[Hit]:
    """An info where no NVIDIA driver is installed: then nouveau may be wanted."""
    held = _nouveau(host)
    if held:
        wanted = host.version("library") is not None or any(
            _DRIVER_PACKAGE.match(name) for name in host.packages
        )
        yield Hit(
            at=place(host),
            seen=f"{', '.join(held)} is bound to nouveau",
            severity=None if wanted else Severity.INFO,
            commands=(
                "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' "
                "> /etc/modprobe.d/blacklist-nouveau.conf",
                "update-initramfs -u",
            ),
        )


@rule(
    "driver-unresponsive",
    "The NVIDIA driver does not answer",
    Severity.ERROR,
    reads=HostView,
    reason="A GPU that fell off the bus or firmware that hangs keeps every process that asks the "
    "driver waiting.",
    fix="Look for Xid errors in the kernel log; a GPU that is off the bus comes back with a power "
    "cycle only.",
    sources=("NVIDIA Xid errors", "NVML NVML_ERROR_TIMEOUT"),
)
def driver_unresponsive(host: HostView, known: HostView) -> Iterator[Hit]:
    """NVML or /proc/driver/nvidia did not answer within their deadlines."""
    driver = _driver(host)
    if driver.get("status") == "unresponsive":
        yield Hit(
            at=place(host),
            seen=str(driver.get("reason") or "NVML did not answer"),
            commands=("dmesg | grep -i xid",),
        )


@rule(
    "uvm-missing",
    "nvidia_uvm is not loaded, so CUDA does not start",
    Severity.ERROR,
    reads=HostView,
    reason="nvidia-smi works without nvidia_uvm and CUDA does not: error 999, or 100 for a "
    "container that was made without /dev/nvidia-uvm. On a host without a display nothing loads "
    "it at boot, and inside a container nobody can.",
    fix="Load it with nvidia-modprobe -u -c 0, at each boot, before containers start.",
    sources=("nvidia-modprobe(1)", "libnvidia-container src/nvc.c"),
    cases=("DR-001",),
)
def uvm_missing(host: HostView, known: HostView) -> Iterator[Hit]:
    """WSL has a driver without modules and nodes, and needs no uvm."""
    loaded = _driver(host).get("status") == "loaded"
    ours = host.modules.get("nvidia") or "/dev/nvidiactl" in _nodes(host, exists=True)
    if not loaded or not host.gpus or not ours:
        return
    if host.modules.get("nvidia_uvm") is False:
        seen = "the module nvidia is loaded and nvidia_uvm is not"
    elif "/dev/nvidia-uvm" in _nodes(host, exists=False):
        seen = "nvidia_uvm is loaded and /dev/nvidia-uvm does not exist"
    else:
        return
    yield Hit(at=place(host), seen=seen, commands=("nvidia-modprobe -u -c 0",))


def _nodes(host: HostView, exists: bool) -> set[str]:
    nodes = entries(host.facts, "gpu", "nodes")
    return {str(node.get("path")) for node in nodes if node.get("exists") is exists}


@rule(
    "gpu-error",
    "A GPU does not answer",
    Severity.ERROR,
    reads=HostView,
    reason="A sick GPU takes jobs down with it; the others of the host can still be used.",
    fix="Keep work off it, look for Xid errors in the kernel log, and reset or power-cycle.",
    sources=("NVML error codes",),
)
def gpu_error(host: HostView, known: HostView) -> Iterator[Hit]:
    """What NVML answered in place of a value."""
    for gpu in host.gpus or ():
        if gpu.error:
            yield Hit(
                at=place(host),
                seen=f"GPU {gpu.index} answers: {gpu.error}",
                commands=("dmesg | grep -i xid", f"nvidia-smi -q -i {gpu.index}"),
            )


@rule(
    "gpu-rows",
    "Rows of GPU memory could not be replaced, or wait for a reset",
    Severity.WARNING,
    reads=HostView,
    reason="The GPU replaces rows of memory with errors. One that is pending is used until the "
    "next reset; a failure means that the card has to be replaced.",
    fix="Reset the GPU when it is idle; replace a card whose remapping has failed.",
    sources=("NVIDIA GPU memory error management",),
)
def gpu_rows(host: HostView, known: HostView) -> Iterator[Hit]:
    """``remapped_rows`` of the facts."""
    for device in entries(host.facts, "gpu", "devices"):
        rows = device.get("remapped_rows")
        index = device.get("index")
        if not isinstance(rows, Mapping):
            continue
        if rows.get("failed") is True:
            yield Hit(
                at=place(host),
                seen=f"GPU {index}: the replacement of a row has failed",
                fix="Take the GPU out of service and have the card replaced.",
                severity=Severity.ERROR,
            )
        elif rows.get("pending") is True:
            yield Hit(at=place(host), seen=f"GPU {index}: a replaced row waits for a reset")


_DRIVER_PACKAGE = re.compile(
    r"nvidia-(?:driver|kernel|dkms|utils|open|headless)|libnvidia-(?:compute|cfg|gl|ml)|"
    r"nvidia-fabricmanager|cuda-drivers|kmod-nvidia|libcuda1"
)


@rule(
    "unattended-driver-upgrades",
    "Unattended upgrades may change the driver under running jobs",
    Severity.WARNING,
    reads=HostView,
    reason="apt upgrades packages by itself on this host and neither holds nor excludes those of "
    "the driver. After such an upgrade the loaded module and the new libraries do not match.",
    fix="Hold the driver's packages, or exclude them in Unattended-Upgrade::Package-Blacklist, "
    "and upgrade in a window with a reboot.",
    sources=("unattended-upgrades README", "apt-mark(8)"),
    cases=("DR-003",),
)
def unattended_driver_upgrades(host: HostView, known: HostView) -> Iterator[Hit]:
    """Packages of the driver that are installed, not held, and match no excluded pattern."""
    if inside(host.evidence, "unattended_upgrades", "enabled") is not True:
        return
    if "unattended-upgrades" not in host.packages and host.live:
        return  # the setting alone upgrades nothing
    excluded = words(host.evidence, "unattended_upgrades", "blacklist")
    free = sorted(
        name
        for name, package in host.packages.items()
        if _DRIVER_PACKAGE.match(name)
        and not package.held
        and not any(_excludes(pattern, name) for pattern in excluded)
    )
    if free:
        yield Hit(
            at=place(host),
            seen=f"unattended upgrades are on and may change {', '.join(free[:4])}"
            + (f" and {len(free) - 4} more" if len(free) > 4 else ""),
            commands=("apt-mark hold " + " ".join(free),),
        )


def _excludes(pattern: str, name: str) -> bool:
    """As unattended-upgrades reads it: a regular expression from the start of the name."""
    try:
        return re.match(pattern, name) is not None
    except re.error:
        return fnmatch.fnmatch(name, pattern)


@rule(
    "kernel-without-driver",
    "The kernel of the next boot has no NVIDIA module",
    Severity.WARNING,
    reads=HostView,
    reason="A kernel was installed for which the driver's module was not built. After the next "
    "reboot nvidia-smi cannot communicate with the driver.",
    fix="Build the module for that kernel before the reboot.",
    sources=("dkms(8)", "depmod(8)"),
    cases=("RB-004",),
)
def kernel_without_driver(host: HostView, known: HostView) -> Iterator[Hit]:
    """Only where the driver is known for some other kernel, so that it is wanted."""
    coming = inside(host.evidence, "kernels", "next")
    built = words(host.evidence, "kernels", "driver_built_for")
    if isinstance(coming, str) and coming and built and coming not in built:
        yield Hit(
            at=place(host),
            seen=f"the next boot takes {coming}, and the module is there for {', '.join(built)}",
            commands=(f"apt-get install linux-headers-{coming}", f"dkms autoinstall -k {coming}"),
        )
