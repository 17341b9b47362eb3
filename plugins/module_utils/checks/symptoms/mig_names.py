# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG by name: profiles, the old form of UUIDs, configurations of the MIG manager. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

_PROFILES = "nvidia-smi mig -lgip; nvidia-smi -L; cat /sys/module/nvidia/version"
_MANAGER = (
    "kubectl -n gpu-operator logs ds/nvidia-mig-manager --tail=40; kubectl get node NODE "
    "-o jsonpath='{.metadata.labels}' | tr ',' '\\n' | grep mig"
)

OLD_UUID = Cause(
    id="mig-uuid-old-form",
    title="The MIG device is named in the form of drivers before R470",
    why="MIG-GPU-<uuid>/<gi>/<ci> was the name up to R460; from R470 on every MIG device has a "
    "UUID of its own, MIG-<uuid>, and the hook knows the old form no more.",
    proof="nvidia-smi -L; cat /sys/module/nvidia/version",
    shows="MIG-<uuid> names, and a driver from 470 on",
    fix="Take the name from nvidia-smi -L, or name the place: 0:0 (GPU:device).",
    commands=("nvidia-smi -L | grep MIG",),
    sources=("NVIDIA/nvidia-container-toolkit issue 203", "NVIDIA MIG user guide, device names"),
    hints=(r"MIG-GPU-", r"before R?470"),
    holds=holds.rules_out(holds.version("driver", ">=470.0")),
)

UUID_GONE = Cause(
    id="mig-uuid-absent",
    title="The MIG device with that UUID is not there any more",
    why="MIG devices are gone after a reboot or a reset of the GPU until somebody makes them "
    "again, and another layout has other UUIDs.",
    proof="nvidia-smi -L; journalctl -b -u 'nvidia-mig*' -u 'steadygpu-mig*' --no-pager | tail",
    shows="other MIG-<uuid> names, or none",
    fix="Make the layout at each boot, always the same, and take the UUID from nvidia-smi -L; or "
    "name the place, 0:0 (GPU:device), which the same layout keeps.",
    commands=("nvidia-smi -L | grep MIG",),
    sources=("NVIDIA MIG user guide, persistence of instances", "libnvidia-container src/cli"),
    hints=(r"MIG-[0-9a-f]{8}", r"reboot|reset|destroyed"),
    holds=holds.confirms(holds.mig_without_devices),
)

PROFILE_NAME = Cause(
    id="mig-profile-unknown",
    title="This card has no profile of that name",
    why="The memory in a name depends on card, its memory size and the driver (7g.79gb and 7g.80gb "
    "are the same on two releases; 1g.6gb belongs to the A30).",
    proof=_PROFILES,
    shows="other names in the list",
    fix="Use a name that nvidia-smi mig -lgip lists on this card; on nodes with different cards "
    "give each its own device-filter.",
    commands=("nvidia-smi mig -lgip",),
    sources=("NVIDIA/gpu-operator issue 351", "NVIDIA/mig-parted issue 157"),
    hints=(r"profile|specified|expected",),
)

CONFIG_ABSENT = Cause(
    id="mig-config-not-present",
    title="The label names a configuration that the MIG manager's file does not have",
    why="The node's label nvidia.com/mig.config must be a key below mig-configs of the ConfigMap "
    "in use; the default one lacks profiles of new cards.",
    proof=_MANAGER,
    shows="a name that is not in the ConfigMap",
    fix="Set the label to a name of the file, or give the operator a ConfigMap of your own "
    "(migManager.config.name) in its own name space.",
    commands=(
        "kubectl -n gpu-operator get configmap default-mig-parted-config -o yaml",
        "kubectl label node NODE nvidia.com/mig.config=all-disabled --overwrite",
    ),
    sources=("NVIDIA/gpu-operator issue 281", "NVIDIA/mig-parted issue 100"),
    hints=(r"not present|not found|selected",),
)

_MANAGER_BLOCKED = Cause(
    id="mig-manager-blocked",
    title="Clients of the GPU stop the MIG manager",
    why="It must stop every client first; what runs outside its knowledge (a host's DCGM or "
    "persistenced, a pod without nvidia.com/gpu) holds the GPU.",
    proof=_MANAGER + "; fuser -v /dev/nvidia*",
    shows="processes that hold the nodes",
    fix="End them, or list host services in the manager's gpu-clients; then set the label again.",
    commands=("systemctl stop nvidia-dcgm nvidia-persistenced",),
    sources=("NVIDIA/mig-parted issue 357", "NVIDIA/DCGM issue 276"),
    hints=(r"in use|busy|client|reset",),
)

_ROOT = Cause(
    id="mig-needs-root",
    title="Making MIG devices needs root",
    why="In a container it needs /dev/nvidia-caps/nvidia-cap1 (config) as well.",
    proof="id -u; ls -l /dev/nvidia-caps",
    shows="another user, or no nodes",
    fix="Run it as root on the host; in a container set NVIDIA_MIG_CONFIG_DEVICES=all and "
    "CAP_SYS_ADMIN.",
    commands=("nvidia-smi mig -lgip",),
    sources=("NVIDIA MIG user guide",),
    hints=(r"root|permission",),
)

_RUNNING = Cause(
    id="mig-container-keeps-old",
    title="A running container keeps the MIG devices of its start",
    why="Nodes and permissions are given when a container is created; devices made later are not "
    "in it, and UUIDs of devices that were made anew are others.",
    proof="nvidia-smi -L; docker exec CONTAINER nvidia-smi -L; docker inspect -f "
    "'{{.State.StartedAt}}' CONTAINER",
    shows="other devices inside, and a start before the change",
    fix="Write the CDI spec anew and recreate the container.",
    commands=("nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",),
    sources=("NVIDIA/nvidia-docker issue 1473",),
    hints=(r"running container|anew|after the (change|reboot)",),
)

_CALLS_HANG = Cause(
    id="driver-mig-calls-hang",
    title="The device plugin's call into the driver never returns",
    why="Reported for driver 570.124.06 on hosts with MIG; a GPU that hangs does the same.",
    proof="kubectl -n gpu-operator logs ds/nvidia-device-plugin-daemonset --tail=20; timeout 20 "
    "nvidia-smi -L; cat /proc/driver/nvidia/version",
    shows="no answer within seconds",
    fix="Use another release of the branch; drain and reboot a node whose nvidia-smi hangs.",
    commands=("timeout 20 nvidia-smi -L",),
    sources=("NVIDIA/gpu-operator issue 1361", "kubernetes/kubernetes issue 130855"),
    hints=(r"570\.124\.06", r"hang|pending"),
)

SYMPTOMS = (
    Symptom(
        id="mig-not-in-running-container",
        title="A running container does not see new MIG devices",
        patterns=(
            r"(running )?container (does not|doesn.?t|cannot) see (the )?new MIG",
            r"new MIG (devices?|(compute )?instances?).{0,40}not (visible|seen|listed)",
        ),
        causes=(_RUNNING,),
        tell_apart="nvidia-smi -L; docker exec CONTAINER nvidia-smi -L",
        sources=("NVIDIA/nvidia-docker issue 1473",),
    ),
    Symptom(
        id="device-plugin-hangs",
        title="Pods wait for a device plugin that does not answer",
        patterns=(
            r"(device plugin|plugin).{0,40}(calls?|gRPC|server).{0,20}(hangs?|never return|stuck)",
            r"(stay|stuck|remain)\w* (in )?(pending|ContainerCreating).{0,60}driver upgrade",
        ),
        causes=(_CALLS_HANG,),
        tell_apart="timeout 20 nvidia-smi -L; kubectl -n gpu-operator logs "
        "ds/nvidia-device-plugin-daemonset --tail=20",
        sources=("kubernetes/kubernetes issue 130855",),
    ),
    Symptom(
        id="mig-device-name",
        title="A MIG device is asked for by a name of old drivers",
        patterns=(r"MIG-GPU-[\w<>-]{1,60}(/\d+/\d+)?",),
        causes=(OLD_UUID,),
        tell_apart="nvidia-smi -L; cat /sys/module/nvidia/version",
        sources=("NVIDIA/nvidia-container-toolkit issue 203",),
    ),
    Symptom(
        id="mig-profile-name",
        title="The MIG profile is not known",
        patterns=(
            r"unsupported MIG (Device|profile) (specified)?",
            r"(unsupported|invalid|unknown) (MIG|GPU instance) profile",
            r"Error getting GPU instance profile info",
            r"cannot apply \S{1,40}: unsupported MIG",
            r"(invalid|unknown) (GPU instance )?profile (name|ID)",
        ),
        causes=(PROFILE_NAME,),
        tell_apart=_PROFILES,
        sources=("NVIDIA/gpu-operator issue 351",),
    ),
    Symptom(
        id="mig-config-label",
        title="The MIG manager reports failed",
        patterns=(
            r"selected mig-config not present",
            r"mig[.-]config\.state\W{0,4}failed",
            r"mig[.-]config\W.{0,60}(state|leads to|is) \W{0,4}(state )?failed",
            r"Unable to validate the selected MIG configuration",
            r"(Error|failed|unable).{0,40}(applying|apply|asserting).{0,30}MIG (config|mode)",
            r"Assertion failure: selected configuration not currently applied",
            r"custom-mig-config.{0,30}not found",
        ),
        causes=(CONFIG_ABSENT, _MANAGER_BLOCKED, PROFILE_NAME),
        tell_apart=_MANAGER,
        sources=("NVIDIA/gpu-operator issue 281",),
    ),
    Symptom(
        id="mig-rights",
        title="A MIG command lacks rights",
        patterns=(
            r"-cgi\S{0,3} requires root",
            r"(create|destroy|enable|disable).{0,40}MIG.{0,40}(Insufficient Permissions|root)",
            r"nvidia-smi mig.{0,60}(Insufficient Permissions|permission denied|requires root)",
        ),
        causes=(_ROOT,),
        tell_apart="id -u; ls -l /dev/nvidia-caps",
        sources=("NVIDIA MIG user guide",),
    ),
)
