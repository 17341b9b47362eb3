# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""More of AMD, Intel and Gaudi: variables that contradict, runtimes without a card. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .accelerators import GFX, INTEL, NO_DRIVER, NO_NODES, RENDER_GROUP

_TWICE = Cause(
    id="rocm-visible-devices",
    title="Two variables select GPUs one after the other",
    why="ROCR_VISIBLE_DEVICES selects first and numbers anew; HIP_VISIBLE_DEVICES (and "
    "CUDA_VISIBLE_DEVICES) then count among what is left.",
    proof="docker exec CONTAINER sh -c 'env | grep VISIBLE; rocminfo | grep -c gfx'",
    shows="both set, and the second one beyond what the first leaves",
    fix="Set one of them; behind ROCR_VISIBLE_DEVICES count from 0.",
    commands=("unset HIP_VISIBLE_DEVICES",),
    sources=("ROCm documentation, GPU isolation",),
    hints=(r"ROCR_VISIBLE", r"HIP_VISIBLE"),
)

_MODULES = Cause(
    id="habana-modules-differ",
    title="HABANA_VISIBLE_MODULES counts modules, HABANA_VISIBLE_DEVICES counts devices",
    why="The numbers of both differ on a board, and in a container with some devices only those "
    "modules exist.",
    proof="hl-smi -Q index,module_id -f csv",
    shows="other module numbers for the devices given",
    fix="Take the module numbers from hl-smi, or leave HABANA_VISIBLE_MODULES out.",
    commands=("hl-smi -Q index,module_id -f csv",),
    sources=("huggingface/optimum-habana PR 1089", "vllm-project/vllm-gaudi PR 946"),
    hints=(r"MODULES",),
)

_OPENCL = Cause(
    id="opencl-icd-missing",
    title="The image has no OpenCL driver for this card",
    why="OpenCL finds drivers by files in /etc/OpenCL/vendors: NVIDIA's is mounted with the "
    "capability compute, Intel's and AMD's must be in the image.",
    proof="docker exec CONTAINER sh -c 'ls /etc/OpenCL/vendors; ls -l /dev/dri'",
    shows="an empty directory",
    fix="Install intel-opencl-icd or rocm-opencl-runtime in the image; for NVIDIA put "
    "libnvidia-opencl.so.1 into /etc/OpenCL/vendors/nvidia.icd.",
    commands=("apt-get install intel-opencl-icd ocl-icd-libopencl1",),
    sources=("Khronos OpenCL ICD loader",),
    hints=(r"platforms?", r"intel|icd"),
)

SYMPTOMS = (
    Symptom(
        id="rocm-variables",
        title="Variables hide the AMD GPUs",
        patterns=(
            r"(HIP|ROCR)_VISIBLE_DEVICES.{0,120}(no (device|GPU)|not visible|invisible|hidden)",
        ),
        causes=(_TWICE,),
        tell_apart="docker exec CONTAINER sh -c 'env | grep VISIBLE; rocminfo | grep gfx'",
        sources=("ROCm documentation, GPU isolation",),
    ),
    Symptom(
        id="rocm-torch-no-gpu",
        title="The AMD GPU is listed and programs do not get it",
        patterns=(
            r"rocm-smi.{0,60}(shows|lists|works).{0,120}(False|no (HIP )?GPU|not available|0 GPUs)",
        ),
        causes=(RENDER_GROUP, NO_NODES, GFX, NO_DRIVER),
        tell_apart="docker exec CONTAINER sh -c 'id; ls -ln /dev/kfd /dev/dri; rocminfo | head'",
        sources=("ROCm/ROCm-docker issue 116",),
    ),
    Symptom(
        id="habana-modules",
        title="The Gaudi modules do not fit the devices",
        patterns=(r"Invalid HABANA_VISIBLE_MODULES", r"Module IDs should be between"),
        causes=(_MODULES,),
        tell_apart="hl-smi -Q index,module_id -f csv",
        sources=("huggingface/optimum-habana PR 1089",),
    ),
    Symptom(
        id="opencl-no-platform",
        title="OpenCL finds no platform",
        patterns=(
            r"Number of platforms:? *0",
            r"clGetPlatformIDs.{0,40}(-1001|failed)",
            r"CL_PLATFORM_NOT_FOUND_KHR",
        ),
        causes=(_OPENCL, INTEL, NO_NODES),
        tell_apart="docker exec CONTAINER sh -c 'ls /etc/OpenCL/vendors; ls -l /dev/dri'",
        sources=("Khronos OpenCL ICD loader",),
    ),
)
