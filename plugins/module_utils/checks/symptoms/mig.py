# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG: modes that wait, devices that are gone, plugins that see none. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .cdi import MIG_NOT_IN_SPEC
from .driver_install import DRM_HOLDS, IN_USE

_SHOW = (
    "nvidia-smi --query-gpu=index,mig.mode.current,mig.mode.pending --format=csv; nvidia-smi -L; "
    "fuser -v /dev/nvidia*; lsmod | grep nvidia"
)

GONE = Cause(
    id="mig-without-devices",
    title="MIG is on and no MIG device exists",
    why="The mode outlives a reboot or reset, the devices do not: they must be created at each "
    "boot.",
    proof="nvidia-smi -L; uptime -s",
    shows="Enabled, no MIG lines, and a recent boot",
    fix="Create them again, and have them created at each boot before the CDI refresh and the "
    "device plugin (steadygpu mig, nvidia-mig-manager.service).",
    commands=("steadygpu mig apply LAYOUT", "systemctl restart nvidia-cdi-refresh.service"),
    sources=("NVIDIA/k8s-device-plugin issues 225 and 343",),
    cases=("MG-001", "MG-006"),
    hints=(r"reboot", r"mig_devices>None", r"lists no MIG", r"nothing"),
    holds=holds.mig_without_devices,
)

PENDING = Cause(
    id="mig-pending",
    title="The mode waits for a reset, and a client holds the GPU",
    why="nvidia-persistenced, DCGM, a monitoring container or a display server holds the GPU; "
    "Ampere needs a reset for the change.",
    proof=_SHOW,
    shows="current and pending that differ, and processes that hold the nodes",
    fix="Stop all clients, then reset the GPU or reboot.",
    commands=(
        "systemctl stop nvidia-persistenced nvidia-dcgm",
        "nvidia-smi --gpu-reset -i INDEX",
    ),
    sources=("NVIDIA/gpu-operator issues 118 and 1845",),
    cases=("MG-002",),
    hints=(r"In use by another client|persistenced|dcgm",),
    holds=holds.mig_pending,
)

_ONE_PER_PROCESS = Cause(
    id="mig-devices-one-process",
    title="A CUDA process uses one MIG device only",
    why="CUDA enumerates the first MIG device and no more, however many the container has.",
    proof="docker exec CONTAINER nvidia-smi -L",
    shows="several MIG devices, while the program counts 1",
    fix="Start one process per MIG device (CUDA_VISIBLE_DEVICES=MIG-…), or use a bigger profile.",
    commands=("CUDA_VISIBLE_DEVICES=MIG-UUID PROGRAM",),
    sources=("NVIDIA/k8s-device-plugin issue 201", "NVIDIA MIG user guide"),
    cases=("MG-004",),
    hints=(r"device_count", r"MIG-\w+, ?MIG-"),
)

_NO_ROOM = Cause(
    id="mig-no-room",
    title="The profile does not fit beside what is there",
    why="Instances take fixed places; a free slice in the wrong place or a profile of another card "
    "does not fit.",
    proof="nvidia-smi mig -lgi; nvidia-smi mig -lgip; nvidia-smi mig -lgipp",
    shows="0 free instances of the profile",
    fix="Plan the whole layout and make it in the order of big profiles first.",
    commands=("steadygpu mig plan LAYOUT",),
    sources=("NVIDIA MIG user guide, placements",),
    hints=(r"insufficient", r"placement"),
)

_INSTANCE_IN_USE = Cause(
    id="mig-device-in-use",
    title="A process uses the MIG device that is to go",
    why="Instances in use cannot be destroyed, and a compute instance must go before its GPU "
    "instance.",
    proof="nvidia-smi; fuser -v /dev/nvidia-caps/*",
    shows="processes on the device, or compute instances that are left",
    fix="End the processes, destroy compute instances first (nvidia-smi mig -dci, then -dgi).",
    commands=("nvidia-smi mig -dci", "nvidia-smi mig -dgi"),
    sources=("NVIDIA MIG user guide",),
    hints=(r"in use",),
)

_UNSUPPORTED = Cause(
    id="mig-not-supported",
    title="The card, its driver or its host does not do MIG",
    why="MIG is for A30, A100, H100, H200, B200, RTX PRO 6000 Blackwell and their like, from a "
    "driver that knows it; not while the card is in graphics mode.",
    proof="nvidia-smi --query-gpu=name,driver_version,mig.mode.current --format=csv",
    shows="[N/A]",
    fix="Use time slicing or MPS on this card, or upgrade the driver to the card's minimum for "
    "MIG.",
    sources=("NVIDIA MIG user guide, supported GPUs",),
    hints=(r"not supported", r"N/A"),
)

_STRATEGY = Cause(
    id="device-plugin-mig-strategy",
    title="The device plugin's strategy does not fit the layout",
    why="single needs the same profile on every GPU and advertises nvidia.com/gpu; mixed "
    "advertises "
    "nvidia.com/mig-*; none ignores MIG devices.",
    proof="kubectl -n kube-system logs ds/nvidia-device-plugin-daemonset | grep -i mig; "
    "nvidia-smi -L",
    shows="MIG_STRATEGY that does not suit the devices listed",
    fix="Set MIG_STRATEGY=mixed for several profiles, or make all GPUs alike; ask for the resource "
    "that is advertised.",
    commands=("kubectl describe node NODE | grep nvidia.com",),
    sources=("NVIDIA/k8s-device-plugin README, MIG strategy",),
    hints=(r"strategy", r"single|mixed", r"advertis"),
)

_CAPS = Cause(
    id="mig-mixed-needs-management-devices",
    title="The capability nodes for managing MIG are not in the container",
    why="Default CDI specs and jit-cdi leave out /dev/nvidia-caps/nvidia-cap1 and cap2 (config and "
    "monitor); a device plugin without privileges cannot read the layout.",
    proof="ls -l /dev/nvidia-caps; cat /proc/driver/nvidia-caps/mig-minors | head -3",
    shows="the nodes on the host, and not in the container",
    fix="Use the management spec with NVIDIA_VISIBLE_DEVICES=management.nvidia.com/gpu=all, or run "
    "that container privileged; set NVIDIA_MIG_CONFIG_DEVICES=all with the hook.",
    commands=(
        "nvidia-ctk cdi generate --mode=management --vendor=management.nvidia.com "
        "--output=/var/run/cdi/management-nvidia.yaml",
    ),
    sources=("NVIDIA/nvidia-container-toolkit issue 1740",),
    cases=("TK-033",),
    hints=(r"nvidia-cap[12]?\b", r"MIG_STRATEGY", r"insufficient permissions", r"jit-cdi"),
)

_VF = Cause(
    id="sriov-vfs-lost",
    title="Virtual functions and MIG layout are gone with the driver's last start",
    why="Both are state of the running driver: a reload, upgrade or reboot loses them.",
    proof="cat /sys/class/drm/card*/device/sriov_numvfs; ls /sys/bus/mdev/devices; nvidia-smi -L",
    shows="0",
    fix="Switch SR-IOV and the MIG layout on again after each start of the driver, as one ordered "
    "step (sriov-manage, then the layout).",
    commands=("/usr/lib/nvidia/sriov-manage -e ALL",),
    sources=("NVIDIA/gpu-operator issue 2600",),
    cases=("MG-011",),
    hints=(r"sriov", r"vgpu", r"\bVFs?\b"),
)

SYMPTOMS = (
    Symptom(
        id="mig-devices-gone",
        title="MIG is on and there are no MIG devices",
        patterns=(
            r"No MIG[- ](enabled )?devices found",
            r"MIG (mode )?(is )?(on|enabled).{0,60}no MIG (devices|instances)",
            r"MIG .{0,60}(gone|lost|vanish\w*|disappear\w*) after (a |the )?reboot",
            r"(lists|shows) no MIG devices",
            r"MIG.{0,40}Enabled.{0,200}No (GPU|MIG) instances",
            r"No GPU instances found",
        ),
        causes=(GONE, PENDING, _STRATEGY),
        tell_apart=_SHOW,
        sources=("NVIDIA/k8s-device-plugin issue 225",),
        cases=("MG-001",),
    ),
    Symptom(
        id="mig-pending",
        title="The MIG mode waits for a reset",
        patterns=(
            r"MIG mode is in pending (enable|disable) state",
            r"MIG.{0,60}(Enabled|Disabled)\*(?!\*)",
            r"In use by another client",
            r"pending_mig.{0,20}(Enabled|Disabled).{0,40}reset",
            r"GPU reset fails: in use although",
            r"Failed to (enable|disable|set) MIG( mode)?",
            r"Unable to (enable|disable) MIG",
            r"(GPU|device).{0,40}could not be reset.{0,60}(use|busy)",
            r"resetting GPU \S{1,80} is not supported|Unable to reset (this|the) GPU",
        ),
        causes=(PENDING, DRM_HOLDS, IN_USE, _UNSUPPORTED),
        tell_apart=_SHOW,
        sources=("NVIDIA/gpu-operator issue 118",),
        cases=("MG-002", "MG-003"),
    ),
    Symptom(
        id="mig-one-device-per-process",
        title="A program sees one MIG device of several",
        patterns=(
            r"device_count\(\) (is|returns|=+) ?1",
            r"(only|just) (sees|one|1) (one )?MIG device",
            r"CUDA sees one( MIG)?",
        ),
        causes=(_ONE_PER_PROCESS,),
        tell_apart="docker exec CONTAINER nvidia-smi -L",
        sources=("NVIDIA/k8s-device-plugin issue 201",),
        cases=("MG-004",),
    ),
    Symptom(
        id="mig-create",
        title="A MIG device cannot be created or destroyed",
        patterns=(
            r"Unable to (create|destroy) a (GPU|compute) instance",
            r"Failed to (create|destroy) (GPU|compute) instances?",
            r"Insufficient Resources.{0,60}(MIG|instance)|(MIG|instance).{0,80}Insufficient "
            r"Resources",
            r"Unable to destroy.{0,60}(In use|instance)",
        ),
        causes=(_INSTANCE_IN_USE, _NO_ROOM, PENDING),
        tell_apart="nvidia-smi mig -lgi; nvidia-smi mig -lci; nvidia-smi mig -lgipp; nvidia-smi",
        sources=("NVIDIA MIG user guide",),
    ),
    Symptom(
        id="mig-plugin-permissions",
        title="A device plugin may not look at MIG",
        patterns=(
            r"nvidia-cap[s12]\S{0,80}.{0,60}(missing|no such file|permission|not permitted)",
            r"(device plugin|MIG_STRATEGY).{0,120}insufficient permissions",
            r"insufficient permissions.{0,80}(mig|nvidia-cap)",
            r"error (visiting|walking|getting).{0,60}MIG device.{0,60}(permission|Insufficient)",
        ),
        causes=(_CAPS,),
        tell_apart="ls -l /dev/nvidia-caps; cat /proc/driver/nvidia-caps/mig-minors | head -3; "
        "nvidia-ctk --version; grep -n '^ *mode' /etc/nvidia-container-runtime/config.toml",
        sources=("NVIDIA/nvidia-container-toolkit issue 1740",),
        cases=("TK-033",),
    ),
    Symptom(
        id="mig-plugin-strategy",
        title="The device plugin and the MIG layout do not agree",
        patterns=(
            r"more than one MIG device type present on node",
            r"(all|at least one) (devices|GPUs?) on the node must be configured with the same "
            r"migEnabled",
            r"invalid MIG configuration",
            r"MIG "
            r"strategy.{0,60}(invalid|mismatch|single|mixed).{0,60}(fail|error|invalid|advertis)",
            r"nvidia\.com/mig-\S{1,80}.{0,80}(insufficient|not (advertised|available)|0)",
            r"device plugin advertises nothing",
        ),
        causes=(_STRATEGY, GONE, MIG_NOT_IN_SPEC),
        tell_apart="nvidia-smi -L; kubectl describe node NODE | grep nvidia.com; kubectl -n "
        "kube-system logs ds/nvidia-device-plugin-daemonset | grep -i mig",
        sources=("NVIDIA/k8s-device-plugin README",),
    ),
    Symptom(
        id="vgpu-host-state",
        title="VMs can no longer attach vGPUs",
        patterns=(
            r"vGPU licen[cs]e",
            r"no longer attach vGPUs?",
            r"vGPU.{0,60}(fail|error|cannot|not found|no longer)",
            r"sriov_numvfs.{0,20}\b0\b",
            r"NVIDIA-vGPU-VGPU-MGR.{0,80}(fail|error)",
            r"vgpu.{0,40}(unlicensed|license)",
        ),
        causes=(
            _VF,
            Cause(
                id="vgpu-license",
                title="The guest has no licence",
                why="Without one the guest's driver lowers its speed after some minutes.",
                proof="nvidia-smi -q | grep -i licen; journalctl -u nvidia-gridd -n 10 --no-pager",
                shows="Unlicensed",
                fix="Install the client token and restart nvidia-gridd.",
                commands=("systemctl restart nvidia-gridd",),
                sources=("NVIDIA vGPU licensing guide",),
                hints=(r"licen[cs]e",),
            ),
        ),
        tell_apart="cat /sys/class/drm/card*/device/sriov_numvfs; nvidia-smi vgpu; nvidia-smi -L",
        sources=("NVIDIA/gpu-operator issue 2600",),
        cases=("MG-011",),
    ),
)
