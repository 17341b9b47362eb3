# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""AMD, Intel and Gaudi accelerators. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .engine_gpu import DESKTOP

RENDER_GROUP = Cause(
    id="rocm-render-group",
    title="The group render has another number in the image than on the host",
    why="Names are resolved inside the image; access is decided by number.",
    proof="stat -c '%g %a %n' /dev/kfd /dev/dri/renderD*; docker run --rm --entrypoint getent "
    "IMAGE "
    "group render video",
    shows="two numbers",
    fix="--group-add with the host's number, or a udev rule that opens the nodes (MODE=0666).",
    commands=(
        "docker run --device=/dev/kfd --device=/dev/dri --group-add $(stat -c %g /dev/kfd) "
        "--group-add $(stat -c %g /dev/dri/renderD128) IMAGE rocminfo",
    ),
    sources=("ROCm/ROCm-docker issues 116 and 90",),
    cases=("AI-001",),
    hints=(r"\brender\b",),
)

NO_NODES = Cause(
    id="rocm-devices-missing",
    title="The container has not got /dev/kfd and /dev/dri",
    why="ROCm needs both; /dev/dri alone is enough for video and Vulkan only.",
    proof="docker exec CONTAINER ls -l /dev/kfd /dev/dri",
    shows="no such file",
    fix="--device=/dev/kfd --device=/dev/dri, or --device amd.com/gpu=all with AMD's toolkit.",
    commands=(
        "docker run --device=/dev/kfd --device=/dev/dri --security-opt seccomp=unconfined "
        "IMAGE rocminfo",
    ),
    sources=("ROCm installation documentation, Docker",),
    hints=(r"kfd", r"no such file"),
)

NO_DRIVER = Cause(
    id="amdgpu-driver-missing",
    title="The host's amdgpu driver is not loaded, or too old for the user space",
    why="Without /dev/kfd on the host no container can have it; ROCm supports a window of releases "
    "between kernel driver and user space.",
    proof="lsmod | grep amdgpu; cat /sys/module/amdgpu/version; ls -l /dev/kfd; dmesg | grep "
    "amdgpu | "
    "tail",
    shows="no module or an old one",
    fix="Install amdgpu-dkms of the release, or a newer kernel and its firmware.",
    commands=("modprobe amdgpu",),
    sources=("ROCm compatibility matrix",),
    hints=(r"kernel driver", r"not loaded", r"ROCk"),
)

GFX = Cause(
    id="rocm-unsupported-gfx",
    title="The libraries have no code for this GPU",
    why="Consumer cards and APUs are not in every build.",
    proof="rocminfo | grep -m2 gfx; python3 -c 'import torch; print(torch.cuda.get_arch_list())'",
    shows="a gfx number that is not in the list",
    fix="Use a build that has it; HSA_OVERRIDE_GFX_VERSION of a near relative works for some.",
    commands=("export HSA_OVERRIDE_GFX_VERSION=10.3.0",),
    sources=("ROCm compatibility matrix",),
    hints=(r"gfx\d+", r"no kernel image|device function|TensileLibrary"),
)

_HSA_SECCOMP = Cause(
    id="rocm-seccomp-or-memory",
    title="The container lacks what ROCm uses beside the nodes",
    why="Peer access needs ptrace and IPC, pinned memory needs memlock and shared memory.",
    proof="docker inspect -f '{{.HostConfig.SecurityOpt}} {{.HostConfig.IpcMode}} "
    "{{.HostConfig.ShmSize}}' CONTAINER",
    shows="the defaults",
    fix="--ipc=host (or --shm-size), --cap-add SYS_PTRACE, --ulimit memlock=-1.",
    commands=(
        "docker run --device=/dev/kfd --device=/dev/dri --ipc=host --cap-add SYS_PTRACE IMAGE",
    ),
    sources=("ROCm installation documentation, Docker",),
    hints=(r"out_of_resources|HSA_STATUS",),
)

_VISIBLE = Cause(
    id="rocm-visible-devices",
    title="HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES hides the GPU, and isolates nothing",
    why="They filter what a process enumerates: an index that does not exist leaves none, and any "
    "process can unset them.",
    proof="env | grep -E 'HIP|ROCR|CUDA_VISIBLE'; rocminfo | grep -c gfx",
    shows="a wrong index",
    fix="Leave them unset, and give single render nodes: --device=/dev/dri/renderD128.",
    commands=("unset HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES",),
    sources=("ROCm documentation, GPU isolation",),
    hints=(r"VISIBLE_DEVICES",),
)

_AMD_RESET = Cause(
    id="amdgpu-reset",
    title="The GPU hung and was reset",
    why="A ring or a queue did not answer; programs on it have lost their state.",
    proof="dmesg | grep -E 'amdgpu' | tail -20",
    shows="ring timeout, GPU reset",
    fix="End the programs, update firmware and driver; test the card when it comes again.",
    commands=("dmesg | grep amdgpu | tail -20",),
    sources=("kernel amdgpu documentation",),
    hints=(r"ring \S{1,80} timeout|gpu reset|amdgpu_job_timedout",),
)

HABANA_RUNTIME = Cause(
    id="habana-runtime-missing",
    title="The habana runtime is not installed or not defined",
    why="It is called habana (not habanalabs) and comes with habana-container-runtime.",
    proof="docker info -f '{{json .Runtimes}}'; command -v habana-container-runtime",
    shows="no habana",
    fix="Install habanalabs-container-runtime, define the runtime habana in daemon.json, restart "
    "docker.",
    commands=("apt-get install habanalabs-container-runtime", "systemctl restart docker"),
    sources=("HabanaAI/habana-container-runtime README", "HabanaAI/Model-References issues 7, 28"),
    hints=(r"habana",),
)

HABANA_BUSY = Cause(
    id="habana-device-busy",
    title="No free Gaudi device",
    why="A process holds it, or two services ask for HABANA_VISIBLE_DEVICES=all.",
    proof="hl-smi; lsof /dev/accel/accel* | head",
    shows="a process on the device",
    fix="End it, and give each service devices (and HABANA_VISIBLE_MODULES) of its own.",
    commands=("hl-smi",),
    sources=("opea-project/GenAIExamples issues 137 and 739",),
    hints=(r"acquire", r"already acquired|busy"),
)

HABANA_VERSION = Cause(
    id="habana-versions-differ",
    title="Driver, firmware and image are of different SynapseAI releases",
    why="The image must be of the driver's release.",
    proof="hl-smi | head -4; docker image ls | grep habana",
    shows="two release numbers",
    fix="Use the image of the driver's release, or upgrade the driver and firmware.",
    commands=("hl-smi",),
    sources=("Intel Gaudi support matrix",),
    hints=(r"version|release|\d\.\d\d\.\d",),
)

INTEL = Cause(
    id="intel-gpu-driver",
    title="The Intel card's driver, firmware or render node is missing",
    why="i915 or xe must drive it, and the user needs the render group's number; compute needs the "
    "Level Zero and OpenCL packages in the image.",
    proof="ls -l /dev/dri/by-path; lspci -nnk | grep -A3 -iE 'vga|display'; docker exec "
    "CONTAINER sh -c "
    "'id; clinfo -l; sycl-ls'",
    shows="no render node, or a group that is missing",
    fix="--device=/dev/dri --group-add $(stat -c %g /dev/dri/renderD128), and intel-opencl-icd "
    "in the "
    "image.",
    commands=("docker run --device=/dev/dri --group-add $(stat -c %g /dev/dri/renderD128) IMAGE",),
    sources=("Intel compute-runtime documentation",),
    hints=(r"intel|i915|\bxe\b|level zero|renderD",),
)

SYMPTOMS = (
    Symptom(
        id="kfd-permission",
        title="/dev/kfd or a render node may not be opened",
        patterns=(
            r"Unable to open /dev/kfd",
            r"/dev/(kfd|dri\S{0,80}).{0,60}Permission denied",
            r"Permission denied.{0,60}/dev/(kfd|dri)",
            r"user is not (a )?member of .?render",
            r"is not member of .{0,10}(render|video).{0,10} group",
            r"Device not accessible as non-root",
            r"amdgpu_device_initialize failed|failed to open (drm|render) (device|node)",
        ),
        causes=(RENDER_GROUP, DESKTOP, NO_NODES),
        tell_apart="stat -c '%g %a %n' /dev/kfd /dev/dri/*; docker exec CONTAINER sh -c 'id; ls "
        "-ln "
        "/dev/kfd /dev/dri'; docker context ls",
        sources=("ROCm/ROCm-docker issue 116",),
        cases=("AI-001", "AI-003"),
    ),
    Symptom(
        id="rocm-no-device",
        title="ROCm finds no GPU",
        patterns=(
            r"amd-ctk.{0,80}(outdated|stale|unresolvable|fail|not found)",
            r"No AMD GPUs specified",
            r"amd-?gpu.{0,40}(not loaded|no such device)",
            r"hipErrorNoDevice|no ROCm-capable device",
            r"HSA_STATUS_ERROR\w*",
            r"hsa_init.{0,40}fail",
            r"ROCk module is NOT loaded",
            r"No HIP GPUs are available",
            r"(rocminfo|rocm-smi|amd-smi).{0,60}(no (GPU|devices?)|fail|error|unable)",
            r"/dev/kfd.{0,20}(no such file|does not exist|missing)",
            r"no AMD GPUs? (found|detected)",
            r"Incompatible kernel and userspace",
        ),
        causes=(NO_NODES, NO_DRIVER, RENDER_GROUP, _VISIBLE, _HSA_SECCOMP),
        tell_apart="ls -l /dev/kfd /dev/dri; lsmod | grep amdgpu; docker exec CONTAINER sh -c "
        "'id; ls "
        "-ln /dev/kfd /dev/dri; env | grep VISIBLE; rocminfo | head'",
        sources=("ROCm installation documentation, Docker",),
    ),
    Symptom(
        id="rocm-no-kernel",
        title="ROCm has no code for this GPU",
        patterns=(
            r"hipErrorNoBinaryForGpu",
            r"hipErrorInvalidDeviceFunction",
            r"rocBLAS error: Cannot read \S{0,80}Tensile\S{0,80}",
            r"TensileLibrary\S{0,80}.{0,60}(gfx\d+|illegal seek|no such file)",
            r"HIP error: (invalid device function|the operation cannot be performed)",
        ),
        causes=(GFX,),
        tell_apart="rocminfo | grep gfx; python3 -c 'import torch; print(torch.version.hip, "
        "torch.cuda.get_arch_list())'",
        sources=("ROCm compatibility matrix",),
    ),
    Symptom(
        id="amdgpu-hang",
        title="An AMD GPU hung",
        patterns=(
            r"amdgpu.{0,60}(ring \S{1,80} timeout|GPU reset|job timedout|VM fault|page fault)",
            r"hipErrorLaunchFailure|HIP error: unspecified launch failure",
            r"Memory access fault by GPU node",
        ),
        causes=(_AMD_RESET,),
        tell_apart="dmesg | grep amdgpu | tail -20",
        sources=("kernel amdgpu documentation",),
    ),
    Symptom(
        id="habana-runtime",
        title="The habana runtime is not known",
        patterns=(
            r"(Unknown runtime specified|unknown or invalid runtime name:?) habana\w*",
            r"habana\w*.{0,40}(runtime|hook).{0,40}(not found|no such|unknown)",
        ),
        causes=(HABANA_RUNTIME,),
        tell_apart="docker info -f '{{json .Runtimes}}'; command -v habana-container-runtime; "
        "hl-smi",
        sources=("HabanaAI/habana-container-runtime README",),
    ),
    Symptom(
        id="habana-acquire",
        title="A Gaudi device cannot be acquired",
        patterns=(
            r"Device acquire failed",
            r"synStatus ?= ?\d+",
            r"Device already acquired",
            r"(hl-smi|habanalabs).{0,60}(fail|error|no devices?|not loaded)",
            r"HABANA_VISIBLE_\w+.{0,60}(invalid|not found|error)",
            r"exposing interfaces: failed creating temporary link",
        ),
        causes=(HABANA_BUSY, HABANA_RUNTIME, HABANA_VERSION),
        tell_apart="hl-smi; ls -l /dev/accel; docker exec CONTAINER sh -c 'env | grep HABANA; ls "
        "/dev/accel'",
        sources=("opea-project/GenAIExamples issue 137",),
    ),
    Symptom(
        id="intel-gpu",
        title="An Intel GPU is not usable",
        patterns=(
            r"(vaInitialize|VAAPI|VA-API|va_openDriver).{0,60}(fail|error|unknown libva|-1)",
            r"No VA display found",
            r"PI_ERROR_\w+|UR_RESULT_ERROR_\w+|no (sycl|xpu) devices?",
            r"torch\.xpu.{0,40}(False|not available|0)",
            r"(Failed to open|No) (the )?(drm|DRM) device",
            r"(level[- ]zero|ze_?Init|clGetPlatformIDs|OpenCL).{0,60}(fail|error|no "
            r"(platform|device))",
            r"(i915|xe) .{0,80}(GUC|HUC|firmware|GPU HANG|wedged)",
            r"Failed to initialise VAAPI connection",
        ),
        causes=(INTEL, RENDER_GROUP),
        tell_apart="ls -l /dev/dri/by-path; dmesg | grep -E 'i915|xe ' | tail; docker exec "
        "CONTAINER sh "
        "-c 'id; ls -ln /dev/dri; vainfo'",
        sources=("Intel compute-runtime documentation",),
    ),
)
