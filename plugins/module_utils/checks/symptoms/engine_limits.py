# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits that the Docker daemon refuses by their value, or drops for want of a controller. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

_DAEMON = ("moby daemon/daemon_unix.go",)
_CONTROLLERS = "stat -fc %T /sys/fs/cgroup; cat /sys/fs/cgroup/cgroup.controllers /proc/cmdline"
_CHECK = "steadygpu check FILE"


def _value(rule: str, title: str, why: str, fix: str, command: str, *hints: str) -> Cause:
    """A value that the daemon refuses, whatever the host."""
    return Cause(
        id=rule,
        title=title,
        why=why,
        proof=_CHECK,
        shows="the flag and its value",
        fix=fix,
        commands=(command,),
        sources=_DAEMON,
        hints=hints,
    )


_BELOW_MINIMUM = _value(
    "memory-below-minimum",
    "The memory limit or reservation is below 6 MiB",
    "The daemon takes nothing smaller. A number without a unit is bytes: 512 is half a kilobyte.",
    "Write the unit: 512m, 64g.",
    "docker run -m 512m IMAGE",
)

_RESERVATION = _value(
    "memory-reservation-above-memory",
    "--memory-reservation is above --memory",
    "The reservation is the soft limit below the hard one.",
    "Lower the reservation, or raise the limit.",
    "docker run -m 64g --memory-reservation 48g IMAGE",
)

_SWAPPINESS_RANGE = _value(
    "memory-swappiness-range",
    "--memory-swappiness takes 0 to 100",
    "Other numbers are refused; -1 (the default) leaves it to the host.",
    "Leave it out, or give 0 to 100 on control groups v1.",
    "docker run -m 64g IMAGE",
    r"range",
)

_SWAPPINESS_V2 = Cause(
    id="memory-swappiness-ignored",
    title="Control groups v2 have no swappiness per container",
    why="memory.swappiness exists on v1 only; the daemon warns and drops the flag.",
    proof="stat -fc %T /sys/fs/cgroup",
    shows="cgroup2fs",
    fix="Leave the flag out; --memory-swap equal to --memory keeps a container out of swap.",
    commands=("docker run -m 64g --memory-swap 64g IMAGE",),
    sources=_DAEMON,
    hints=(r"discarded",),
    holds=holds.rules_out(holds.cgroup_version("2")),
)

_KERNEL_MEMORY = _value(
    "kernel-memory-ignored",
    "--kernel-memory is gone",
    "Kernel memory has no limit of its own on control groups v2; Docker deprecated the flag in "
    "20.10 and newer releases ignore or refuse it.",
    "Leave it out: --memory counts kernel memory too.",
    "docker run -m 64g IMAGE",
    r"kernel[- ]memory",
)

_CPUSET_FORM = _value(
    "cpuset-malformed",
    "The set of CPUs or nodes is not a list of ranges",
    "It is numbers and rising ranges with commas: 0-3,8,10-11.",
    "Write each range from the lower to the higher number.",
    "docker run --cpuset-cpus 0-3,8-11 IMAGE",
)

_PERIOD = _value(
    "cpu-period-range",
    "--cpu-period or --cpu-quota is out of range",
    "The period is 1000 to 1000000 microseconds, the quota at least 1000.",
    "Use --cpus, which needs neither.",
    "docker run --cpus 4 IMAGE",
)

_RT_PERIOD = _value(
    "cpu-rt-above-period",
    "--cpu-rt-runtime is above --cpu-rt-period",
    "A group cannot run longer than its period; the daemon refuses it before anything else.",
    "Give a runtime below the period, and on control groups v2 neither flag.",
    "docker run --cap-add SYS_NICE --ulimit rtprio=50 IMAGE",
)

_WEIGHT_RANGE = _value(
    "blkio-weight-range",
    "--blkio-weight takes 10 to 1000",
    "The number is a share, not a bandwidth.",
    "Give 10 to 1000; for bytes per second use --device-read-bps on a whole disk.",
    "docker run --blkio-weight 500 IMAGE",
)

_SHM_NEGATIVE = _value(
    "shm-size-invalid",
    "--shm-size is negative or no size",
    "It is an amount with a unit.",
    "Give a size, such as 8g.",
    "docker run --shm-size 8g IMAGE",
)

_IPC_MODE = _value(
    "ipc-mode-invalid",
    "The IPC mode is none that Docker knows",
    "Modes are none, private, shareable, host and container:NAME.",
    "--ipc=host, or --ipc=shareable on one container and --ipc=container:NAME on the others.",
    "docker run --ipc=host IMAGE",
)

_NO_CPU_CONTROLLER = Cause(
    id="cpu-controller-missing",
    title="The controller for this CPU limit is not there",
    why="The kernel lacks it, or cpu or cpuset are not delegated (rootless engines, slices): the "
    "daemon warns and drops the limit.",
    proof=_CONTROLLERS,
    shows="no cpu or cpuset in the list",
    fix="Delegate the controllers to the engine's unit (Delegate=yes, or Delegate=cpu cpuset io "
    "memory pids for user@.service), or boot a kernel that has them.",
    commands=("systemctl set-property user@1000.service Delegate=yes", "systemctl daemon-reload"),
    sources=(*_DAEMON, "Docker documentation, rootless mode"),
    hints=(r"rootless", r"delegat"),
)

_NO_PIDS_CONTROLLER = Cause(
    id="pids-controller-missing",
    title="The pids controller is not there",
    why="Without it (or without its delegation to a rootless engine) --pids-limit is dropped.",
    proof=_CONTROLLERS,
    shows="no pids in the list",
    fix="Delegate pids to the engine's unit, or boot a kernel with CONFIG_CGROUP_PIDS.",
    commands=("cat /sys/fs/cgroup/cgroup.controllers",),
    sources=_DAEMON,
)

_CGROUP_DRIVER_OPTION = Cause(
    id="daemon-exec-opts",
    title="native.cgroupdriver takes systemd or cgroupfs",
    why="Another word stops the daemon; rootless engines need control groups v2 for systemd.",
    proof="grep -n exec-opts /etc/docker/daemon.json; stat -fc %T /sys/fs/cgroup",
    shows="another word, or v1 under a rootless engine",
    fix='"exec-opts": ["native.cgroupdriver=systemd"] on control groups v2.',
    commands=("dockerd --validate --config-file /etc/docker/daemon.json",),
    sources=_DAEMON,
)

_USERNS = Cause(
    id="userns-remap-refuses",
    title="The engine remaps users, and this option does not go with it",
    why="With userns-remap neither --privileged nor the host's network or PID name space can be "
    "had, unless the container stays in the host's user name space.",
    proof="docker info -f '{{json .SecurityOptions}}'; grep -n userns /etc/docker/daemon.json",
    shows="name=userns",
    fix="Drop the option (GPUs need none of them), or give this container --userns=host.",
    commands=("docker run --userns=host --gpus all IMAGE",),
    sources=_DAEMON,
)

_THROTTLE_PATH = Cause(
    id="device-throttle-path",
    title="The limit names a disk that is not there, or a partition",
    why="--device-*-bps and -iops take the node of a whole disk; io.max knows no partitions.",
    proof="lsblk -o NAME,TYPE,MAJ:MIN,MOUNTPOINT",
    shows="no such name, or type part",
    fix="Name the disk that lsblk shows with type disk (nvme0n1, sda).",
    commands=("docker run --device-read-bps /dev/nvme0n1:200mb IMAGE",),
    sources=("kernel cgroup-v2 documentation, io", *_DAEMON),
    hints=(r"no such (file|device)",),
)

_SHM_HOST = Cause(
    id="shm-size-with-ipc-host",
    title="--shm-size does nothing with --ipc=host",
    why="The container then uses the host's /dev/shm with the host's size.",
    proof="docker inspect -f '{{.HostConfig.IpcMode}} {{.HostConfig.ShmSize}}' CONTAINER",
    shows="host",
    fix="Keep one of the two.",
    commands=("docker run --shm-size 16g IMAGE",),
    sources=("Docker documentation, IPC settings",),
    hints=(r"ipc",),
)

SYMPTOMS = (
    Symptom(
        id="memory-value-refused",
        title="Docker refuses the size of the memory limit",
        patterns=(r"Minimum memory (limit|reservation) allowed is \d+ ?MB",),
        causes=(_BELOW_MINIMUM,),
        tell_apart=_CHECK,
        sources=_DAEMON,
    ),
    Symptom(
        id="memory-reservation-refused",
        title="Docker refuses the memory reservation",
        patterns=(
            r"Minimum memory limit (can ?not be less|should be larger) than memory reservation",
            r"memory reservation.{0,60}(larger|greater|above|exceed)\w*.{0,30}memory limit",
        ),
        causes=(_RESERVATION,),
        tell_apart=_CHECK,
        sources=_DAEMON,
    ),
    Symptom(
        id="memory-swappiness",
        title="Swappiness per container",
        patterns=(
            r"memory swappiness (capabilities|discarded)",
            r"valid memory swappiness range",
            r"Memory swappiness discarded",
        ),
        causes=(_SWAPPINESS_V2, _SWAPPINESS_RANGE),
        tell_apart="stat -fc %T /sys/fs/cgroup; docker inspect -f "
        "'{{.HostConfig.MemorySwappiness}}' CONTAINER",
        sources=_DAEMON,
    ),
    Symptom(
        id="kernel-memory",
        title="--kernel-memory has no effect or is refused",
        patterns=(
            r"kernel-memory.{0,60}(deprecated|not supported|ignored|no effect|removed|unknown)",
            r"(unknown flag: )?--kernel-memory",
            r"does not support kernel memory limit",
        ),
        causes=(_KERNEL_MEMORY,),
        tell_apart="docker version; stat -fc %T /sys/fs/cgroup",
        sources=("Docker deprecated features, kernel memory",),
    ),
    Symptom(
        id="cpuset-form",
        title="Docker cannot read the cpuset",
        patterns=(r"Invalid value \S{1,80} for cpuset",),
        causes=(_CPUSET_FORM,),
        tell_apart=_CHECK,
        sources=_DAEMON,
    ),
    Symptom(
        id="cpu-period-refused",
        title="Docker refuses the CPU period or quota",
        patterns=(r"CPU cfs (period|quota) can ?not be less than",),
        causes=(_PERIOD,),
        tell_apart=_CHECK,
        sources=_DAEMON,
    ),
    Symptom(
        id="cpu-rt-above-period",
        title="The real-time runtime is above its period",
        patterns=(
            r"real-time runtime can ?not be (higher|larger|greater) than.{0,30}period",
            r"rt[-_ ]runtime.{0,40}(exceeds|above|larger than|higher than).{0,20}period",
        ),
        causes=(_RT_PERIOD,),
        tell_apart=_CHECK,
        sources=_DAEMON,
    ),
    Symptom(
        id="cpu-limit-dropped",
        title="The kernel cannot keep this CPU limit",
        patterns=(
            r"kernel does not support (CPU shares|CPU CFS|cpuset|cgroup cpu(?!.{0,3}real))",
            r"NanoCPUs can ?not be set",
            r"(Shares|Cpuset|CPU period/quota|CPU percent) discarded",
        ),
        causes=(_NO_CPU_CONTROLLER,),
        tell_apart=_CONTROLLERS,
        sources=_DAEMON,
    ),
    Symptom(
        id="pids-limit-dropped",
        title="The kernel cannot keep a limit of processes",
        patterns=(r"kernel does not support PIDs limit", r"PIDs limit discarded"),
        causes=(_NO_PIDS_CONTROLLER,),
        tell_apart=_CONTROLLERS,
        sources=_DAEMON,
    ),
    Symptom(
        id="blkio-weight-refused",
        title="Docker refuses the weight",
        patterns=(r"Range of blkio weight is from",),
        causes=(_WEIGHT_RANGE,),
        tell_apart=_CHECK,
        sources=_DAEMON,
    ),
    Symptom(
        id="throttle-device",
        title="The disk of an I/O limit cannot be used",
        patterns=(
            r"stat /dev/(sd|nvme|vd|xvd|dm-|mapper/|hd)\S{0,60}: no such file",
            r"write\S* \S{0,120}io\.max: no such device",
            r"failed to write .{0,60}(rbps|wbps|riops|wiops)",
            r"blkio\.throttle\S{0,60}: (no such device|invalid argument)",
        ),
        causes=(_THROTTLE_PATH,),
        tell_apart="lsblk -o NAME,TYPE,MAJ:MIN,MOUNTPOINT; cat /sys/fs/cgroup/cgroup.controllers",
        sources=("kernel cgroup-v2 documentation, io",),
    ),
    Symptom(
        id="shm-size-refused",
        title="Docker refuses the size of /dev/shm",
        patterns=(r"SHM size can ?not be less than", r"invalid (argument|size).{0,60}shm-size"),
        causes=(_SHM_NEGATIVE,),
        tell_apart=_CHECK,
        sources=_DAEMON,
    ),
    Symptom(
        id="ipc-mode-refused",
        title="Docker refuses the IPC mode",
        patterns=(r"invalid IPC mode",),
        causes=(_IPC_MODE,),
        tell_apart=_CHECK,
        sources=_DAEMON,
    ),
    Symptom(
        id="cgroup-driver-option",
        title="The daemon refuses native.cgroupdriver",
        patterns=(
            r"native\.cgroupdriver option \S{1,40} (not supported|is internally used)",
            r"native\.cgroupdriver=systemd requires cgroup v2",
        ),
        causes=(_CGROUP_DRIVER_OPTION,),
        tell_apart="grep -n exec-opts /etc/docker/daemon.json; stat -fc %T /sys/fs/cgroup",
        sources=_DAEMON,
    ),
    Symptom(
        id="userns-remap",
        title="An option does not go with user name spaces",
        patterns=(
            r"(privileged mode is )?incompatible with user namespaces",
            r"can ?not share the host.{0,20}namespace when user namespaces are enabled",
        ),
        causes=(_USERNS,),
        tell_apart="docker info -f '{{json .SecurityOptions}}'",
        sources=_DAEMON,
    ),
    Symptom(
        id="shm-size-differs",
        title="/dev/shm has another size than asked for",
        patterns=(r"/dev/shm.{0,40}(another|other|different|wrong) size",),
        causes=(_SHM_HOST,),
        tell_apart="docker inspect -f '{{.HostConfig.IpcMode}} {{.HostConfig.ShmSize}}' CONTAINER",
        sources=("Docker documentation, IPC settings",),
    ),
)
