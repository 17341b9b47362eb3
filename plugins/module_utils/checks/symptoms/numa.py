# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs, NUMA and real time: sets that are refused, bindings that do not hold. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

_CPUS = (
    "cat /sys/fs/cgroup/system.slice/cpuset.cpus.effective /sys/devices/system/cpu/online; nproc; "
    "lscpu | grep -i numa"
)

CPUSET_ABSENT = Cause(
    id="cpuset-not-available",
    title="The set names CPUs or nodes that the daemon does not have",
    why="It must lie within the daemon's own cpuset (and that of the parent slice).",
    proof=_CPUS,
    shows="fewer CPUs than asked for",
    fix="Take the set from the facts of this host (steadygpu facts), not from another one.",
    commands=("steadygpu facts",),
    sources=("docker/compose issue 3306", "moby daemon/daemon_unix.go"),
    cases=("CP-003",),
    hints=(r"requested", r"cpuset"),
)

CPUS_TOO_MANY = Cause(
    id="cpus-above-host",
    title="--cpus is above the number of CPUs",
    why="The daemon checks it against the CPUs of the host.",
    proof="nproc --all",
    shows="fewer CPUs",
    fix="Ask for at most the CPUs of the host.",
    commands=("nproc --all",),
    sources=("moby daemon/daemon_unix.go",),
    cases=("CP-010",),
    hints=(r"range of cpus",),
)

CPUS_CONFLICT = Cause(
    id="cpus-conflict",
    title="--cpus together with --cpu-period or --cpu-quota",
    why="Both describe the same limit, and the daemon refuses both at once.",
    proof="steadygpu check FILE",
    shows="both forms",
    fix="Keep --cpus.",
    commands=("docker run --cpus=4 IMAGE",),
    sources=("moby daemon/daemon_unix.go",),
    cases=("CP-009",),
    hints=(r"nano cpus",),
)

_NICE = Cause(
    id="numa-policy-needs-sys-nice",
    title="Docker's seccomp profile allows NUMA calls with CAP_SYS_NICE only",
    why="set_mempolicy, mbind, move_pages and get_mempolicy are shut without it.",
    proof="docker inspect -f '{{.HostConfig.CapAdd}} {{.HostConfig.SecurityOpt}}' CONTAINER",
    shows="no SYS_NICE",
    fix="--cap-add SYS_NICE, or bind from outside with --cpuset-cpus and --cpuset-mems. privileged "
    "and seccomp=unconfined open far more.",
    commands=("docker run --cap-add SYS_NICE IMAGE",),
    sources=("moby profiles/seccomp/default.json", "vllm-project/vllm PR 45438"),
    cases=("CP-004",),
    hints=(r"mempolicy|mbind", r"numactl", r"numa"),
)

_RT_PARENT = Cause(
    id="cpu-rt-parent-budget",
    title="The parent group has no real-time budget",
    why="With RT group scheduling on control groups v1 a child cannot get more than its parent, "
    "and "
    "Docker's parent has 0.",
    proof="cat /sys/fs/cgroup/cpu/docker/cpu.rt_runtime_us; zgrep RT_GROUP_SCHED /proc/config.gz "
    "/boot/config-$(uname -r)",
    shows="0",
    fix="Start dockerd with --cpu-rt-runtime (v1 only), or use --cap-add SYS_NICE --ulimit "
    "rtprio=N.",
    commands=("docker run --cap-add SYS_NICE --ulimit rtprio=50 IMAGE",),
    sources=("moby issue 31411",),
    cases=("CP-006",),
    hints=(r"cgroup_version\D{0,4}1", r"parent"),
    holds=holds.rules_out(holds.cgroup_version("1")),
)

_RT_V2 = Cause(
    id="cpu-rt-on-cgroup-v2",
    title="Control groups v2 have no real-time budget",
    why="cpu.rt_runtime_us exists on v1 only; the daemon and Docker's flags refuse it or drop it.",
    proof="stat -fc %T /sys/fs/cgroup",
    shows="cgroup2fs",
    fix="Leave --cpu-rt-* out; --cap-add SYS_NICE --ulimit rtprio=N, or CPUSchedulingPolicy= of a "
    "unit.",
    commands=("docker run --cap-add SYS_NICE --ulimit rtprio=50 IMAGE",),
    sources=("kernel cgroup-v2 documentation, cpu",),
    hints=(r"cgroup ?v2|cgroup2|cgroup_version\D{0,4}2",),
    holds=holds.cgroup_version("2"),
)

_RT_THROTTLE = Cause(
    id="rt-limit",
    title="Real-time priority is not allowed, or is throttled",
    why="RLIMIT_RTPRIO is 0 without --ulimit rtprio, and chrt needs CAP_SYS_NICE.",
    proof="docker exec CONTAINER sh -c 'ulimit -r; chrt -m'; cat "
    "/proc/sys/kernel/sched_rt_runtime_us",
    shows="0",
    fix="--cap-add SYS_NICE --ulimit rtprio=50, on CPUs of their own.",
    commands=("docker run --cap-add SYS_NICE --ulimit rtprio=50 --cpuset-cpus 8-11 IMAGE",),
    sources=("sched(7)",),
    hints=(r"chrt|setscheduler|RLIMIT_RTPRIO",),
)

AFFINITY = Cause(
    id="runc-affinity-reset",
    title="runc no longer inherits the affinity of the engine",
    why="From 1.2.7, 1.3.1 and 1.4.0 containers get the largest set that their cpuset allows.",
    proof="runc --version; systemctl show -p CPUAffinity docker containerd; docker exec CONTAINER "
    "grep Cpus_allowed_list /proc/self/status",
    shows="an affinity of the unit and all CPUs in the container",
    fix="Pin with --cpuset-cpus, or AllowedCPUs= of a slice.",
    commands=("docker run --cpuset-cpus 0-15 IMAGE",),
    sources=("runc CHANGELOG 1.2.7, 1.3.1, 1.4.1",),
    cases=("RC-011",),
    hints=(r"taskset|CPUAffinity|pinned", r"runc"),
    holds=holds.rules_out(holds.version("runc", ">=1.2.7")),
)

IRQBALANCE = Cause(
    id="irqbalance-ban-list",
    title="A ban list of irqbalance replaces its own protection of isolated CPUs",
    why="Without a list it leaves out isolcpus and nohz_full; an explicit list replaces that.",
    proof="grep -rn BANNED /etc/default/irqbalance /etc/sysconfig/irqbalance; cat /proc/cmdline",
    shows="a mask that lacks the isolated CPUs",
    fix="Leave the variable unset, or put the isolated CPUs into it "
    "(IRQBALANCE_BANNED_CPULIST=8-15).",
    commands=("systemctl restart irqbalance",),
    sources=("Irqbalance/irqbalance PR 90 and 356",),
    cases=("CP-001",),
    hints=(r"irqbalance", r"isolcpus|nohz_full|isolated"),
)

NUMA_NVML = Cause(
    id="nvml-numa-is-gpu-memory",
    title="NVML's NUMA node is that of GPU memory",
    why="nvmlDeviceGetNumaNodeId is about memory of the GPU as a node (Grace hosts); ordinary "
    "cards "
    "answer Not Supported.",
    proof="cat /sys/bus/pci/devices/*/numa_node | sort | uniq -c; nvidia-smi topo -m",
    shows="the node in sysfs",
    fix="Read sysfs for PCIe cards (steadygpu facts does).",
    commands=("steadygpu facts",),
    sources=("kubernetes-sigs/dra-driver-nvidia-gpu PR 1165",),
    cases=("TP-009",),
    hints=(r"Not Supported", r"nvmlDeviceGetNumaNodeId"),
)

NUMA_UNKNOWN = Cause(
    id="gpu-numa-unknown",
    title="The firmware names no NUMA node (-1)",
    why="In virtual machines, and with old firmware, sysfs says -1: unknown, not node 0.",
    proof="cat /sys/bus/pci/devices/*/numa_node | sort | uniq -c; systemd-detect-virt; numactl -H",
    shows="-1",
    fix="Treat it as unknown; switch on the firmware's NUMA option (SRAT, sub-NUMA), or in a VM "
    "place the GPU behind a pxb-pcie of the node. On one-node hosts it does not matter.",
    commands=("numactl -H",),
    sources=("kernel ABI sysfs-bus-pci, numa_node",),
    hints=(r"-1", r"negative value"),
)

_MPOL_STRICT = Cause(
    id="membind-node-absent",
    title="The node to bind to does not exist or has no memory",
    why="A node number of another host, a container without that node in cpuset.mems, or a GPU "
    "memory node.",
    proof="numactl -H; grep Mems_allowed_list /proc/self/status",
    shows="fewer nodes than asked for",
    fix="Bind to a node that is allowed here.",
    commands=("numactl -H",),
    sources=("numactl(8)",),
    hints=(r"node argument", r"out of range"),
)

BURST = Cause(
    id="cpu-burst-above-quota",
    title="The burst does not fit the quota",
    why="cpu.max.burst must not exceed the quota, and one written by hand stays: it then blocks "
    "a lower "
    "CPUQuota. Docker has no flag for it.",
    proof="cat /sys/fs/cgroup/system.slice/docker-*.scope/cpu.max{,.burst}",
    shows="a burst above the first number of cpu.max, or max as quota",
    fix="Set the quota first and a burst at or below it; set the burst to 0 before lowering the "
    "quota.",
    commands=("cat /sys/fs/cgroup/system.slice/docker-*.scope/cpu.max",),
    sources=("kernel cgroup-v2 documentation, cpu",),
    hints=(r"burst",),
)

THROTTLED = Cause(
    id="cpu-quota-throttles",
    title="The quota is used up within each period",
    why="Many threads spend the budget of a period (100 ms) in its first part and then wait, on "
    "an idle "
    "host too.",
    proof="cat /sys/fs/cgroup/system.slice/docker-*.scope/cpu.stat",
    shows="nr_throttled that grows",
    fix="Raise --cpus, pin with --cpuset-cpus instead, or limit the threads (OMP_NUM_THREADS).",
    commands=("cat /sys/fs/cgroup/system.slice/docker-*.scope/cpu.stat",),
    sources=("kernel CFS bandwidth documentation",),
    hints=(r"throttl",),
)

SYMPTOMS = (
    Symptom(
        id="cpu-throttled",
        title="A CPU quota or burst does not do what was meant",
        patterns=(
            r"cpu\.max\.burst",
            r"cpu[ -]?burst.{0,60}(invalid|error|fail|refus|no effect|ignored)",
            r"(CPU quota|cfs|cpu\.max).{0,40}throttl",
            r"nr_throttled",
            r"Failed to set .?cpu\.max",
        ),
        causes=(THROTTLED, BURST),
        tell_apart="grep . /sys/fs/cgroup/system.slice/docker-*.scope/cpu.{max,max.burst,stat}",
        sources=("kernel cgroup-v2 documentation, cpu",),
    ),
    Symptom(
        id="cpus-not-available",
        title="Requested CPUs or memory nodes are not available",
        patterns=(
            r"isolcpus.{0,60}(not usable|container|not used)",
            r"cpuset\.cpus.{0,40}(exclusive|partition|cannot)",
            r"Requested (CPUs|memory nodes) are not available",
            r"cpuset\.(cpus|mems).{0,60}(numerical result out of range|invalid argument|no space)",
        ),
        causes=(CPUSET_ABSENT,),
        tell_apart=_CPUS,
        sources=("moby daemon/daemon_unix.go",),
        cases=("CP-003",),
    ),
    Symptom(
        id="cpus-out-of-range",
        title="--cpus is out of range",
        patterns=(r"range of CPUs is from", r"as there are only \d+ CPUs available"),
        causes=(CPUS_TOO_MANY,),
        tell_apart="nproc --all",
        sources=("moby daemon/daemon_unix.go",),
        cases=("CP-010",),
    ),
    Symptom(
        id="cpus-conflict",
        title="Two forms of the same CPU limit",
        patterns=(r"Conflicting options: Nano CPUs and CPU (Period|Quota)",),
        causes=(CPUS_CONFLICT,),
        tell_apart="steadygpu check FILE",
        sources=("moby daemon/daemon_unix.go",),
        cases=("CP-009",),
    ),
    Symptom(
        id="numa-call-refused",
        title="A NUMA call is refused in the container",
        patterns=(
            r"(set_mempolicy|mbind|get_mempolicy|move_pages|migrate_pages).{0,40}"
            r"(Operation not permitted|EPERM)",
            r"numactl.{0,60}Operation not permitted",
            r"numa_\w+.{0,40}Operation not permitted",
        ),
        causes=(_NICE,),
        tell_apart="docker inspect -f '{{.HostConfig.CapAdd}} {{.HostConfig.SecurityOpt}}' "
        "CONTAINER",
        sources=("moby profiles/seccomp/default.json",),
        cases=("CP-004",),
    ),
    Symptom(
        id="numa-node-argument",
        title="numactl does not take the node",
        patterns=(
            r"node argument \S{1,80} is out of range",
            r"libnuma: Warning: (node|cpu) argument",
            r"This system does not support NUMA policy",
        ),
        causes=(_MPOL_STRICT, _NICE),
        tell_apart="numactl -H; grep Mems_allowed_list /proc/self/status",
        sources=("numactl(8)",),
    ),
    Symptom(
        id="numa-node-missing",
        title="The NUMA node of a GPU is missing",
        patterns=(
            r"GPU memory.{0,40}NUMA node|NUMA nodes? .{0,40}(GH200|GB200|Grace)",
            r"sub-?NUMA|\bSNC\b|\bNPS[24]\b",
            r"NUMA attribute missing",
            r"nvmlDeviceGetNumaNodeId",
            r"numa_node.{0,20}(?<![\d])-1\b",
            r"successful NUMA node read from SysFS had negative value",
            r"N/A for (GPU )?NUMA",
            r"NUMA (node|affinity) (is |of \S{1,80} is )?((?<!\d)-1\b|unknown|missing)",
        ),
        causes=(NUMA_NVML, NUMA_UNKNOWN),
        tell_apart="cat /sys/bus/pci/devices/*/numa_node | sort | uniq -c; numactl -H; "
        "systemd-detect-virt",
        sources=("kubernetes-sigs/dra-driver-nvidia-gpu PR 1165",),
        cases=("TP-009",),
    ),
    Symptom(
        id="real-time-refused",
        title="Real-time scheduling is refused",
        patterns=(
            r"cgroup cpu real-?time",
            r"cpu controller with RT tasks",
            r"RT_GROUP_SCHED",
            r"cpu\.rt_(runtime|period)_us",
            r"kernel does not support (the )?CPU real-?time",
            r"cpu-rt-(runtime|period)",
            r"(sched_setscheduler|chrt|setscheduler).{0,60}(Operation not permitted|failed)",
            r"Daemon-scoped cpu-rt",
        ),
        causes=(_RT_V2, _RT_PARENT, _RT_THROTTLE),
        tell_apart="stat -fc %T /sys/fs/cgroup; zgrep RT_GROUP_SCHED /proc/config.gz "
        "/boot/config-$(uname -r); docker exec CONTAINER sh -c 'ulimit -r'",
        sources=("moby issue 31411",),
        cases=("CP-006",),
    ),
    Symptom(
        id="affinity-not-inherited",
        title="Containers run on all CPUs although the engine was pinned",
        patterns=(
            r"run on all CPUs although",
            r"(affinity|taskset|CPUAffinity).{0,80}(not (inherited|kept|honou?red)|ignored|reset)",
            r"no longer inherits?.{0,40}affinity",
        ),
        causes=(AFFINITY,),
        tell_apart="runc --version; systemctl show -p CPUAffinity docker containerd; docker exec "
        "CONTAINER grep Cpus_allowed_list /proc/self/status",
        sources=("runc CHANGELOG 1.3.1",),
        cases=("RC-011",),
    ),
    Symptom(
        id="irqs-on-isolated-cpus",
        title="Interrupts land on isolated CPUs",
        patterns=(
            r"interrupts? (land|arrive|fire|run)s? on (the )?isolated CPUs",
            r"irqbalance.{0,80}(isolated|isolcpus|nohz_full|banned)",
            r"IRQBALANCE_BANNED_CPU",
        ),
        causes=(IRQBALANCE,),
        tell_apart="cat /proc/cmdline; grep -rn BANNED /etc/default/irqbalance; grep . "
        "/proc/irq/*/effective_affinity_list | head -20",
        sources=("Irqbalance/irqbalance PR 90",),
        cases=("CP-001",),
    ),
)
