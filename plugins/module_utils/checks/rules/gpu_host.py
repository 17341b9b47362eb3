# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on which GPUs are asked for, against those the host has. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from ..documents.container import ComposeFile, ContainerSpec, GpuRequest
from ..host import HostView
from ..model import Given, Hit, Needs, Position, Severity
from ..registry import rule
from .gpu_names import wanted_names
from .run_values import gpu_count, unsettled

_COUNT = "moby daemon/devices_nvidia_linux.go countToDevices"


def counted(request: GpuRequest) -> int | None:
    """How many GPUs a request counts; None for all, for ids and for what cannot be read."""
    if request.device_ids or request.count is None or request.wants_all:
        return None
    text = request.count.value.strip()
    return int(text) if re.fullmatch(r"\d{1,6}", text) else None


def wanted_indices(spec: ContainerSpec) -> list[tuple[int, Given]]:
    """Every GPU asked for by its number, and where."""
    names = wanted_names(spec)
    return [(int(name), given) for name, given in names if re.fullmatch(r"\d{1,4}", name)]


@rule(
    "gpu-index-absent",
    "A GPU that the host does not have",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="GPUs are numbered from 0; asking for one that is not there ends the start with an "
    "unknown device.",
    fix="Take the numbers or UUIDs that nvidia-smi -L prints.",
    sources=("NVIDIA/libnvidia-container src/cli/common.c", _COUNT),
    cases=("CO-008",),
)
def gpu_index_absent(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Exact where the host is known; of a host that is not known it says what it must have."""
    have = gpu_count(host)
    indices = wanted_indices(spec)
    if have is None:
        fixed = [(i, given) for i, given in indices if "$" not in given.spelled]
        if fixed and max(fixed, key=_first)[0] > 0:
            highest, given = max(fixed, key=_first)
            seen = f"GPU {highest} is asked for: the host must have at least {highest + 1} GPUs."
            yield Hit(given.at, seen, severity=Severity.INFO, assumed=("the host is not known",))
        return
    for index, given in indices:
        if index >= have:
            yield Hit(given.at, _absent(f"GPU {index}", have), commands=("nvidia-smi -L",))
    for request in spec.gpus:
        number = counted(request)
        if number is not None and number > have:
            yield Hit(request.at, _absent(f"{number} GPUs", have), commands=("nvidia-smi -L",))


@rule(
    "device-ids-from-variables",
    "The GPUs come from variables with defaults",
    Severity.INFO,
    reads=ContainerSpec,
    reason="Where nobody sets the variables the defaults count, and they name GPUs of the machine "
    "the file was written for.",
    fix="Set the variables in .env to GPUs that nvidia-smi -L prints.",
    sources=("NVIDIA-AI-Blueprints/rag deploy/compose/nims.yaml", _COUNT),
    cases=("CO-008", "F28"),
)
def device_ids_from_variables(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Nothing to say where the default is GPU 0, or where the host has them."""
    found = [(i, g) for i, g in wanted_indices(spec) if "$" in g.spelled and i > 0]
    have = gpu_count(host)
    if found and have is None:
        highest, given = max(found, key=_first)
        names = ", ".join(g.spelled for _i, g in found)
        seen = f"{names}: with the defaults the host must have at least {highest + 1} GPUs."
        yield Hit(given.at, seen, assumed=("the host is not known",))


@rule(
    "count-means-index-0",
    "A count is the first GPUs, not free ones",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The engine turns a count of n into the GPUs 0 to n-1 and keeps no record: two "
    "containers that ask for one GPU each get the same one.",
    fix="Name the GPUs by id or UUID where several containers share the host.",
    sources=(_COUNT,),
    cases=("CO-007", "F14"),
)
def count_means_index_0(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Nothing to choose where the host has no more than that."""
    have = gpu_count(host)
    for request in spec.gpus:
        number = counted(request)
        if number and (have is None or number < have):
            last = f"0 to {number - 1}" if number > 1 else "0"
            yield Hit(request.at, f"A count of {number} always is GPU {last}.")


@rule(
    "count-shared-by-services",
    "Several services get the same GPU",
    Severity.WARNING,
    reads=ComposeFile,
    reason="A count of n always is the GPUs 0 to n-1, so the services share them while others "
    "are idle.",
    fix="Give each service its own device_ids.",
    sources=(_COUNT, "opea-project/GenAIExamples ChatQnA"),
    cases=("CO-007",),
)
def count_shared_by_services(file: ComposeFile, host: HostView) -> Iterator[Hit]:
    """Certain where the host has a GPU for each; with one GPU sharing is the only way."""
    have = gpu_count(host)
    found: dict[tuple[str, ...], list[tuple[str, Position]]] = defaultdict(list)
    for service in file.services:
        profiles = tuple(sorted(given.value for given in service.all("profiles")))
        for request in service.gpus[:1]:
            if counted(request):
                found[profiles].append((service.name, request.at))
    always = found.get((), [])
    for profiles, services in found.items():
        together = services if not profiles else [*always, *services]
        if len(together) < 2 or (have is not None and have < 2):
            continue
        names = " and ".join(name for name, _at in together)
        fix = "Write device_ids: ['0'], ['1'], … in place of count."
        yield Hit(
            together[-1][1],
            f"{names} each ask for a count, and all get GPU 0.",
            fix,
            severity=None if have else Severity.INFO,
            assumed=() if have else ("the host has more than one GPU",),
        )


@rule(
    "count-on-mig-host",
    "A whole GPU is asked for where it is split by MIG",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A number means the whole GPU; with MIG enabled that is only the parent, which CUDA "
    "cannot use: the request fails or yields no usable device.",
    fix="Name the MIG devices, by the UUID that nvidia-smi -L prints or as 0:0.",
    sources=("NVIDIA/nvidia-container-toolkit#1828", "NVIDIA MIG user guide"),
    cases=("MG-012",),
)
def count_on_mig_host(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the host's MIG state is known."""
    split = {gpu.index for gpu in host.gpus or () if gpu.mig}
    hits = {index: given.at for index, given in wanted_indices(spec) if index in split}
    for request in spec.gpus:
        for index in range(min(counted(request) or 0, 64)):
            if index in split:
                hits.setdefault(index, request.at)
    for index, at in sorted(hits.items()):
        yield Hit(at, f"GPU {index} is in MIG mode.", commands=("nvidia-smi -L",))


@rule(
    "mig-devices-one-process",
    "Several MIG devices for one container",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="One CUDA process uses one MIG device, the first it sees: device_count() is 1 however "
    "many are given.",
    fix="Start one process for each MIG device, each with its own CUDA_VISIBLE_DEVICES, or use a "
    "larger profile.",
    sources=("NVIDIA/k8s-device-plugin#201", "NVIDIA MIG user guide"),
    cases=("MG-004",),
)
def mig_devices_one_process(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """By UUID (MIG-…) or by number (0:1)."""
    lists = [([g.value for g in r.device_ids], r.at) for r in spec.gpus]
    visible = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    if visible:
        lists.append((visible.value.split(","), visible.at))
    names = [(g.value.partition("=")[2], g.at) for g in spec.cdi_devices]
    if names:
        lists.append(([name for name, _at in names], names[0][1]))
    for ids, at in lists:
        mig = [i.strip() for i in ids if re.fullmatch(r"(?i:mig-(?!\d+g\.)\S+)|\d+:\d+", i.strip())]
        if len(mig) > 1:
            yield Hit(at, f"{len(mig)} MIG devices are given: {', '.join(mig)}.")
            return


@rule(
    "cuda-visible-devices-isolation",
    "CUDA_VISIBLE_DEVICES does not keep GPUs out",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The variable only filters what a well-behaved process lists: the container has every "
    "GPU.",
    fix="Where isolation is meant, ask for the GPUs themselves: --gpus '\"device=0,1\"'.",
    sources=("CUDA programming guide, environment variables", "NVIDIA/nvidia-docker#764"),
    cases=("CO-009",),
)
def cuda_visible_devices_isolation(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note."""
    given = spec.env.get("CUDA_VISIBLE_DEVICES")
    if given and given.value and _wants_all(spec):
        yield Hit(given.at, f"CUDA_VISIBLE_DEVICES is {given.value}, and all GPUs are given.")


@rule(
    "cuda-visible-devices-renumbered",
    "CUDA_VISIBLE_DEVICES names a GPU that the container does not have",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Inside the container the GPUs it was given are numbered from 0 again. A number beyond "
    "them hides that GPU and all that follow in the list; if it is the first, CUDA finds none.",
    fix="Drop CUDA_VISIBLE_DEVICES, or count from 0.",
    sources=("CUDA programming guide, environment variables", "NVIDIA/libnvidia-container"),
)
def cuda_visible_devices_renumbered(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The host's numbers given twice, once too often."""
    given = spec.env.get("CUDA_VISIBLE_DEVICES")
    number = _how_many(spec)
    if given is None or not number or spec.switched_on("privileged"):
        return
    parts = [part.strip() for part in given.value.split(",")]
    if all(re.fullmatch(r"\d{1,4}", part) for part in parts):
        beyond = [part for part in parts if int(part) >= number]
        if beyond:
            gets = "one GPU, number 0" if number == 1 else f"{number} GPUs, 0 to {number - 1}"
            seen = f"CUDA_VISIBLE_DEVICES is {given.value}, and the container has {gets}."
            none_left = parts[0] == beyond[0]
            yield Hit(given.at, seen, severity=None if none_left else Severity.WARNING)


@rule(
    "gpus-flag-and-systemd-reload",
    "The GPU can be lost when systemd reloads",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Before Docker 29.2 --gpus goes through NVIDIA's hook, which opens the device nodes "
    "behind the back of runc and systemd: systemctl daemon-reload, docker update or any change of "
    "the unit takes them away, and the container reports 'Failed to initialize NVML: Unknown "
    "Error'.",
    fix="Use a CDI device, --device nvidia.com/gpu=all (Docker 25 and newer, features.cdi on), or "
    "the nvidia runtime of toolkit 1.18 and newer.",
    sources=(
        "docs.nvidia.com container toolkit, troubleshooting",
        "NVIDIA/nvidia-container-toolkit#48, #1744",
        "moby daemon/devices_nvidia_linux.go",
    ),
    needs=(Needs("docker", "<29.2"),),
    unknown=Severity.INFO,
    cases=("CG-001", "CG-002", "F06"),
)
def gpus_flag_and_systemd_reload(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Seen from the container: a warning where the host is known to use systemd's driver."""
    if host.cgroup_driver == "cgroupfs" or spec.engine != "docker":
        return
    for request in spec.gpus:
        driver = request.driver.value if request.driver else ""
        odd = any(re.search(r"[+;/]|mig-\d", g.value) for g in request.device_ids)
        if driver in ("", "nvidia") and not request.errors and not odd:
            known = host.cgroup_driver == "systemd"
            assumed = () if known else ("the cgroup driver is systemd",)
            severity = None if known else Severity.INFO
            yield Hit(request.at, _how(request), severity=severity, assumed=assumed)


@rule(
    "gpus-all-with-claim",
    "A claim for certain GPUs, and all of them given",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="The claim asks the scheduler for some GPUs, and the request hands over every one, so "
    "the lease keeps nobody out.",
    fix="Drop the request; the scheduler adds the GPUs it chose.",
    sources=("moby daemon/devices_nvidia_linux.go",),
    row="62",
)
def gpus_all_with_claim(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A claim for certain GPUs, and all of them given."""
    named = [*spec.annotations.items(), *spec.labels.items()]
    claim = next((g for key, g in named if re.fullmatch(r"steadygpu\.\S*claim", key)), None)
    if claim and _wants_all(spec) and "count=all" not in claim.value:
        yield Hit(claim.at, "The container has a claim and asks for all GPUs.")


def _first(pair: tuple[int, Given]) -> int:
    return pair[0]


def _absent(what: str, have: int) -> str:
    return f"{what} asked for, and the host has {have or 'none'}."


def _how(request: GpuRequest) -> str:
    asked = f"--gpus {request.raw}" if request.how == "--gpus" else f"The {request.how}"
    return f"{asked} goes through NVIDIA's hook."


def _wants_all(spec: ContainerSpec) -> bool:
    visible = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    by_name = visible is not None and visible.value == "all" and spec.asks_nvidia
    return by_name or any(request.wants_all for request in spec.gpus)


def _how_many(spec: ContainerSpec) -> int | None:
    """How many GPUs it is given; None where that is not certain."""
    if len(spec.gpus) > 1 or spec.cdi_devices:
        return None
    runtime, visible = spec.last("runtime"), spec.env.get("NVIDIA_VISIBLE_DEVICES")
    parts = [part.strip() for part in visible.value.split(",")] if visible else []
    named = all(re.fullmatch(r"\d{1,4}|GPU-[0-9a-f-]+", part) for part in parts)
    by_variable = len(parts) if parts and named else None
    if not spec.gpus:
        return by_variable if runtime and runtime.value.startswith("nvidia") else None
    ids = [given.value for given in spec.gpus[0].device_ids]
    if any(unsettled(text) or text == "all" for text in ids) or spec.gpus[0].errors:
        return None
    number = len(ids) or counted(spec.gpus[0])
    # The runtime may read the variable instead: certain only where both say the same.
    return number if not (runtime or parts) or number == by_variable else None
