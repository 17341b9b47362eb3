# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks and networks beside GPUs: throttles, GPUDirect Storage, RDMA. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

WEIGHT_INERT = Cause(
    id="io-weights-inert",
    title="No disk of this host honours weights",
    why="io.weight needs iocost (io.cost.qos enable=1) or the BFQ scheduler on the disk.",
    proof="cat /sys/fs/cgroup/io.cost.qos; grep . /sys/block/*/queue/scheduler",
    shows="no enable=1, and no [bfq]",
    fix="Choose BFQ for the disk, or enable iocost on it.",
    commands=("echo bfq >/sys/block/DISK/queue/scheduler",),
    sources=("kernel cgroup-v2 documentation, io", "runc cgroups/fs2/io.go"),
    hints=(r"weight",),
    holds=lambda host: None if host.weights_work is None else not host.weights_work,
)

THROTTLE_DROPPED = Cause(
    id="device-throttle-dropped",
    title="The client silently drops --device-read-bps and its kin",
    why="A fault of the CLI in 26.1.4 to 27.1.1; 27.1.2 has the fix.",
    proof="docker version -f '{{.Client.Version}}'; docker inspect -f '{{json "
    ".HostConfig.BlkioDeviceReadBps}}' CONTAINER",
    shows="such a client, and [] or null",
    fix="Upgrade the client, use Compose's blkio_config, or write io.max by hand.",
    commands=("docker inspect -f '{{json .HostConfig.BlkioDeviceReadBps}}' CONTAINER",),
    sources=("cli opts/throttledevice.go, commit 946d1097b8", "seen on Docker 26.1.5"),
    hints=(r"bps|iops", r"26\.1|27\.[01]"),
    holds=holds.version("docker_cli", ">=26.1.4,<27.1.2"),
)

_BUFFERED = Cause(
    id="io-max-buffered",
    title="Buffered writes are not throttled here",
    why="Write-back is accounted to the group on ext4, btrfs and xfs of current kernels with v2 "
    "only, "
    "and the limit must name the disk, not a partition.",
    proof="cat /sys/fs/cgroup/system.slice/docker-*.scope/io.max; lsblk -o NAME,MAJ:MIN",
    shows="no line, or a partition",
    fix="Name the whole disk; test with direct I/O.",
    commands=("lsblk -o NAME,MAJ:MIN",),
    sources=("kernel cgroup-v2 documentation, write-back",),
    hints=(r"throttl|limit",),
)

GDS_MODULE = Cause(
    id="gds-module-missing",
    title="nvidia_fs is not loaded, or its nodes are not in the container",
    why="GPUDirect Storage then works in compatibility mode, through host memory: slower, not "
    "wrong. "
    "From CUDA 12.8 with open modules and a new kernel NVMe works by PCI P2PDMA without it.",
    proof="lsmod | grep nvidia_fs; ls /dev/nvidia-fs*; gdscheck -p",
    shows="no module, no nodes",
    fix="Load it on the host and pass /dev/nvidia-fs* (NVIDIA_GDS=enabled with the nvidia runtime, "
    "or a CDI spec made with mode gds); use ext4 or xfs on local NVMe.",
    commands=(
        "modprobe nvidia_fs",
        "docker run --gpus all -e NVIDIA_GDS=enabled IMAGE gdscheck -p",
    ),
    sources=("rapidsai/kvikio issue 283", "NVIDIA GPUDirect Storage documentation"),
    cases=("IO-003",),
    hints=(r"nvidia[-_]fs", r"compat"),
    holds=holds.module("nvidia_fs", loaded=False),
)

_GDS_MOUNT = Cause(
    id="gds-file-system",
    title="The file system or its mount is not served by GPUDirect Storage",
    why="overlayfs, tmpfs and most network file systems are not; ext4 needs data=ordered.",
    proof="df -T PATH; mount | grep PATH; gdscheck -p",
    shows="overlay, or Unsupported",
    fix="Mount the data from the host (-v), on ext4 or xfs of local NVMe or a supported parallel "
    "file "
    "system.",
    commands=("gdscheck -p",),
    sources=("NVIDIA GPUDirect Storage documentation",),
    hints=(r"overlay|unsupported|file ?system",),
)

PEERMEM = Cause(
    id="gpudirect-rdma-module",
    title="nvidia_peermem is not loaded",
    why="GPUDirect RDMA needs it (or DMA-BUF of current kernels with open modules); it loads only "
    "after the RDMA core, and with MLNX_OFED's symbols.",
    proof="lsmod | grep -E 'nvidia_peermem|ib_core'; modinfo nvidia_peermem; dmesg | grep peermem",
    shows="no module, or Invalid argument",
    fix="modprobe nvidia_peermem (after OFED, reinstall the driver if it was built before it).",
    commands=(
        "modprobe nvidia_peermem",
        "echo nvidia_peermem >/etc/modules-load.d/nvidia-peermem.conf",
    ),
    sources=("NVIDIA GPUDirect RDMA documentation",),
    hints=(r"peermem|peer_mem|GPUDirect RDMA|GDR",),
    holds=holds.module("nvidia_peermem", loaded=False),
)

RDMA_NODES = Cause(
    id="rdma-incomplete",
    title="The container has rdma_cm without the verbs devices, or lacks memlock",
    why="/dev/infiniband/uverbsN carries the data; rdma_cm alone sets up connections.",
    proof="docker exec CONTAINER sh -c 'ls /dev/infiniband; ulimit -l; ibv_devinfo'",
    shows="no uverbs, or a memlock limit",
    fix="--device=/dev/infiniband (all of it) --ulimit memlock=-1 --cap-add IPC_LOCK.",
    commands=(
        "docker run --device=/dev/infiniband --ulimit memlock=-1 --cap-add IPC_LOCK IMAGE "
        "ibv_devinfo",
    ),
    sources=("rdma-core, ibv_reg_mr(3)",),
    hints=(r"rdma_cm|uverbs|infiniband|ibv",),
)

RDMA_PROVIDER = Cause(
    id="rdma-provider-missing",
    title="The image has no provider library for the card",
    why="libibverbs loads libmlx5 and others from rdma-core; an older one does not know the "
    "kernel's "
    "interface.",
    proof="docker exec CONTAINER sh -c 'ls /etc/libibverbs.d /usr/lib/*/libibverbs'; cat "
    "/sys/class/infiniband_verbs/abi_version",
    shows="no driver file for the card",
    fix="Install ibverbs-providers (rdma-core) of the image's distribution.",
    commands=("apt-get install ibverbs-providers rdma-core",),
    sources=("rdma-core documentation",),
    hints=(r"couldn.?t load driver|no userspace device-specific driver|libmlx5",),
)

_RDMA_NS = Cause(
    id="rdma-netns-exclusive",
    title="The RDMA device lives in another network name space",
    why="With rdma system netns exclusive a device belongs to one; RoCE needs the container to "
    "have "
    "the network interface as well.",
    proof="rdma system; rdma link; docker inspect -f '{{.HostConfig.NetworkMode}}' CONTAINER",
    shows="netns exclusive, or bridge",
    fix="--network=host, or move the device (SR-IOV CNI with RDMA).",
    commands=("rdma system",),
    sources=("rdma-system(8)",),
    hints=(r"netns|gid|roce",),
)

SYMPTOMS = (
    Symptom(
        id="io-limit-no-effect",
        title="An I/O weight or throttle has no effect",
        patterns=(
            r"(blkio|io)[-. _]?weight.{0,80}(no effect|ignored|not (honou?red|supported)|inert)",
            r"device-(read|write)-(bps|iops).{0,80}(no effect|ignored|not|silently|dropped)",
            r"kernel does not support (cgroup )?(blkio|Block I/O|BPS|IOPS)\S{0,80}",
            r"(throttle|I/O limit|io\.max).{0,60}(no effect|ignored|not applied)",
            r"io\.(bfq\.)?weight.{0,40}(no such file|not found|not supported)",
            r"io\.(bfq\.)?weight: (invalid argument|numerical result)",
            r"weights? (get|have|give|make)\w* (the same|no|equal) (share|bandwidth|speed|effect)",
            r"(writes?|reads?) (are|is) .{0,20}faster than the limit",
            r"(limit|throttle).{0,40}(ignored|not applied|no effect).{0,40}(buffered|page cache)",
        ),
        causes=(WEIGHT_INERT, THROTTLE_DROPPED, _BUFFERED),
        tell_apart="docker version -f '{{.Client.Version}}'; cat /sys/fs/cgroup/io.cost.qos; "
        "grep . "
        "/sys/block/*/queue/scheduler; cat /sys/fs/cgroup/system.slice/docker-*.scope/io.max",
        sources=("kernel cgroup-v2 documentation, io",),
    ),
    Symptom(
        id="gds-compat",
        title="GPUDirect Storage works in compatibility mode",
        patterns=(
            r"gdscheck.{0,80}(unsupported|fail|not)",
            r"NVMe ?: ?Unsupported",
            r"nvidia-fs(\.ko)?.{0,40}(not loaded|not found|missing)",
            r"cuFile.{0,80}(compat|fail|error|unsupported)",
            r"compat(ibility)? mode.{0,40}(cufile|gds)",
            r"GPUDirect Storage.{0,60}(not|unsupported|fail|compat)",
        ),
        causes=(GDS_MODULE, _GDS_MOUNT),
        tell_apart="lsmod | grep nvidia_fs; ls /dev/nvidia-fs*; gdscheck -p; df -T PATH",
        sources=("rapidsai/kvikio issue 283",),
        cases=("IO-003",),
    ),
    Symptom(
        id="gpudirect-rdma",
        title="GPUDirect RDMA is not used",
        patterns=(
            r"nvidia[-_]peermem.{0,60}(not|fail|error|invalid|cannot)",
            r"could not insert .?nvidia_peermem",
            r"GPU ?Direct RDMA.{0,60}(disabled|not (available|supported|enabled|used))",
            r"GDR 0\b|GDRDMA.{0,40}(disabled|not)",
            r"nv_peer_mem.{0,60}(not|fail)",
        ),
        causes=(PEERMEM,),
        tell_apart="lsmod | grep -E 'peermem|ib_core'; dmesg | grep peermem; modinfo -F license "
        "nvidia; "
        "uname -r",
        sources=("NVIDIA GPUDirect RDMA documentation",),
    ),
    Symptom(
        id="rdma-in-container",
        title="RDMA does not work in the container",
        patterns=(
            r"No IB devices found|no RDMA devices? (found|available)",
            r"Failed to get IB devices list",
            r"libibverbs: Warning: (couldn.?t (load|open)|no userspace)",
            r"/dev/infiniband/\S{1,80}.{0,40}(no such file|permission|not permitted|missing)",
            r"rdma_cm.{0,60}(fail|error|no such device)",
            r"(falls?|fell) back to TCP",
            r"UCX\s+(ERROR|WARN).{0,100}(transport|ib|mlx5|rdma)",
        ),
        causes=(RDMA_NODES, RDMA_PROVIDER, _RDMA_NS),
        tell_apart="ibv_devinfo; docker exec CONTAINER sh -c 'ls -l /dev/infiniband; ulimit -l; "
        "ibv_devinfo'; rdma system",
        sources=("rdma-core documentation",),
    ),
)
