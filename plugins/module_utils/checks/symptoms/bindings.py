# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bindings that do not hold: isolated CPUs, far sockets, nodes without CPUs, delegation. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

_PLACE = (
    "nvidia-smi topo -m; cat /sys/bus/pci/devices/*/numa_node; docker inspect -f "
    "'{{.HostConfig.CpusetCpus}} {{.HostConfig.CpusetMems}}' CONTAINER; numactl --hardware"
)

ISOLATED = Cause(
    id="cpuset-of-isolated-cpus",
    title="The container's CPUs are isolated from the scheduler",
    why="CPUs of isolcpus= (domain) take part in no load balancing: threads stay where they start, "
    "all on the first CPU of the set, and processes without a binding never go there.",
    proof="cat /proc/cmdline /sys/devices/system/cpu/isolated; docker inspect -f "
    "'{{.HostConfig.CpusetCpus}}' CONTAINER; ps -eLo psr,comm | sort | uniq -c | sort -rn | head",
    shows="the same CPUs in both, and one busy CPU",
    fix="Keep isolcpus for threads that are bound one by one (taskset, pthread_setaffinity). For "
    "containers use a cpuset alone, or a cpuset partition (cpuset.cpus.partition=root), and no "
    "isolcpus.",
    commands=("sed -i 's/ isolcpus=[^ \"]*//' /etc/default/grub", "update-grub"),
    sources=("moby issue 31086", "kernel parameters, isolcpus"),
    hints=(r"isol", r"first CPU"),
)

FAR = Cause(
    id="gpu-on-other-node",
    title="The container's CPUs and memory are on another NUMA node than its GPU",
    why="Copies then cross the link between the sockets: less bandwidth, more latency.",
    proof=_PLACE,
    shows="a numa_node of the GPU that is not the node of the CPUs",
    fix="Give the container CPUs and memory of the GPU's node (steadygpu facts lists them).",
    commands=("docker run --gpus device=0 --cpuset-cpus 0-15 --cpuset-mems 0 IMAGE",),
    sources=("kernel NUMA documentation", "nvidia-smi topo -m"),
    hints=(r"socket|numa|cpuset|remote",),
)

NOT_DELEGATED = Cause(
    id="unit-delegate-off",
    title="The engine's unit does not delegate its control group",
    why="Without Delegate=yes systemd takes the sub-tree for its own: it moves processes and "
    "removes controllers when it is reloaded.",
    proof="systemctl show -p Delegate -p DelegateControllers docker containerd",
    shows="Delegate=no",
    fix="Delegate=yes in the service (never in a slice), then daemon-reload and a restart of the "
    "engine at a quiet time.",
    commands=(
        "systemctl edit docker",
        "systemctl daemon-reload",
    ),
    sources=("systemd documentation, control group delegation", "moby contrib/init/systemd"),
    hints=(r"delegate", r"daemon-reload"),
)

_COUNT = Cause(
    id="cpu-count-of-host",
    title="Programs count the CPUs of the host, not those of the limit",
    why="--cpus is a quota of time and hides no CPU; thread pools sized by the CPU count are then "
    "throttled. Only a cpuset changes what is counted.",
    proof="docker exec CONTAINER sh -c 'nproc; cat /sys/fs/cgroup/cpu.max; grep throttled "
    "/sys/fs/cgroup/cpu.stat'",
    shows="all CPUs, a quota, and nr_throttled that grows",
    fix="Use --cpuset-cpus, or set OMP_NUM_THREADS (and torch.set_num_threads) to the quota.",
    commands=("docker run --cpuset-cpus 0-3 -e OMP_NUM_THREADS=4 IMAGE",),
    sources=("kernel cgroup-v2 documentation, cpu.max", "Python os.cpu_count"),
    hints=(r"cpu_count|nproc|threads|throttl",),
)

_WEIGHT = Cause(
    id="runc-cpu-weight-changed",
    title="runc turns CPU shares into weights by another formula",
    why="From 1.3.2 on 1024 shares become weight 100 (39 before).",
    proof="runc --version; cat /sys/fs/cgroup/system.slice/docker-*.scope/cpu.weight",
    shows="other weights for containers of before and after the upgrade",
    fix="Recreate the containers after the upgrade.",
    commands=("runc --version",),
    sources=("runc CHANGELOG 1.3.2",),
    hints=(r"weight", r"runc"),
)

_CPUS_WRONG = Cause(
    id="runc-allowed-cpus-wrong",
    title="runc before 1.1.5 gives systemd a wrong set of CPUs",
    why="With more than 8 CPUs it turns the cpuset into wrong AllowedCPUs= on control groups v2.",
    proof="runc --version; systemctl show -p AllowedCPUs docker-ID.scope; docker inspect -f "
    "'{{.HostConfig.CpusetCpus}}' CONTAINER",
    shows="two sets",
    fix="Upgrade runc to 1.1.5 or newer.",
    commands=("apt-get install --only-upgrade runc",),
    sources=("runc CHANGELOG 1.1.5 (#3808)",),
    hints=(r"AllowedCPUs", r"runc"),
    holds=holds.rules_out(holds.version("runc", "<1.1.5")),
)


SYMPTOMS = (
    Symptom(
        id="cpu-count-in-container",
        title="Programs see all CPUs of the host",
        patterns=(
            r"(cpu_count|nproc|hardware_concurrency).{0,60}(returns?|shows?|reports?) .{0,9}"
            r"\d+",
            r"(too many|oversubscri\w+) threads.{0,60}(container|quota|limit|throttl)?",
        ),
        causes=(_COUNT,),
        tell_apart="docker exec CONTAINER sh -c 'nproc; cat /sys/fs/cgroup/cpu.max'",
        sources=("kernel cgroup-v2 documentation, cpu.max",),
    ),
    Symptom(
        id="cpu-weight-unexpected",
        title="CPU weights are not what the shares say",
        patterns=(
            r"cpu[._]weight.{0,80}\b(other than|unexpected|wrong|differ\w*|changed)\b",
            r"cpu[-_ ]shares.{0,80}(differ|changed|not proportional|other weight)",
        ),
        causes=(_WEIGHT,),
        tell_apart="runc --version; cat /sys/fs/cgroup/system.slice/docker-*.scope/cpu.weight",
        sources=("runc CHANGELOG 1.3.2",),
    ),
    Symptom(
        id="cpuset-wrong",
        title="A container runs on other CPUs than asked",
        patterns=(
            r"AllowedCPUs.{0,80}(wrong|differ|other|not match|incorrect)",
            r"(container|containers).{0,40}(on|gets?) (other|the wrong|wrong|different) CPUs",
        ),
        causes=(_CPUS_WRONG,),
        tell_apart="runc --version; systemctl show -p AllowedCPUs docker-ID.scope",
        sources=("runc CHANGELOG 1.1.5",),
    ),
    Symptom(
        id="isolated-cpus",
        title="All threads run on one CPU of the set",
        patterns=(
            r"all (threads|processes).{0,60}(run|stay|are|pile up) on (the first|one|a single) "
            r"(CPU|core)",
            r"isolcpus.{0,120}(container|cpuset|docker|thread|idle|balanc)",
            r"(only|just) (one|the first)( is| of).{0,40}(CPU|core)s?.{0,20}(busy|used)",
        ),
        causes=(ISOLATED,),
        tell_apart="cat /proc/cmdline /sys/devices/system/cpu/isolated; ps -eLo psr,comm | sort | "
        "uniq -c | sort -rn | head",
        sources=("moby issue 31086",),
    ),
    Symptom(
        id="gpu-far-from-cpus",
        title="The CPUs are on another socket than the GPU",
        patterns=(
            r"(CPUs?|memory|process|container).{0,60}(other|wrong|remote|different) (socket|NUMA "
            r"node)",
            r"(host-to-device|H2D|D2H|memcpy).{0,80}(slow|bandwidth)",
            r"GPU .{0,40}(other|different|remote) (socket|NUMA node)",
        ),
        causes=(FAR,),
        tell_apart=_PLACE,
        sources=("kernel NUMA documentation",),
    ),
    Symptom(
        id="numa-nodes-without-cpus",
        title="NUMA nodes without CPUs",
        patterns=(
            r"NUMA nodes? (without|with no|have no) CPUs?",
            r"node \d+ cpus: ?node \d+ size: ?\d+",
        ),
        normal="On hosts with coherent GPU memory (GH200, GB200) the memory of each GPU is a NUMA "
        "node without CPUs, and MIG reserves further ones. That is how they work; leave those "
        "nodes out of --cpuset-mems of jobs that must not take GPU memory. CXL memory looks alike.",
        tell_apart="numactl --hardware; nvidia-smi --query-gpu=name --format=csv",
        sources=("NVIDIA Grace Hopper tuning guide",),
    ),
    Symptom(
        id="controllers-lost",
        title="Controllers or processes leave the engine's group",
        patterns=(
            r"(lose|loses|lost|losing) (its |their )?controllers",
            r"control(ler)?s? .{0,40}(disappear|vanish|moved).{0,60}daemon-reload",
            r"cgroups? (are|is|was) moved",
            r"Delegate ?= ?no",
        ),
        causes=(NOT_DELEGATED,),
        tell_apart="systemctl show -p Delegate docker containerd; cat "
        "/sys/fs/cgroup/system.slice/docker.service/cgroup.controllers",
        sources=("systemd documentation, control group delegation",),
    ),
)
