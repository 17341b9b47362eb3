# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on UUIDs of GPUs and names of MIG devices, against those the host has. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import Gpu, HostView
from ..model import Given, Hit, Needs, Severity
from ..registry import rule

_CLI = "NVIDIA/libnvidia-container src/cli/common.c"
_MIG_GUIDE = "NVIDIA MIG user guide, device names"
_OLD_FORM = re.compile(r"MIG-GPU-[\w<>…-]+(/\d+){2}|MIG-GPU-[0-9a-f-]{36}", re.IGNORECASE)
_UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{4,27}", re.IGNORECASE)
_PLACE = re.compile(r"(\d{1,4}):(\d{1,4})")


def wanted_names(spec: ContainerSpec) -> list[tuple[str, Given]]:
    """Every name of a GPU or MIG device that NVIDIA's hook or CDI is asked for, and where."""
    found = [(g.value, g) for request in spec.gpus for g in request.device_ids]
    found += [(g.value.partition("=")[2], g) for g in spec.cdi_devices if "nvidia" in g.value]
    visible = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    if visible and spec.asks_nvidia:
        found += [(part, visible) for part in visible.value.split(",")]
    return [(text.strip().removeprefix("nvidia.com/gpu="), given) for text, given in found]


def _uuids(host: HostView, kind: str) -> list[str] | None:
    """The UUIDs of the host's GPUs or MIG devices; None where one of them is not known."""
    if host.gpus is None or any(gpu.error for gpu in host.gpus):
        return None
    if kind == "GPU":
        found = [gpu.uuid or "" for gpu in host.gpus]
    else:
        found = [device.uuid for gpu in host.gpus for device in gpu.mig_devices]
    known = all(found) and (bool(found) or host.live)
    return [uuid.lower() for uuid in found] if known else None


def _absent(spec: ContainerSpec, host: HostView, kind: str) -> Iterator[tuple[str, Given]]:
    have = _uuids(host, kind)
    for name, given in wanted_names(spec) if have is not None else ():
        # The beginning of a UUID that is there is enough for the hook.
        there = any(uuid.startswith(name.lower()) for uuid in have or ())
        if not there and _UUID.fullmatch(name) and name.upper().startswith(kind):
            yield name, given


@rule(
    "gpu-uuid-absent",
    "A GPU of another host",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A UUID belongs to one card for good. Where that card is not there the start ends with "
    "an unknown device.",
    fix="Take the UUID that nvidia-smi -L prints on this host.",
    sources=(_CLI,),
)
def gpu_uuid_absent(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where every GPU of the host has a UUID that is known."""
    for name, given in _absent(spec, host, "GPU"):
        seen = f"{name} is none of the host's GPUs."
        yield Hit(given.at, seen, commands=("nvidia-smi -L",))


@rule(
    "mig-uuid-absent",
    "A MIG device that is not there any more",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="MIG devices are gone after a reboot or a reset until somebody makes them again, and "
    "what is made in another layout has other UUIDs. The start ends with an unknown device.",
    fix="Make the layout at boot, always the same (role mig does), and take the UUID that "
    "nvidia-smi -L prints; or name the place, as 0:0 (GPU:device), which a new layout keeps.",
    sources=(_CLI, "NVIDIA MIG user guide, persistence of instances"),
)
def mig_uuid_absent(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the UUIDs of the host's MIG devices are known."""
    for name, given in _absent(spec, host, "MIG"):
        count = sum(len(gpu.mig_devices) for gpu in host.gpus or ())
        seen = f"{name} is none of the host's {count} MIG devices."
        yield Hit(given.at, seen, commands=("nvidia-smi -L",))


@rule(
    "mig-device-absent",
    "A MIG device that the GPU does not have",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="0:1 is the second MIG device of the first GPU, both counted from 0. The start ends "
    "with an unknown device where there is none.",
    fix="Take a place that the GPU has, or a UUID that nvidia-smi -L prints.",
    sources=(_CLI, _MIG_GUIDE),
)
def mig_device_absent(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the GPUs are known, and of a GPU that is there its MIG devices too."""
    if host.gpus is None:
        return
    by_index = {gpu.index: gpu for gpu in host.gpus}
    for name, given in wanted_names(spec):
        match = _PLACE.fullmatch(name)
        if match is None:
            continue
        why = _why_absent(by_index.get(int(match.group(1))), int(match.group(2)), host.live)
        if why:
            seen = f"{name} is asked for, and {why.format(match.group(1))}."
            yield Hit(given.at, seen, commands=("nvidia-smi -L",))


def _why_absent(gpu: Gpu | None, device: int, live: bool) -> str:
    if gpu is None:
        return "the host has no GPU {}"
    if gpu.error or not (live or gpu.mig_devices):
        return ""
    if not gpu.mig:
        return "GPU {} is not in MIG mode"
    if any(each.index == device for each in gpu.mig_devices):
        return ""
    last = max((each.index for each in gpu.mig_devices), default=None)
    if last is None:
        return "GPU {} has no MIG device"
    return f"the last MIG device of GPU {{}} is number {last}"


@rule(
    "mig-uuid-old-form",
    "The name of a MIG device as drivers before R470 wrote it",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="MIG-GPU-<uuid>/<gi>/<ci> was the name up to R460. From R470 on each MIG device has a "
    "UUID of its own, MIG-<uuid>, and the hook finds nothing under the old name.",
    fix="Take the name from nvidia-smi -L, or name the place: 0:0 (GPU:device).",
    sources=("NVIDIA/nvidia-container-toolkit#203", _MIG_GUIDE),
    needs=(Needs("driver", ">=470"),),
    unknown=Severity.WARNING,
)
def mig_uuid_old_form(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """In requests and in NVIDIA_VISIBLE_DEVICES; CUDA itself still takes the old names."""
    for name, given in wanted_names(spec):
        if _OLD_FORM.fullmatch(name):
            yield Hit(given.at, f"{name} is asked for.", commands=("nvidia-smi -L",))
            return
