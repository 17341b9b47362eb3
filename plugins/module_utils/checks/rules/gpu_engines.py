# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on GPU requests that depend on the engine: podman, rootless, AMD, MIG tools. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule
from .gpu_runtime import hook_requests
from .run_values import capabilities, devices, image, mounts, shown, subject


@rule(
    "podman-gpus-ignored",
    "podman ignores --gpus",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Before podman 5 the flag is taken for the sake of Docker's scripts and does nothing: "
    "the container starts without a GPU.",
    fix="Give the CDI device: --device nvidia.com/gpu=all.",
    sources=(
        "podman-container-tools/podman#19330, PR #10430",
        "NVIDIA/nvidia-container-runtime#190",
    ),
    needs=(Needs("podman", "<5.0"),),
    unknown=Severity.INFO,
    cases=("TK-042",),
)
def podman_gpus_ignored(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Taken, and nothing happens."""
    if spec.engine == "podman":
        for request in spec.gpus:
            yield Hit(request.at, f"podman {spec.how} has --gpus {request.raw}.")


@rule(
    "gpus-rootless",
    "A rootless engine cannot set the device rules",
    Severity.INFO,
    reads=ContainerSpec,
    reason="NVIDIA's hook wants to change the device cgroup, which a rootless engine may not: the "
    "start fails unless no-cgroups is true in the toolkit's config.toml. CDI needs no such change.",
    fix="Set no-cgroups = true for this host, or use a CDI device.",
    sources=("docs.nvidia.com container toolkit, rootless mode",),
    row="117",
)
def gpus_rootless(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the engine is known to be rootless; the toolkit's file may be right already."""
    if host.rootless and spec.engine == "docker":
        for request in hook_requests(spec):
            yield Hit(request.at, f"{request.how} is used with a rootless engine.")


@rule(
    "mig-tools-need-privilege",
    "Managing MIG needs SYS_ADMIN",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="NVIDIA's hook refuses NVIDIA_MIG_CONFIG_DEVICES and NVIDIA_MIG_MONITOR_DEVICES in a "
    "container without CAP_SYS_ADMIN: 'cannot set MIG_CONFIG_DEVICES in non privileged container'.",
    fix="Add cap-add SYS_ADMIN to the tool that manages MIG, and drop the variable elsewhere.",
    sources=("NVIDIA/nvidia-container-toolkit cmd/nvidia-container-runtime-hook",),
)
def mig_tools_need_privilege(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Refused by the hook."""
    allowed = {"SYS_ADMIN", "ALL"} & set(capabilities(spec)) or spec.switched_on("privileged")
    for name in ("NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES"):
        given = spec.env.get(name)
        if given and given.value and not allowed:
            yield Hit(given.at, f"{subject(spec)} sets {name} and has no SYS_ADMIN.")


@rule(
    "rocm-nodes-incomplete",
    "ROCm needs /dev/kfd and /dev/dri",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="/dev/kfd alone is no GPU: the ROCm runtime opens the card's render node in /dev/dri "
    "too, and finds no device without it.",
    fix="Give --device /dev/kfd --device /dev/dri.",
    sources=("ROCm installation documents, running containers",),
)
def rocm_nodes_incomplete(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The node of the driver without one of a card."""
    paths = dict(devices(spec))
    mounted = any(target.startswith("/dev/dri") for _source, target, _given in mounts(spec))
    other = spec.cdi_devices or mounted or spec.switched_on("privileged")
    kfd = paths.get("/dev/kfd")
    if kfd and not other and not any(path.startswith("/dev/dri") for path in paths):
        yield Hit(kfd.at, f"{shown(kfd)} without /dev/dri.")


@rule(
    "gpus-with-rocm-image",
    "--gpus with an image for AMD",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Docker gives AMD cards to --gpus only from 28.3 on, with amd-container-runtime "
    "installed; before that the request is NVIDIA's.",
    fix="Give --device /dev/kfd --device /dev/dri, or a CDI device amd.com/gpu=all.",
    sources=("moby daemon/devices_amd_linux.go", "Docker Engine 28.3 release notes"),
    needs=(Needs("docker", "<28.3"),),
    unknown=Severity.INFO,
    row="148",
    cases=("AI-007",),
)
def gpus_with_rocm_image(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The image's name says what its libraries are for."""
    name, tag = image(spec)
    rocm = re.search(r"(^|[/:._-])(rocm|hipblas)\d*([/:._-]|$)", f"{name}:{tag}")
    if rocm and "amd" not in host.vendors:
        for request in hook_requests(spec)[:1]:
            yield Hit(request.at, f"{request.how} is used with {name}:{tag}.")
