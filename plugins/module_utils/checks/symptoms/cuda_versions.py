# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CUDA of an image against driver and card: compat libraries, PTX, kernels. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .causes import CUDA_TOO_NEW
from .cuda import NO_GPU_GIVEN
from .nvml import IMAGE_DRIVER, MODULE_STALE

COMPAT_ON_GEFORCE = Cause(
    id="forward-compat-hardware",
    title="The image's forward-compatibility library was loaded on a card it does not serve",
    why="/usr/local/cuda/compat works on data-centre GPUs only; on GeForce and most RTX cards the "
    "image must not be newer than the driver.",
    proof="nvidia-smi -L; nvidia-smi --version; docker run --rm --gpus all --entrypoint sh IMAGE "
    "-c "
    "'ldconfig -p | grep libcuda.so.1; echo $LD_LIBRARY_PATH; ls /usr/local/cuda/compat'",
    shows="libcuda.so.1 below cuda/compat, and a GeForce card",
    fix="Upgrade the host's driver to the image's CUDA level, use an older image, or keep "
    "/usr/local/cuda/compat out of the library path.",
    commands=("docker run --rm --gpus all -e LD_LIBRARY_PATH= IMAGE nvidia-smi",),
    sources=("microsoft/onnxruntime issue 21435", "CUDA compatibility documentation"),
    cases=("TK-015",),
    hints=(r"geforce|rtx|gtx", r"compat"),
)

COMPAT_MISMATCH = Cause(
    id="cuda-library-of-image",
    title="libcuda in the container is not that of the loaded driver",
    why="The image carries libcuda (a compat package, a driver package, a stub) which does not "
    "belong to the kernel module.",
    proof="docker run --rm --gpus all --entrypoint sh IMAGE -c 'ldconfig -p | grep libcuda.so; "
    "find "
    '/ -xdev -name "libcuda.so*"\'; cat /proc/driver/nvidia/version',
    shows="a libcuda of another release than the module",
    fix="Remove driver libraries from the image and the library path, and align image and driver.",
    commands=("docker run --rm --gpus all -e LD_LIBRARY_PATH= IMAGE nvidia-smi",),
    sources=("NVIDIA/nvidia-container-toolkit issue 234", "xorbitsai/inference issue 891"),
    cases=("TK-016",),
    hints=(r"libcuda", r"image"),
)

COMPAT_NOT_MOUNTED = Cause(
    id="toolkit-no-compat-libs",
    title="Toolkit 1.17.4 no longer uses the image's compat libraries",
    why="The security release stopped mounting them; later releases use them again through the "
    "enable-cuda-compat hook.",
    proof="nvidia-ctk --version; nvidia-smi --version; grep -n compat "
    "/etc/nvidia-container-runtime/config.toml",
    shows="1.17.4, and an image above the driver's CUDA level that worked before",
    fix="Upgrade to a current release, or set features.allow-cuda-compat-libs-from-container "
    "knowingly; never go back below 1.17.4.",
    commands=("apt-get install --only-upgrade nvidia-container-toolkit",),
    sources=("NVIDIA/nvidia-container-toolkit issue 934", "PR 877 and 906"),
    cases=("TK-017",),
    hints=(r"1\.17\.4", r"toolkit upgrade", r"ptx", r"compat"),
    holds=holds.rules_out(holds.version("toolkit", ">=1.17.4")),
)

COMPAT_HOOK_DISABLED = Cause(
    id="cuda-compat-hook-disabled",
    title="The cuda-compat hook is switched off",
    why="features.disable-cuda-compat-lib-hook (the workaround for CVE-2025-23266) leaves the "
    "image's compat libraries unused.",
    proof="grep -n -E 'compat' /etc/nvidia-container-runtime/config.toml",
    shows="disable-cuda-compat-lib-hook = true",
    fix="Upgrade to 1.19.1 or newer and remove the setting.",
    commands=("nvidia-ctk config --set features.disable-cuda-compat-lib-hook=false --in-place",),
    sources=("NVIDIA security bulletin 5659",),
    hints=(r"disable-cuda-compat", r"23266", r"hook"),
    holds=holds.confirms(
        holds.text_has(
            "/etc/nvidia-container-runtime/config.toml", "disable-cuda-compat-lib-hook=true"
        )
    ),
)

NOT_BUILT_FOR_GPU = Cause(
    id="gpu-newer-than-cuda",
    title="The program was not built for this GPU",
    why="It has neither machine code nor PTX for the GPU's compute capability: the card is newer "
    "than the build, or the build has dropped an old card.",
    proof="nvidia-smi --query-gpu=name,compute_cap --format=csv; python3 -c 'import torch; "
    "print(torch.version.cuda, torch.cuda.get_arch_list())'",
    shows="a compute capability that the list does not have",
    fix="Use a build of a newer CUDA for a new card (12.8 for Blackwell), an older build for an "
    "old "
    "card.",
    commands=("pip install --upgrade torch",),
    sources=("CUDA programming guide, compute capability", "PyTorch release notes"),
    hints=(r"sm_\d+", r"50[5-9]0|blackwell", r"compute capability"),
)

NOT_NEWEST_DRIVER = Cause(
    id="driver-below-cuda-runtime",
    title="The driver is older than the CUDA runtime of the program needs",
    why="CUDA 11 needs driver 450, CUDA 12 needs 525, CUDA 13 needs 580.",
    proof="nvidia-smi --version; python3 -c 'import torch; print(torch.version.cuda)'",
    shows="a CUDA version of the program whose family the driver does not serve",
    fix="Upgrade the driver, or use a build for an older CUDA.",
    commands=("nvidia-smi --version",),
    sources=("CUDA minor version compatibility",),
    hints=(r"driver version", r"insufficient", r"too old"),
)

SYMPTOMS = (
    Symptom(
        id="cuda-804",
        title="CUDA 804: forward compatibility on hardware that does not have it",
        patterns=(
            r"forward compatibility was attempted on non supported HW",
            r"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
            r"cudaErrorCompatNotSupportedOnDevice",
            r"\b(Error|CUDA error):? ?804\b",
        ),
        causes=(COMPAT_ON_GEFORCE, MODULE_STALE),
        tell_apart="nvidia-smi --version; nvidia-smi -L; cat /proc/driver/nvidia/version; docker "
        "run "
        "--rm --gpus all --entrypoint sh IMAGE -c 'ldconfig -p | grep libcuda.so.1'",
        sources=("CUDA compatibility documentation",),
        cases=("TK-015",),
    ),
    Symptom(
        id="cuda-803",
        title="CUDA 803: unsupported combination of display driver and CUDA driver",
        patterns=(
            r"unsupported display driver ?/ ?cuda driver combination",
            r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            r"cudaErrorSystemDriverMismatch",
            r"\b(Error|CUDA error):? ?803\b",
        ),
        causes=(COMPAT_MISMATCH, MODULE_STALE, IMAGE_DRIVER),
        tell_apart="cat /proc/driver/nvidia/version; docker run --rm --gpus all --entrypoint sh "
        "IMAGE "
        "-c 'ldconfig -p | grep libcuda; find / -xdev -name \"libcuda.so*\"'",
        sources=("NVIDIA/nvidia-container-toolkit issue 234",),
        cases=("TK-016",),
    ),
    Symptom(
        id="cuda-driver-too-old",
        title="The CUDA driver is too old for the runtime (35)",
        patterns=(
            r"API call is not supported in the installed CUDA driver",
            r"cudaErrorCallRequiresNewerDriver",
            r"CUDA driver version is insufficient for CUDA runtime version",
            r"cudaErrorInsufficientDriver",
            r"NVIDIA driver on your system is too old",
            r"CUDA_ERROR_STUB_LIBRARY|cudaErrorStubLibrary",
            r"insufficient driver after a toolkit upgrade",
            r"(needs|requires) (an? )?(newer )?(NVIDIA )?driver (version )?(>=|at least|\d{3})",
        ),
        causes=(
            NOT_NEWEST_DRIVER,
            CUDA_TOO_NEW,
            COMPAT_NOT_MOUNTED,
            COMPAT_HOOK_DISABLED,
            NO_GPU_GIVEN,
        ),
        tell_apart="nvidia-smi --version; nvidia-ctk --version; docker run --rm --gpus all "
        "--entrypoint sh IMAGE -c 'ldconfig -p | grep libcuda.so.1; ls /usr/local | grep cuda'",
        sources=("CUDA minor version compatibility",),
        cases=("TK-017",),
    ),
    Symptom(
        id="cuda-unsupported-ptx",
        title="The PTX is newer than the driver's compiler (222)",
        patterns=(
            r"unsupported PTX version",
            r"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            r"cudaErrorUnsupportedPtxVersion",
            r"PTX was compiled with an unsupported toolchain",
            r"provided PTX was compiled",
        ),
        causes=(COMPAT_NOT_MOUNTED, NOT_NEWEST_DRIVER, COMPAT_HOOK_DISABLED),
        tell_apart="nvidia-smi --version; nvidia-ctk --version; grep -n compat "
        "/etc/nvidia-container-runtime/config.toml",
        sources=("NVIDIA/nvidia-container-toolkit issue 934",),
        cases=("TK-017",),
    ),
    Symptom(
        id="cuda-no-kernel-image",
        title="No kernel image for this GPU (209)",
        patterns=(
            r"no kernel image is available",
            r"CUDA_ERROR_NO_BINARY_FOR_GPU",
            r"cudaErrorNoKernelImageForDevice",
            r"CUDA_ERROR_INVALID_PTX|cudaErrorInvalidPtx",
            r"CUDA_ERROR_UNSUPPORTED_ARCH",
            r"sm_\d+ is not compatible with the current PyTorch installation",
            r"not compatible with the current PyTorch installation",
            r"nvcc fatal ?: ?Unsupported gpu architecture",
        ),
        causes=(NOT_BUILT_FOR_GPU,),
        tell_apart="nvidia-smi --query-gpu=name,compute_cap --format=csv; python3 -c 'import "
        "torch; "
        "print(torch.version.cuda, torch.cuda.get_arch_list())'",
        sources=("CUDA programming guide, compute capability",),
    ),
)
