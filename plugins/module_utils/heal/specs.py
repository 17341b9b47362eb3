# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is a CDI specification of NVIDIA GPUs still that of this host? Pure.

Engines resolve a device's name in it as it stands. After a change of the driver, of the GPUs or of
their MIG devices it names what is gone, and lacks what is new, until it is made anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

KIND = "nvidia.com/gpu"

# Where nvidia-ctk and its refresh unit write, by their documentation; nobody else's files.
GENERATED = tuple(
    f"{directory}/nvidia.{ending}"
    for directory in ("/var/run/cdi", "/run/cdi", "/etc/cdi")
    for ending in ("yaml", "json")
)

# Libraries of the driver end in its whole version: libcuda.so.550.163.01.
_LIBRARY = re.compile(r"/lib(?:cuda|nvidia-ml|nvidia-[a-z0-9-]+)\.so\.(\d{3,4}\.\d+(?:\.\d+)?)\b")
# What a container needs of it, by what stands for it in the text.
_PARTS = (
    "libcuda.so",
    "libnvidia-ml.so",
    "nvidia-smi",
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "update-ldcache",
    "create-symlinks",
)
_INDEX = re.compile(r"\d+")
_MIG_INDEX = re.compile(r"(?:mig)?(\d+):(\d+)")
_TYPE_INDEX = re.compile(r"gpu(\d+)")


def faults(names: Sequence[str], text: str, gpu: Mapping[str, Any]) -> list[str]:
    """What in a specification with these device names and this text is no longer so.

    ``gpu`` is that section of the facts. [] for one that fits, and where the driver does not
    answer for all GPUs: then nobody can tell.
    """
    driver = gpu.get("driver") or {}
    devices = gpu.get("devices") or []
    complete = driver.get("status") == "loaded" and gpu.get("source") == "nvml"
    if not complete or not devices or driver.get("hidden"):
        return []
    if any(one.get("error") or one.get("uuid") is None for one in devices):
        return []
    if any((one.get("mig") or {}).get("current") and _parts(one) is None for one in devices):
        return []
    gone = [f"it names {name}, which is not there" for name in _gone(names, devices)]
    return [*_libraries(text, driver), *gone, *_new(names, devices)]


def worse(
    before_names: Sequence[str],
    before: str,
    after_names: Sequence[str],
    after: str,
    gpu: Mapping[str, Any],
) -> list[str]:
    """What a new specification lacks that the former one had and this host still has.

    A tool that cannot find the driver's files writes one without them, and exits with 0.
    """
    devices = gpu.get("devices") or []
    gone = set(_gone(before_names, devices))
    lost = [f"the name {name}" for name in before_names if name not in {*gone, *after_names}]
    lost += [part for part in _PARTS if part in before and part not in after]
    if any(_parts(one) for one in devices) and "nvidia-caps" in before:
        lost += [] if "nvidia-caps" in after else ["the nodes of /dev/nvidia-caps"]
    return lost


def strategies(names: Sequence[str]) -> tuple[str, ...]:
    """How the devices are named, for ``--device-name-strategy``, so that the names stay."""
    found = []
    if any(_INDEX.fullmatch(name) or re.fullmatch(r"\d+:\d+", name) for name in names):
        found.append("index")
    if any(name.startswith(("GPU-", "MIG-")) for name in names):
        found.append("uuid")
    if any(re.match(r"(?:gpu|mig)\d", name) for name in names):
        found.append("type-index")
    return tuple(found) or ("index", "uuid")


def _libraries(text: str, driver: Mapping[str, Any]) -> list[str]:
    version = driver.get("library_version") or driver.get("version")
    named = sorted(set(_LIBRARY.findall(text)))
    if not version or not named or version in named:
        return []
    return [f"it mounts libraries of driver {', '.join(named)}, and the host has {version}"]


def _gone(names: Sequence[str], devices: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of what is not there."""
    whole = {int(one["index"]): one for one in devices}
    cut = {index for index, one in whole.items() if (one.get("mig") or {}).get("current")}
    uuids = {one["uuid"] for index, one in whole.items() if index not in cut}
    parts = {index: _parts(one) or [] for index, one in whole.items()}
    mig_uuids = {part.get("uuid") for one in parts.values() for part in one}
    found = []
    for name in names:
        index = _INDEX.fullmatch(name) or _TYPE_INDEX.fullmatch(name)
        place = _MIG_INDEX.fullmatch(name)
        if index:
            number = int(index.group(index.lastindex or 0))
            gone = number not in whole or number in cut
        elif place:
            gone = int(place.group(2)) >= len(parts.get(int(place.group(1)), []))
        elif name.startswith("GPU-"):
            gone = name not in uuids
        else:
            gone = name.startswith("MIG-") and name not in mig_uuids
        if gone:
            found.append(name)
    return found


def _new(names: Sequence[str], devices: Sequence[Mapping[str, Any]]) -> list[str]:
    """Devices without any name in it."""
    found = []
    for one in devices:
        index = one["index"]
        if not (one.get("mig") or {}).get("current"):
            if not {str(index), f"gpu{index}", one["uuid"]} & set(names):
                found.append(f"GPU {index} is not in it")
            continue
        for number, part in enumerate(_parts(one) or []):
            spelled = {f"{index}:{number}", f"mig{index}:{number}", part.get("uuid")}
            if not spelled & set(names):
                found.append(f"MIG device {index}:{number} is not in it")
    return found


def _parts(device: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """The MIG devices; None where NVML did not tell."""
    parts: Sequence[Mapping[str, Any]] | None = (device.get("mig") or {}).get("devices")
    return parts
