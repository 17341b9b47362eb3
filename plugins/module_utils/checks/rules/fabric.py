# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVSwitch and NVLink fabrics: without them ready CUDA does not start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..host import HostView
from ..inside import entries, inside, mapping
from ..model import Hit, Severity
from ..place import place
from ..registry import rule


def _switches(host: HostView) -> int:
    count = inside(host.facts, "gpu", "nvswitches")
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


@rule(
    "fabric-manager-not-running",
    "The fabric manager of a host with NVSwitches does not run",
    Severity.ERROR,
    reads=HostView,
    reason="GPUs behind NVSwitches do not start CUDA before the fabric manager has set the fabric "
    "up: error 802, system not yet initialized, while nvidia-smi lists all of them.",
    fix="Install and start the fabric manager of exactly the driver's version.",
    sources=("NVIDIA fabric manager user guide",),
    cases=("DR-007",),
)
def fabric_manager_not_running(host: HostView, known: HostView) -> Iterator[Hit]:
    """Nothing is said of a host without NVSwitches, where the unit fails and means nothing."""
    status = inside(host.facts, "gpu", "fabric_manager", "status")
    if _switches(host) and status in ("stopped", "absent"):
        driver = host.version("driver") or "the driver's version"
        yield Hit(
            at=place(host),
            seen=f"{_switches(host)} NVSwitches, and the fabric manager is {status}",
            fix=f"Install the fabric manager of version {driver} and start it."
            if status == "absent"
            else "Start it, and look at its journal if it stops again.",
            commands=("systemctl enable --now nvidia-fabricmanager",),
        )


@rule(
    "fabric-manager-mismatch",
    "The fabric manager and the driver are of two versions",
    Severity.ERROR,
    reads=HostView,
    reason="The fabric manager refuses to work with a driver of another version, and CUDA then "
    "answers with error 802.",
    fix="Install the fabric manager of exactly the driver's version and hold both together.",
    sources=("NVIDIA fabric manager user guide",),
)
def fabric_manager_mismatch(host: HostView, known: HostView) -> Iterator[Hit]:
    """On a live host only where there are NVSwitches."""
    manager, driver = host.version("fabric_manager"), host.version("driver")
    if not manager or not driver or (host.live and not _switches(host)):
        return
    if manager.rpartition("-")[0] != driver and manager != driver and len(driver.split(".")) > 1:
        yield Hit(
            at=place(host, "fabric_manager"),
            seen=f"the fabric manager is {manager} and the driver is {driver}",
        )


@rule(
    "fabric-modules-missing",
    "NVLink 5 needs InfiniBand modules that are not loaded",
    Severity.ERROR,
    reads=HostView,
    reason="On B200 and later the fabric manager reaches the switches through ib_umad and "
    "mlx5_ib. Without them the fabric stays in progress and CUDA answers with error 802, though "
    "nvidia-smi and all versions look right.",
    fix="Install the kernel's extra modules and load ib_umad and mlx5_ib before the fabric "
    "manager starts.",
    sources=("NVIDIA fabric manager user guide, NVLink 5", "NVIDIA gpu-operator issue 2781"),
    cases=("DR-010",),
)
def fabric_modules_missing(host: HostView, known: HostView) -> Iterator[Hit]:
    """A GPU whose fabric is not up, of the generation that needs the modules."""
    missing = [name for name in ("ib_umad", "mlx5_ib") if host.modules.get(name) is False]
    waiting = [
        index for index, architecture, _fabric in _waiting(host) if architecture == "blackwell"
    ]
    if missing and waiting:
        yield Hit(
            at=place(host),
            seen=f"the fabric of GPU {waiting[0]} is not up and {' and '.join(missing)} is not "
            "loaded",
            commands=(
                *(f"modprobe {name}" for name in missing),
                "systemctl restart nvidia-fabricmanager",
            ),
        )


@rule(
    "fabric-not-ready",
    "The NVLink fabric of a GPU is not up",
    Severity.WARNING,
    reads=HostView,
    reason="CUDA starts on such a GPU only when its registration with the fabric is completed. "
    "Right after boot that takes some minutes.",
    fix="Wait some minutes after boot; then look at the fabric manager's journal.",
    sources=("nvml.h nvmlGpuFabricInfo", "NVIDIA fabric manager user guide"),
    cases=("DR-009",),
)
def fabric_not_ready(host: HostView, known: HostView) -> Iterator[Hit]:
    """In progress, not started, or completed with another status than success."""
    for index, _architecture, fabric in _waiting(host):
        yield Hit(
            at=place(host),
            seen=f"GPU {index}: fabric {fabric.get('state')}, {fabric.get('status')}",
            commands=("journalctl -b -u nvidia-fabricmanager",),
        )


def _waiting(host: HostView) -> list[tuple[Any, Any, Mapping[str, Any]]]:
    found = []
    for device in entries(host.facts, "gpu", "devices"):
        fabric = mapping(device, "fabric")
        if fabric.get("state") in ("in_progress", "not_started"):
            found.append((device.get("index"), device.get("architecture"), fabric))
    return found
