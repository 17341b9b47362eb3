# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on what a container may do to its host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule
from .run_values import (
    capabilities,
    devices,
    gpu_count,
    image,
    mounts,
    place,
    security_options,
    shown,
    subject,
)

_TYPE = "nvidia_container_t"


@rule(
    "privileged",
    "The container is privileged",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="privileged gives every device of the host, all capabilities and no syscall filter: "
    "whoever takes the container over has the host. GPUs do not need it.",
    fix="Drop it; give single devices with device or gpus, and single capabilities with cap-add.",
    sources=("docs.docker.com docker run --privileged", "moby oci/caps"),
    row="48",
)
def privileged(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note where nothing but registering binary formats with the kernel is done."""
    given = spec.last("privileged")
    if given and spec.switched_on("privileged"):
        name, _tag = image(spec)
        registers = re.search(r"(^|/)(qemu-user-static|binfmt|qemu-static)$", name)
        seen = f"{shown(given)} opens the whole host to {place(spec)}."
        yield Hit(given.at, seen, severity=Severity.INFO if registers else None)


@rule(
    "privileged-defeats-gpu-selection",
    "privileged gives every GPU, whichever was chosen",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A privileged container has the device nodes of all GPUs, so the choice of one has no "
    "effect, and a defective GPU that was left out is still probed.",
    fix="Drop privileged; give the single capability or device that is needed.",
    sources=("NVIDIA/nvidia-docker#764, #1083", "rapidsai/velox-testing PR #315"),
    cases=("CO-004", "CP-012"),
)
def privileged_defeats_gpu_selection(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Certain where the host has several GPUs; with one GPU there is nothing to choose."""
    chosen = _selection(spec)
    have = gpu_count(host)
    if chosen is None or not spec.switched_on("privileged") or have == 1:
        return
    yield Hit(
        chosen.at,
        f"{shown(chosen)} chooses GPUs, and privileged hands over all of them.",
        severity=None if have else Severity.WARNING,
        assumed=() if have else ("the host has more than one GPU",),
    )


@rule(
    "cap-sys-admin",
    "cap-add SYS_ADMIN",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="SYS_ADMIN is most of what root can do, and the usual way out of a container. CUDA "
    "does not need it; of the GPU tools only DCGM's profiling metrics do.",
    fix="Drop it, unless profiling metrics (DCGM_FI_PROF_*) are wanted.",
    sources=("capabilities(7)", "NVIDIA/dcgm-exporter README"),
    row="48",
)
def cap_sys_admin(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A FUSE mount inside the container cannot do without it."""
    if spec.switched_on("privileged"):
        return
    added = capabilities(spec)
    given = added.get("SYS_ADMIN") or added.get("ALL")
    if given:
        fuse = any(path == "/dev/fuse" for path, _given in devices(spec))
        severity = Severity.INFO if fuse else None
        yield Hit(given.at, f"{shown(given)} is given to {place(spec)}.", severity=severity)


@rule(
    "seccomp-unconfined",
    "No filter for system calls",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Without the seccomp profile every system call of the kernel is open to the container. "
    "GPU work runs under the default profile.",
    fix="Drop the option. NUMA policies need cap-add SYS_NICE, debuggers cap-add SYS_PTRACE: both "
    "are let through by the default profile then.",
    sources=("docs.docker.com seccomp", "moby profiles/seccomp/default.json"),
    row="47",
)
def seccomp_unconfined(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The filter is off."""
    for key, value, given in security_options(spec):
        if (key, value) == ("seccomp", "unconfined"):
            yield Hit(given.at, f"{shown(given)} switches the filter off for {place(spec)}.")


@rule(
    "apparmor-unconfined",
    "No AppArmor profile",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The default profile keeps a container from mounting and from writing to /proc and "
    "/sys; some tools need that.",
    fix="Drop the option if the container does not mount anything.",
    sources=("docs.docker.com AppArmor",),
)
def apparmor_unconfined(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Weaker than the default."""
    for key, value, given in security_options(spec):
        if (key, value) == ("apparmor", "unconfined"):
            yield Hit(given.at, f"{shown(given)} is given to {place(spec)}.")


@rule(
    "selinux-label-disable",
    "SELinux separation is off",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="With label disable SELinux does not separate the container from the host or from "
    "other containers.",
    fix="Allow container_t the devices (setsebool -P container_use_devices on), or use a type "
    "made for them: label=type:nvidia_container_t with its policy module installed.",
    sources=("podman-run(1) --security-opt", "docs.nvidia.com container toolkit, troubleshooting"),
    row="142",
)
def selinux_label_disable(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """No difference where SELinux does not run."""
    off = host.selinux == "disabled"
    for key, value, given in security_options(spec):
        if key == "label" and value == "disable":
            severity = Severity.INFO if off else None
            yield Hit(given.at, f"{shown(given)} is given to {place(spec)}.", severity=severity)


@rule(
    "selinux-type-required",
    "The SELinux type must be installed on the host",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The type comes with a policy module of its own; on an enforcing host without it the "
    "container does not start. Without SELinux the option has no effect.",
    fix="Install the policy module first, or drop the option.",
    sources=(
        "zvonkok/nvidia-container-runtime hook/nvidia-container.te",
        "docs.nvidia.com container toolkit, troubleshooting",
    ),
    row="142",
    cases=("TK-034",),
)
def selinux_type_required(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """An error only where the host is known to enforce and to lack the type."""
    for key, value, given in security_options(spec):
        wanted = re.fullmatch(r"type:(\w+)", value) if key == "label" else None
        if wanted is None or wanted.group(1) in ("container_t", "spc_t"):
            continue
        name = wanted.group(1)
        if host.selinux in ("disabled", "permissive"):
            seen = f"{shown(given)} has no effect: SELinux is {host.selinux} here."
            yield Hit(given.at, seen, severity=Severity.INFO)
        elif host.selinux == "enforcing" and host.selinux_types is not None:
            if name not in host.selinux_types:
                yield Hit(
                    given.at,
                    f"{shown(given)}, and the host's policy has no type {name}.",
                    commands=(f"semodule -l | grep {name.removesuffix('_t')}",),
                )
        else:
            seen = f"{shown(given)}: an enforcing host must have the type {name}."
            yield Hit(given.at, seen, severity=Severity.INFO, assumed=("SELinux is not known",))


@rule(
    "host-network",
    "The container uses the host's network",
    Severity.INFO,
    reads=ContainerSpec,
    reason="Every port the container opens is open on the host, and it reaches what listens on "
    "localhost. NCCL over several hosts and service discovery often want it.",
    fix="Publish single ports instead where that is enough.",
    sources=("docs.docker.com host network driver",),
)
def host_network(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note."""
    given = spec.last("network")
    if given and given.value == "host":
        yield Hit(given.at, f"{shown(given)} gives {place(spec)} no network of its own.")


@rule(
    "ipc-host",
    "The container uses the host's IPC namespace",
    Severity.INFO,
    reads=ContainerSpec,
    reason="It sees the shared memory of the host and of every container that does the same, and "
    "they see its own. Servers with several GPU processes often want it for its size.",
    fix="Where size is all that is wanted, use shm-size.",
    sources=("docs.docker.com docker run --ipc",),
)
def ipc_host(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note."""
    given = spec.last("ipc")
    if given and given.value == "host":
        yield Hit(given.at, f"{shown(given)} gives {place(spec)} the host's shared memory.")


@rule(
    "pid-host",
    "The container sees the host's processes",
    Severity.INFO,
    reads=ContainerSpec,
    reason="Root in the container can signal and trace every process of the host. Monitors need "
    "it to tell whose a process on the GPU is.",
    fix="Drop it where nothing looks at other processes.",
    sources=("docs.docker.com docker run --pid",),
)
def pid_host(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note."""
    given = spec.last("pid")
    if given and given.value == "host":
        yield Hit(given.at, f"{shown(given)} is given to {place(spec)}.")


@rule(
    "ports-with-host-network",
    "Published ports have no effect with the host's network",
    Severity.INFO,
    reads=ContainerSpec,
    reason="There is nothing to forward: the container's ports are the host's. The engine "
    "discards the published ones.",
    fix="Drop the ports, or the host network.",
    sources=("moby daemon/daemon_unix.go verifyPlatformContainerSettings",),
)
def ports_with_host_network(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The engine only warns."""
    network, port = spec.last("network"), spec.last("publish")
    if network and port and network.value == "host":
        yield Hit(port.at, f"{shown(port)} stands beside {shown(network)}.")


@rule(
    "restart-with-rm",
    "restart together with rm",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A container that is removed when it ends cannot be restarted; the docker command "
    "refuses the two together.",
    fix="Keep one of the two.",
    sources=("docker/cli cli/command/container/opts.go",),
)
def restart_with_rm(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Refused by the command line."""
    given = spec.last("restart")
    by_command = spec.engine == "docker" and spec.how in ("run", "create")
    if given and by_command and spec.switched_on("rm") and given.value not in ("", "no"):
        yield Hit(given.at, f"{shown(given)} stands beside --rm.")


@rule(
    "docker-socket-mounted",
    "The container has the engine's socket",
    Severity.INFO,
    reads=ContainerSpec,
    reason="Whoever can write to the socket can start a privileged container, which is root on "
    "the host; read-only mounts do not change that.",
    fix="Give it only to tools that must have it, or put a filtering proxy between.",
    sources=("docs.docker.com Docker daemon attack surface",),
)
def docker_socket_mounted(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note: many tools of the trade need it."""
    for source, _target, given in mounts(spec):
        if source in ("/var/run/docker.sock", "/run/docker.sock"):
            yield Hit(given.at, f"{subject(spec)} mounts {source}.")


@rule(
    "broad-device-cgroup-rule",
    "A device rule for a whole class of devices",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The rule opens every device with that major number, also those plugged in later. Of "
    "NVIDIA's nodes only major 195 is fixed; those of nvidia-uvm and nvidia-caps are dynamic.",
    fix="Give single devices where they are known.",
    sources=("kernel admin-guide/devices.txt", "docs.docker.com --device-cgroup-rule"),
    row="27",
)
def broad_device_cgroup_rule(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A warning only where the rule opens all devices there are."""
    for given in spec.all("device-cgroup-rule"):
        match = re.fullmatch(r"\s*([abc])\s+(\S+):(\S+)\s+\w+\s*", given.value)
        if match and match.group(3) == "*":
            everything = match.group(2) == "*"
            what = "all devices" if everything else f"all devices of major {match.group(2)}"
            severity = Severity.WARNING if everything else None
            yield Hit(given.at, f"{shown(given)} opens {what}.", severity=severity)


@rule(
    "holds-gpu",
    "The container keeps the GPU in use",
    Severity.INFO,
    reads=ContainerSpec,
    reason="A monitor that runs all the time is a client of the GPU: while it runs, the MIG mode "
    "cannot change and the driver cannot be reloaded.",
    fix="Stop it before MIG changes, resets and driver upgrades, and start it again after them.",
    sources=("NVIDIA MIG user guide", "NVIDIA/gpu-operator driver manager"),
    cases=("MG-002", "RB-002"),
)
def holds_gpu(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Of exporters only: any job holds its GPU, a monitor holds all, always."""
    name, _tag = image(spec)
    if spec.image and re.search(r"(^|/)(dcgm-exporter|dcgm|nvidia_gpu_exporter)$", name):
        yield Hit(spec.image.at, f"{name} is a client of the GPU as long as it runs.")


def _selection(spec: ContainerSpec) -> Given | None:
    """Where single GPUs are chosen; None where all are asked for, or none."""
    for request in spec.gpus:
        if request.device_ids and not request.wants_all:
            return request.device_ids[0]
    visible = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    if visible and re.fullmatch(r"(GPU-|MIG-)?[0-9a-fA-F:,-]+", visible.value.strip()):
        named = Given(visible.value, visible.at, "NVIDIA_VISIBLE_DEVICES")
        return named if spec.asks_nvidia else None
    return next((g for g in spec.cdi_devices if not g.value.endswith("=all")), None)
