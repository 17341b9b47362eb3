# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""WSL, Jetson, image builds, and what depends on the order of a boot. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .causes import UVM_MAJOR, UVM_MISSING
from .cdi import STALE
from .nvml_refused import NOT_LOADED

WSL_DRIVER = Cause(
    id="wsl-driver",
    title="Under WSL the driver is that of Windows",
    why="libcuda and libnvidia-ml come from /usr/lib/wsl/lib; a Linux driver package in the "
    "distribution "
    "hides them, and WSL 1 or an old Windows driver has no GPU.",
    proof="ls /usr/lib/wsl/lib; ls -l /dev/dxg; dpkg -l | grep -E 'nvidia-(driver|utils)|libcuda'",
    shows="no /dev/dxg, or driver packages in the distribution",
    fix="Remove Linux driver packages, update Windows' driver and WSL (wsl --update), use WSL 2.",
    commands=("/usr/lib/wsl/lib/nvidia-smi -L", "wsl.exe --update"),
    sources=("CUDA on WSL user guide",),
    hints=(r"wsl|dxg|microsoft",),
)

OS_BLOCKS = Cause(
    id="gpu-blocked-by-system",
    title="The operating system does not let the driver have the GPU",
    why="Under WSL the Windows side is busy or asleep; on bare metal another driver (vfio) has it.",
    proof="uname -r; lspci -nnk -d 10de:; ls -l /dev/dxg",
    shows="a microsoft kernel, or vfio-pci",
    fix="Restart WSL (wsl --shutdown), or give the card back to the NVIDIA driver.",
    commands=("wsl.exe --shutdown",),
    sources=("CUDA on WSL user guide",),
    hints=(r"blocked by the operating system",),
)

JETSON = Cause(
    id="jetson-needs-nvidia-runtime",
    title="A Jetson's GPU comes with the nvidia runtime in csv mode",
    why="It is no PCI card: libraries are mounted from lists in /etc/nvidia-container-runtime/"
    "host-files-for-container.d, and the image must be made for the host's L4T release.",
    proof="cat /etc/nv_tegra_release; ls "
    "/etc/nvidia-container-runtime/host-files-for-container.d; docker "
    "info -f '{{.DefaultRuntime}}'",
    shows="an L4T release other than the image's, or the runtime runc",
    fix="--runtime nvidia with an l4t image of the host's release (or a CDI spec of mode csv).",
    commands=("docker run --runtime nvidia --rm nvcr.io/nvidia/l4t-base:r36.2.0 true",),
    sources=("NVIDIA Container Toolkit documentation, Jetson", "dusty-nv/jetson-containers"),
    hints=(r"jetson|tegra|l4t|orin|xavier|nvmap|nvhost",),
)

BUILD = Cause(
    id="gpu-in-image-build",
    title="docker build gives no GPU",
    why="BuildKit does not use the default runtime or --gpus; code that asks for a GPU at build "
    "time "
    "finds none.",
    proof="docker buildx version; grep -n -iE 'nvidia-smi|cuda|setup.py' Dockerfile",
    shows="a RUN that needs the driver",
    fix="Build for named architectures without a GPU (TORCH_CUDA_ARCH_LIST, "
    "CMAKE_CUDA_ARCHITECTURES), or "
    "use RUN --device=nvidia.com/gpu=all with BuildKit 0.20 and a CDI spec.",
    commands=("docker build --build-arg TORCH_CUDA_ARCH_LIST=8.0 .",),
    sources=("BuildKit documentation, CDI devices",),
    hints=(r"build",),
)

BOOT_ORDER = Cause(
    id="unit-docker-order",
    title="Containers start before the driver, its nodes or the CDI spec are ready",
    why="docker.service does not wait for nvidia-persistenced, nvidia-cdi-refresh, the fabric "
    "manager or "
    "MIG; restart policies give up or start without a GPU.",
    proof="systemd-analyze critical-chain docker.service; journalctl -b -u docker -u "
    "nvidia-persistenced "
    "-u nvidia-cdi-refresh --no-pager | head -30",
    shows="docker before the others",
    fix="Order docker after them (After= and Wants= in a drop-in of docker.service).",
    commands=(
        "mkdir -p /etc/systemd/system/docker.service.d",
        "printf '[Unit]\\nAfter=nvidia-persistenced.service nvidia-cdi-refresh.service\\n"
        "Wants=nvidia-persistenced.service nvidia-cdi-refresh.service\\n' "
        ">/etc/systemd/system/docker.service.d/gpu-order.conf",
        "systemctl daemon-reload",
    ),
    sources=("NVIDIA/nvidia-docker issue 526", "systemd.unit(5)"),
    hints=(r"boot|reboot|restart: always|unless-stopped",),
)

SUSPEND = Cause(
    id="gpu-after-suspend",
    title="The GPU's state did not survive a suspend",
    why="Processes that had it open block the reload of nvidia-uvm after the host wakes up.",
    proof="journalctl -b | grep -iE 'PM: (suspend|resume)|NVRM' | tail; lsmod | grep nvidia_uvm",
    shows="a resume before the fault",
    fix="Stop GPU containers before a suspend; reload nvidia_uvm; enable nvidia-suspend and "
    "nvidia-resume with NVreg_PreserveVideoMemoryAllocations=1.",
    commands=(
        "modprobe -r nvidia_uvm",
        "modprobe nvidia_uvm",
        "systemctl enable nvidia-suspend nvidia-resume nvidia-hibernate",
    ),
    sources=("NVIDIA driver README, power management", "NixOS/nixpkgs issue 334180"),
    hints=(r"suspend|resume|sleep|hibernat|wake",),
)

ENGINE_PLAN = Cause(
    id="tensorrt-engine-of-other-gpu",
    title="The TensorRT engine was built on another GPU or version",
    why="Engines are bound to the GPU's architecture and the TensorRT version unless built "
    "otherwise.",
    proof="nvidia-smi --query-gpu=name,compute_cap --format=csv; python3 -c 'import tensorrt; "
    "print(tensorrt.__version__)'",
    shows="another GPU or version than at build time",
    fix="Build it on this GPU with this version.",
    commands=("trtexec --onnx=MODEL.onnx --saveEngine=MODEL.plan",),
    sources=("TensorRT developer guide, compatibility",),
    hints=(r"engine|plan|tensorrt",),
)

SYMPTOMS = (
    Symptom(
        id="wsl",
        title="The GPU is not usable under WSL",
        patterns=(
            r"WSL environment detected but no adapters were found",
            r"GPU access blocked by the operating system",
            r"libdxcore\S{0,80}.{0,40}(not found|cannot open|no such)",
            r"/dev/dxg.{0,40}(no such|missing|fail)",
            r"dxgk\w*: .{0,40}(fail|error)",
        ),
        causes=(WSL_DRIVER, OS_BLOCKS),
        tell_apart="uname -r; ls -l /dev/dxg /usr/lib/wsl/lib; /usr/lib/wsl/lib/nvidia-smi -L",
        sources=("CUDA on WSL user guide",),
    ),
    Symptom(
        id="jetson",
        title="The GPU of a Jetson is not usable in the container",
        patterns=(
            r"NvRm\w+.{0,60}(fail|error)|NvRmMemInit",
            r"/dev/(nvmap|nvhost\S{0,80}).{0,60}(no such|permission|fail|cannot)",
            r"libnvrm\w*\.so\S{0,80}.{0,40}(not found|cannot open)",
            r"host-files-for-container|l4t\.csv",
            r"(jetson|tegra|orin|xavier).{0,80}(no (CUDA|GPU)|not "
            r"(found|detected|available)|fail|unresolvable)",
        ),
        causes=(JETSON, STALE),
        tell_apart="cat /etc/nv_tegra_release; docker info -f '{{.DefaultRuntime}}'; ls "
        "/etc/nvidia-container-runtime/host-files-for-container.d",
        sources=("NVIDIA Container Toolkit documentation, Jetson",),
    ),
    Symptom(
        id="gpu-in-build",
        title="An image build finds no GPU",
        patterns=(
            r"(docker build|buildx|buildkit|Dockerfile).{0,120}(no (CUDA|GPU)|nvidia-smi|not "
            r"(found|"
            r"available|detected)|libcuda)",
            r"RUN .{0,80}nvidia-smi.{0,80}(not found|fail|error|exit code)",
            r"(no GPU|GPU is not available).{0,40}(during|at|in) (the )?build",
        ),
        causes=(BUILD,),
        tell_apart="docker buildx version; docker info -f '{{.DefaultRuntime}}'",
        sources=("BuildKit documentation, CDI devices",),
    ),
    Symptom(
        id="gpu-at-boot",
        title="GPU containers fail at boot and work later",
        patterns=(
            r"(containers?|services?|pods?) .{0,60}(fail|exit|do(es)? not start|start "
            r"without|lose)\w*.{0,40}"
            r"(at|on|after|during) (the |a |every |host |node )?(re)?boot",
            r"(after|at) (a |the |host |node "
            r")?(re)?boot.{0,60}(containers?|GPU|docker).{0,60}(fail|not start|"
            r"no GPU|missing|exit|until)",
            r"works? (only )?after (a )?(manual )?restart(ing)?( of)? (docker|the container)",
            r"/dev/char (sym)?links? (vanish|gone|missing|lost)",
        ),
        causes=(BOOT_ORDER, UVM_MISSING, STALE, UVM_MAJOR, NOT_LOADED),
        tell_apart="systemd-analyze critical-chain docker.service; ls -l --time-style=full-iso "
        "/dev/nvidia* "
        "/var/run/cdi /etc/cdi; journalctl -b -u docker --no-pager | head",
        sources=("NVIDIA/nvidia-docker issue 526",),
    ),
    Symptom(
        id="gpu-after-suspend",
        title="The GPU does not work after a suspend",
        patterns=(
            r"(after|since) "
            r".{0,20}(suspend\w*|resume\w*|sleep|hibernat\w*|wak\w+).{0,100}(cuda|gpu|nvidia|"
            r"container)",
            r"(cuda|gpu|nvidia).{0,100}(after|since) "
            r".{0,20}(suspend\w*|resume\w*|sleep\b|hibernat\w*)",
        ),
        causes=(SUSPEND, UVM_MISSING),
        tell_apart="journalctl -b | grep -iE 'suspend|resume|NVRM' | tail; lsmod | grep nvidia_uvm",
        sources=("NVIDIA driver README, power management",),
    ),
    Symptom(
        id="tensorrt-engine",
        title="A TensorRT engine does not load",
        patterns=(
            r"engine plan file is (not compatible|generated on an incompatible device)",
            r"(deserializeCudaEngine|IRuntime::deserialize\w*).{0,80}(fail|error)",
            r"Version tag does not match",
        ),
        causes=(ENGINE_PLAN,),
        tell_apart="nvidia-smi --query-gpu=name,compute_cap --format=csv; python3 -c 'import "
        "tensorrt; "
        "print(tensorrt.__version__)'",
        sources=("TensorRT developer guide, compatibility",),
    ),
)
