# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DCGM, exporters and what monitoring shows that is no fault. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .driver_install import IN_USE
from .nvml_refused import NOT_LOADED

PROFILING = Cause(
    id="dcgm-profiling-permission",
    title="Profiling metrics need a capability, and one client at a time",
    why="DCGM_FI_PROF_* need SYS_ADMIN (or NVreg_RestrictProfilingToAdminUsers=0), a data-centre "
    "GPU, "
    "and no other profiler (Nsight) on it.",
    proof="grep RmProfilingAdminOnly /proc/driver/nvidia/params; docker inspect -f '{{.HostConfig"
    ".CapAdd}}' CONTAINER",
    shows="RmProfilingAdminOnly: 1, and no SYS_ADMIN",
    fix="Give the exporter alone SYS_ADMIN, or leave the profiling metrics out of its list.",
    commands=("dcgmi profile --pause",),
    sources=("NVIDIA DCGM documentation, profiling",),
    hints=(r"prof", r"ERR_NVGPUCTRPERM|permission"),
)

DCGM_VERSION = Cause(
    id="dcgm-versions-differ",
    title="The exporter's DCGM and the host engine differ, or the driver is too new for it",
    why="Client library and nv-hostengine must be of one major version, and a new CUDA driver "
    "needs a "
    "new DCGM.",
    proof="dcgmi --version; nv-hostengine --version; nvidia-smi --version",
    shows="two major versions",
    fix="Upgrade DCGM (4.5.3 or newer) and the exporter (4.8.2 or newer) together.",
    commands=("apt-get install --only-upgrade datacenter-gpu-manager-4-core",),
    sources=("NVIDIA DCGM release notes",),
    hints=(r"version mismatch|api version|libdcgm",),
)

DCGM_DOWN = Cause(
    id="dcgm-hostengine-down",
    title="nv-hostengine does not run, or the exporter looks elsewhere",
    why="An exporter that uses a remote engine needs its address; an embedded one needs none.",
    proof="systemctl status nvidia-dcgm --no-pager; ss -ltnp | grep 5555; env | grep DCGM",
    shows="not running",
    fix="Start it, or leave DCGM_REMOTE_HOSTENGINE_INFO unset.",
    commands=("systemctl enable --now nvidia-dcgm",),
    sources=("NVIDIA DCGM documentation",),
    hints=(r"hostengine|5555|connection",),
)

DCGM_PPROF = Cause(
    id="dcgm-vulnerable",
    title="The exporter serves profiling end points without authentication",
    why="CVE-2026-47483: DCGM up to 4.5.2 and the exporter of the 4.8 line before 4.8.2.",
    proof="dcgm-exporter --version; dcgmi --version; curl -s localhost:9400/debug/pprof/ | head -2",
    shows="an older version, or an answer",
    fix="DCGM 4.5.3, exporter 4.8.2 or newer; never publish the port.",
    commands=("curl -s localhost:9400/debug/pprof/ | head -2",),
    sources=("NVIDIA security bulletin 5857",),
    cases=("SE-001",),
    hints=(r"pprof|47483|profiling requests",),
)

SYMPTOMS = (
    Symptom(
        id="profiling-permission",
        title="Performance counters are shut",
        patterns=(
            r"ERR_NVGPUCTRPERM",
            r"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
            r"does not have permission to access NVIDIA GPU Performance Counters",
            r"(DCGM_FI_)?PROF\w*.{0,60}(not (enabled|supported|collected)|permission|fail)",
            r"Profiling module.{0,40}(could not|not|fail)",
            r"(Not collecting DCP metrics|Error getting supported metrics).{0,120}",
            r"serviced by a module of DCGM that is not currently loaded",
        ),
        causes=(PROFILING,),
        tell_apart="grep RmProfilingAdminOnly /proc/driver/nvidia/params; dcgmi profile -l",
        sources=("NVIDIA DCGM documentation, profiling",),
    ),
    Symptom(
        id="dcgm-fails",
        title="DCGM does not answer",
        patterns=(
            r"(DCGM|nv-hostengine|dcgm-exporter|dcgmi).{0,80}(fail|error|cannot|could "
            r"not|unable|not)",
            r"libdcgm\S{0,80}: cannot open",
            r"Host engine (connection|is not) .{0,40}",
        ),
        causes=(DCGM_DOWN, DCGM_VERSION, NOT_LOADED, IN_USE),
        tell_apart="systemctl status nvidia-dcgm --no-pager; dcgmi --version; nvidia-smi -L; dcgmi "
        "discovery -l",
        sources=("NVIDIA DCGM documentation",),
    ),
    Symptom(
        id="dcgm-pprof",
        title="The exporter answers profiling requests of anybody",
        patterns=(
            r"CVE-2026-47483",
            r"pprof.{0,60}(dcgm|exporter|unauthenticated)",
            r"unauthenticated profiling",
        ),
        causes=(DCGM_PPROF,),
        tell_apart="dcgm-exporter --version; curl -s localhost:9400/debug/pprof/ | head -2; ss "
        "-ltnp | "
        "grep 9400",
        sources=("NVIDIA security bulletin 5857",),
        cases=("SE-001",),
    ),
    Symptom(
        id="utilisation-saw-tooth",
        title="GPU utilisation goes up and down",
        patterns=(
            r"GPU utili[sz]ation.{0,40}(saw-?tooth|drops|fluctuat|jitter|oscillat|up and down)",
            r"(saw-?tooth).{0,60}GPU",
        ),
        normal="The utilisation of nvidia-smi is the share of a sample period in which any "
        "kernel ran; "
        "a job that waits for data shows a saw-tooth. It is no sign of a scheduler at work. Look "
        "at "
        "SM activity (DCGM_FI_PROF_SM_ACTIVE) and at the input pipeline.",
        sources=("NVIDIA/dcgm-exporter README",),
    ),
    Symptom(
        id="smi-na-values",
        title="nvidia-smi shows N/A",
        patterns=(
            r"\[N/A\]|\[Not Supported\]",
            r"NVMLError_NotSupported",
        ),
        normal="The card or its driver does not have this value (ECC, MIG, power or accounting on "
        "GeForce cards, process memory under WSL). Nothing is broken.",
        sources=("nvidia-smi(1)",),
    ),
)
