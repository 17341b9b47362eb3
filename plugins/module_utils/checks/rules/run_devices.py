# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the device nodes a container is given: ROCm, DRM, RDMA, Gaudi. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule
from .run_values import (
    capabilities,
    command_text,
    devices,
    image,
    mounts,
    needs_host,
    place,
    shown,
    starts_as_root,
    subject,
    ulimit,
    unsettled,
    write,
)

_ROCM = ("ROCm installation documents, running containers", "ROCm/ROCm-docker#90, #116")


@rule(
    "rocm-render-group",
    "The render group is not passed as a number",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="/dev/kfd and /dev/dri/renderD* belong to the host's render group. A group name is "
    "looked up inside the image, where it has another number or is missing, and the kernel "
    "compares numbers. Root does not need the group.",
    fix="Pass the host's number: group-add $(stat -c %g /dev/kfd).",
    sources=_ROCM,
    cases=("AI-001",),
)
def rocm_render_group(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Names only: a warning where render is left out or the user is not root."""
    kfd = next((given for path, given in devices(spec) if path == "/dev/kfd"), None)
    groups = spec.all("group-add")
    if kfd is None or not groups or spec.switched_on("privileged"):
        return
    values = [given.value.strip() for given in groups]
    if any(value.isdigit() or unsettled(value) or value == "keep-groups" for value in values):
        return
    harmless = "render" in values and starts_as_root(spec)
    yield Hit(
        groups[-1].at,
        f"{subject(spec)} gets /dev/kfd and only names of groups: {', '.join(values)}.",
        severity=Severity.INFO if harmless else None,
        commands=("stat -c %g /dev/kfd",),
    )


@rule(
    "rocm-groups",
    "No group for /dev/kfd",
    Severity.INFO,
    reads=ContainerSpec,
    reason="/dev/kfd belongs to the host's render group: root in the container opens it, another "
    "user gets 'Permission denied'.",
    fix="If the image does not run as root, pass the number: group-add $(stat -c %g /dev/kfd).",
    sources=_ROCM,
    cases=("AI-001",),
)
def rocm_groups(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A warning where a user other than root is named."""
    kfd = next((given for path, given in devices(spec) if path == "/dev/kfd"), None)
    if kfd and not spec.all("group-add") and not spec.switched_on("privileged"):
        user = spec.last("user")
        other = user and re.fullmatch(r"[1-9]\d*", user.value.strip())
        seen = f"{subject(spec)} gets /dev/kfd and no group"
        yield Hit(
            kfd.at,
            f"{seen}, and runs as {shown(user)}." if user and other else f"{seen}.",
            severity=Severity.WARNING if other else None,
            commands=("stat -c %g /dev/kfd",),
        )


@rule(
    "render-group",
    "No group for /dev/dri",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The render nodes belong to the host's render group: root in the container opens them, "
    "another user needs the group's number.",
    fix="If the image does not run as root, pass the number with group-add.",
    sources=("systemd udev rules 50-udev-default.rules", "docs.docker.com --group-add"),
)
def render_group(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note; images that add the group themselves start as root."""
    paths = dict(devices(spec))
    dri = next((g for path, g in paths.items() if path.startswith("/dev/dri")), None)
    if dri is None or "/dev/kfd" in paths or spec.switched_on("privileged"):
        return
    groups = [given.value for given in spec.all("group-add")]
    if not any(value.isdigit() or unsettled(value) for value in groups):
        command = "stat -c '%n %g' /dev/dri/renderD*"
        seen = f"{subject(spec)} gets /dev/dri and no group by number."
        yield Hit(dri.at, seen, commands=(command,))


@rule(
    "drm-index-hardcoded",
    "The number of a DRM node is written down",
    Severity.INFO,
    reads=ContainerSpec,
    reason="card and render numbers follow the order in which drivers load: they differ from host "
    "to host and can change at a reboot.",
    fix="Compare with /dev/dri/by-path on the host.",
    sources=("kernel drm-uapi documents", "udev(7)"),
)
def drm_index_hardcoded(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """One note for a container, at the first such node."""
    for path, given in devices(spec):
        if re.fullmatch(r"/dev/dri/(card|renderD)\d+", path):
            yield Hit(given.at, f"{path} is given by number.", commands=("ls -l /dev/dri/by-path",))
            return


@rule(
    "rdma-incomplete",
    "RDMA without the nodes or the memory it needs",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="RDMA needs /dev/infiniband/uverbsN beside rdma_cm, and pins its buffers: without a "
    "raised memlock limit registering memory fails with 'Cannot allocate memory'. Libraries then "
    "fall back to TCP without a word.",
    fix="Give /dev/infiniband as a whole and ulimit memlock=-1.",
    sources=(
        "NVIDIA/cudf-spark PR #7632",
        "openucx/ucx PR #7221",
        "rdma-core libibverbs, ibv_reg_mr(3)",
    ),
    row="141",
    cases=("ME-008",),
)
def rdma_incomplete(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """RDMA without the nodes or the memory it needs."""
    found = [(path, given) for path, given in devices(spec) if "/dev/infiniband" in path]
    if not found or spec.switched_on("privileged"):
        return
    paths = [path for path, _given in found]
    whole = "/dev/infiniband" in paths
    if not whole and not any("uverbs" in path for path in paths):
        yield Hit(found[0][1].at, f"{', '.join(paths)} without /dev/infiniband/uverbsN.")
    limit = ulimit(spec, "memlock")
    if limit is None and not {"IPC_LOCK", "ALL"} & set(capabilities(spec)):
        fix = f"Add {write(spec, 'ulimit', 'memlock=-1')}."
        yield Hit(
            found[0][1].at,
            f"{paths[0]} and no memlock limit.",
            fix,
            assumed=("the engine sets no default-ulimits for memlock",),
        )


@rule(
    "gaudi-names",
    "Not the names Gaudi has",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="The vendor's runtime is called habana, its nodes are /dev/accel/accel*, and the cards "
    "are chosen with HABANA_VISIBLE_DEVICES; there is no /dev/gaudi and no runtime habanalabs.",
    fix="Write --runtime habana -e HABANA_VISIBLE_DEVICES=all.",
    sources=("HabanaAI/habana-container-runtime README",),
    row="147",
)
def gaudi_names(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Invented names, unless the host has a runtime of that name."""
    runtime = spec.last("runtime")
    if runtime and runtime.value == "habanalabs" and "habanalabs" not in (host.runtimes or ()):
        yield Hit(runtime.at, f"{shown(runtime)} is not the vendor's runtime.")
    for path, given in devices(spec):
        if re.fullmatch(r"/dev/gaudi\d*", path):
            yield Hit(given.at, f"{shown(given)}: the driver makes no such node.")


@rule(
    "rocm-host-libraries",
    "The host's ROCm is mounted into the container",
    Severity.INFO,
    reads=ContainerSpec,
    reason="Images bring their own ROCm; the host's libraries over it mix two versions. Only the "
    "kernel driver is shared. ROCR_VISIBLE_DEVICES chooses among the cards, it does not keep the "
    "others out.",
    fix="Drop the mount and give /dev/kfd and /dev/dri, or a CDI device amd.com/gpu=N.",
    sources=("ROCm/container-toolkit README", "ROCm installation documents"),
    row="148",
)
def rocm_host_libraries(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The old way."""
    for source, target, given in mounts(spec):
        if source.rstrip("/") == "/opt/rocm" and target.startswith("/opt/rocm"):
            yield Hit(given.at, f"{subject(spec)} mounts the host's /opt/rocm.")


@rule(
    "rocr-visible-devices-isolation",
    "ROCR_VISIBLE_DEVICES does not keep cards out",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The variable filters what the ROCm runtime lists; the container may unset it and has "
    "the nodes of all cards in /dev/dri.",
    fix="Give only the renderD node of the card that is meant, or a CDI device amd.com/gpu=N.",
    sources=("ROCm documents, GPU isolation techniques",),
    row="148",
)
def rocr_visible_devices_isolation(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A filter, not a fence."""
    whole = any(path == "/dev/dri" for path, _given in devices(spec))
    for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        given = spec.env.get(name)
        if given and given.value and (whole or name == "ROCR_VISIBLE_DEVICES"):
            yield Hit(given.at, f"{name} is set for {place(spec)}.")


@rule(
    "nvidia-nodes-incomplete",
    "Not all of NVIDIA's nodes",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="CUDA opens /dev/nvidiactl and /dev/nvidia-uvm beside the node of the GPU; without "
    "them cuInit fails. The driver's libraries have to come from somewhere too.",
    fix="Use gpus or a CDI device (nvidia.com/gpu=0) instead of single nodes.",
    sources=("NVIDIA/libnvidia-container src/nvc_info.c", "docs.nvidia.com CDI support"),
    row="27",
)
def nvidia_nodes_incomplete(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where nothing else gives the GPU to the container."""
    paths = dict(devices(spec))
    gpu = next((g for path, g in paths.items() if re.fullmatch(r"/dev/nvidia\d+", path)), None)
    other = spec.gpus or spec.cdi_devices or spec.last("runtime") or spec.switched_on("privileged")
    default = host.default_runtime is not None and host.default_runtime.startswith("nvidia")
    if gpu is None or other or default:
        return
    missing = [p for p in ("/dev/nvidiactl", "/dev/nvidia-uvm") if p not in paths]
    if missing:
        yield Hit(gpu.at, f"{shown(gpu)} without {' and '.join(missing)}.")


@rule(
    "gds-module-missing",
    "GPUDirect Storage without its module",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="cuFile needs the module nvidia_fs on the host and its nodes in the container; without "
    "them it falls back to the slower compatibility mode.",
    fix="Load nvidia_fs on the host and pass /dev/nvidia-fs*.",
    sources=("rapidsai/kvikio#283", "NVIDIA/gds-nvidia-fs#31"),
    cases=("IO-003",),
)
def gds_module_missing(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A warning where the host is known to lack the module, else a note."""
    loaded = host.modules.get("nvidia_fs")
    for path, given in devices(spec):
        if path.startswith("/dev/nvidia-fs") and not loaded:
            yield needs_host(
                given.at,
                loaded is False,
                f"{shown(given)}, and nvidia_fs is not loaded.",
                f"{shown(given)}: the host must have the module nvidia_fs loaded.",
                Severity.WARNING,
            )
            return


@rule(
    "runtime-not-defined",
    "The engine has no runtime of this name",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A runtime must be in the engine's configuration; the engine refuses the container "
    "with 'unknown or invalid runtime name'.",
    fix="Define it in daemon.json and reload the engine: nvidia-ctk runtime configure does it for "
    "the nvidia runtime.",
    sources=("moby daemon/runtime_unix.go", "seen on Docker 26.1.5 and 28.5.2"),
)
def runtime_not_defined(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the engine's runtimes are known."""
    given = spec.last("runtime")
    if given is None or host.runtimes is None or spec.engine != "docker":
        return
    # A containerd shim may be named in full without being defined.
    shim = given.value.startswith("io.containerd.")
    if given.value and not shim and not unsettled(given.value) and given.value not in host.runtimes:
        known = ", ".join(sorted(host.runtimes))
        yield Hit(given.at, f"{shown(given)}, and the engine has {known}.")


@rule(
    "numa-policy-needs-sys-nice",
    "A NUMA policy that the syscall filter refuses",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="The default seccomp profile lets set_mempolicy and mbind through only together with "
    "CAP_SYS_NICE: numactl in the container ends with 'Operation not permitted'.",
    fix="Add cap-add SYS_NICE, or bind from outside with cpuset-cpus and cpuset-mems.",
    sources=("moby profiles/seccomp/default.json", "moby/moby#37241", "vllm-project/vllm#24016"),
    row="98",
    cases=("CP-004",),
)
def numa_policy_needs_sys_nice(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note for servers that bind by themselves on some hosts."""
    free = {"SYS_NICE", "ALL"} & set(capabilities(spec)) or spec.switched_on("privileged")
    # Any profile of its own may allow what the default does not.
    if free or any(given.value.startswith("seccomp") for given in spec.all("security-opt")):
        return
    name, _tag = image(spec)
    words = list(spec.command) + list(spec.all("entrypoint"))
    numactl = next((w for w in words if re.search(r"(^|[\s/])numactl\s*(-|$)", w.value)), None)
    only_asks = re.search(r"numactl\s+(-H|--hardware|-s|--show)\b", command_text(spec))
    if numactl and not only_asks:
        fix = f"Add {write(spec, 'cap-add', 'SYS_NICE')}."
        yield Hit(numactl.at, f"{subject(spec)} runs numactl without SYS_NICE.", fix)
    elif spec.image and re.search(r"(^|/)vllm-openai$", name):
        seen = f"{name} sets a NUMA policy on hosts with several nodes, and has no SYS_NICE."
        yield Hit(spec.image.at, seen, severity=Severity.INFO)
