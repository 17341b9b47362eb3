# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVSwitch systems: the fabric manager, CUDA 802, NVLink 5, IMEX. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

_STATE = (
    "systemctl status nvidia-fabricmanager --no-pager; nvidia-smi -q | grep -A3 -i fabric; ls "
    "/proc/driver/nvidia-nvswitch/devices; cat /proc/driver/nvidia/version; lsmod | grep -E "
    "'ib_umad|mlx5_ib'"
)

FM_MISSING = Cause(
    id="fabric-manager-not-running",
    title="The fabric manager does not run on a host with NVSwitches",
    why="GPUs behind NVSwitches do not start for CUDA before the fabric is configured; nvidia-smi "
    "lists them all the same.",
    proof="ls /proc/driver/nvidia-nvswitch/devices; systemctl is-active nvidia-fabricmanager",
    shows="NVSwitches, and a unit that is not active or not there",
    fix="Install the package of exactly the driver's version, enable and start it.",
    commands=(
        "apt-get install nvidia-fabricmanager-$(cut -d. -f1 /sys/module/nvidia/version)",
        "systemctl enable --now nvidia-fabricmanager",
    ),
    sources=("pytorch/pytorch issue 35710", "NVIDIA fabric manager user guide"),
    cases=("DR-007",),
    hints=(r"not[- ]found|not installed|inactive|nvswitch_devices", r"failure 802|802 .?system"),
    holds=holds.fabric_manager_not_running,
)

FM_VERSION = Cause(
    id="fabric-manager-mismatch",
    title="The fabric manager is of another release than the driver",
    why="Both must have the same version to the last number; the daemon refuses to start or the "
    "fabric stays unconfigured.",
    proof="nv-fabricmanager --version; cat /proc/driver/nvidia/version; journalctl -u "
    "nvidia-fabricmanager -n 20 --no-pager",
    shows="two versions",
    fix="Install the fabric manager of the loaded driver's version, hold both, restart it.",
    commands=(
        "V=$(cat /sys/module/nvidia/version); apt-get install --allow-downgrades "
        "nvidia-fabricmanager-${V%%.*}=$V-1",
        "systemctl restart nvidia-fabricmanager",
    ),
    sources=("NVIDIA fabric manager user guide",),
    hints=(r"mismatch|don.?t match|interface version|different (version|release)s?",),
    holds=holds.fabric_manager_differs,
)

NVLINK5 = Cause(
    id="fabric-modules-missing",
    title="NVLink 5 needs ib_umad and mlx5_ib, and they are not loaded",
    why="Without the InfiniBand modules the fabric manager takes the way of older NVSwitches; the "
    "fabric state stays In Progress although all versions match.",
    proof="lsmod | grep -E 'ib_umad|mlx5_ib'; nvidia-smi -q | grep -A3 -i fabric",
    shows="no such module, and a fabric state that is not Completed",
    fix="Install linux-modules-extra, load both modules before the fabric manager starts, and "
    "install nvlsm.",
    commands=(
        "apt-get install linux-modules-extra-$(uname -r)",
        "printf 'ib_umad\\nmlx5_ib\\n' >/etc/modules-load.d/nvlink5.conf",
        "modprobe -a ib_umad mlx5_ib",
        "systemctl restart nvidia-fabricmanager",
    ),
    sources=("NVIDIA/gpu-operator issue 2781",),
    cases=("DR-010",),
    hints=(r"In Progress", r"ib_umad|mlx5_ib", r"versions match"),
    holds=holds.both(
        holds.nvswitch,
        holds.module("ib_umad", loaded=False),
    ),
)

FM_EARLY = Cause(
    id="fabric-not-ready",
    title="The fabric manager was started before the GPUs were ready",
    why="cloud-init or a script started it while local instances were still coming up; the enabled "
    "unit would have succeeded by itself.",
    proof="journalctl -b -u nvidia-fabricmanager --no-pager | head -40; systemctl "
    "list-dependencies "
    "--after nvidia-fabricmanager",
    shows="a first start that fails within the first minute, by something other than systemd's "
    "order",
    fix="Leave the start to systemd; retry instead of giving the host up.",
    commands=("systemctl restart nvidia-fabricmanager",),
    sources=("pytorch/ci-infra PR 552",),
    cases=("DR-009",),
    hints=(r"cloud-init", r"not all local", r"early"),
)

_MIG_OR_CC = Cause(
    id="gpu-in-transition",
    title="The GPUs wait for a reset or for their ready state",
    why="After MIG or confidential computing was switched, or while the driver persists no state, "
    "CUDA answers 802 until the GPU is ready.",
    proof="nvidia-smi -q | grep -iE 'mig mode|pending|ready|conf'; nvidia-smi conf-compute -grs",
    shows="a pending mode, or GPUs that are not set ready",
    fix="Reset the GPUs, or set the ready state (nvidia-smi conf-compute -srs 1).",
    commands=("nvidia-smi --gpu-reset",),
    sources=("CUDA driver API, error 802", "NVIDIA confidential computing guide"),
    hints=(r"confidential", r"\bmig\b"),
)

_VM_FABRIC = Cause(
    id="fabric-partition-of-vm",
    title="In a virtual machine, the fabric is made by the host",
    why="With shared NVSwitches the host's fabric manager must activate the partition of the VM's "
    "GPUs; some clouds need a reboot of the instance.",
    proof="systemd-detect-virt; nvidia-smi -q | grep -A3 -i fabric",
    shows="a virtual machine with GPUs of SXM form and no NVSwitch",
    fix="Ask the operator of the host to activate the partition, or use a full 8 GPU instance.",
    sources=("NVIDIA fabric manager user guide, shared NVSwitch",),
    hints=(r"\bvm\b|virtual machine|kvm|passthrough",),
)

_IMEX = Cause(
    id="imex-channel-missing",
    title="The IMEX channel or service is missing",
    why="Memory is shared between the nodes of an NVL72 rack through IMEX: the service must run "
    "with "
    "all nodes in its list, and the container needs /dev/nvidia-caps-imex-channels/channel0.",
    proof="systemctl status nvidia-imex --no-pager; nvidia-imex-ctl -N; ls "
    "/dev/nvidia-caps-imex-channels; grep imex /proc/devices",
    shows="a service that is not READY, or no channel in the container",
    fix="Start nvidia-imex with the rack's node list and create the channel "
    "(NVreg_CreateImexChannel0=1); in Kubernetes use a ComputeDomain.",
    commands=("systemctl enable --now nvidia-imex",),
    sources=("NVIDIA IMEX guide",),
    hints=(r"imex", r"GB[23]00", r"NVL72", r"mnnvl"),
)

SYMPTOMS = (
    Symptom(
        id="cuda-802",
        title="CUDA 802: system not yet initialized",
        patterns=(
            r"system not yet initialized",
            r"CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady",
            r"\b(CUDA )?error:? ?802\b",
        ),
        causes=(FM_MISSING, FM_VERSION, NVLINK5, FM_EARLY, _VM_FABRIC, _MIG_OR_CC),
        tell_apart=_STATE,
        sources=("pytorch/pytorch issue 35710",),
        cases=("DR-007", "DR-010"),
    ),
    Symptom(
        id="fabric-manager-fails",
        title="The fabric manager fails on a host with NVSwitches",
        patterns=(
            r"Failed to start NVIDIA fabric manager",
            r"fabric ?manager (version )?\S{0,80}\d{3}\.\d+\S{0,80} (differs|and|but|vs|!=|is not)",
            r"nvidia-fabricmanager\.service.{0,60}(fail|exit|dead)",
            r"failed to configure all the available GPUs or NVSwitches",
            r"not all local fabric manager instances finished",
            r"fabric manager .{0,80}version .{0,60}(mismatch|different|don't match|doesn't match)",
            r"fabric ?manager.{0,120}don't match with driver version",
            r"(nv-|nvidia-)fabricmanager.{0,60}(version mismatch|incompatible)",
            r"fabric manager NVIDIA GPU driver interface version",
            r"request to query NVSwitch device information .{0,60}failed",
            r"fabric.{0,20}state.{0,10}(In Progress|not started)",
            r"NVLink.{0,30}fabric.{0,30}(not|un)(-| )?(initiali[sz]ed|configured)",
        ),
        causes=(FM_VERSION, FM_EARLY, NVLINK5, FM_MISSING),
        tell_apart=_STATE,
        sources=("NVIDIA fabric manager user guide",),
        cases=("DR-009", "DR-010"),
    ),
    Symptom(
        id="fabric-manager-without-nvswitch",
        title="The fabric manager finds no NVSwitch",
        patterns=(
            r"fabric ?manager.{0,80}no NVSwitch(es)?( is| are)? (found|detected|present)",
            r"NV_WARN_NOTHING_TO_DO",
            r"request to query NVSwitch device information from NVSwitch driver failed with "
            r"error.{0,"
            r"20}NOTHING",
        ),
        normal="The fabric manager is for hosts with NVSwitches (SXM boards of 4 or more GPUs). On "
        "PCIe cards it has nothing to do and its unit fails: that is noise. Do not install or "
        "enable it there; its absence is no fault.",
        tell_apart="ls /proc/driver/nvidia-nvswitch/devices; nvidia-smi -L",
        sources=("Azure/AgentBaker PR 2508", "NVIDIA/gpu-operator issue 356"),
        cases=("DR-008",),
    ),
    Symptom(
        id="imex",
        title="IMEX is not ready",
        patterns=(
            r"imex.{0,60}(not (ready|running|found)|unavailable|failed|timeout|denied|no such)",
            r"nvidia-caps-imex-channels",
            r"cuMemImportFromShareableHandle.{0,60}(failed|error|not permitted)",
            r"Cuda failure 800 .?operation not permitted",
            r"cuMemCreate.{0,60}(operation not permitted|not supported)",
            r"MNNVL.{0,60}(not|fail|disabled)",
        ),
        causes=(_IMEX, FM_VERSION),
        tell_apart="systemctl status nvidia-imex --no-pager; nvidia-imex-ctl -N; ls "
        "/dev/nvidia-caps-imex-channels; nvidia-smi -q | grep -A3 -i fabric",
        sources=("NVIDIA IMEX guide",),
    ),
)
