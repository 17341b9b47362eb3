# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What MIG needs: a new enough driver, and none of the driver's own memory limits."""

from __future__ import annotations

import re

from .. import versions
from . import tables
from .model import GpuLayout

# The oldest driver with MIG for a GPU: MIG user guide, edition 620, "Prerequisites". An older
# edition has the rows of A100 and H100 the other way round. Models that it does not list have
# no row: for them nothing is required.
_MINIMUM_DRIVERS = {
    "A100-40GB": "450.80.02",
    "A100-80GB": "450.80.02",
    "A30-24GB": "460.73.01",
    "H100-80GB": "525.85.12",
    "H100-94GB": "525.85.12",
    "H100-96GB": "525.85.12",
    "H20-96GB": "535.161.07",
    "H200-141GB": "550.90.07",
    "B200-180GB": "570.133.20",
    "GB200": "570.133.20",
    "B300": "580.82.07",
    "RTX PRO 6000 Blackwell": "575.51.03",
}

# RmMemacctMode=1 in NVreg_RegistryDwords, as modprobe options and /proc/driver/nvidia/params
# spell it. Accounting of memory per cgroup is for GPUs without MIG (driver 615 and later).
_MEMORY_ACCOUNTING = re.compile(r"\bRmMemacctMode\s*=\s*(0x[0-9a-f]+|\d+)", re.IGNORECASE)


def minimum_driver(name: str, device_id: str) -> str | None:
    """The oldest driver with MIG for this model; None when no such thing is documented."""
    model = tables.model_of(name, device_id)
    return _MINIMUM_DRIVERS.get(model) if model else None


def driver_too_old(driver: str | None, gpu: GpuLayout) -> str | None:
    """Why the driver cannot do MIG on this GPU; None when it can, or nothing is known."""
    minimum = minimum_driver(gpu.name, gpu.device_id)
    if minimum is None or not driver or versions.at_least(driver, minimum):
        return None
    return (
        f"GPU {gpu.index} ({gpu.name}) has MIG from driver {minimum} on, driver {driver} is"
        " loaded: install a newer one"
    )


def memory_limits_conflict(params: str) -> str | None:
    """Why the driver's parameters forbid MIG; None when they do not.

    ``params`` is the text of /proc/driver/nvidia/params or of modprobe options. The last
    setting of several counts.
    """
    found = _MEMORY_ACCOUNTING.findall(params)
    if not found or int(found[-1], 0) == 0:
        return None
    return (
        f"the driver is loaded with RmMemacctMode={found[-1]}: its memory limits per cgroup are"
        " for GPUs without MIG. Set NVreg_RegistryDwords without it, or to 0, and reload the"
        " driver; or leave MIG off"
    )
