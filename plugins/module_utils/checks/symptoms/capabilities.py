# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Driver capabilities: graphics and CUDA libraries that are not in the container. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom

_GENERATE = "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml"

_DEBIAN_LIBS = Cause(
    id="cdi-spec-lacks-gl-libraries",
    title="The spec lacks the core GL and EGL libraries",
    why="Versioned libraries are searched only beside libcuda, and Debian spreads them over two "
    "directories (reported, open).",
    proof="find /usr/lib -name 'libnvidia-*core.so.*' -o -name 'libnvidia-gl*.so.*'; grep -c "
    "libnvidia-eglcore /etc/cdi/*.yaml /var/run/cdi/*.yaml",
    shows="the files on the host and 0 in the spec",
    fix="Add the missing mounts to the spec, or follow the upstream fix.",
    commands=(_GENERATE,),
    sources=("NVIDIA/nvidia-container-toolkit issue 1908",),
    cases=("TK-031",),
    hints=(r"cdi_missing|glcore|eglcore|host_has_them",),
)

_GL_CAPABILITY = Cause(
    id="graphics-capability",
    title="NVIDIA_DRIVER_CAPABILITIES leaves out graphics or display",
    why="Only compute and utility are mounted by default: no GL, EGL or Vulkan driver.",
    proof="docker inspect -f '{{.Config.Env}}' CONTAINER | tr ' ' '\\n' | grep CAPABILITIES",
    shows="no graphics, display or all",
    fix="Set NVIDIA_DRIVER_CAPABILITIES=all (or compute,utility,graphics).",
    commands=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all IMAGE",),
    sources=("NVIDIA Container Toolkit documentation, driver capabilities",),
    hints=(r"compute,utility|CAPABILITIES",),
)

_ICD = Cause(
    id="vulkan-icd-missing",
    title="The Vulkan and EGL files were not on the host when the spec was made",
    why="nvidia_icd.json and 10_nvidia.json come with the driver's GL packages; a compute-only "
    "driver has none, and a spec made before their installation lacks them.",
    proof="ls /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/share/glvnd/egl_vendor.d; grep -c "
    "nvidia_icd /etc/cdi/* /var/run/cdi/*",
    shows="no nvidia_icd.json on the host, or 0 in the spec",
    fix="Install the driver's GL package (libnvidia-gl-NNN, nvidia-driver-libs), then write the "
    "spec anew.",
    commands=(_GENERATE,),
    sources=("NVIDIA/nvidia-container-toolkit issues 767 and 811",),
    hints=(r"nvidia_icd|\bICD\b", r"cdi generate|could not locate|regenerat|warn"),
)

_NO_COMPUTE = Cause(
    id="gpu-capabilities-without-compute",
    title="The capability compute was not asked for",
    why="utility alone mounts nvidia-smi and NVML; libcuda comes with compute.",
    proof="docker inspect -f '{{.HostConfig.DeviceRequests}} {{.Config.Env}}' CONTAINER",
    shows="utility without compute",
    fix="NVIDIA_DRIVER_CAPABILITIES=compute,utility, or no capabilities in --gpus.",
    commands=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE",),
    sources=("NVIDIA Container Toolkit documentation, driver capabilities",),
    hints=(r"capabilit", r"utility"),
)

_LINK = Cause(
    id="libcuda-link-missing",
    title="libcuda.so has no link by its plain name in the container",
    why="Only libcuda.so.1 is mounted by toolkits before 1.18; programs that load libcuda.so "
    "itself need the link (1.18 and newer make it), or an image's compat directory.",
    proof="docker exec CONTAINER sh -c 'ldconfig -p | grep libcuda'",
    shows="libcuda.so.1 alone, or nothing (then the capability compute or the GPU is missing)",
    fix="Upgrade the toolkit, or make the link in the image's start script.",
    commands=("ln -s libcuda.so.1 /usr/lib/x86_64-linux-gnu/libcuda.so",),
    sources=("NVIDIA/nvidia-container-toolkit issue 128 and CHANGELOG 1.18.0-rc.2",),
    hints=(r"libcuda\.so:",),
)

_IMAGE_LIBRARY = Cause(
    id="image-library-missing",
    title="The image lacks a library of its distribution",
    why="libGL.so.1, libEGL.so.1 and libX11 come from the image's packages (libgl1, libegl1), the "
    "driver's vendor libraries from the host; slim images have neither X nor GL.",
    proof="docker exec CONTAINER ldconfig -p | grep -E 'libGL|libEGL|libX'",
    shows="nothing",
    fix="Install libgl1 and libegl1 in the image (for OpenCV: opencv-python-headless).",
    commands=("apt-get install libgl1 libegl1",),
    sources=("libglvnd documentation",),
    hints=(r"libGL|libEGL|libX",),
)

SYMPTOMS = (
    Symptom(
        id="image-library-missing",
        title="A graphics library is not in the image",
        patterns=(r"lib(GL|EGL|GLX|X11|Xext|GLESv2)\.so\.\d+: cannot open shared object",),
        causes=(_IMAGE_LIBRARY, _GL_CAPABILITY),
        tell_apart="docker exec CONTAINER sh -c 'ldconfig -p | grep -E libGL; env | grep CAPAB'",
        sources=("libglvnd documentation",),
    ),
    Symptom(
        id="software-rendering",
        title="EGL, OpenGL or Vulkan falls back to the processor",
        patterns=(
            r"EGL.{0,60}(falls? back|Mesa|software|llvmpipe|swrast)",
            r"(llvmpipe|swrast|softpipe).{0,60}(renderer|driver|render)",
            r"renderer( string)?: ?(llvmpipe|softpipe|swrast)",
            r"libEGL warning",
            r"(EGL|GLX).{0,40}(could not|failed to|cannot) (initialize|find|create|open)",
            r"vk(CreateInstance|EnumeratePhysicalDevices)?.{0,60}VK_ERROR_(INCOMPATIBLE_DRIVER|"
            r"INITIALIZATION_FAILED)",
            r"VK_ERROR_INCOMPATIBLE_DRIVER",
            r"(no|find(ing)? a) Vulkan (device|ICD|driver)",
            r"ERROR_INCOMPATIBLE_DRIVER",
            r"nvidia_icd\S{0,20}\.json",
        ),
        causes=(_GL_CAPABILITY, _ICD, _DEBIAN_LIBS),
        tell_apart="docker exec CONTAINER sh -c 'env | grep CAPABILITIES; find / -xdev -name "
        '"libEGL_nvidia*" -o -name nvidia_icd.json\'; grep -c eglcore /etc/cdi/* /var/run/cdi/*',
        sources=("NVIDIA/nvidia-container-toolkit issue 1908",),
        cases=("TK-031",),
    ),
    Symptom(
        id="libcuda-plain-name",
        title="A program looks for libcuda.so without a number",
        patterns=(
            r"(Failed to find CUDA library |could not load (library )?)?libcuda\.so"
            r"(?!\.).{0,40}(cannot open|not found)",
        ),
        causes=(_LINK, _NO_COMPUTE),
        tell_apart="docker exec CONTAINER sh -c 'ldconfig -p | grep libcuda; env | grep CAPAB'",
        sources=("NVIDIA/nvidia-container-toolkit issue 128",),
    ),
    Symptom(
        id="libcuda-not-mounted",
        title="nvidia-smi works and libcuda is missing",
        patterns=(
            r"libcuda(\.so(\.1)?)?.{0,80}(not found|missing|cannot open).{0,80}nvidia-smi works",
            r"nvidia-smi works.{0,80}libcuda",
        ),
        causes=(_NO_COMPUTE,),
        tell_apart="docker inspect -f '{{.HostConfig.DeviceRequests}} {{.Config.Env}}' CONTAINER",
        sources=("NVIDIA Container Toolkit documentation, driver capabilities",),
    ),
)
