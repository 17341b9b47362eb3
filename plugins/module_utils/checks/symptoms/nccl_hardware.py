# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL and the machine: InfiniBand, topology files, NUMA balancing, the IOMMU. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .nccl import ACS, DEBUG, MEMLOCK, NO_IB, NUMA_BALANCING, TOPO_XML

_IB_GID = Cause(
    id="roce-gid-or-link",
    title="The RoCE GID, MTU or link of the RDMA card is wrong",
    why="A wrong NCCL_IB_GID_INDEX, differing MTUs, a port that is down, or a lossy fabric time "
    "out.",
    proof="ibv_devinfo -v | grep -E 'hca_id|state|active_mtu|GID'; show_gids",
    shows="PORT_DOWN, another MTU, or no RoCE v2 GID at that index",
    fix="Leave NCCL_IB_GID_INDEX unset with a current NCCL (2.21), choose the ports by "
    "NCCL_IB_HCA, "
    "check PFC/ECN and cables.",
    commands=("export NCCL_IB_HCA=mlx5",),
    sources=("NCCL user guide, NCCL_IB_GID_INDEX",),
    hints=(r"status=12|error 12|retry", r"gid", r"ibv_", r"roce"),
)

SYMPTOMS = (
    Symptom(
        id="nccl-ib",
        title="NCCL and RDMA do not go together",
        patterns=(
            r"NET/IB ?: ?(No device found|Got completion|Unable|failed)",
            r"Got completion .{0,60}(with error|status=) ?(12|5|4|10)",
            r"Failed to open libibverbs",
            r"(NCCL|RCCL).{0,60}(falls? back|fell back) to (sockets?|TCP)",
            r"ibv_(modify_qp|reg_mr|poll_cq|open_device)\w*.{0,60}(failed|error)",
            r"local catastrophic error|transport retry counter exceeded",
        ),
        causes=(NO_IB, _IB_GID, MEMLOCK),
        tell_apart=f"{DEBUG} PROGRAM 2>&1 | grep NET/; docker exec CONTAINER sh -c 'ls "
        "/dev/infiniband; ulimit -l; ibv_devinfo'",
        sources=("NCCL user guide, networking",),
    ),
    Symptom(
        id="nccl-topology",
        title="NCCL does not like its topology file",
        patterns=(
            r"Could not find busid",
            r"topology file of (another|a different|the wrong)",
            r"NCCL_TOPO_FILE.{0,80}(wrong|stale|not match|missing|other|invalid|incomplete)",
            r"keep cpu and pci tags",
            r"(Could not (open|find)|failed to (parse|open|load)) .{0,40}(topo\w*\.xml|XML "
            r"topology|"
            r"NCCL_TOPO_FILE)",
            r"NCCL WARN.{0,60}(XML|topo)",
            r"Attribute .{0,20} of node .{0,30} not found",
            r"Could not find (real )?path of",
        ),
        causes=(TOPO_XML,),
        tell_apart="steadygpu nccl; echo $NCCL_TOPO_FILE; xmllint --noout $NCCL_TOPO_FILE",
        sources=("nccl src/graph/topo.cc",),
    ),
    Symptom(
        id="numa-balancing-on",
        title="NUMA balancing is on",
        patterns=(
            r"NUMA (auto ?)?balancing (is |was |left )?(on|enabled)",
            r"NUMA auto balancing",
            r"jitter on large GPU nodes",
            r"numa_balancing ?= ?1",
        ),
        causes=(NUMA_BALANCING,),
        tell_apart="cat /proc/sys/kernel/numa_balancing",
        sources=("ROCm/rccl PR 696",),
        cases=("TP-013",),
    ),
    Symptom(
        id="iommu-pt-missing",
        title="iommu=pt is missing",
        patterns=(r"Missing .?iommu=pt", r"IO_PAGE_FAULT", r"DMAR:? .{0,60}(fault|DRHD)"),
        causes=(ACS,),
        tell_apart="cat /proc/cmdline; dmesg | grep -iE 'iommu|dmar' | tail",
        sources=("ROCm/rccl issue 1129",),
    ),
)
