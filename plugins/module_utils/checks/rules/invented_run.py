# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on flags of docker run that do not exist, and on what is meant by them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_SOURCES = (
    "docker/cli cli/command/container/opts.go",
    "seen on Docker 26.1.5 and 28.5.2: unknown flag, 125",
)
_ENDS = "The command ends with 'unknown flag' and status 125, and nothing is started."


class Invention(NamedTuple):
    """Flags that articles and chat bots made up, or that belong to other tools, and what to
    write instead; ``row`` is that of the reality map.
    """

    id: str
    title: str
    flags: tuple[str, ...]
    reason: str
    fix: str
    row: str
    sources: tuple[str, ...] = ()


INVENTIONS = (
    Invention(
        "io-weight-flag",
        "--io-weight is not a Docker flag",
        ("io-weight", "io-weight-device"),
        "io.weight is the kernel's name; Docker's flag has the name of cgroup v1.",
        "Use --blkio-weight (10 to 1000) or --blkio-weight-device; it acts only where the disk has "
        "BFQ or iocost enabled.",
        "162",
        ("kernel admin-guide/cgroup-v2.rst io.weight",),
    ),
    Invention(
        "io-max-flag",
        "--io-max is not a Docker flag",
        ("io-max", "io-max-bandwidth", "io-max-iops"),
        "io.max is the kernel's name; Docker sets it with one flag for each kind of limit.",
        "Use --device-read-bps, --device-write-bps, --device-read-iops and --device-write-iops, "
        "each as /dev/nvme0n1:5mb.",
        "162",
        ("kernel admin-guide/cgroup-v2.rst io.max",),
    ),
    Invention(
        "memory-bandwidth-flag",
        "--memory-bandwidth is not a Docker flag",
        ("memory-bandwidth", "mem-bandwidth", "memory-bw", "intel-rdt"),
        "Docker has no way to limit memory bandwidth; CPUs with Intel RDT or AMD QoS do it through "
        "resctrl.",
        "Write a CDI device whose edits have intelRdt, and give it with --device (Docker 26.1 and "
        "newer).",
        "145",
        ("cncf-tags/container-device-interface SPEC.md 0.7.0", "kernel x86/resctrl.rst"),
    ),
    Invention(
        "gpu-memory-flag",
        "Docker has no flag for GPU memory",
        ("gpu-memory-limit", "gpu-memory", "gpu-mem", "gpu-mem-limit", "gpus-memory", "vram"),
        "Neither Docker nor the NVIDIA Container Toolkit limits GPU memory.",
        "Use a MIG device, MPS (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT), or with driver 615 and newer "
        "nvidia-smi memory-limits on the container's cgroup.",
        "152",
        ("docs.nvidia.com MPS memory partitioning", "NVIDIA MIG user guide"),
    ),
    Invention(
        "gpu-compute-flag",
        "Docker has no flag for a share of a GPU",
        ("gpu-cores", "gpu-compute", "gpu-percent", "gpu-share", "gpu-fraction", "gpu-util"),
        "The engine gives whole devices to a container, nothing less.",
        "Use a MIG device, or MPS (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE).",
        "61",
        ("docs.nvidia.com MPS", "NVIDIA MIG user guide"),
    ),
    Invention(
        "gpu-flag",
        "The flag is --gpus",
        ("gpu", "gpu-device", "gpu-devices", "gpu-id", "gpu-ids", "gpu-uuid", "gpu-count"),
        "GPUs are asked for with one flag, --gpus, whose value has fields.",
        "Write --gpus all, --gpus 2 or --gpus '\"device=0,1\"'.",
        "P2",
        ("docker/cli opts/gpus.go",),
    ),
    Invention(
        "cpu-burst-flag",
        "--cpu-burst is not a Docker flag",
        ("cpu-burst", "cpus-burst", "cpu-max-burst"),
        "The kernel has cpu.max.burst and the OCI specification burst, but Docker passes neither.",
        "Write cpu.max.burst of the container's cgroup after the start; it is at most the quota.",
        "170",
        ("kernel admin-guide/cgroup-v2.rst cpu.max.burst", "runtime-spec 1.1 config-linux"),
    ),
    Invention(
        "scheduler-flag",
        "Docker has no GPU or AI scheduler",
        (
            "ai-scheduler",
            "ai-metrics-interval",
            "feature-gates",
            "gpu-manager",
            "gpu-scheduler",
            "gpu-policy",
            "gpu-priority",
            "gpu-affinity",
            "slo",
            "qos",
            "priority",
        ),
        "Nothing of that name is in any release of Docker.",
        "Leave it out; scheduling is the work of something beside the engine.",
        "44, 45, 80",
        ("moby source, v27.5.0 and 29",),
    ),
    Invention(
        "numa-flag",
        "Docker has no flag for NUMA nodes",
        ("numa", "numa-node", "numa-nodes", "numa-policy", "cpunodebind", "membind"),
        "Docker binds to CPUs and to memory nodes by number; the names are those of numactl.",
        "Use --cpuset-cpus and --cpuset-mems with those of the GPU's node.",
        "89, 98",
        ("docs.docker.com docker run", "numactl(8)"),
    ),
    Invention(
        "mig-flag",
        "Docker has no flag for MIG",
        ("mig", "mig-device", "mig-profile", "mig-strategy", "mig-instance"),
        "A MIG device is given like a GPU; mig-strategy belongs to the Kubernetes device plugin.",
        "Write --gpus '\"device=MIG-…\"' with the UUID that nvidia-smi -L prints.",
        "137, 31",
        ("NVIDIA MIG user guide",),
    ),
    Invention(
        "realtime-flag",
        "Docker has no flag for real-time scheduling",
        ("rt-runtime", "rt-period", "scheduler", "sched", "sched-policy", "rtprio"),
        "The policy is set by the process itself; a container is only allowed to.",
        "Use --cap-add SYS_NICE --ulimit rtprio=N with --cpuset-cpus, and chrt inside.",
        "169, 170",
        ("docs.docker.com resource constraints",),
    ),
    Invention(
        "accelerator-flag",
        "Docker has no flag for accelerators other than GPUs",
        ("accelerator", "accelerators", "npu", "npus", "tpu", "tpus", "rdma", "cdi-device", "cdi"),
        "Devices of any vendor are given as nodes or as CDI devices.",
        "Use --device with the vendor's nodes or a CDI name; RDMA needs --device /dev/infiniband "
        "and --ulimit memlock=-1.",
        "141, 144",
        ("docs.docker.com CDI devices",),
    ),
    Invention(
        "podman-flag",
        "The flag is another tool's",
        ("cgroup-manager", "systemd-cgroup", "no-pivot", "hooks-dir", "cgroup-conf", "gidmap"),
        "cgroup-manager, hooks-dir and cgroup-conf are podman's, systemd-cgroup and no-pivot are "
        "runc's.",
        "Docker's cgroup driver is exec-opts native.cgroupdriver in daemon.json; --cgroup-parent "
        "names the slice.",
        "164, 57, 58",
        ("podman(1)", "runc(8)"),
    ),
    Invention(
        "kubernetes-flag",
        "The flag is Kubernetes'",
        ("requests", "limits", "cpu-manager-policy", "topology-manager-policy", "enable-cdi"),
        "Requests and limits are fields of a pod, manager policies are settings of the kubelet, "
        "and enable-cdi exists nowhere.",
        "Use --cpus, --memory and --cpuset-cpus.",
        "104, 32",
        ("kubernetes.io reference, kubelet",),
    ),
    Invention(
        "toolkit-flag",
        "Neither Docker nor the toolkit has this flag",
        ("set-gpu-opts", "require-gpu-uuid", "require-uvm", "load-kmods", "no-op"),
        "The flags are made up, load-kmods is a key of the toolkit's config.toml.",
        "Leave it out; name a GPU with --gpus device=GPU-…, load nvidia_uvm with "
        "nvidia-modprobe -u -c 0.",
        "23, 158, 166",
        ("NVIDIA/nvidia-container-toolkit cmd/",),
    ),
)
_KNOWN = frozenset(flag for invention in INVENTIONS for flag in invention.flags)


def _judge(flags: tuple[str, ...]) -> Callable[[ContainerSpec, HostView], Iterator[Hit]]:
    def judge(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
        for given in spec.unknown if _by_command(spec) else ():
            if _name(given.spelled) in flags:
                yield Hit(given.at, f"{given.spelled} is not a flag of docker {spec.how}.")

    return judge


for _invention in INVENTIONS:
    rule(
        _invention.id,
        _invention.title,
        Severity.ERROR,
        reads=ContainerSpec,
        reason=f"{_invention.reason} {_ENDS}",
        fix=_invention.fix,
        sources=(*_SOURCES, *_invention.sources),
        row=_invention.row,
    )(_judge(_invention.flags))


@rule(
    "unknown-flag",
    "Docker does not know this flag",
    Severity.ERROR,
    reads=ContainerSpec,
    reason=_ENDS,
    fix="Compare with docker run --help. Flags for the program in the container stand after the "
    "image.",
    sources=_SOURCES,
)
def unknown_flag(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Every other unknown flag; of podman and nerdctl a note, since their lists move on."""
    for given in spec.unknown if spec.how in ("run", "create") else ():
        if _name(given.spelled) not in _KNOWN or spec.engine != "docker":
            severity = None if spec.engine == "docker" else Severity.INFO
            seen = f"{given.spelled} is not a flag of {spec.engine} {spec.how}."
            yield Hit(given.at, seen, severity=severity)


def _by_command(spec: ContainerSpec) -> bool:
    return spec.engine == "docker" and spec.how in ("run", "create")


def _name(spelled: str) -> str:
    return spelled.lstrip("-").partition("=")[0].lower()
