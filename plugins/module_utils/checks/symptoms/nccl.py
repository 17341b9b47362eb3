# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL and RCCL: hangs, shared memory, networks, versions. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .fabric import FM_MISSING

DEBUG = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV,NET"

ACS = Cause(
    id="acs-redirects",
    title="ACS or the IOMMU redirects traffic between GPUs through the root complex",
    why="Switches with ACS send peer traffic to the CPU: P2P gets slow, or hangs on bare metal.",
    proof="lspci -vvv | grep -E '^[0-9a-f]|ACSCtl' | grep -B1 'SrcValid+'; cat /proc/cmdline",
    shows="ACSCtl with ReqRedir+ CmpltRedir+ on bridges above GPUs, or an IOMMU without iommu=pt",
    fix="On bare metal switch ACS (or VT-d / AMD IOMMU) off in the firmware, or clear it at each "
    "boot; iommu=pt helps where the IOMMU must stay on. In virtual machines ACS must stay.",
    commands=(
        "for b in $(lspci -d '*:*:0604' | cut -d' ' -f1); do setpci -s $b ECAP_ACS+6.w=0000; done",
    ),
    sources=("NVIDIA/nccl issues 304 and 2079", "NCCL troubleshooting"),
    cases=("TP-001",),
    hints=(r"acs", r"iommu", r"ReqRedir\+", r"SrcValid\+"),
)

P2P_BROKEN = Cause(
    id="consumer-p2p-hang",
    title="P2P does not work between these boards",
    why="GeForce boards without NVLink (reported for pairs of RTX 4090) hang in P2P; some drivers "
    "announce it all the same.",
    proof="nvidia-smi topo -p2p r; NCCL_P2P_DISABLE=1 all_reduce_perf -b 8 -e 128M -f 2 -g 2",
    shows="the test passes with P2P switched off",
    fix="Set NCCL_P2P_DISABLE=1 for these hosts, and update the driver.",
    commands=("export NCCL_P2P_DISABLE=1",),
    sources=("NVIDIA/nccl-tests issue 117", "dmlc/xgboost issue 11242"),
    cases=("TP-003",),
    hints=(r"4090|geforce|30[89]0|50[89]0", r"p2p"),
)

SHM = Cause(
    id="shm-too-small",
    title="/dev/shm of the container is too small",
    why="Docker gives 64 MiB; NCCL and DataLoader workers share more than that.",
    proof="docker exec CONTAINER df -h /dev/shm",
    shows="64M, full or nearly",
    fix="Use --shm-size=1g and more (shm_size: in Compose, an emptyDir with medium Memory in "
    "Kubernetes), or --ipc=host.",
    commands=("docker run --gpus all --shm-size=8g IMAGE",),
    sources=("NVIDIA/nccl issues 342 and 290", "NCCL troubleshooting, shared memory"),
    hints=(r"shm", r"no space left", r"bus error", r"docker"),
)

_SHM_RIGHTS = Cause(
    id="shm-permissions",
    title="/dev/shm cannot be written, or its files are removed",
    why="Wrong mode, another user, or systemd's RemoveIPC at the end of a session.",
    proof="ls -ld /dev/shm; loginctl show-user $USER -p Linger; grep RemoveIPC "
    "/etc/systemd/logind.conf",
    shows="a mode other than 1777, or RemoveIPC=yes for a user without linger",
    fix="Mode 1777; RemoveIPC=no or a system user for long jobs.",
    commands=("chmod 1777 /dev/shm",),
    sources=("NVIDIA/nccl issue 328",),
    hints=(r"permission denied", r"no such file"),
)

NET = Cause(
    id="nccl-interface",
    title="NCCL uses the wrong network interface",
    why="It takes the first that is up; docker0, a VPN or a management network does not reach the "
    "others.",
    proof=f"{DEBUG} PROGRAM 2>&1 | grep -E 'NET/|Bootstrap'; ip -br addr",
    shows="Bootstrap or NET/Socket with an interface that the other hosts do not reach",
    fix="Set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) to the right one, or ^docker0,lo; use the "
    "host's network for jobs on several hosts.",
    commands=("export NCCL_SOCKET_IFNAME=^lo,docker0",),
    sources=("NCCL user guide, environment variables",),
    hints=(r"socket", r"connect", r"refused", r"timed? ?out", r"no route"),
)

_FIREWALL = Cause(
    id="nccl-ports-blocked",
    title="A firewall or the container network blocks the ports",
    why="NCCL opens ports of the ephemeral range between all ranks, beside the master's port.",
    proof="nc -vz HOST PORT; iptables -S | head; docker inspect -f '{{.HostConfig.NetworkMode}}' "
    "CONTAINER",
    shows="a refused or hanging connection between hosts",
    fix="Use --network=host, or open the ephemeral range between the hosts.",
    commands=("docker run --network=host --gpus all IMAGE",),
    sources=("NCCL user guide, networking",),
    hints=(r"refused", r"timed? ?out", r"unreachable"),
)

VERSIONS = Cause(
    id="nccl-versions-differ",
    title="The ranks use different versions of NCCL, or of the image",
    why="All ranks must agree; LD_LIBRARY_PATH or a plugin may bring another one.",
    proof=f"{DEBUG} PROGRAM 2>&1 | grep 'NCCL version'; python3 -c 'import torch; "
    "print(torch.cuda.nccl.version())'",
    shows="two versions",
    fix="Use one image on all hosts, and no NCCL of the host in the path.",
    commands=("pip list | grep -i nccl",),
    sources=("NCCL user guide, errors",),
    hints=(r"version", r"invalid usage", r"mismatch"),
)

_ONE_FAILED = Cause(
    id="nccl-peer-died",
    title="Another rank has failed first",
    why="The rank that complains is often not the one with the fault; the others wait for it.",
    proof="grep -lE 'OutOfMemory|Traceback|Xid|Killed' LOGS; dmesg | grep -E 'Xid|oom' | tail",
    shows="an earlier error of another rank (memory, a killed process, an Xid)",
    fix="Look for the first error of all ranks; set TORCH_NCCL_ASYNC_ERROR_HANDLING=1 and a "
    "timeout "
    "that suits the job.",
    commands=("export TORCH_NCCL_DUMP_ON_TIMEOUT=1",),
    sources=("PyTorch documentation, NCCL environment variables",),
    hints=(r"remote process", r"watchdog", r"timeout", r"peer"),
)

DUPLICATE_GPU = Cause(
    id="nccl-duplicate-gpu",
    title="Two ranks use the same GPU",
    why="Each process must choose its own (LOCAL_RANK), or two containers have the same one "
    "(count: 1 in each gives GPU 0).",
    proof="nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv; env | grep -E 'RANK|VISIBLE'",
    shows="two processes on one UUID",
    fix="torch.cuda.set_device(LOCAL_RANK), one rank per GPU, distinct device_ids per container.",
    commands=("torchrun --nproc-per-node=$(nvidia-smi -L | wc -l) PROGRAM",),
    sources=("NCCL user guide, invalid usage",),
    hints=(r"duplicate gpu", r"invalid usage"),
)

FLAT = Cause(
    id="topo-flat",
    title="The virtual machine hides the real topology",
    why="The hypervisor shows no switches and no NUMA; NCCL builds its graph from that flat view.",
    proof="nvidia-smi topo -m; systemd-detect-virt; echo $NCCL_TOPO_FILE; ls "
    "/var/run/nvidia-topologyd",
    shows="PHB (or SYS) between all GPUs, in a virtual machine, and no topology file",
    fix="Give NCCL the real layout through NCCL_TOPO_FILE (cloud images ship one) and mount it "
    "into "
    "containers.",
    commands=("steadygpu topo", "export NCCL_TOPO_FILE=/etc/nccl/topo.xml"),
    sources=("NVIDIA/nccl issues 1843 and 1464", "NVIDIA/nccl-tests issue 86"),
    cases=("TP-004",),
    hints=(r"PHB\s+PHB", r"\bvm\b|virtual machine|azure|cloud", r"flat"),
)

TOPO_XML = Cause(
    id="nccl-topology-file",
    title="The topology file is broken, incomplete or of another machine",
    why="It is read before detection: wrong bus ids, a missing cpu tag or a file of other hardware "
    "pins wrong paths or stops NCCL.",
    proof="steadygpu nccl; xmllint --noout $NCCL_TOPO_FILE",
    shows="what does not belong to this machine",
    fix="Write the file of this machine, or unset NCCL_TOPO_FILE.",
    commands=("unset NCCL_TOPO_FILE",),
    sources=("nccl src/graph/topo.cc",),
    hints=(r"xml", r"topo", r"graph"),
)

NO_IB = Cause(
    id="nccl-ib-not-in-container",
    title="The RDMA devices are not usable in the container",
    why="It needs /dev/infiniband/uverbs*, memlock without limit, and libibverbs in the image. "
    "Without them NCCL goes by sockets, slowly and without an error.",
    proof=f"{DEBUG} PROGRAM 2>&1 | grep -E 'NET/IB|NET/Socket'; docker exec CONTAINER ls "
    "/dev/infiniband",
    shows="NET/IB : No device found, while the host has some",
    fix="--device=/dev/infiniband --ulimit memlock=-1 --cap-add IPC_LOCK, and rdma-core in the "
    "image.",
    commands=("docker run --gpus all --device=/dev/infiniband --ulimit memlock=-1 IMAGE",),
    sources=("NCCL user guide, networking",),
    hints=(r"NET/IB", r"libibverbs", r"infiniband|rdma|roce"),
)

MEMLOCK = Cause(
    id="memlock-limit",
    title="The memlock limit stops the registration of memory",
    why="RDMA pins its buffers; engines start containers with 64 MiB or less.",
    proof="docker exec CONTAINER sh -c 'ulimit -l'",
    shows="a number instead of unlimited",
    fix="--ulimit memlock=-1, or default-ulimits in daemon.json.",
    commands=("docker run --ulimit memlock=-1 --device=/dev/infiniband IMAGE",),
    sources=("openucx/ucx PR 7221",),
    hints=(r"cannot allocate memory", r"reg_mr", r"create_cq"),
)

NUMA_BALANCING = Cause(
    id="numa-balancing-on",
    title="Automatic NUMA balancing moves the pages of pinned buffers",
    why="Page migration works against GPU jobs: jitter, and hangs were reported with RCCL.",
    proof="cat /proc/sys/kernel/numa_balancing",
    shows="1",
    fix="Set kernel.numa_balancing = 0 on dedicated GPU hosts.",
    commands=(
        "sysctl -w kernel.numa_balancing=0",
        "echo 'kernel.numa_balancing = 0' >/etc/sysctl.d/90-gpu.conf",
    ),
    sources=("ROCm/rccl PR 696", "awslabs/amazon-eks-ami issue 2741"),
    cases=("TP-013",),
    hints=(r"numa", r"balancing"),
    holds=holds.sysctl("kernel.numa_balancing", "1"),
)

HANG = (P2P_BROKEN, ACS, SHM, _ONE_FAILED, NET, NUMA_BALANCING)

_NCCL_MEMORY = Cause(
    id="nccl-no-gpu-memory",
    title="There is no GPU memory left for NCCL's buffers",
    why="Each communicator takes some hundred MiB; frameworks that reserve all memory first leave "
    "none.",
    proof="nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv; nvidia-smi "
    "--query-compute-apps=pid,used_memory --format=csv",
    shows="used memory near the total",
    fix="Lower the framework's share (vLLM: --gpu-memory-utilization), or end other GPU jobs.",
    commands=("nvidia-smi",),
    sources=("NCCL troubleshooting",),
    hints=(r"out of memory",),
)

SYMPTOMS = (
    Symptom(
        id="nccl-hang",
        title="A collective hangs",
        patterns=(
            r"all_?reduce(_perf)?\S{0,80} (hangs?|(is )?stuck|never (returns|ends))",
            r"(NCCL|RCCL|collectives?).{0,60}\bhang(s|ing)?\b",
            r"Watchdog caught collective operation timeout",
            r"ProcessGroupNCCL.{0,120}(timeout|timed out)",
            r"NCCL.{0,40}(timed out|timeout)",
            r"multi-?GPU.{0,60}hang(s|ing)?",
        ),
        causes=HANG,
        tell_apart=f"nvidia-smi topo -p2p r; lspci -vvv | grep ACSCtl; {DEBUG} all_reduce_perf "
        f"-b 8 "
        "-e 64M -f 2 -g 2; NCCL_P2P_DISABLE=1 all_reduce_perf -b 8 -e 64M -f 2 -g 2; dmesg | tail",
        sources=("NCCL troubleshooting",),
        cases=("TP-001", "TP-003"),
    ),
    Symptom(
        id="p2p-slow",
        title="P2P or GPU to NIC bandwidth is far too low",
        patterns=(
            r"topologyd.{0,60}missing",
            r"poor (NCCL|all_?reduce|collective|P2P) (bandwidth|performance)",
            r"(NCCL|all_?reduce|collective|multi-?GPU).{0,60}\b(slow|slower)\b",
            r"GPU(s)? (and|to|-) ?NIC.{0,40}(different|wrong|other) (NUMA|socket|switch)",
            r"P2P bandwidth (collapses|is (low|poor|bad)|drops)",
            r"(bus|all_?reduce|nccl|gpu-nic|P2P).{0,40}bandwidth (is )?(far |much |very "
            r")?(below|low|"
            r"poor|collaps)",
            r"bandwidth far below bare metal",
            r"NCCL picks poor GPU-NIC pairs",
            r"(PHB|SYS|flat topology).{0,60}(everywhere|between all)",
        ),
        causes=(FLAT, ACS, NO_IB, NUMA_BALANCING),
        tell_apart="nvidia-smi topo -m; systemd-detect-virt; lspci -vvv | grep ACSCtl; cat "
        "/proc/cmdline /proc/sys/kernel/numa_balancing; echo $NCCL_TOPO_FILE",
        sources=("NVIDIA/nccl issue 1843",),
        cases=("TP-001", "TP-004"),
    ),
    Symptom(
        id="nccl-shm",
        title="NCCL or a worker finds no room in shared memory",
        patterns=(
            r"Error while (creating|attaching to) shared memory segment",
            r"posix_fallocate failed ?: ?No space left",
            r"shm_open failed|failed to (open|extend) (shared memory|/dev/shm)",
            r"insufficient shared memory \(shm\)",
            r"DataLoader worker .{0,60}killed by signal: Bus error",
            r"\bBus error\b",
            r"/dev/shm.{0,60}(full|too small|no space|64M)",
            r"unable to (open|mmap|write).{0,20}shared memory object",
        ),
        causes=(SHM, _SHM_RIGHTS),
        tell_apart="docker exec CONTAINER sh -c 'df -h /dev/shm; ls -ld /dev/shm; ls /dev/shm'",
        sources=("NCCL troubleshooting, shared memory",),
    ),
    Symptom(
        id="nccl-system-error",
        title="NCCL: unhandled system error",
        patterns=(
            r"unhandled system error",
            r"ncclSystemError",
            r"NCCL WARN (Call to|socket|Net|Bootstrap|Connect)",
            r"(NET/Socket|ncclSocket\w*|bootstrap\w*).{0,80}(failed|refused|timed out|no "
            r"route|no socket)",
            r"Bootstrap ?: ?no socket interface found",
            r"Connection (refused|timed out|reset by peer|closed by remote "
            r"peer).{0,60}(nccl|rank|gloo)",
            r"NCCL.{0,60}Connection (refused|timed out|reset|closed)",
        ),
        causes=(SHM, NET, _FIREWALL, MEMLOCK, VERSIONS),
        tell_apart=f"{DEBUG} PROGRAM 2>&1 | grep -E 'WARN|NET/|Bootstrap'; df -h /dev/shm; ip -br "
        "addr; ulimit -l",
        sources=("NCCL user guide, errors",),
    ),
    Symptom(
        id="nccl-remote-error",
        title="NCCL: another rank went away",
        patterns=(
            r"ncclRemoteError",
            r"remote process exited or there was a network error",
            r"NCCL communicator was aborted",
            r"ncclInternalError|internal error - please report this issue to the NCCL",
        ),
        causes=(_ONE_FAILED, NET, TOPO_XML, VERSIONS),
        tell_apart=f"{DEBUG} PROGRAM 2>&1 | grep -E 'WARN|version'; dmesg | grep -E 'Xid|oom' | "
        f"tail",
        sources=("NCCL user guide, errors",),
    ),
    Symptom(
        id="nccl-invalid-usage",
        title="NCCL: invalid usage",
        patterns=(
            r"ncclInvalidUsage|\binvalid usage\b.{0,60}(nccl|run with)",
            r"Duplicate GPU detected",
            r"ncclInvalidArgument",
        ),
        causes=(DUPLICATE_GPU, VERSIONS),
        tell_apart="nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv; env | grep -E "
        "'RANK|VISIBLE|NCCL'",
        sources=("NCCL user guide, errors",),
    ),
    Symptom(
        id="nccl-cuda-error",
        title="NCCL: unhandled CUDA error",
        patterns=(
            r"unhandled cuda error",
            r"ncclUnhandledCudaError",
            r"NCCL WARN Cuda failure",
            r"peer access is not supported between these two devices",
            r"cudaErrorPeerAccess\w+|CUDA_ERROR_PEER_ACCESS\w+",
            r"P2P is disabled between",
        ),
        causes=(
            P2P_BROKEN,
            Cause(
                id="ipc-namespaces-differ",
                title="Two ranks in two containers do not share what P2P needs",
                why="CUDA IPC between containers needs one IPC name space and both GPUs visible to "
                "both; cuMem handles need the same.",
                proof="docker inspect -f '{{.HostConfig.IpcMode}} {{.HostConfig.PidMode}}' "
                "CONTAINER",
                shows="private IPC on both",
                fix="--ipc=host (and --pid=host with cuMem), or NCCL_P2P_DISABLE=1.",
                commands=("docker run --ipc=host --gpus all IMAGE",),
                sources=("NCCL troubleshooting",),
                hints=(r"ipc", r"containers"),
            ),
            _NCCL_MEMORY,
            FM_MISSING,
            ACS,
            VERSIONS,
        ),
        tell_apart=f"{DEBUG} PROGRAM 2>&1 | grep WARN; nvidia-smi topo -p2p r; nvidia-smi -L",
        sources=("NCCL user guide, errors",),
    ),
)
