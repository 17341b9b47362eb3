# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CUDA's errors while a program runs: memory, bad access, lost devices, libraries. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .causes import SICK_GPU

COUNT_IS_INDEX_0 = Cause(
    id="count-means-index-0",
    title="Every service with count: 1 gets GPU 0",
    why="A count of n becomes the indices 0 to n-1; the engine keeps no record of who has what.",
    proof="docker compose config | grep -A6 devices; nvidia-smi --query-compute-apps=gpu_uuid,pid,"
    "used_memory --format=csv",
    shows="several processes on GPU 0 while others are idle",
    fix="Give each service its own device_ids.",
    commands=("docker compose config",),
    sources=("moby daemon/devices_nvidia_linux.go",),
    cases=("CO-007",),
    hints=(r"count", r"idle", r"services?", r"compose"),
)

_OTHERS = Cause(
    id="gpu-memory-shared",
    title="Other processes have the memory of this GPU",
    why="Nothing divides the memory of a whole GPU; whoever comes first takes it. A killed job may "
    "have left a process behind.",
    proof="nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv; fuser -v "
    "/dev/nvidia*",
    shows="processes that are not this job's",
    fix="Give the job a GPU of its own, end what was left behind, or limit each tenant "
    "(MIG, MPS limits, driver 615's memory limits).",
    commands=("nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",),
    sources=("docs.nvidia.com/deploy/mps",),
    hints=(r"process \d+ has", r"other process"),
)

_TOO_BIG = Cause(
    id="model-larger-than-gpu-memory",
    title="The job needs more than the GPU has",
    why="Weights, KV cache and activations together. `--memory` of docker run limits the host's "
    "memory, not the GPU's.",
    proof="nvidia-smi --query-gpu=memory.total,memory.used --format=csv",
    shows="an otherwise free GPU",
    fix="Use a smaller batch, context or quantised model, or more GPUs; reserved and unused memory "
    "shrinks with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    commands=("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",),
    sources=("PyTorch CUDA memory management notes",),
    hints=(r"tried to allocate", r"kv cache", r"gpu_memory_utilization"),
)

_MIG_SMALL = Cause(
    id="mig-profile-too-small",
    title="The MIG device is smaller than the job thinks",
    why="A job in a 1g device has its slice of the memory, not the card's.",
    proof="nvidia-smi -L; nvidia-smi mig -lgi",
    shows="a small profile",
    fix="Use a bigger profile.",
    commands=("steadygpu mig show",),
    sources=("NVIDIA MIG user guide",),
    hints=(r"mig", r"\dg\.\d+gb"),
    holds=holds.rules_out(holds.mig_on),
)

_BUG = Cause(
    id="program-bad-access",
    title="The program reads or writes where it must not",
    why="The kernel of this or an earlier launch went out of bounds; the error shows late, because "
    "launches are asynchronous.",
    proof="CUDA_LAUNCH_BLOCKING=1 PROGRAM; compute-sanitizer PROGRAM; dmesg | grep -E "
    "'Xid.*(13|31)'",
    shows="the failing launch, and Xid 13 or 31 with the program's pid",
    fix="It is the program (or its library): update it. If many programs fail on one GPU only, "
    "test "
    "the GPU.",
    commands=("CUDA_LAUNCH_BLOCKING=1 compute-sanitizer PROGRAM",),
    sources=("NVIDIA Xid documentation, Xid 13 and 31",),
    hints=(r"illegal", r"assert", r"kernel"),
)

_TIMEOUT = Cause(
    id="kernel-timeout",
    title="A kernel ran too long on a GPU that drives a display",
    why="The watchdog of the display ends long kernels.",
    proof="nvidia-smi -q | grep -A1 'Display Active'",
    shows="Enabled",
    fix="Run long kernels on a GPU without a display.",
    sources=("CUDA driver API, error 702",),
    hints=(r"timed? ?out", r"\b702\b"),
)

_CUDNN = Cause(
    id="cuda-libraries-mixed",
    title="cuDNN, cuBLAS or the like are of another version than the program was built with",
    why="LD_LIBRARY_PATH or a second installation puts the host's or an older library first; "
    "running "
    "out of GPU memory gives the same words.",
    proof="echo $LD_LIBRARY_PATH; python3 -c 'import torch; "
    "print(torch.backends.cudnn.version())'; "
    "nvidia-smi",
    shows="a library directory of the host in the path, or a full GPU",
    fix="Leave LD_LIBRARY_PATH empty, use the libraries that came with the program, free GPU "
    "memory.",
    commands=("unset LD_LIBRARY_PATH",),
    sources=("PyTorch forums, CUDNN_STATUS_NOT_INITIALIZED",),
    hints=(r"cudnn", r"cublas", r"LD_LIBRARY_PATH"),
)

_MISSING_LIB = Cause(
    id="cuda-library-missing",
    title="A CUDA library is not in the image",
    why="The base and runtime images lack what devel has, and a program built for CUDA 12 looks "
    "for "
    "names that CUDA 11 or 13 does not have.",
    proof='docker run --rm --entrypoint sh IMAGE -c \'ldconfig -p | grep -E "cud|cublas|nv"; ls '
    "/usr/local | grep cuda'",
    shows="another major version, or nothing",
    fix="Use the runtime or devel image of the CUDA version the program was built for.",
    commands=("docker run --rm --entrypoint ldconfig IMAGE -p",),
    sources=("nvidia/cuda image documentation",),
    hints=(r"cannot open shared object", r"could not load dynamic library"),
)

_VIDEO = Cause(
    id="video-capability",
    title="NVIDIA_DRIVER_CAPABILITIES leaves out video",
    why="The codec libraries are mounted only with the capability video; the default is compute "
    "and "
    "utility.",
    proof="docker inspect -f '{{.Config.Env}}' CONTAINER | tr ' ' '\\n' | grep CAPABILITIES",
    shows="no video or all",
    fix="Set NVIDIA_DRIVER_CAPABILITIES=compute,video,utility (or all).",
    commands=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,video,utility IMAGE",),
    sources=("NVIDIA Container Toolkit documentation, driver capabilities",),
    hints=(r"compute,utility|capability video",),
)

_HOST_CODEC = Cause(
    id="host-lacks-codec-libraries",
    title="The host itself has no codec libraries",
    why="The toolkit mounts what the host has. Debian and Ubuntu split them into packages of their "
    "own, and headless or server metapackages leave them out.",
    proof="ldconfig -p | grep -E 'libnvcuvid|libnvidia-encode'",
    shows="nothing",
    fix="Install them on the host: libnvcuvid1 and libnvidia-encode1 on Debian, "
    "libnvidia-decode-BRANCH and libnvidia-encode-BRANCH on Ubuntu; regenerate the CDI spec.",
    commands=("apt-get install libnvcuvid1 libnvidia-encode1",),
    sources=("jellyfin/jellyfin issue 2395",),
    cases=("TK-013",),
    hints=(r"missing_host_libs|although all|CAPABILITIES\W{1,4}all",),
)

_NVENC_LIMIT = Cause(
    id="nvenc-session-limit",
    title="The card's number of encoder sessions is used up, or its encoder cannot do this",
    why="GeForce cards allow a few sessions at a time, and some cards have no encoder (A100, "
    "H100).",
    proof="nvidia-smi --query-gpu=name,encoder.stats.sessionCount --format=csv",
    shows="as many sessions as the card allows, or a card without NVENC",
    fix="End other sessions, update the driver, or use a card with an encoder.",
    commands=("nvidia-smi encodersessions",),
    sources=("NVIDIA video encode and decode support matrix",),
    hints=(r"session", r"openencodesessionex", r"A100|H100"),
)

SYMPTOMS = (
    Symptom(
        id="cuda-out-of-memory",
        title="The GPU's memory is full (2)",
        patterns=(
            r"CUDA out of memory",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"cudaErrorMemoryAllocation",
            r"torch\.(cuda\.)?OutOfMemoryError",
            r"(HIP|ROCm|hipError)\w* ?(out of memory|OutOfMemory)",
            r"cudaMalloc failed: out of memory",
            r"CUBLAS_STATUS_ALLOC_FAILED",
            r"No available memory for the cache blocks",
            r"(load|loads|lands?) on GPU 0; out of memory",
            r"out of memory while other GPUs are idle",
        ),
        causes=(COUNT_IS_INDEX_0, _OTHERS, _TOO_BIG, _MIG_SMALL),
        tell_apart="nvidia-smi --query-gpu=index,memory.total,memory.used --format=csv; nvidia-smi "
        "--query-compute-apps=gpu_uuid,pid,name,used_memory --format=csv",
        sources=("PyTorch CUDA memory management notes",),
        cases=("CO-007",),
    ),
    Symptom(
        id="cuda-illegal-access",
        title="A kernel went wrong (700, 710, 715, 716, 719)",
        patterns=(
            r"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES|too many resources requested for launch",
            r"an illegal (memory access|instruction) was encountered",
            r"CUDA_ERROR_ILLEGAL_(ADDRESS|INSTRUCTION)|cudaErrorIllegal(Address|Instruction)",
            r"CUDA_ERROR_(MISALIGNED_ADDRESS|ASSERT|LAUNCH_FAILED|HARDWARE_STACK_ERROR)",
            r"cudaError(LaunchFailure|Assert|MisalignedAddress)",
            r"unspecified launch failure",
            r"device-side assert triggered",
            r"CUDA error:? (700|710|715|716|719)\b",
        ),
        causes=(_BUG, SICK_GPU),
        tell_apart="dmesg | grep Xid | tail -5; CUDA_LAUNCH_BLOCKING=1 PROGRAM",
        sources=("NVIDIA Xid documentation, Xid 13 and 31",),
    ),
    Symptom(
        id="cuda-launch-timeout",
        title="A kernel was ended by the watchdog (702)",
        patterns=(r"the launch timed out", r"CUDA_ERROR_LAUNCH_TIMEOUT|cudaErrorLaunchTimeout"),
        causes=(_TIMEOUT,),
        tell_apart="nvidia-smi -q | grep -A1 'Display'; dmesg | grep Xid | tail -3",
        sources=("CUDA driver API, error 702",),
    ),
    Symptom(
        id="cuda-uncorrectable",
        title="The GPU's memory or link failed (214, 220, 226)",
        patterns=(
            r"uncorrectable (NVLink|ECC|memory)",
            r"CUDA_ERROR_(ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|CONTAINED|EXTERNAL_DEVICE)",
            r"cudaError(ECCUncorrectable|NvlinkUncorrectable|Contained)",
            r"CUDA error:? (214|220|721)\b",
        ),
        causes=(SICK_GPU,),
        tell_apart="nvidia-smi -q -d ECC,ROW_REMAPPER; nvidia-smi nvlink -e; dmesg | grep Xid | "
        "tail",
        sources=("NVIDIA GPU memory error management",),
    ),
    Symptom(
        id="cuda-libraries",
        title="cuDNN or cuBLAS does not start",
        patterns=(
            r"CUDNN_STATUS_(NOT_INITIALIZED|INTERNAL_ERROR|EXECUTION_FAILED|(SUB|VER)\w*)",
            r"CUBLAS_STATUS_NOT_INITIALIZED",
            r"Unable to (load|find) any of \{?libcudnn",
            r"Loaded runtime CuDNN library: .{0,40}but source was compiled",
            r"could not create cudnn handle",
        ),
        causes=(_CUDNN,),
        tell_apart="nvidia-smi; echo $LD_LIBRARY_PATH; ldconfig -p | grep -E 'cudnn|cublas'",
        sources=("PyTorch forums, CUDNN_STATUS_NOT_INITIALIZED",),
    ),
    Symptom(
        id="cuda-library-missing",
        title="A CUDA library is missing",
        patterns=(
            r"UNKNOWN ERROR \(303\)",
            r"lib(cudart|cublas|cublasLt|cufft|cudnn|cusparse|cusolver|curand|nvrtc|nvJitLink|nccl|"
            r"cupti)\S{0,80}: cannot open shared object",
            r"Could not load dynamic library .?lib(cudart|cublas|cudnn|cufft|cusparse|nvinfer)",
            r"libcuda\.so(\.1)?: cannot open shared object",
            r"Could not find cuda drivers on your machine",
        ),
        causes=(
            _MISSING_LIB,
            Cause(
                id="nvidia-variable-without-runtime",
                title="libcuda.so.1 is missing because the container has no GPU",
                why="The driver's library is mounted from the host only into containers that ask "
                "for "
                "a GPU; it must not be in the image.",
                proof="docker inspect -f '{{.HostConfig.Runtime}} {{json "
                ".HostConfig.DeviceRequests}}' CONTAINER",
                shows="runc and null (or [])",
                fix="Start with --gpus all or --device nvidia.com/gpu=all.",
                commands=("docker run --rm --gpus all IMAGE nvidia-smi -L",),
                sources=("NVIDIA Container Toolkit documentation",),
                hints=(r"libcuda\.so",),
            ),
        ),
        tell_apart="docker run --rm --gpus all --entrypoint sh IMAGE -c 'ldconfig -p | grep -E "
        '"cuda|cudart"; echo $NVIDIA_VISIBLE_DEVICES\'',
        sources=("nvidia/cuda image documentation",),
    ),
    Symptom(
        id="video-libraries",
        title="The video codec libraries are missing",
        patterns=(
            r"lib(nvcuvid|nvidia-encode)\S{0,80} (is |are )?missing",
            r"(NVENC|NVDEC|h264_nvenc|hevc_nvenc|cuvid).{0,60}(not "
            r"(available|supported|found)|missing|unavailable|fails?)",
            r"Cannot load lib(nvcuvid|nvidia-encode|cuda)\.so",
            r"lib(nvcuvid|nvidia-encode)\S{0,80}: cannot open shared object",
            r"failed to (load|initiali[sz]e) (nvcuvid|nvenc|nvdec|cuvid)",
            r"The minimum required Nvidia driver for nvenc",
            r"nvcuvid.{0,40}not (found|available)",
        ),
        causes=(_VIDEO, _HOST_CODEC),
        tell_apart="ldconfig -p | grep -E 'libnvcuvid|libnvidia-encode'; docker exec CONTAINER "
        "sh -c "
        "'env | grep CAPABILITIES; ldconfig -p | grep nvcuvid'",
        sources=("jellyfin/jellyfin issue 2395",),
        cases=("TK-013",),
    ),
    Symptom(
        id="nvenc-open",
        title="NVENC does not open a session",
        patterns=(
            r"OpenEncodeSessionEx failed",
            r"No (NVENC )?capable devices found",
            r"NV_ENC_ERR_\w+",
            r"CreateInputBuffer failed|Cannot init CUDA.{0,40}nvenc",
        ),
        causes=(_NVENC_LIMIT, _VIDEO),
        tell_apart="nvidia-smi --query-gpu=name,encoder.stats.sessionCount --format=csv; docker "
        "exec "
        "CONTAINER env | grep CAPABILITIES",
        sources=("NVIDIA video encode and decode support matrix",),
    ),
)
