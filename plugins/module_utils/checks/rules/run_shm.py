# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on a container's shared memory. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule
from .run_values import command_text, gpu_count, image, mounts, shown, size, unsettled, write

_DEFAULT = 64 << 20  # moby's default-shm-size

# Images whose own documents ask for shared memory once several GPUs or workers are used.
_SERVERS = re.compile(
    r"(^|/)(vllm-openai|vllm|vllm-rocm|sglang|text-generation-inference|lmdeploy|tensorrt-llm)$"
)
_OTHERS = re.compile(
    r"(^|/)(tritonserver|xinference|pytorch|tensorflow|nemo|rapidsai|ray|ray-ml|deepspeed)$"
)
_TRAINERS = re.compile(r"(^|/)pytorch$")
# One process for each GPU, or loader processes: both pass tensors through /dev/shm.
_LOADERS = re.compile(r"--(?:num[-_])?workers[ =]([1-9]\d*)\b")
_PARALLEL = re.compile(
    r"(?:--tensor-parallel-size|--tp-size|-tp|--tp|--num-shard|--nproc[-_]per[-_]node|--world-size)"
    r"[ =](\d+|gpu|auto)"
)


# Commands that print something and end.
_SAYS_ONLY = re.compile(r"(^|\s)(--help(=\w+)?|-h|--version|nvidia-smi|list-model-profiles)(\s|$)")


@rule(
    "shm-too-small",
    "64 MiB of shared memory for several GPU processes",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="NCCL and multi-process loaders exchange data through /dev/shm, which is 64 MiB unless "
    "it is set; when it is full the processes end with a bus error or 'unable to write to file "
    "</torch_…>'.",
    fix="Add shm-size (8g or more), or ipc host if the container is trusted.",
    sources=(
        "docs.vllm.ai deployment/docker",
        "docs.nvidia.com NCCL troubleshooting, shared memory",
        "moby daemon/config default-shm-size",
    ),
    cases=("F19",),
)
def shm_too_small(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Warned of only where several GPUs are used, or might be, by what is known to need it."""
    small = _small(spec)
    name, _tag = image(spec)
    if small is None or not (_several(spec, host) or _loads(spec, name)):
        return
    if _SAYS_ONLY.search(command_text(spec)):
        return
    parallel = _PARALLEL.search(command_text(spec))
    if _SERVERS.search(name) or _loads(spec, name) or (parallel and parallel.group(1) != "1"):
        at = small.at if small.value else (spec.image or Given("", spec.at)).at
        what = f"{shown(small)}" if small.value else "neither ipc host nor shm-size"
        fix = f"Add {write(spec, 'shm-size', '16g')}, or {write(spec, 'ipc', 'host')}."
        yield Hit(at, f"{name or 'the container'} gets {what}.", fix)


@rule(
    "shm-size-default",
    "Shared memory is 64 MiB",
    Severity.INFO,
    reads=ContainerSpec,
    reason="This image runs worker processes that pass data through /dev/shm; 64 MiB is enough "
    "for one process on one GPU.",
    fix="Add shm-size once several workers or GPUs are used.",
    sources=("moby daemon/config default-shm-size", "Triton python_backend README, shared memory"),
)
def shm_size_default(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note, where the warning is not sure."""
    name, _tag = image(spec)
    known = _OTHERS.search(name) or _SERVERS.search(name)
    small = _small(spec)
    if known and small is not None and _asks_gpus(spec) and not list(shm_too_small(spec, host)):
        at = spec.image.at if spec.image else spec.at
        yield Hit(at, f"{name} gets neither ipc host nor shm-size.")


@rule(
    "shm-size-with-ipc-host",
    "shm-size has no effect with the host's IPC namespace",
    Severity.INFO,
    reads=ContainerSpec,
    reason="With ipc host the container sees the host's own /dev/shm, whose size is the host's.",
    fix="Keep one of the two.",
    sources=("docs.docker.com docker run --ipc",),
)
def shm_size_with_ipc_host(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Harmless, and a sign that somebody expects otherwise."""
    given, ipc = spec.last("shm-size"), spec.last("ipc")
    if given and ipc and ipc.value == "host":
        yield Hit(given.at, f"{shown(given)} stands beside {shown(ipc)}.")


def _small(spec: ContainerSpec) -> Given | None:
    """The shm-size if it is 64 MiB or less, an empty one if none is given; None: large enough."""
    ipc = spec.last("ipc")
    if ipc and ipc.value not in ("", "private"):
        return None
    if any(target.rstrip("/") == "/dev/shm" for _source, target, _given in mounts(spec)):
        return None
    given = spec.last("shm-size")
    if given is None:
        return Given("", spec.at)
    value = size(given)
    return given if value is not None and value <= _DEFAULT else None


def _asks_gpus(spec: ContainerSpec) -> bool:
    return spec.asks_nvidia or any(g.value.startswith("/dev/kfd") for g in spec.all("device"))


def _loads(spec: ContainerSpec, name: str) -> bool:
    """Does it start loader processes, which pass their batches through /dev/shm?"""
    return bool(_TRAINERS.search(name) and _LOADERS.search(command_text(spec)))


def _several(spec: ContainerSpec, host: HostView) -> bool:
    """May it use more than one GPU? Every way to ask for exactly one says no."""
    if gpu_count(host) == 1:
        return False
    parallel = _PARALLEL.search(command_text(spec))
    if parallel:
        return parallel.group(1) != "1"
    for request in spec.gpus:
        ids = [given.value for given in request.device_ids]
        if request.wants_all or len(ids) > 1:
            return True
        if request.count and not unsettled(request.count.value):
            return request.count.value not in ("0", "1")
        if ids:
            return False
    visible = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    if visible and not unsettled(visible.value):
        return visible.value == "all" or "," in visible.value
    return any(given.value.endswith("=all") for given in spec.cdi_devices)
