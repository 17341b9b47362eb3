# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on GPUs of pods: resources, privileges, what is set beside them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...secrets.shapes import Secret, classify, issuer
from ..documents.kubernetes import KubeContainer, Workload, is_gpu
from ..host import HostView
from ..model import Given, Hit, Needs, Severity
from ..registry import rule

_EXTENDED = "kubernetes.io/docs/tasks/administer-cluster/extended-resource-node"
_GPUS = "kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus"
_PLUGIN = "NVIDIA/k8s-device-plugin README.md"
_WHOLE = re.compile(r"\d+(\.0+)?k?|\d+000m")
_MIG = re.compile(r"nvidia\.com/mig-(\d+c\.)?\d+g\.\d+gb([.+-][a-z]+)*")
# Resources people write for memory or a part of a GPU, and whose they are.
_FOREIGN = {
    "nvidia.com/gpumem": "HAMi",
    "nvidia.com/gpumem-percentage": "HAMi",
    "nvidia.com/gpucores": "HAMi",
    "aliyun.com/gpu-mem": "Alibaba's gpushare",
    "tencent.com/vcuda-core": "Tencent's gpu-manager",
    "tencent.com/vcuda-memory": "Tencent's gpu-manager",
}
_INVENTED = re.compile(r"nvidia\.com/(gpu[._-]?memory|gpu[._-]mem|memory|vram|gpu[._-]compute|sm)$")
_OWN = (
    "k8s-device-plugin",
    "nvidia-device-plugin",
    "dcgm",
    "gpu-feature-discovery",
    "gpu-operator",
)
_OWN_PARTS = (*_OWN, "mig-manager", "node-feature-discovery", "mps-control-daemon", "validator")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTP]i?|[kmgtp]b?)?", re.IGNORECASE)


def _each(load: Workload) -> Iterator[tuple[KubeContainer, str]]:
    for container in load.containers:
        yield container, f"container {container.name}" if container.name else "the container"


def _opened(quantity: str) -> bool:
    """Is it a template's or a shell's text, not a quantity yet?"""
    return "{" in quantity or "$" in quantity


@rule(
    "k8s-gpu-fraction",
    "A part of a GPU as a resource",
    Severity.ERROR,
    reads=Workload,
    reason="Extended resources are whole numbers: the API server refuses 0.5 and 500m. Sharing is "
    "set up in the device plugin (time-slicing, MPS, MIG) and asked for by whole replicas.",
    fix="Write a whole number, and set up time-slicing, MPS or MIG in the device plugin.",
    sources=(_EXTENDED, _PLUGIN),
)
def gpu_fraction(load: Workload, host: HostView) -> Iterator[Hit]:
    """``nvidia.com/gpu: 0.5``."""
    for container, who in _each(load):
        for given in (*container.gpus.values(), *_gpu_requests(container).values()):
            if not _WHOLE.fullmatch(given.value.strip()) and not _opened(given.value):
                yield Hit(given.at, f"{who} asks for {given.value} of {given.spelled}.")


def _gpu_requests(container: KubeContainer) -> dict[str, Given]:
    return {name: given for name, given in container.requests.items() if is_gpu(name)}


@rule(
    "k8s-gpu-request-without-limit",
    "A GPU under requests that is not under limits",
    Severity.ERROR,
    reads=Workload,
    reason="An extended resource cannot be overcommitted: the API server wants it under limits, "
    "and where it is under requests as well the two have to be the same.",
    fix="Write the GPU under limits; requests is then the same by itself.",
    sources=(_GPUS, _EXTENDED),
)
def gpu_request_without_limit(load: Workload, host: HostView) -> Iterator[Hit]:
    """A request without a limit, or another number."""
    for container, who in _each(load):
        for name, given in _gpu_requests(container).items():
            limit = container.limits.get(name)
            if limit is None:
                fix = f"Write limits: {{{name}: {given.value}}}."
                yield Hit(given.at, f"{who} has {name} under requests and not limits.", fix)
            elif limit.value != given.value and not _opened(limit.value + given.value):
                seen = f"{who} requests {given.value} of {name} with a limit of {limit.value}."
                yield Hit(given.at, seen)


@rule(
    "k8s-gpu-memory-resource",
    "GPU memory or compute as a resource",
    Severity.WARNING,
    reads=Workload,
    reason="NVIDIA's device plugin offers GPUs and MIG devices, not their memory; a pod that asks "
    "for a resource nobody offers stays Pending. Labels of nodes (nvidia.com/gpu.memory) are for "
    "selecting nodes. Some other plugins offer memory, under names of their own.",
    fix="Ask for a MIG device of the wanted size, or select nodes by nvidia.com/gpu.memory.",
    sources=(_PLUGIN, "Project-HAMi/HAMi README.md"),
    row="61, 150",
)
def gpu_memory_resource(load: Workload, host: HostView) -> Iterator[Hit]:
    """``nvidia.com/gpu.memory: 8Gi``; the names of other plugins are said only."""
    for container, who in _each(load):
        for name, given in {**container.requests, **container.limits}.items():
            owner = _FOREIGN.get(name)
            if owner:
                seen = f"{who} asks for {name}, which only {owner} offers."
                yield Hit(given.at, seen, severity=Severity.INFO)
            elif _INVENTED.match(name):
                yield Hit(given.at, f"{who} asks for {name}, which no plugin of NVIDIA offers.")


@rule(
    "k8s-old-gpu-resource",
    "The GPU resource of Kubernetes before 1.8",
    Severity.ERROR,
    reads=Workload,
    reason="alpha.kubernetes.io/nvidia-gpu was removed in 1.11 with the code that offered it.",
    fix="Write nvidia.com/gpu, which the device plugin offers.",
    sources=(_GPUS,),
)
def old_gpu_resource(load: Workload, host: HostView) -> Iterator[Hit]:
    """``alpha.kubernetes.io/nvidia-gpu``."""
    for container, who in _each(load):
        given = container.limits.get("alpha.kubernetes.io/nvidia-gpu")
        if given is not None:
            fix = f"Write nvidia.com/gpu: {given.value}."
            yield Hit(given.at, f"{who} asks for {given.spelled}.", fix)


@rule(
    "k8s-mig-resource-name",
    "A MIG resource whose name no device plugin offers",
    Severity.ERROR,
    reads=Workload,
    reason="With mig-strategy=mixed the resources are called nvidia.com/mig-1g.10gb, as the "
    "profile is; a pod that asks for another name stays Pending. With mig-strategy=single they "
    "are nvidia.com/gpu.",
    fix="Write the profile as nvidia-smi mig -lgip shows it: nvidia.com/mig-1g.10gb.",
    sources=(_PLUGIN,),
)
def mig_resource_name(load: Workload, host: HostView) -> Iterator[Hit]:
    """``nvidia.com/mig-1g10gb``."""
    for container, who in _each(load):
        for name, given in {**container.requests, **container.limits}.items():
            if name.startswith("nvidia.com/mig-") and not _MIG.fullmatch(name):
                yield Hit(given.at, f"{who} asks for {name}.")


@rule(
    "k8s-several-mig-devices",
    "Several MIG devices for one container",
    Severity.INFO,
    reads=Workload,
    reason="A CUDA process uses one MIG device; the others stay idle unless the container starts "
    "one process for each.",
    fix="Ask for a bigger profile, or start one process per device.",
    sources=("docs.nvidia.com MIG user guide, device names and enumeration",),
)
def several_mig_devices(load: Workload, host: HostView) -> Iterator[Hit]:
    """More than one MIG device in the limits."""
    for container, who in _each(load):
        devices = {n: g for n, g in container.gpus.items() if n.startswith("nvidia.com/mig-")}
        counted = sum(int(g.value) for g in devices.values() if g.value.isdigit())
        if counted > 1:
            first, *_more = devices.values()
            yield Hit(first.at, f"{who} asks for {counted} MIG devices.")


@rule(
    "k8s-privileged-gpu",
    "A privileged container that asks for certain GPUs",
    Severity.WARNING,
    reads=Workload,
    reason="A privileged container sees every device of its node: what the scheduler gave it has "
    "no effect, and it can disturb the jobs of others.",
    fix="Remove privileged; add the one capability that is needed.",
    sources=(_GPUS,),
)
def privileged_gpu(load: Workload, host: HostView) -> Iterator[Hit]:
    """``privileged: true`` beside a GPU under limits; NVIDIA's own parts need it."""
    for container, who in _each(load):
        if container.gpus and container.is_privileged and not container.speaks_of(*_OWN_PARTS):
            at = container.privileged.at if container.privileged else container.at
            yield Hit(at, f"{who} is privileged and asks for {', '.join(container.gpus)}.")


@rule(
    "k8s-device-host-path",
    "A device as a hostPath without the right to open it",
    Severity.WARNING,
    reads=Workload,
    reason="A hostPath shows the node of a device, the container's device cgroup still refuses to "
    "open it: Operation not permitted. Only a device plugin, CDI or privileged gives the right.",
    fix="Ask for the device plugin's resource under limits, and remove the hostPath.",
    sources=("kubernetes/kubernetes#5607", "kernel admin-guide/cgroup-v2 device controller"),
)
def device_host_path(load: Workload, host: HostView) -> Iterator[Hit]:
    """``hostPath: /dev/nvidia0`` in a pod that is not privileged and has no device plugin's GPU."""
    gpus = ("/dev/nvidia", "/dev/dri", "/dev/kfd", "/dev/accel")
    for container, who in _each(load):
        if container.is_privileged or container.gpus or container.init:
            continue
        if any("/" in name for name in container.limits):
            continue  # another plugin's resource may bring the device
        for volume in dict.fromkeys(container.mounts.values()):
            path = load.host_paths.get(volume)
            if path is not None and path.value.startswith(gpus):
                yield Hit(path.at, f"{who} mounts {path.value} and is not privileged.")


@rule(
    "k8s-visible-devices-bypass",
    "GPUs by a variable, past the scheduler",
    Severity.INFO,
    reads=Workload,
    reason="NVIDIA_VISIBLE_DEVICES works where the NVIDIA runtime is the default or the runtime "
    "class, without the scheduler knowing: on a node with other GPU pods they share GPUs unseen. "
    "Images made from CUDA images set it to all by themselves.",
    fix="Ask for nvidia.com/gpu under limits. On shared nodes set "
    "accept-nvidia-visible-devices-envvar-when-unprivileged = false in the toolkit's config.toml.",
    sources=("NVIDIA/k8s-device-plugin#87",),
    row="161",
    cases=("CO-005",),
)
def visible_devices_bypass(load: Workload, host: HostView) -> Iterator[Hit]:
    """``NVIDIA_VISIBLE_DEVICES: all`` without a GPU under limits."""
    for container, who in _each(load):
        given = container.env.get("NVIDIA_VISIBLE_DEVICES")
        if given is None or container.gpus or container.speaks_of(*_OWN_PARTS):
            continue
        if given.value in ("", "none", "void") or "=" in given.value or _opened(given.value):
            continue
        yield Hit(given.at, f"{who} sets NVIDIA_VISIBLE_DEVICES to {given.value}.")


@rule(
    "k8s-cuda-index-beyond-limit",
    "CUDA_VISIBLE_DEVICES names a GPU that the pod does not get",
    Severity.ERROR,
    reads=Workload,
    reason="Inside a pod the GPUs it was given are counted from 0, whatever their numbers on the "
    "node are. An index at or above the limit leaves CUDA without a device.",
    fix="Remove CUDA_VISIBLE_DEVICES: the device plugin chooses.",
    sources=("docs.nvidia.com CUDA programming guide, CUDA environment variables", _GPUS),
)
def cuda_index(load: Workload, host: HostView) -> Iterator[Hit]:
    """``CUDA_VISIBLE_DEVICES: "1"`` with one GPU under limits."""
    for container, who in _each(load):
        given = container.env.get("CUDA_VISIBLE_DEVICES")
        limit = container.limits.get("nvidia.com/gpu")
        if given is None or limit is None or not limit.value.isdigit():
            continue
        first = given.value.split(",")[0].strip()
        # CUDA reads up to the first index that is not there: only a wrong first one is fatal.
        if first.isdigit() and int(first) >= int(limit.value) > 0:
            seen = f"{who} gets {limit.value} GPU and sets CUDA_VISIBLE_DEVICES to {given.value}."
            yield Hit(given.at, seen)


@rule(
    "k8s-shm",
    "Several GPUs and 64 MiB of shared memory",
    Severity.INFO,
    reads=Workload,
    reason="A pod has 64 MiB at /dev/shm; NCCL and the workers of data loaders need more with "
    "several GPUs: bus error, or unhandled system error.",
    fix="Mount an emptyDir with medium: Memory at /dev/shm.",
    sources=("NVIDIA/nccl docs troubleshooting, shared memory",),
)
def shared_memory(load: Workload, host: HostView) -> Iterator[Hit]:
    """Two GPUs or more, and nothing mounted at /dev/shm."""
    for container, who in _each(load):
        counted = sum(int(g.value) for g in container.gpus.values() if g.value.isdigit())
        if counted > 1 and not load.fragment and "/dev/shm" not in container.mounts:
            first, *_more = container.gpus.values()
            yield Hit(first.at, f"{who} asks for {counted} GPUs and mounts nothing at /dev/shm.")


@rule(
    "k8s-host-memory-cache",
    "Caches in host memory above the limit",
    Severity.ERROR,
    reads=Workload,
    reason="Each runner of the server keeps its prompt cache in host memory, so that runners times "
    "cache has to be below the memory limit: otherwise the kernel ends the server (exit 137) while "
    "the GPU's memory is free.",
    fix="Lower LLAMA_ARG_CACHE_RAM or OLLAMA_MAX_LOADED_MODELS, or raise limits.memory.",
    sources=("rwlove/home-ops#13936", "ggml-org/llama.cpp tools/server README --cache-ram"),
    cases=("ME-010",),
)
def host_memory_cache(load: Workload, host: HostView) -> Iterator[Hit]:
    """``LLAMA_ARG_CACHE_RAM`` (MiB) times the runners against ``limits.memory``."""
    for container, who in _each(load):
        cache, limit = container.env.get("LLAMA_ARG_CACHE_RAM"), container.limits.get("memory")
        if cache is None or limit is None or not cache.value.isdigit():
            continue
        runners = container.env.get("OLLAMA_MAX_LOADED_MODELS")
        many = int(runners.value) if runners is not None and runners.value.isdigit() else 1
        wanted, allowed = int(cache.value) * max(many, 1), mib(limit.value)
        if allowed is not None and wanted > allowed:
            seen = f"{who}: {many} x {cache.value} MiB of cache, and limits.memory {limit.value}."
            yield Hit(
                limit.at, seen, f"Raise limits.memory above {wanted} MiB, or lower the cache."
            )


def mib(quantity: str) -> float | None:
    """A Kubernetes quantity of memory in MiB; None for what is none."""
    match = _SIZE.fullmatch(quantity.strip())
    if match is None:
        return None
    unit = (match.group(2) or "").lower()
    base = 1024.0 if unit.endswith("i") else 1000.0
    power = "kmgtp".find(unit[:1]) + 1 if unit else 0
    return float(match.group(1)) * base**power / 1024**2


@rule(
    "mig-mixed-needs-management-devices",
    "A device plugin for MIG without the management devices",
    Severity.WARNING,
    reads=Workload,
    reason="With mig-strategy mixed or single the device plugin reads MIG's state through "
    "/dev/nvidia-caps. Toolkit 1.18 and newer inject GPUs by CDI and leave these nodes out, so "
    "that the plugin fails with insufficient permissions unless it is privileged.",
    fix="Run it privileged; or generate a management specification and set "
    "NVIDIA_VISIBLE_DEVICES=management.nvidia.com/gpu=all.",
    sources=("NVIDIA/nvidia-container-toolkit#1740",),
    needs=(Needs("toolkit", ">=1.18.0"),),
    cases=("TK-033",),
)
def mig_mixed_unprivileged(load: Workload, host: HostView) -> Iterator[Hit]:
    """``MIG_STRATEGY`` set, all GPUs visible, and said not to be privileged."""
    command = (
        "nvidia-ctk cdi generate --mode=management --vendor=management.nvidia.com "
        "--output=/var/run/cdi/management-nvidia.yaml"
    )
    for container, who in _each(load):
        strategy, visible = (
            container.env.get(name) for name in ("MIG_STRATEGY", "NVIDIA_VISIBLE_DEVICES")
        )
        if strategy is None or visible is None or container.privileged is None:
            continue
        wanted = strategy.value in ("mixed", "single") and visible.value == "all"
        if wanted and not container.is_privileged:
            seen = f"{who} has MIG_STRATEGY={strategy.value} and is not privileged."
            yield Hit(container.privileged.at, seen, commands=(command,))


@rule(
    "k8s-literal-secret",
    "A secret in plain text in a manifest",
    Severity.WARNING,
    reads=Workload,
    reason="A manifest is kept in version control and shown to whoever may read the pod.",
    fix="Put it into a Secret and name it: valueFrom.secretKeyRef.",
    sources=("kubernetes.io/docs/concepts/configuration/secret",),
    row="168",
)
def literal_secret(load: Workload, host: HostView) -> Iterator[Hit]:
    """A recognisable token (a risk), or a value under the name of a secret (said only)."""
    for container, _who in _each(load):
        for name, given in container.env.items():
            kind = classify(name, given.value)
            if kind is Secret.TOKEN:
                yield Hit(given.at, f"{name} is a {issuer(given.value)} in plain text.")
            elif kind is Secret.LITERAL:
                seen = f"{name} has its value in plain text."
                yield Hit(given.at, seen, severity=Severity.INFO)
        for word in container.words:
            made_by = issuer(word.value)
            if made_by:
                yield Hit(word.at, f"The command has a {made_by} in plain text.")
