# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes that stand behind several messages. Data."""

from __future__ import annotations

from ..explain import Cause
from . import holds

CUDA_TOO_NEW = Cause(
    id="image-cuda-newer-than-driver",
    title="The image is built for a newer CUDA than the driver serves",
    why="NVIDIA_REQUIRE_CUDA of the image, or the CUDA runtime in it, is above the driver's level "
    "(CUDA 12 needs driver 525, CUDA 13 needs 580).",
    proof="nvidia-smi --version; docker image inspect -f '{{.Config.Env}}' IMAGE | tr ' ' '\\n' | "
    "grep CUDA",
    shows="a CUDA version of the image above the driver's CUDA version",
    fix="Upgrade the host's driver or use an image at or below its CUDA level. "
    "NVIDIA_DISABLE_REQUIRE only hides it.",
    commands=("nvidia-smi --version",),
    sources=("NVIDIA/nvidia-container-toolkit issue 152", "CUDA minor version compatibility"),
    cases=("TK-014",),
    hints=(r"cuda ?>= ?\d+", r"driver_cuda", r"NVIDIA_REQUIRE"),
)

TOOLKIT_MIXED = Cause(
    id="toolkit-packages-differ",
    title="The four toolkit packages are of different versions",
    why="nvidia-container-toolkit, its -base, libnvidia-container-tools and libnvidia-container1 "
    "are released together; older packaging let them drift apart.",
    proof="dpkg -l 'nvidia-container*' 'libnvidia-container*' || rpm -qa '*nvidia-container*'",
    shows="more than one version",
    fix="Install all four at one version, in one transaction, and hold them as a set.",
    commands=(
        "V=$(apt-cache policy nvidia-container-toolkit | awk '/Candidate/{print $2}')",
        "apt-get install --allow-downgrades --allow-change-held-packages "
        "nvidia-container-toolkit=$V nvidia-container-toolkit-base=$V "
        "libnvidia-container-tools=$V libnvidia-container1=$V",
    ),
    sources=("NVIDIA/nvidia-container-toolkit issue 1091", "NVIDIA/nvidia-docker issue 1492"),
    cases=("TK-018", "RB-001"),
    hints=(r"libnvidia-container", r"downgrad", r"partial"),
)

UVM_MISSING = Cause(
    id="uvm-missing",
    title="nvidia-uvm is not loaded or has no device nodes",
    why="CUDA needs /dev/nvidia-uvm, NVML and nvidia-smi do not. On headless hosts nobody loads "
    "it, and a container cannot.",
    proof="lsmod | grep nvidia_uvm; ls -l /dev/nvidia-uvm; grep nvidia-uvm /proc/devices",
    shows="no module, no node, or a node with another major than /proc/devices",
    fix="Load it and make its nodes at boot (nvidia-modprobe -u -c 0, or nvidia-persistenced), "
    "then recreate the containers.",
    commands=("nvidia-modprobe -u -c 0", "test -c /dev/nvidia-uvm"),
    sources=("NVIDIA/enroot issue 106", "pytorch/pytorch issue 49081"),
    cases=(
        "TK-044",
        "DR-001",
    ),
    hints=(
        r"uvm(?!.{0,40}major)",
        r"nvidia-smi works",
        r"headless",
        r"after boot",
        r"(run|ran|once) as root|as root once",
        r"lsmod.{0,20}\[.{0,3}nvidia.{0,3}\]",
    ),
    holds=holds.module("nvidia_uvm", loaded=False),
)

UVM_MAJOR = Cause(
    id="uvm-major-stale",
    title="The container has nvidia-uvm with an old major number",
    why="The major of nvidia-uvm is given at load time. A CDI spec or container from before a "
    "reboot or driver reload may carry another one: the node opens nothing, or is denied.",
    proof="grep nvidia-uvm /proc/devices; grep -A3 nvidia-uvm /etc/cdi/*.yaml /var/run/cdi/*.yaml; "
    "docker exec CONTAINER ls -l /dev/nvidia-uvm",
    shows="another major in the spec or container than in /proc/devices",
    fix="Regenerate the CDI spec and recreate the container.",
    commands=("nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",),
    sources=("NVIDIA/nvidia-container-toolkit issues 1934, 1743 and 1967",),
    cases=("TK-027", "TK-044"),
    hints=(r"major", r"major\D{1,9}\d{3}", r"reboot", r"privileged", r"1\.19\.1"),
)

TOOLKIT_1191 = Cause(
    id="toolkit-cuda-999",
    title="Toolkit 1.19.1 was reported to break cuInit where 1.19.0 worked",
    why="Reported with 1.19.1 and 1.20.0, root cause open. 1.19.1 is also the floor of "
    "CVE-2026-24260, so going back has a price.",
    proof="nvidia-ctk --version; grep nvidia-uvm /proc/devices",
    shows="1.19.1 or newer, while the major of nvidia-uvm is right",
    fix="Check nvidia-uvm's node and major first; hold 1.19.0 only with that CVE accepted.",
    sources=("NVIDIA/nvidia-container-toolkit issue 1967",),
    cases=("TK-027",),
    hints=(r"1\.19\.1", r"1\.20\.0"),
    holds=holds.rules_out(holds.version("toolkit", ">=1.19.1")),
)

SICK_GPU = Cause(
    id="gpu-error",
    title="A GPU is lost, hung or waits for a reset",
    why="One defective GPU that a process can see may stop CUDA for all of them.",
    proof="nvidia-smi -L; nvidia-smi -q | grep -iE 'lost|reset|err'; dmesg | grep -E 'Xid' | tail",
    shows="an error for one GPU, or an Xid",
    fix="Take the GPU out of service, give containers others by UUID, and follow the Xid's action.",
    sources=("NVIDIA Xid documentation", "rapidsai/velox-testing PR 315"),
    cases=("CP-012",),
    hints=(r"defective", r"\bXid\b", r"privileged"),
    holds=holds.gpu_error,
)

PRIVILEGED_SEES_ALL = Cause(
    id="privileged",
    title="privileged gives the container every device node",
    why="The selection by --gpus or NVIDIA_VISIBLE_DEVICES then has no effect: all /dev/nvidia* "
    "are "
    "there, a defective GPU included.",
    proof="docker inspect -f '{{.HostConfig.Privileged}}' CONTAINER; docker exec CONTAINER ls /dev",
    shows="true, and every /dev/nvidiaN",
    fix="Leave out privileged and add the one capability that is needed (--cap-add).",
    sources=("NVIDIA/nvidia-docker issues 764 and 1083", "rapidsai/velox-testing PR 315"),
    cases=("CO-004", "CP-012"),
    hints=(r"privileged",),
)

RECREATE = ("docker compose up -d --force-recreate",)
