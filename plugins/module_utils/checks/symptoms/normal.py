# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What looks like a fault and is none, and what has no message at all. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

_TOOLKIT_CVE = Cause(
    id="toolkit-vulnerable",
    title="The toolkit is below the floor of its security fixes",
    why="CVE-2024-0132 to 2026-24260: each safe release was followed by another finding. The "
    "floor is "
    "1.19.1 (GPU Operator 26.3.2, device plugin 0.17.3, MIG manager 0.12.2).",
    proof="nvidia-ctk --version",
    shows="a version below 1.19.1",
    fix="Upgrade the whole set to 1.19.1 or newer and test CUDA's start (one report of 999 with "
    "it).",
    commands=(
        "apt-get install --only-upgrade nvidia-container-toolkit nvidia-container-toolkit-base "
        "libnvidia-container-tools libnvidia-container1",
    ),
    sources=("NVIDIA security bulletins 5582, 5585, 5599, 5616, 5659, 5850",),
    cases=("TK-019", "TK-020", "TK-021", "TK-022", "TK-023", "TK-025"),
    hints=(r"toolkit|NVIDIAScape|crafted image",),
    holds=holds.version("toolkit", "<1.19.1"),
)

_RUNC_CVE = Cause(
    id="runc-vulnerable",
    title="runc is below the floor of its security fixes",
    why="CVE-2024-21626 (1.1.12), CVE-2025-31133, -52565 and -52881 (1.2.8, 1.3.3, 1.4.0), "
    "CVE-2026-41579 (low; 1.3.6, 1.4.3, 1.5.0). A distribution may carry a fix under an older "
    "number.",
    proof="runc --version; docker info -f '{{.RuncCommit.ID}}'; dpkg -l runc containerd.io",
    shows="an older version, and no fix in the package's changelog",
    fix="Upgrade runc in every path that a runtime of daemon.json names.",
    commands=("apt-get install --only-upgrade runc",),
    sources=("runc CHANGELOG 1.2.8, 1.3.3, 1.4.0, 1.3.6, 1.4.3",),
    cases=("RC-005", "RC-009"),
    hints=(r"runc|masked paths|/dev/console",),
)

SYMPTOMS = (
    Symptom(
        id="visible-devices-void",
        title="NVIDIA_VISIBLE_DEVICES is void",
        patterns=(
            r"NVIDIA_VISIBLE_DEVICES ?(\W{1,4}|is )void(?!.{0,200}(no such|missing|not found))",
        ),
        normal="CDI sets NVIDIA_VISIBLE_DEVICES=void on purpose, so that the legacy hook does not "
        "inject a second time. With /dev/nvidia* in the container nothing is wrong; only void "
        "together with missing nodes is a fault.",
        tell_apart="docker exec CONTAINER ls /dev | grep nvidia",
        sources=("NVIDIA/nvidia-container-toolkit PR 395", "moby PR 52704"),
        cases=("TK-011",),
    ),
    Symptom(
        id="toolkit-security",
        title="A security fault of the toolkit",
        patterns=(
            r"CVE-2024-013[2-7]",
            r"CVE-2025-(23359|23266|23267)",
            r"CVE-2026-24260",
            r"NVIDIAScape",
            r"crafted image .{0,30}(may|can) reach the host",
            r"unauthori[sz]ed files can be created on the host",
            r"host binary modification, device or network-namespace access",
            r"code execution with elevated rights from a crafted image",
            r"TOCTOU leading to code execution",
        ),
        causes=(_TOOLKIT_CVE,),
        tell_apart="nvidia-ctk --version; grep -n -E '^ *mode' "
        "/etc/nvidia-container-runtime/config.toml",
        sources=("NVIDIA product security",),
        cases=("TK-019", "TK-020", "TK-021", "TK-022", "TK-023", "TK-025"),
    ),
    Symptom(
        id="runc-security",
        title="A security fault of runc",
        patterns=(
            r"CVE-2024-21626|Leaky Vessels",
            r"CVE-2025-(31133|52565|52881)",
            r"CVE-2026-41579",
            r"CVE-2024-45310|CVE-2023-(25809|27561|28642)|CVE-2019-5736",
            r"masked paths, /dev/console and LSM label attacks",
        ),
        causes=(_RUNC_CVE,),
        tell_apart="runc --version; docker info -f '{{json .Runtimes}}'; dpkg -l runc "
        "containerd.io",
        sources=("runc security advisories",),
        cases=("RC-005", "RC-009"),
    ),
    Symptom(
        id="legacy-mode-deprecated",
        title="The toolkit speaks of its modes",
        patterns=(
            r"Auto-detected mode as .?(legacy|jit-cdi|nvml|cdi|csv)",
            r"Using requested mode",
        ),
        normal="The toolkit says which mode it chose; that line alone is no fault. The message "
        "behind "
        "it is the one to explain.",
        sources=("NVIDIA/nvidia-container-toolkit internal/info/auto.go",),
    ),
    Symptom(
        id="apt-key-warning",
        title="A list file or a key in the old place",
        patterns=(r"Key is stored in legacy trusted\.gpg keyring", r"apt-key is deprecated"),
        normal="apt reads the key from the old place and warns. It works; put the key into "
        "/usr/share/keyrings and name it by signed-by when convenient.",
        sources=("apt-key(8)",),
    ),
    Symptom(
        id="compose-version-obsolete",
        title="Compose says that version is obsolete",
        patterns=(r"attribute .?version.? is obsolete",),
        normal="The key version has no meaning any more and Compose ignores it. Remove the line.",
        sources=("compose-spec, version",),
    ),
    Symptom(
        id="persistence-mode-legacy",
        title="nvidia-smi -pm warns",
        patterns=(
            r"persistence mode is disabled on (device|GPU)",
            r"persistence mode.{0,60}legacy",
        ),
        normal="Without nvidia-persistenced the driver forgets its state when the last client "
        "goes: "
        "the next CUDA start takes seconds longer. Enable nvidia-persistenced; nothing is broken.",
        sources=("NVIDIA driver persistence documentation",),
    ),
    Symptom(
        id="module-taints-kernel",
        title="The module taints the kernel",
        patterns=(
            r"module verification failed: signature and/or required key missing - tainting",
            r"(module license .{0,20}NVIDIA.{0,20}|loading out-of-tree module )taints kernel",
        ),
        normal="The kernel notes that a module from elsewhere was loaded. With Secure Boot off "
        "it is "
        "loaded all the same; nothing is wrong.",
        sources=("kernel tainted kernels documentation",),
    ),
    Symptom(
        id="nccl-no-plugin",
        title="NCCL finds no network plugin",
        patterns=(
            r"NET/Plugin ?: ?(No plugin found|Could not find|Plugin load .{0,40}returned)",
            r"libnccl-net\.so: cannot open shared object",
        ),
        normal="NCCL looks for an optional plugin of a cloud or fabric and uses its own network "
        "code "
        "without it. Only on hosts that need one (AWS EFA, some RoCE fabrics) is it a fault.",
        sources=("NCCL user guide, net plugins",),
    ),
    Symptom(
        id="smi-no-processes-in-container",
        title="nvidia-smi in a container shows no processes",
        patterns=(
            r"nvidia-smi.{0,60}(in|inside).{0,20}container.{0,60}(no|without|empty).{0,20}process",
            r"No running processes found.{0,60}container",
        ),
        normal="Process numbers of the host cannot be translated into the container's PID name "
        "space, so nvidia-smi leaves them out there. The GPU works; look on the host, or use "
        "--pid=host for a monitoring container.",
        sources=("NVIDIA/nvidia-docker issue 179",),
    ),
    Symptom(
        id="cuda-versions-differ",
        title="nvidia-smi and nvcc name different CUDA versions",
        patterns=(
            r"nvidia-smi.{0,60}CUDA( Version)?.{0,80}nvcc",
            r"nvcc.{0,60}(differ|other|report)\w*.{0,60}nvidia-smi",
        ),
        normal="nvidia-smi shows the newest CUDA that the driver serves, nvcc the toolkit that is "
        "installed. They may differ; only a toolkit newer than the driver's version is a fault.",
        sources=("CUDA compatibility documentation",),
    ),
    Symptom(
        id="no-cuda-on-host",
        title="No CUDA toolkit on the host",
        patterns=(
            r"(no|without) CUDA (toolkit|installation)?.{0,20}on the host",
            r"CUDA (toolkit )?is not installed on the host",
        ),
        normal="Containers need the driver from the host and nothing else; the CUDA toolkit is in "
        "the image.",
        sources=("NVIDIA Container Toolkit documentation",),
    ),
)
