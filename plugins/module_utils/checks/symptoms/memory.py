# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Memory of the host and its limits: OOM killers, swap, overcommit. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .nccl import SHM

_EVENTS = (
    "docker inspect -f '{{.State.OOMKilled}} {{.HostConfig.Memory}}' CONTAINER; cat "
    "/sys/fs/cgroup/system.slice/docker-$(docker inspect -f '{{.Id}}' "
    "CONTAINER).scope/memory.events"
    "; dmesg -T | grep -iE 'oom|killed process' | tail -5"
)

HOST_MEMORY_LIMIT = Cause(
    id="host-memory-limit",
    title="The container's limit of host memory is too small",
    why="Model files, prompt and KV caches in RAM, pinned buffers and worker processes count "
    "against "
    "the memory limit; free GPU memory has nothing to do with it.",
    proof=_EVENTS,
    shows="OOMKilled true, oom_kill above 0",
    fix="Raise the limit to runners × cache + base, or lower the caches and the number of workers.",
    commands=("docker run -m 64g --memory-swap 64g IMAGE",),
    sources=("rwlove/home-ops PR 13936", "kernel cgroup-v2 documentation, memory.events"),
    cases=("ME-010",),
    hints=(r"cache", r"limit", r"VRAM is free", r"137"),
)

_HOST_OOM = Cause(
    id="host-out-of-memory",
    title="The host itself ran out of memory",
    why="Containers without a limit, or with limits that add up to more than the host has.",
    proof="dmesg -T | grep -iE 'oom-kill|killed process' | tail -3; free -m; docker stats "
    "--no-stream",
    shows="constraint=CONSTRAINT_NONE in the oom-kill line",
    fix="Give each container a limit, and leave some memory to the host.",
    commands=("docker stats --no-stream",),
    sources=("kernel mm/oom_kill.c",),
    hints=(r"CONSTRAINT_NONE", r"Out of memory: Killed"),
)

_NUMA_OOM = Cause(
    id="numa-node-full",
    title="One NUMA node is full while others are free",
    why="A job bound to one node (membind, cpuset-mems) cannot take memory of another.",
    proof="dmesg -T | grep -E 'CONSTRAINT_(CPUSET|MEMORY_POLICY)'; numastat -m | head -20",
    shows="CONSTRAINT_CPUSET or CONSTRAINT_MEMORY_POLICY",
    fix="Bind with preferred instead of bind, or give the job another node too.",
    commands=("numastat -m",),
    sources=("kernel mm/oom_kill.c",),
    hints=(r"CONSTRAINT_(CPUSET|MEMORY_POLICY)", r"membind", r"cpuset"),
)

_OOMD = Cause(
    id="systemd-oomd",
    title="systemd-oomd ended the unit by memory pressure",
    why="It kills whole slices when pressure stays high, before the kernel would.",
    proof="journalctl -u systemd-oomd -n 10 --no-pager; oomctl",
    shows="Killed … due to memory pressure",
    fix="ManagedOOMMemoryPressure=auto for the slice of the jobs, or more memory.",
    commands=("systemctl set-property ai.slice ManagedOOMMemoryPressure=auto",),
    sources=("systemd-oomd(8)",),
    hints=(r"oomd",),
)

_SWAP_SMALL = Cause(
    id="memory-swap-below-memory",
    title="--memory-swap is smaller than --memory",
    why="It is the sum of memory and swap, not the swap alone.",
    proof="steadygpu check FILE",
    shows="the two values",
    fix="Equal to --memory for no swap, larger for some, -1 for unlimited.",
    commands=("docker run -m 32g --memory-swap 32g IMAGE",),
    sources=("moby daemon/daemon_unix.go",),
    cases=("ME-001",),
    hints=(r"larger than memory",),
)

_SWAP_ALONE = Cause(
    id="memory-swap-without-memory",
    title="--memory-swap without --memory",
    why="The sum of memory and swap cannot be formed without the memory.",
    proof="steadygpu check FILE",
    shows="memory-swap alone",
    fix="Set both.",
    commands=("docker run -m 16g --memory-swap 16g IMAGE",),
    sources=("moby daemon/daemon_unix.go",),
    cases=("ME-002",),
    hints=(r"always set the memory limit",),
)

_SWAP_ACCOUNTING = Cause(
    id="swap-accounting-off",
    title="The kernel does not account swap",
    why="On control groups v1 (or with swapaccount=0) swap limits cannot be set; memory limits "
    "work.",
    proof="cat /proc/cmdline; stat -fc %T /sys/fs/cgroup; ls /sys/fs/cgroup/system.slice | grep "
    "swap",
    shows="v1, and no swapaccount=1",
    fix="Move to control groups v2; on v1 boot with cgroup_enable=memory swapaccount=1.",
    commands=(
        "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&cgroup_enable=memory swapaccount=1 /' /etc/default/grub",
        "update-grub",
    ),
    sources=("Docker documentation, post-installation",),
    hints=(r"swap limit", r"without swap"),
    holds=holds.rules_out(holds.cgroup_version("1")),
)

_MEMCG_OFF = Cause(
    id="memory-controller-off",
    title="The memory controller is switched off",
    why="cgroup_disable=memory on the kernel command line (the default of some boards) removes it: "
    "limits are dropped silently, and a kubelet does not start.",
    proof="cat /proc/cmdline; cat /sys/fs/cgroup/cgroup.controllers",
    shows="cgroup_disable=memory, and no memory among the controllers",
    fix="Remove it, or add cgroup_enable=memory, and reboot.",
    commands=("cat /sys/fs/cgroup/cgroup.controllers",),
    sources=("kernel parameters, cgroup_disable",),
    hints=(r"cgroup_disable", r"support memory (soft )?limit", r"memory.{0,20}(missing|disabled)"),
)

OOM_DISABLE = Cause(
    id="oom-kill-disable-ignored",
    title="--oom-kill-disable does nothing on control groups v2",
    why="The control exists on v1 only: Docker warns and drops the flag, crun refuses it.",
    proof="stat -fc %T /sys/fs/cgroup",
    shows="cgroup2fs",
    fix="Remove the flag. --oom-score-adj=-1000 is not the same and puts the host at risk.",
    commands=("docker run -m 64g IMAGE",),
    sources=("moby issue 42865", "containers/crun issue 1416"),
    cases=("ME-004",),
    hints=(r"discarded", r"cgroupv2|cgroup v2"),
    holds=holds.cgroup_version("2"),
)

_OOM_DISABLE_ALONE = Cause(
    id="oom-kill-disable-without-memory",
    title="--oom-kill-disable without a memory limit",
    why="On control groups v1 the host then runs out of memory with nobody to kill.",
    proof="stat -fc %T /sys/fs/cgroup; steadygpu check FILE",
    shows="tmpfs (v1), and no -m",
    fix="Always give -m with it; better, do not use it.",
    commands=("docker run -m 64g IMAGE",),
    sources=("moby daemon/daemon_unix.go", "moby issue 14440"),
    cases=("ME-005",),
    hints=(r"no memory limit is set",),
)

MEMLOCK = Cause(
    id="memlock-limit",
    title="The memlock limit stops RDMA or pinned memory",
    why="Buffers are pinned; containers inherit 8 or 64 MiB from the engine's unit.",
    proof="docker exec CONTAINER sh -c 'ulimit -l'; systemctl show -p LimitMEMLOCK docker "
    "containerd",
    shows="a number instead of unlimited",
    fix="--ulimit memlock=-1 per container (ulimits: in Compose), or default-ulimits in "
    "daemon.json.",
    commands=("docker run --ulimit memlock=-1 --device=/dev/infiniband IMAGE",),
    sources=("NVIDIA/cudf-spark PR 7632", "openucx/ucx PR 7221"),
    cases=("ME-008",),
    hints=(r"ibv_", r"mlock", r"pin"),
)

_OVERCOMMIT = Cause(
    id="overcommit-limit",
    title="The kernel's overcommit limit refuses large reservations",
    why="CUDA reserves a large virtual range; vm.overcommit_memory=2 or ulimit -v refuses it.",
    proof="cat /proc/sys/vm/overcommit_memory; ulimit -v; grep Commit /proc/meminfo",
    shows="2, or a limit of virtual memory",
    fix="vm.overcommit_memory=0 or 1, and no ulimit -v for GPU jobs.",
    commands=("sysctl -w vm.overcommit_memory=1",),
    sources=("kernel overcommit documentation",),
    hints=(r"overcommit", r"ulimit"),
)

PIDS = Cause(
    id="pids-limit",
    title="The limit of processes and threads is reached",
    why="TasksMax of the slice, --pids-limit, or ulimit nproc: threads count too, and DataLoader "
    "and "
    "NCCL start many. runc 1.4 takes a limit of 0 for a real one.",
    proof="docker inspect -f '{{.HostConfig.PidsLimit}}' CONTAINER; cat "
    "/sys/fs/cgroup/system.slice/docker-*.scope/pids.{current,max}; runc --version",
    shows="current near max, or a max of 0 or 1",
    fix="Raise --pids-limit or TasksMax; leave the limit out (or -1) for unlimited.",
    commands=("docker update --pids-limit -1 CONTAINER",),
    sources=("runc CHANGELOG 1.4.0", "kernel cgroup-v2 documentation, pids"),
    cases=("RC-010",),
    hints=(r"fork", r"thread", r"pids"),
)

SYMPTOMS = (
    Symptom(
        id="oom-killed",
        title="The container ran out of host memory",
        patterns=(
            r"OOM-?Killed",
            r"memory\.high.{0,60}(throttl|hang|slow|stall)",
            r"exit(ed)?( with)?( code| status)?:? ?\(?137\)?",
            r"Memory cgroup out of memory",
            r"oom-kill:constraint=",
            r"Out of memory: Kill(ed)? process",
            r"systemd-oomd.{0,60}Killed",
            r"oom_?kill.{0,30}(process|event|count)",
        ),
        causes=(HOST_MEMORY_LIMIT, _HOST_OOM, _NUMA_OOM, _OOMD, SHM),
        tell_apart=_EVENTS,
        sources=("kernel mm/oom_kill.c",),
        cases=("ME-010",),
    ),
    Symptom(
        id="memory-swap-refused",
        title="Docker refuses the memory limits",
        patterns=(
            r"Minimum memoryswap limit should be larger than memory limit",
            r"always set the Memory limit when using Memoryswap limit",
        ),
        causes=(_SWAP_SMALL, _SWAP_ALONE),
        tell_apart="steadygpu check FILE",
        sources=("moby daemon/daemon_unix.go",),
        cases=("ME-001", "ME-002"),
    ),
    Symptom(
        id="memory-control-missing",
        title="The kernel cannot keep this memory limit",
        patterns=(
            r"kernel does not support (swap limit|memory limit|memory soft limit|"
            r"kernel memory limit|memory reservation)",
            r"No (swap|memory) limit support",
            r"cgroup .?memory.? (is )?(not|missing|disabled)",
            r"Limitation discarded|Memory limited without swap",
            r"missing (cgroup|required cgroups?).{0,20}memory",
            r"memory cgroup is (not|disabled)",
        ),
        causes=(_SWAP_ACCOUNTING, _MEMCG_OFF),
        tell_apart="stat -fc %T /sys/fs/cgroup; cat /proc/cmdline; cat "
        "/sys/fs/cgroup/cgroup.controllers",
        sources=("moby daemon/daemon_unix.go",),
    ),
    Symptom(
        id="oom-kill-disable",
        title="--oom-kill-disable is dropped or refused",
        patterns=(
            r"OomKillDisable discarded",
            r"kernel does not support OomKillDisable",
            r"cannot disable OOM killer with cgroup ?v2",
            r"OOM killer is disabled for the container, but no memory limit is set",
        ),
        causes=(OOM_DISABLE, _OOM_DISABLE_ALONE),
        tell_apart="stat -fc %T /sys/fs/cgroup; docker inspect -f '{{.HostConfig.OomKillDisable}} "
        "{{.HostConfig.Memory}}' CONTAINER",
        sources=("moby issue 42865",),
        cases=("ME-004", "ME-005"),
    ),
    Symptom(
        id="host-memory-refused",
        title="The host refuses memory",
        patterns=(
            r"std::bad_alloc",
            r"Cannot allocate memory(?!.{0,30}(ibv|mlx5))",
            r"vm\.overcommit",
            r"mmap.{0,30}(failed|cannot allocate)",
        ),
        causes=(HOST_MEMORY_LIMIT, _OVERCOMMIT, MEMLOCK, PIDS),
        tell_apart=f"{_EVENTS}; cat /proc/sys/vm/overcommit_memory; ulimit -a",
        sources=("kernel overcommit documentation",),
    ),
)
