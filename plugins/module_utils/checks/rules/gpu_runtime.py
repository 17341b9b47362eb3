# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on how a GPU reaches the container: the nvidia runtime, the hook, CDI, the variables.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec, GpuRequest
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule
from .run_values import command_text, devices, image, mounts, shown, subject, unsettled, write

_DOCS = "docs.nvidia.com container toolkit, specialized configurations with Docker"

# Images that encode and decode on the GPU.
_MEDIA = re.compile(
    r"(^|/)(jellyfin|plex|plexinc|pms-docker|emby|embyserver|frigate|tdarr|tdarr_node|unmanic|"
    r"immich-server|handbrake|ffmpeg|fileflows|obs|owncast|shinobi|zoneminder|agentdvr|"
    r"channels-dvr|stash|go2rtc)(-[a-z0-9-]+)?$"
)


@rule(
    "nvidia-variable-without-runtime",
    "NVIDIA_VISIBLE_DEVICES and nothing that reads it",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Only the nvidia runtime and NVIDIA's hook read the variable. Under plain runc it does "
    "nothing: the container starts, without an error and without a GPU.",
    fix="Add runtime nvidia, or ask for the GPUs with gpus.",
    sources=(_DOCS, "utkuozdemir/nvidia_gpu_exporter docs/INSTALL.md"),
    cases=("RT-030",),
)
def nvidia_variable_without_runtime(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Fine where nvidia is the engine's default runtime, as on Jetson and Unraid."""
    given = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    if given is None or spec.engine != "docker":
        return
    value = given.value.strip()
    if unsettled(value) or value in ("", "void", "none"):
        return
    if spec.gpus or spec.cdi_devices or spec.last("runtime") or spec.last("extends"):
        return
    default = host.default_runtime
    if default is not None and default.startswith("nvidia"):
        return
    # Who gives nodes by hand, or those of another vendor's card, means the variable as an extra.
    nodes = [path for path, _given in devices(spec)]
    by_hand = any(path.startswith(("/dev/nvidia", "/dev/dri", "/dev/kfd")) for path in nodes)
    by_hand = by_hand or spec.switched_on("privileged")
    severity = Severity.INFO if by_hand else None if default else Severity.WARNING
    fix = f"Add {write(spec, 'runtime', 'nvidia')}, or ask with {write(spec, 'gpus', 'all')}."
    yield Hit(
        given.at,
        f"{subject(spec)} sets NVIDIA_VISIBLE_DEVICES and has no runtime nvidia.",
        fix,
        severity=severity,
        assumed=() if default else ("the engine's default runtime is not nvidia",),
    )


@rule(
    "nvidia-runtime-without-variable",
    "The nvidia runtime and no NVIDIA_VISIBLE_DEVICES",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The runtime adds GPUs only where the variable is set. CUDA images set it themselves; "
    "with another image the container starts without a GPU.",
    fix="Add NVIDIA_VISIBLE_DEVICES=all, unless the image sets it.",
    sources=(_DOCS,),
    cases=("RT-030",),
)
def nvidia_runtime_without_variable(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note: what the image sets is not visible here."""
    runtime = spec.last("runtime")
    if runtime is None or not runtime.value.startswith("nvidia"):
        return
    asked = spec.gpus or spec.cdi_devices or "NVIDIA_VISIBLE_DEVICES" in spec.env
    files = spec.all("env-file")
    name, _tag = image(spec)
    by_mount = any("nvidia-container-devices" in target for _s, target, _g in mounts(spec))
    if not (asked or files or by_mount) and not re.search(r"(^|/)cuda$|^nvcr\.io/", name):
        yield Hit(runtime.at, f"{shown(runtime)} and no NVIDIA_VISIBLE_DEVICES.")


@rule(
    "visible-devices-beside-gpus",
    "NVIDIA_VISIBLE_DEVICES does not narrow --gpus",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The request sets the variable itself, after yours, and with CDI nothing reads it: the "
    "container has the GPUs of the request.",
    fix="Name the GPUs in the request: --gpus '\"device=0\"', or device_ids.",
    sources=("moby daemon/devices_nvidia_linux.go",),
)
def visible_devices_beside_gpus(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the two differ for certain: all in the request, some in the variable."""
    given = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    asks_all = any(request.wants_all for request in hook_requests(spec))
    if given is None or not asks_all or spec.last("runtime") or unsettled(given.value):
        return
    if given.value.strip() not in ("", "all", "void", "none"):
        seen = f"NVIDIA_VISIBLE_DEVICES is {given.value}, and all GPUs are asked for."
        yield Hit(given.at, seen)


@rule(
    "visible-none-gives-all",
    "NVIDIA_VISIBLE_DEVICES=none gives every GPU",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Toolkit 1.18 with just-in-time CDI does not leave the device nodes out for the value "
    "none.",
    fix="Update the toolkit to 1.19.1 or newer; until then write void, or use the runtime runc.",
    sources=("NVIDIA/nvidia-container-toolkit#1555, PR #1562, CHANGELOG v1.19.0-rc.2",),
    needs=(Needs("toolkit", ">=1.18.0,<1.19.0"),),
    unknown=Severity.INFO,
    cases=("TK-010",),
)
def visible_none_gives_all(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where something reads the variable."""
    given, runtime = spec.env.get("NVIDIA_VISIBLE_DEVICES"), spec.last("runtime")
    reads = runtime.value.startswith("nvidia") if runtime else _nvidia_default(host)
    if given and given.value.strip() == "none" and reads:
        yield Hit(given.at, "NVIDIA_VISIBLE_DEVICES is none, and the nvidia runtime reads it.")


@rule(
    "runtime-and-reservation",
    "Two ways to give the same GPU",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The nvidia runtime and the engine's own GPU request both inject the devices. It "
    "works; in plain CDI mode with a toolkit before 1.18 the second one fails.",
    fix="Keep one of the two.",
    sources=("jellyfin.org documents, nvidia", "NVIDIA/nvidia-container-toolkit#1246"),
    cases=("CO-010", "F33"),
)
def runtime_and_reservation(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Redundant."""
    runtime = spec.last("runtime")
    if runtime and runtime.value.startswith("nvidia") and hook_requests(spec):
        seen = f"{shown(runtime)} stands beside {spec.gpus[0].how}."
        yield Hit(runtime.at, seen)


@rule(
    "gpus-in-cdi-mode",
    "--gpus does not work with the toolkit in CDI mode",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A reservation is the Compose form of --gpus, and that calls NVIDIA's hook, which "
    "refuses when mode is cdi: 'invoking the NVIDIA Container Runtime Hook directly … is not "
    "supported'.",
    fix="Use runtime nvidia with NVIDIA_VISIBLE_DEVICES, the driver cdi with "
    "device_ids [nvidia.com/gpu=all], or toolkit 1.18 and newer.",
    sources=("NVIDIA/nvidia-container-toolkit#1246",),
    needs=(Needs("toolkit", "<1.18"),),
    cases=("TK-037", "TK-009"),
)
def gpus_in_cdi_mode(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the toolkit's mode is known."""
    if host.toolkit_mode == "cdi" and spec.engine == "docker":
        for request in hook_requests(spec):
            yield Hit(request.at, f"{request.how} is used, and the toolkit's mode is cdi.")


@rule(
    "gpus-without-hook",
    "The engine has nothing that serves --gpus",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The engine looks for nvidia-container-runtime-hook on its PATH when it starts; without "
    "it a GPU request ends with 'could not select device driver'.",
    fix="Install the NVIDIA Container Toolkit and restart the engine.",
    sources=("moby daemon/nvidia_linux.go", "seen on Docker 26.1.5 and 28.5.2"),
    needs=(Needs("docker", "<29.2"),),
    cases=("TK-001", "TK-003"),
)
def gpus_without_hook(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where it is known that the hook is missing."""
    amd = "amd" in host.vendors and "nvidia" not in host.vendors
    if host.hook_on_path is False and not amd and spec.engine == "docker":
        for request in hook_requests(spec):
            yield Hit(request.at, f"{request.how} is used, and the hook is not on the host.")


@rule(
    "gpus-on-amd-host",
    "--gpus before the engine knew AMD's cards",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Docker serves AMD cards through --gpus from 28.3 on, with amd-container-runtime "
    "installed; before that it ends with 'could not select device driver'.",
    fix="Give --device /dev/kfd --device /dev/dri, or a CDI device amd.com/gpu=all.",
    sources=("moby daemon/devices_amd_linux.go", "Docker Engine 28.3 release notes"),
    needs=(Needs("docker", "<28.3"),),
    row="148",
    cases=("AI-007",),
)
def gpus_on_amd_host(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the cards are known to be AMD's."""
    if "amd" in host.vendors and "nvidia" not in host.vendors:
        for request in hook_requests(spec):
            yield Hit(request.at, f"{request.how} is used, and the host's GPUs are AMD's.")


@rule(
    "gpus-without-gpu",
    "A GPU is asked for on a host that has none",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="There is no GPU on the bus that any driver could serve.",
    fix="Start the container on a host with a GPU, or drop the request.",
    sources=("moby daemon/devices_nvidia_linux.go",),
    cases=("TK-003",),
)
def gpus_without_gpu(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where that is known: by the bus, or by what was assumed."""
    if host.gpus == () and not host.vendors:
        for request in hook_requests(spec)[:1]:
            yield Hit(request.at, f"{request.how} is used, and the host has no GPU.")


@rule(
    "cdi-device-unknown",
    "A CDI device that no specification has",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The engine answers 'CDI device injection failed: unresolvable CDI devices'.",
    fix="Generate the specification again: "
    "nvidia-ctk cdi generate --output /var/run/cdi/nvidia.yaml",
    sources=("moby daemon/cdi.go", "seen on Docker 26.1.5 and 28.5.2"),
    cases=("MG-008",),
)
def cdi_device_unknown(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the host's CDI devices are known."""
    if host.cdi_devices is not None:
        for given in spec.cdi_devices:
            if given.value not in host.cdi_devices and not unsettled(given.value):
                yield Hit(
                    given.at, f"{given.value} is not there.", commands=("nvidia-ctk cdi list",)
                )


@rule(
    "cdi-not-enabled",
    "CDI is off in this engine",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Docker 25 to 28.1 injects CDI devices only with features.cdi set to true; older "
    "engines cannot.",
    fix='Add "features": {"cdi": true} to daemon.json and restart the engine.',
    sources=("moby daemon/cdi.go", "seen on Docker 26.1.5"),
    needs=(Needs("docker", "<28.2"),),
    unknown=Severity.INFO,
    row="P1",
)
def cdi_not_enabled(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """An error where it is known to be off, else a note."""
    if spec.engine != "docker" or host.cdi_enabled:
        return
    asked = [(given.at, shown(given)) for given in spec.cdi_devices]
    asked += [(r.at, "The driver cdi") for r in spec.gpus if r.driver and r.driver.value == "cdi"]
    for at, what in asked[:1]:
        known = host.cdi_enabled is False
        yield Hit(
            at,
            f"{what} needs CDI.",
            severity=None if known else Severity.INFO,
            assumed=() if known else ("whether features.cdi is on is not known",),
        )


@rule(
    "cdi-and-restart-policy",
    "A container with a CDI device that does not come back by itself",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Before 28.2 dockerd starts the containers with a restart policy before it knows CDI: "
    "after a reboot, or a restart of the engine without live-restore, they stay down with 'could "
    'not select device driver "cdi"\'. docker start works.',
    fix="Upgrade Docker to 28.2 or newer, or start the container from a unit that comes after "
    "docker.service.",
    sources=("moby/moby#49989", "moby/moby#49990", "seen on Docker 26.1.5"),
    needs=(Needs("docker", ">=25,<28.2"),),
    unknown=Severity.INFO,
)
def cdi_and_restart_policy(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Any policy that starts it again at the daemon's start."""
    policy = spec.last("restart")
    if policy is None or spec.engine != "docker":
        return
    cdi = [g.value for g in spec.cdi_devices]
    cdi += ["driver cdi" for r in spec.gpus if r.driver and r.driver.value == "cdi"]
    if cdi and policy.value.partition(":")[0] in ("always", "unless-stopped"):
        yield Hit(policy.at, f"{shown(policy)} stands beside {cdi[0]}.")


@rule(
    "video-capability",
    "Encoding and decoding need the capability video",
    Severity.INFO,
    reads=ContainerSpec,
    reason="NVENC and NVDEC libraries are mounted only with video among the driver capabilities. "
    "They come from the image's NVIDIA_DRIVER_CAPABILITIES, which is not visible here, from the "
    "variable, or from the request.",
    fix="Set NVIDIA_DRIVER_CAPABILITIES=compute,video,utility (or all).",
    sources=("docs.nvidia.com container toolkit, driver capabilities",),
    cases=("TK-012", "F33", "F39"),
)
def video_capability(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Of media servers and of NVENC in the command; a warning where video is surely missing."""
    name, _tag = image(spec)
    codec = re.search(r"\b\w*(nvenc|nvdec|cuvid)\b", command_text(spec))
    if not spec.asks_nvidia or spec.cdi_devices or spec.image is None:
        return
    if not codec and not _MEDIA.search(name):
        return
    requested = [word for request in spec.gpus for word in request.capabilities or ()]
    if "video" in requested:
        return
    given = spec.env.get("NVIDIA_DRIVER_CAPABILITIES")
    if given is None or unsettled(given.value):
        # NVIDIA's own CUDA images ask for compute and utility only.
        cuda = codec and re.search(r"(^|/)nvidia/cuda$", name) and not requested[1:]
        severity = Severity.WARNING if cuda else None
        if given is None:
            seen = f"{name} gets a GPU, and nothing here says which driver capabilities."
            yield Hit(spec.image.at, seen, severity=severity)
    elif given.value and not {"video", "all"} & set(re.split(r"[,\s]+", given.value)):
        seen = f"NVIDIA_DRIVER_CAPABILITIES is {given.value}, without video."
        yield Hit(given.at, seen, severity=Severity.WARNING)


def _nvidia_default(host: HostView) -> bool:
    return host.default_runtime is not None and host.default_runtime.startswith("nvidia")


def hook_requests(spec: ContainerSpec) -> list[GpuRequest]:
    """Requests for GPUs that name no other driver than NVIDIA's, and no CDI devices."""
    return [
        request
        for request in spec.gpus
        if (request.driver is None or request.driver.value in ("", "nvidia"))
        and not any("/" in given.value for given in request.device_ids)
    ]
