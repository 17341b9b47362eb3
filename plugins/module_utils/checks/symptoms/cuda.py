# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CUDA's errors at start: no device, unknown error, driver and image that do not fit. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .causes import PRIVILEGED_SEES_ALL, SICK_GPU, TOOLKIT_1191, UVM_MAJOR, UVM_MISSING
from .nvml import LOST_TO_RELOAD
from .nvml_refused import SELINUX

_CUINIT = (
    'python3 -c \'import ctypes; c = ctypes.CDLL("libcuda.so.1"); n = ctypes.c_int(); '
    "print(c.cuInit(0), c.cuDeviceGetCount(ctypes.byref(n)), n.value)'"
)

_UVM = "lsmod | grep nvidia_uvm; ls -l /dev/nvidia-uvm; grep nvidia /proc/devices"

NO_GPU_GIVEN = Cause(
    id="nvidia-variable-without-runtime",
    title="The container was started without a GPU",
    why="NVIDIA_VISIBLE_DEVICES is read by the nvidia runtime and hook only; under plain runc it "
    "does nothing, and no error is said.",
    proof="docker inspect -f '{{.HostConfig.Runtime}} {{json .HostConfig.DeviceRequests}}' "
    "CONTAINER; "
    "docker exec CONTAINER ls /dev",
    shows="runc, null or [], and no /dev/nvidia0",
    fix="Add --gpus all, --device nvidia.com/gpu=all or --runtime=nvidia; in Compose runtime: "
    "nvidia or a device reservation.",
    commands=("docker run --rm --gpus all IMAGE nvidia-smi -L",),
    sources=("utkuozdemir/nvidia_gpu_exporter docs/INSTALL.md",),
    cases=("RT-030",),
    hints=(
        r"NVIDIA_VISIBLE_DEVICES",
        r"no error",
        r"compose",
        r"Found no NVIDIA driver|0 Devices available|NVIDIA Driver was not detected",
    ),
)

HIDDEN_BY_ENV = Cause(
    id="cuda-visible-devices-hides",
    title="CUDA_VISIBLE_DEVICES hides the GPUs",
    why="An index that does not exist ends the list there; in a container with one GPU its index "
    "is "
    "0, whatever it is on the host. A MIG or GPU UUID must be written whole.",
    proof="docker exec CONTAINER env | grep VISIBLE; docker exec CONTAINER nvidia-smi -L",
    shows="an empty value, or an index beyond the GPUs listed",
    fix="Leave it unset, or count from 0 inside the container.",
    commands=("unset CUDA_VISIBLE_DEVICES",),
    sources=("CUDA programming guide, environment variables",),
    hints=(r"CUDA_VISIBLE_DEVICES", r"invalid device ordinal"),
)

_EXCLUSIVE = Cause(
    id="gpu-compute-mode",
    title="The GPU serves one process only, or none",
    why="Compute mode EXCLUSIVE_PROCESS lets one process in (with MPS: its server), PROHIBITED "
    "none.",
    proof="nvidia-smi --query-gpu=index,compute_mode --format=csv; nvidia-smi "
    "--query-compute-apps=pid,name --format=csv",
    shows="Exclusive_Process and another process, or Prohibited",
    fix="Wait for the other process, or set the default mode.",
    commands=("nvidia-smi -c DEFAULT",),
    sources=("nvidia-smi(1), compute mode",),
    hints=(r"exclusive", r"busy", r"\b46\b"),
)

_MPS = Cause(
    id="mps-daemon-unreachable",
    title="The MPS control daemon is not there, full, or of another user",
    why="With CUDA_MPS_PIPE_DIRECTORY set, or in exclusive mode, clients go through the server; a "
    "container needs its pipe directory and the host's IPC name space.",
    proof="echo get_server_list | nvidia-cuda-mps-control; ls -l ${CUDA_MPS_PIPE_DIRECTORY:-"
    "/tmp/nvidia-mps}",
    shows="no daemon, or a pipe directory that is not in the container",
    fix="Start the daemon, mount the pipe directory and use --ipc=host.",
    commands=("nvidia-cuda-mps-control -d",),
    sources=("NVIDIA MPS documentation",),
    hints=(r"mps",),
)

CUDA_NO_DEVICE = (UVM_MISSING, NO_GPU_GIVEN, HIDDEN_BY_ENV, UVM_MAJOR, LOST_TO_RELOAD, SICK_GPU)

_OS_CALL = Cause(
    id="cuda-os-call-failed",
    title="The driver's call into the kernel failed",
    why="Under WSL the Windows driver is too old for the kernel or the call; on Linux module and "
    "libraries differ, a limit (ulimit -v, seccomp, max_map_count) is in the way, or nvidia-uvm "
    "cannot be opened.",
    proof="uname -r; cat /proc/driver/nvidia/version; nvidia-smi; ulimit -a; strace -f -e "
    "openat,ioctl,mmap PROGRAM 2>&1 | grep -E 'EPERM|ENOMEM|EIO' | tail",
    shows="a WSL kernel, two versions, or the call that is refused",
    fix="Update the Windows driver and WSL (wsl --update); on Linux make module and libraries the "
    "same and raise the limit that strace shows.",
    commands=("nvidia-smi",),
    sources=("NVIDIA/nvidia-container-toolkit issue 908",),
    hints=(r"wsl|os call",),
)

SYMPTOMS = (
    Symptom(
        id="cuda-unknown-error",
        title="CUDA unknown error (999, in old runtimes 30)",
        patterns=(
            r"nvidia-uvm.{0,60}(major|different).{0,60}(changed|stale|mismatch|/proc/devices|wrong)",
            r"(major|device) numbers? .{0,40}(changed|differs?|stale|wrong|hard-?coded)",
            r"CUDA_?ERROR_?UNKNOWN",
            r"cudaErrorUnknown",
            r"CUDA (driver )?(initiali[sz]ation: )?(error:? )?unknown error",
            r"CUDA error:? 999|cuInit[^.]{0,30}999|returned? 999|error code:? 999|\(999\)",
            r"error code=30\(cudaErrorUnknown\)",
            r"cuInit fails(?! although)",
            r"(NVENC|CUDA).{0,20}works .{0,30}only with (--)?privileged",
            r"works with (--)?privileged.{0,40}(not|fails) without",
        ),
        causes=(UVM_MISSING, UVM_MAJOR, TOOLKIT_1191, SICK_GPU, SELINUX, LOST_TO_RELOAD),
        tell_apart=f"{_UVM}; grep -A3 nvidia-uvm /etc/cdi/* /var/run/cdi/*; nvidia-ctk --version; "
        "docker exec CONTAINER ls -l /dev/nvidia-uvm; nvidia-smi -L; dmesg | grep Xid | tail -3",
        sources=("pytorch/pytorch issue 49081", "NVIDIA/nvidia-container-toolkit issue 1967"),
        cases=("DR-001", "TK-027", "TK-044"),
    ),
    Symptom(
        id="cuda-no-device",
        title="CUDA finds no device (100)",
        patterns=(
            r"Failed to infer device type",
            r"GPU(s)? (is|are) not (visible|available|detected) (in|inside|to) (the |a )?container",
            r"container (starts|runs|comes up) without (a |any )?GPUs?",
            r"recreates? (the )?container without (a )?GPU",
            r"CUDA_ERROR_NO_DEVICE",
            r"cudaErrorNoDevice",
            r"no CUDA-(capable|enabled) device(s)? (is|are) detected",
            r"No CUDA GPUs are available",
            r"No GPUs? in the container",
            r"torch\.cuda\.is_available\(\).{0,20}False",
            r"Found no NVIDIA driver on your system",
            r"CUDA error:? 100\b",
            r"No (supported )?GPU(s)? (was |were )?(found|detected|available)",
            r"Could not find (a )?(GPU|CUDA) device",
            r"WARNING: The NVIDIA Driver was not detected",
            r"no compatible GPUs were discovered",
            r"only 0 Devices available",
            r"Torch is not able to use GPU",
        ),
        causes=CUDA_NO_DEVICE,
        tell_apart=f"{_UVM}; docker inspect -f '{{{{.HostConfig.Runtime}}}} {{{{json "
        ".HostConfig.DeviceRequests}}}}' CONTAINER; docker exec CONTAINER sh -c 'ls -l "
        "/dev/nvidia*; env | grep VISIBLE'",
        sources=("ollama docs/troubleshooting.mdx",),
        cases=("DR-001", "RT-030"),
    ),
    Symptom(
        id="cuda-cuinit-other-gpu",
        title="cuInit fails although a healthy GPU was selected",
        patterns=(
            r"cuInit fails although",
            r"(defective|broken|bad) GPU.{0,60}(visible|stops|probed)",
        ),
        causes=(PRIVILEGED_SEES_ALL, SICK_GPU),
        tell_apart="docker inspect -f '{{.HostConfig.Privileged}}' CONTAINER; docker exec "
        "CONTAINER "
        "sh -c 'ls /dev/nvidia*'; nvidia-smi -L",
        sources=("rapidsai/velox-testing PR 315",),
        cases=("CP-012",),
    ),
    Symptom(
        id="cuda-invalid-device",
        title="The program asks for a device that it does not have (101)",
        patterns=(
            r"invalid device ordinal",
            r"CUDA_ERROR_INVALID_DEVICE\b",
            r"cudaErrorInvalidDevice\b",
        ),
        causes=(HIDDEN_BY_ENV,),
        tell_apart="docker exec CONTAINER sh -c 'nvidia-smi -L; env | grep VISIBLE'",
        sources=("CUDA driver API, error codes",),
    ),
    Symptom(
        id="cuda-devices-unavailable",
        title="The GPU is busy or shut to this process (46)",
        patterns=(
            r"all CUDA-capable devices are busy or unavailable",
            r"cudaErrorDevicesUnavailable",
            r"CUDA_ERROR_DEVICE_UNAVAILABLE",
            r"CUDA_ERROR_DEVICE_ALREADY_IN_USE|cudaErrorDeviceAlreadyInUse",
            r"exclusive-thread device already in use",
            r"CUDA-capable device.{0,20}busy or unavailable",
        ),
        causes=(_EXCLUSIVE, SICK_GPU, _MPS, UVM_MAJOR),
        tell_apart="nvidia-smi --query-gpu=index,compute_mode,mig.mode.current --format=csv; "
        "nvidia-smi; dmesg | grep Xid | tail -3",
        sources=("nvidia-smi(1), compute mode",),
    ),
    Symptom(
        id="cuda-mps",
        title="CUDA cannot work with the MPS server (805 to 809)",
        patterns=(
            r"MPS client failed to connect",
            r"CUDA_ERROR_MPS_\w+",
            r"cudaErrorMps\w+",
            r"\b(Error|CUDA error):? ?80[5-9]\b",
            r"mps control daemon",
        ),
        causes=(_MPS,),
        tell_apart="echo get_server_list | nvidia-cuda-mps-control; ls -l /tmp/nvidia-mps; tail "
        "/var/log/nvidia-mps/*.log",
        sources=("NVIDIA MPS documentation",),
    ),
    Symptom(
        id="cuda-os-call",
        title="CUDA 304: a call of the operating system failed",
        patterns=(
            r"(cuda error: )?OS call failed or operation not supported on this OS",
            r"CUDA_ERROR_OPERATING_SYSTEM|cudaErrorOperatingSystem",
        ),
        causes=(_OS_CALL, UVM_MISSING, SICK_GPU),
        tell_apart=f"{_CUINIT}; {_UVM}; dmesg | tail -20; ulimit -a",
        sources=("NVIDIA/nvidia-container-toolkit issue 908",),
    ),
    Symptom(
        id="cuda-init-failed",
        title="CUDA does not initialise (3)",
        patterns=(
            r"CUDA_ERROR_NOT_INITIALIZED",
            r"cudaErrorInitializationError",
            r"CUDA error:? (3\b|initialization error)",
            r"Cannot re-initialize CUDA in forked subprocess",
        ),
        causes=(
            Cause(
                id="cuda-forked-process",
                title="CUDA was used before a fork",
                why="A CUDA context does not survive fork(); workers must be spawned.",
                proof="grep -rn 'set_start_method\\|num_workers' PROGRAM",
                shows="the start method fork, and CUDA calls in the parent",
                fix="Use the start method spawn (VLLM_WORKER_MULTIPROCESSING_METHOD=spawn for "
                "vLLM).",
                commands=("export VLLM_WORKER_MULTIPROCESSING_METHOD=spawn",),
                sources=("PyTorch multiprocessing notes",),
                hints=(r"fork", r"subprocess", r"worker"),
            ),
            UVM_MISSING,
            SICK_GPU,
            UVM_MAJOR,
        ),
        tell_apart=f"{_CUINIT}; {_UVM}",
        sources=("PyTorch multiprocessing notes",),
    ),
)
