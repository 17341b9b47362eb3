# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Multicast over NVLink, NCCL releases, and DMA remapping between GPUs. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .nccl import ACS, NET, VERSIONS

_FABRIC = (
    "systemctl status nvidia-fabricmanager --no-pager; nvidia-smi -q | grep -A4 -i fabric; "
    "NCCL_NVLS_ENABLE=0 all_reduce_perf -b 8 -e 64M -f 2 -g 8"
)

NVLS = Cause(
    id="nvls-fabric-state",
    title="The fabric manager was restarted without a reset of the GPUs",
    why="NVLink multicast (NVLS) lives in the fabric's state, which a restarted fabric manager no "
    "longer shares with GPUs that were in use meanwhile.",
    proof=_FABRIC,
    shows="the test passes with NCCL_NVLS_ENABLE=0",
    fix="Stop all jobs and the fabric manager, reset all GPUs (or reboot), start the fabric "
    "manager, then the jobs. NCCL_NVLS_ENABLE=0 gets along without, slower.",
    commands=("export NCCL_NVLS_ENABLE=0",),
    sources=("NVIDIA/nccl issues 976, 1488 and 1788", "NVIDIA/nccl-tests issue 276"),
    hints=(r"nvls|multicast", r"restart"),
)

_RELEASES = Cause(
    id="nccl-releases-differ",
    title="The ranks load different NCCL releases",
    why="All ranks of a communicator need the same release; images, pip wheels and "
    "LD_LIBRARY_PATH bring several.",
    proof='docker exec CONTAINER sh -c \'find / -xdev -name "libnccl.so*"; echo $LD_LIBRARY_PATH '
    "$LD_PRELOAD'",
    shows="several libnccl.so.2, or another on each host",
    fix="Use one image (by digest) on all hosts and one libnccl in it.",
    commands=("docker inspect -f '{{.Image}}' CONTAINER",),
    sources=("nccl src/init.cc",),
    hints=(r"mismatch", r"version"),
)

_IOMMU = Cause(
    id="iommu-translates-p2p",
    title="The IOMMU or ACS sends traffic between GPUs through the root complex",
    why="On bare metal P2P needs untranslated DMA: with the IOMMU translating, or ACS on in the "
    "bridges, transfers hang or give wrong data.",
    proof="cat /proc/cmdline; lspci -vvv | grep -i acsctl | grep -c 'SrcValid+'; dmesg | grep -iE "
    "'iommu|dmar|AMD-Vi' | head -5",
    shows="an IOMMU that is on without iommu=pt, or bridges with SrcValid+",
    fix="Boot with iommu=pt (or the IOMMU off) and switch ACS off on bare metal; in a VM leave "
    "both to the host.",
    commands=(
        "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub",
        "update-grub",
    ),
    sources=("NCCL troubleshooting, PCI access control services",),
    hints=(r"iommu", r"wrong results|corrupt"),
)

SYMPTOMS = (
    Symptom(
        id="nccl-virtual-interface",
        title="NCCL has chosen a bridge or virtual interface",
        patterns=(
            r"(NET/Socket|Bootstrap|NCCL INFO).{0,40}Using (\[0\])?"
            r"(docker|br-|virbr|lo:|cni|flannel|veth|cali|podman|lxc)\S{0,40}",
        ),
        causes=(NET,),
        tell_apart="ip -br addr; env | grep NCCL_SOCKET_IFNAME; NCCL_DEBUG=INFO PROGRAM 2>&1 | "
        "grep -E 'NET/|Bootstrap'",
        sources=("NCCL user guide, NCCL_SOCKET_IFNAME",),
    ),
    Symptom(
        id="nccl-nvls",
        title="NVLink multicast (NVLS) fails",
        patterns=(
            r"transport/nvls\.cc.{0,80}(WARN|failure)",
            r"(NVLink SHARP|NVLS).{0,40}(failed|failure|error)",
            r"Failed to bind NVLink SHARP",
            r"Cuda failure 401",
            r"cuMulticast\w+.{0,60}(fail|error)",
        ),
        causes=(NVLS,),
        tell_apart=_FABRIC,
        sources=("NVIDIA/nccl issue 1788",),
    ),
    Symptom(
        id="nccl-version-mismatch",
        title="NCCL releases differ between ranks",
        patterns=(
            r"Mismatched NCCL version",
            r"NCCL version.{0,40}(mismatch|differ)",
            r"libnccl.{0,60}undefined symbol|undefined symbol: nccl",
        ),
        causes=(_RELEASES, VERSIONS),
        tell_apart="NCCL_DEBUG=VERSION PROGRAM 2>&1 | grep -i 'NCCL version'",
        sources=("nccl src/init.cc",),
    ),
    Symptom(
        id="p2p-wrong-data",
        title="P2P hangs or gives wrong data",
        patterns=(
            r"\b(p2p|peer)[\w-]{0,30}.{0,60}\b(wrong (results|data)|corrupt\w*|hangs?)\b",
            r"(all_?reduce|nccl).{0,60}wrong results",
            r"iommu.{0,60}(p2p|peer|nccl).{0,40}(hang|wrong|corrupt|slow)",
        ),
        causes=(_IOMMU, ACS),
        tell_apart="cat /proc/cmdline; lspci -vvv | grep ACSCtl; nvidia-smi topo -p2p r",
        sources=("NCCL troubleshooting",),
    ),
)
