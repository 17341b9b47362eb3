# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on how GPUs are asked for: what the grammar of ``--gpus`` and of device reservations
refuses, and what it takes otherwise than meant. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec, GpuRequest
from ..host import HostView
from ..model import Given, Hit, Needs, Severity
from ..registry import rule
from .run_values import command_text, for_swarm, image, unsettled

_CLI = "docker/cli opts/gpus.go"
_MOBY = "moby daemon/devices_nvidia_linux.go"

# device=0,1 where the comma separates fields: the second id becomes a count.
_UNQUOTED = re.compile(r"(?:[^\"]*,)?device=([^,\"=]+(?:,[^,\"=]+)+)(?:,[a-z]+=.*)?")
_MIG_PROFILE = re.compile(r"(mig-)?\d+g\.\d+gb(\+\S+)?", re.IGNORECASE)

# What moby's driver "nvidia" answers to; the last six are also the toolkit's capabilities.
_DRIVER_CAPS = ("compute", "compat32", "graphics", "utility", "video", "display")
_KNOWN_CAPS = ("gpu", "nvidia", *_DRIVER_CAPS)


def unquoted(request: GpuRequest) -> list[str]:
    """The ids of a list that lacks its inner quotes; [] where that is not the fault."""
    match = _UNQUOTED.fullmatch(request.raw.strip()) if request.how == "--gpus" else None
    return match.group(1).split(",") if match else []


@rule(
    "gpus-unquoted-list",
    "A list of GPUs without its inner quotes",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The value is read as CSV, so the comma ends device=0 and the rest becomes a count: "
    "the engine answers 'cannot set both Count and DeviceIDs', or the command refuses the count.",
    fix="Put double quotes inside single ones: --gpus '\"device=0,1\"'.",
    sources=(_CLI, "seen on Docker 26.1.5 and 28.5.2"),
    row="136",
)
def gpus_unquoted_list(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A list of GPUs without its inner quotes."""
    for request in spec.gpus:
        ids = unquoted(request)
        if ids and spec.engine == "docker":
            fix = f"Write --gpus '\"device={','.join(ids)}\"'."
            yield Hit(request.at, f"--gpus {request.raw} has a comma outside of quotes.", fix)


@rule(
    "count-and-device-ids",
    "A count of GPUs and their ids at once",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The two exclude each other: newer Compose refuses the file, the engine refuses the "
    "container with 'cannot set both Count and DeviceIDs on device request'.",
    fix="Keep the ids to have certain GPUs, or the count.",
    sources=(_MOBY, "compose-spec/compose-go PR #689", "NVIDIA/nvidia-docker#1026"),
    cases=("CO-001", "F01"),
)
def count_and_device_ids(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Not where only quotes are missing: that has a rule of its own."""
    for request, error in _errors(spec, "count-and-ids"):
        if not unquoted(request):
            ids = ", ".join(given.value for given in request.device_ids)
            count = request.count.value if request.count else error.value
            yield Hit(error.at, f"The request has count {count} and the ids {ids}.")


@rule(
    "gpu-capabilities-missing",
    "A device reservation without capabilities",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="capabilities is what finds the device driver; Compose refuses a reservation without "
    "it.",
    fix="Add capabilities: [gpu].",
    sources=("docs.docker.com Compose GPU support", "docker/docs PR #12315"),
    cases=("CO-002",),
)
def gpu_capabilities_missing(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The one key that must be there."""
    for _request, error in _errors(spec, "capabilities-missing"):
        yield Hit(error.at, "The reservation has no capabilities.")


@rule(
    "gpu-capabilities-type",
    "capabilities is not a list",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The key takes a list of words; Compose refuses anything else.",
    fix="Write capabilities: [gpu].",
    sources=("compose-spec schema",),
)
def gpu_capabilities_type(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """In Compose; Ansible's nested list has a rule of its own."""
    if spec.how != "ansible":
        for _request, error in _errors(spec, "capabilities-type"):
            yield Hit(error.at, f"capabilities is {error.value or 'not a list'}.")


@rule(
    "device-driver-unknown",
    "A device driver that no engine has",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The drivers of a request are built into the engine: nvidia, cdi, and from Docker 28.3 "
    "on amd. Of any other name it says 'could not select device driver'.",
    fix="Write driver: nvidia, or leave it out.",
    sources=(_MOBY, "moby daemon/devices.go", "moby daemon/devices_amd_linux.go"),
)
def device_driver_unknown(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The names of runtimes and programs are none; a service for Swarm has no requests."""
    for request in spec.gpus:
        driver = request.driver
        if driver is None or spec.engine != "docker" or for_swarm(spec):
            continue
        if driver.value.strip() not in ("", "nvidia", "cdi", "amd") and not unsettled(driver.value):
            yield Hit(driver.at, f"The driver is {driver.value}.")


@rule(
    "gpu-capability-unknown",
    "A capability that no device driver has",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The engine looks for a driver that has every capability asked for; with an unknown "
    "word it answers 'could not select device driver'.",
    fix="Use gpu; besides it there are compute, utility, video, graphics, display and compat32.",
    sources=(_MOBY,),
)
def gpu_capability_unknown(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only of requests for NVIDIA's driver: others bring words of their own."""
    for request in spec.gpus:
        driver = request.driver.value if request.driver else ""
        words = request.capabilities or ()
        if driver not in ("", "nvidia") or not (driver or "gpu" in words):
            continue
        wrong = [word for word in words if word not in _KNOWN_CAPS and not unsettled(word)]
        if wrong:
            yield Hit(request.at, f"The request has the capability {', '.join(wrong)}.")


@rule(
    "gpus-unexpected-key",
    "A key that a GPU request does not have",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A request has driver, count, device (in Compose device_ids), capabilities and options, "
    "and nothing else; the command answers 'unexpected key'.",
    fix="Drop the key. GPU memory is limited by a MIG device, by MPS, or with driver 615 and newer "
    "by nvidia-smi memory-limits; compute by MPS or MIG.",
    sources=(_CLI, "seen on Docker 26.1.5 and 28.5.2: unexpected key 'memory'"),
    row="61",
)
def gpus_unexpected_key(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A key that a GPU request does not have."""
    for request, error in _errors(spec, "unexpected-key"):
        if not _profiles(request):
            yield Hit(error.at, f"The request has the key {error.value}.")


@rule(
    "gpus-bad-value",
    "A GPU request that cannot be read",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The value is CSV with fields key=value, each key once; a field without = is the "
    "count, a number or all.",
    fix="Write all, a number, or '\"device=0,1\"'.",
    sources=(_CLI,),
    row="136",
)
def gpus_bad_value(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Every other error of the grammar, once for each request."""
    seen = set()
    for request, error in _errors(spec, "bad-csv", "bad-count", "duplicate-key"):
        if not unquoted(request) and not _profiles(request) and request.at not in seen:
            seen.add(request.at)
            yield Hit(error.at, f"{request.how} {request.raw or error.value}: {_why(error)}.")


@rule(
    "gpus-mig-profile",
    "A MIG profile where the id of a device belongs",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Docker takes device ids and knows no profiles: the start fails on the unknown id, and "
    "dropping only that id would hand over the whole GPU. Devices are separated by commas inside "
    "the quotes; a semicolon separates nothing.",
    fix="Take the UUID that nvidia-smi -L prints for the MIG device, its number as 0:0 (GPU and "
    "device), or the CDI name nvidia.com/gpu=0:0.",
    sources=(_CLI, "NVIDIA MIG user guide", "docs.nvidia.com CDI support"),
    row="137, 138",
)
def gpus_mig_profile(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The articles' own examples."""
    for request in spec.gpus:
        named = _profiles(request)
        if named:
            what = ", ".join(named)
            yield Hit(
                request.at,
                f"The request names the profile {what}, not a device.",
                commands=("nvidia-smi -L",),
            )
    visible = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    parts = visible.value.split(",") if visible else []
    named = [part.strip() for part in parts if _MIG_PROFILE.fullmatch(part.strip())]
    if visible and named:
        seen = f"NVIDIA_VISIBLE_DEVICES names the profile {', '.join(named)}."
        yield Hit(visible.at, seen, commands=("nvidia-smi -L",))


@rule(
    "gpus-claim-in-device",
    "A claim where the id of a GPU belongs",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Docker takes everything after device= as one id, so +memory= and +compute= limit "
    "nothing: the start fails on an unknown device, and from Docker 29.2 on the second = makes it "
    "a CDI name that does not exist.",
    fix="Give the id alone. GPU memory is limited by a MIG device, by MPS, or with driver 615 and "
    "newer by nvidia-smi memory-limits; compute by MPS or MIG.",
    sources=(_CLI, "seen on Docker 26.1.5 and 28.5.2: taken as one device id"),
    row="61",
)
def gpus_claim_in_device(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The grammar of the articles."""
    for request in spec.gpus:
        for given in request.device_ids:
            if re.search(r"\+[a-z]+=|^uuid:", given.value, re.IGNORECASE):
                yield Hit(given.at, f"The id would be {given.value}.")
                break


@rule(
    "gpu-capabilities-without-compute",
    "The capabilities asked for leave CUDA out",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="As soon as one of NVIDIA's capabilities is named, the engine sets "
    "NVIDIA_DRIVER_CAPABILITIES to exactly those named: without compute the container has no "
    "libcuda.",
    fix="Name all that are needed, such as [gpu, compute, utility], or only gpu.",
    sources=(_MOBY, "docs.nvidia.com container toolkit, driver capabilities"),
    needs=(Needs("docker", "<29.2"),),
    unknown=Severity.INFO,
)
def gpu_capabilities_without_compute(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Not of tools that only look: utility is all they need."""
    name, _tag = image(spec)
    monitor = re.search(r"(exporter|dcgm|nvtop|smi|glances|telegraf|netdata)", name)
    if monitor or "nvidia-smi" in command_text(spec):
        return
    for request in spec.gpus:
        named = [word for word in request.capabilities or () if word in _DRIVER_CAPS]
        if named and "compute" not in named:
            yield Hit(request.at, f"The request names {', '.join(named)} and not compute.")


def _errors(spec: ContainerSpec, *kinds: str) -> Iterator[tuple[GpuRequest, Given]]:
    for request in spec.gpus:
        for error in request.errors:
            if error.spelled in kinds:
                yield request, error


def _profiles(request: GpuRequest) -> list[str]:
    """MIG profiles that stand where ids belong, also where the grammar has split them off."""
    words = [given.value for given in request.device_ids]
    if request.how == "--gpus":
        words += re.split(r"[,;=\"\s]+", request.raw)
    found = [word for word in words if _MIG_PROFILE.fullmatch(word.split(";")[0])]
    return list(dict.fromkeys(word.split(";")[0] for word in found))


def _why(error: Given) -> str:
    return {
        "bad-csv": "the quotes are not closed or stand in the wrong place",
        "bad-count": f"{error.value!r} is neither a number nor all",
        "duplicate-key": f"the key {error.value} stands twice",
    }[error.spelled]
