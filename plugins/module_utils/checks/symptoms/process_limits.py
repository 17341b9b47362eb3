# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of a process: locked memory, huge pages, tasks, open files. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .memory import MEMLOCK, PIDS

_HUGEPAGES = Cause(
    id="hugepages-not-reserved",
    title="Huge pages are not reserved, not mounted, or limited to 0",
    why="They must be reserved on the host (per NUMA node), be mounted in the container, and in "
    "Kubernetes be asked for.",
    proof="grep -i huge /proc/meminfo; cat "
    "/sys/devices/system/node/node*/hugepages/*/free_hugepages; "
    "docker exec CONTAINER mount | grep huge",
    shows="HugePages_Total 0, or no mount",
    fix="Reserve them at boot, mount /dev/hugepages into the container.",
    commands=(
        "sysctl -w vm.nr_hugepages=1024",
        "docker run -v /dev/hugepages:/dev/hugepages IMAGE",
    ),
    sources=("kernel hugetlbpage documentation",),
    hints=(r"huge",),
)

_PIDS_ZERO = Cause(
    id="runc-pids-limit-zero",
    title="runc 1.4 takes pids.limit 0 for a real limit",
    why="0 used to mean unlimited; since 1.4.0 it is a limit (1 with systemd).",
    proof="runc --version; docker inspect -f '{{.HostConfig.PidsLimit}}' CONTAINER",
    shows="runc 1.4 or newer and a limit of 0",
    fix="Leave the limit out, or use -1.",
    commands=("docker run --pids-limit -1 IMAGE",),
    sources=("runc CHANGELOG 1.4.0 (4949)",),
    cases=("RC-010",),
    hints=(r"runc (upgrade|1\.4)", r"limit\D{0,4}0\b"),
    holds=holds.rules_out(holds.version("runc", ">=1.4.0")),
)

_NOFILE = Cause(
    id="nofile-limit",
    title="The limit of open files changed with the engine",
    why="containerd 2.1.5 and Docker 29 leave containers a soft limit of 1024; earlier units gave "
    "about a billion.",
    proof="docker exec CONTAINER sh -c 'ulimit -Sn; ulimit -Hn'; systemctl show -p LimitNOFILE "
    "containerd docker",
    shows="1024",
    fix="--ulimit nofile=65536:524288 per container, or default-ulimits in daemon.json.",
    commands=("docker run --ulimit nofile=65536:524288 IMAGE",),
    sources=("Docker release notes 29.0", "containerd issue 7566"),
    hints=(r"too many open files", r"docker 29", r"containerd 2"),
    holds=holds.rules_out(holds.version("docker", ">=29.0")),
)

NOFILE_INFINITY = Cause(
    id="unit-nofile-infinity",
    title="LimitNOFILE=infinity in the engine's unit",
    why="Newer kernels and systemd turn it into about a billion; programs that walk or allocate "
    "per "
    "possible descriptor get slow or use gigabytes.",
    proof="systemctl show -p LimitNOFILE docker containerd; docker exec CONTAINER sh -c 'ulimit "
    "-n'",
    shows="infinity or 1073741816",
    fix="LimitNOFILE=1024:524288 in the unit, and more per container where it is needed.",
    commands=(
        "systemctl edit containerd",
        "systemctl daemon-reload",
    ),
    sources=("containerd issue 7566", "home-assistant/operating-system issue 2476"),
    cases=("CG-016",),
    hints=(r"infinity", r"descriptor", r"slow|gigabytes"),
)

SYMPTOMS = (
    Symptom(
        id="memlock",
        title="Memory cannot be locked or registered",
        patterns=(
            r"cudaHostAlloc.{0,40}(failed|error|out of memory)",
            r"(cudaMallocHost|pinned memory|page-locked).{0,60}(fail|error|cannot|out of)",
            r"ibv_(create_cq|reg_mr|create_qp|alloc_pd)\w*\(?\)? ?(failed)?:? ?.{0,20}"
            r"(Cannot allocate memory|failed)",
            r"mlock.{0,40}(Cannot allocate|Operation not permitted|failed)",
            r"(RLIMIT_)?MEMLOCK.{0,60}(too (low|small)|limit|exceed)",
            r"failed to (register|pin|lock) (memory|buffer)",
            r"cudaHostRegister.{0,60}(failed|error|out of memory)",
            r"cudaErrorHostMemoryAlreadyRegistered|CUDA_ERROR_HOST_MEMORY\w+",
        ),
        causes=(MEMLOCK,),
        tell_apart="docker exec CONTAINER sh -c 'ulimit -l; ls /dev/infiniband'; systemctl show -p "
        "LimitMEMLOCK docker containerd",
        sources=("openucx/ucx PR 7221",),
        cases=("ME-008",),
    ),
    Symptom(
        id="hugepages",
        title="Huge pages are missing",
        patterns=(
            r"huge ?pages?.{0,60}(not (available|enough|reserved)|no "
            r"free|insufficient|failed|cannot)",
            r"(no|failed|cannot|could not).{0,40}huge ?pages?",
            r"EAL: No (free|available).{0,30}hugepages",
            r"hugetlb.{0,40}(fail|limit|exceed|error)",
        ),
        causes=(_HUGEPAGES,),
        tell_apart="grep -i huge /proc/meminfo; cat "
        "/sys/devices/system/node/node*/hugepages/*/free_hugepages",
        sources=("kernel hugetlbpage documentation",),
    ),
    Symptom(
        id="cannot-fork",
        title="The container cannot start processes or threads",
        patterns=(
            r"cannot fork",
            r"fork(:|\(\)).{0,30}(Resource temporarily unavailable|retry)",
            r"can.?t start new thread",
            r"pthread_create failed|failed to create (new OS )?thread",
            r"pids\.(max|limit)",
            r"Resource temporarily unavailable.{0,40}(fork|thread|clone)",
            r"libgomp: Thread creation failed|OpenBLAS blas_thread_init",
        ),
        causes=(_PIDS_ZERO, PIDS),
        tell_apart="docker inspect -f '{{.HostConfig.PidsLimit}}' CONTAINER; runc --version; cat "
        "/sys/fs/cgroup/system.slice/docker-*.scope/pids.max",
        sources=("runc CHANGELOG 1.4.0",),
        cases=("RC-010",),
    ),
    Symptom(
        id="too-many-open-files",
        title="Too many open files",
        patterns=(
            r"too many open files",
            r"EMFILE",
            r"received 0 items of ancdata",
            r"nofile.{0,40}(1024|soft limit|limit)",
        ),
        causes=(_NOFILE,),
        tell_apart="docker exec CONTAINER sh -c 'ulimit -Sn; ulimit -Hn'; docker version -f "
        "'{{.Server.Version}}'; systemctl show -p LimitNOFILE containerd docker",
        sources=("Docker release notes 29.0",),
    ),
    Symptom(
        id="descriptor-walkers-slow",
        title="Programs are very slow or use gigabytes at start",
        patterns=(
            r"walk or allocate per possible descriptor",
            r"LimitNOFILE ?= ?infinity",
            r"(billion|1073741816).{0,60}(descriptors?|open files|nofile)",
            r"extremely slow or use gigabytes",
        ),
        causes=(NOFILE_INFINITY,),
        tell_apart="systemctl show -p LimitNOFILE docker containerd; docker exec CONTAINER sh -c "
        "'ulimit -n'",
        sources=("containerd issue 7566",),
        cases=("CG-016",),
    ),
)
