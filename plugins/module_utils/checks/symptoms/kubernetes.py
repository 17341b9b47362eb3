# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes: the device plugin, the operator, the kubelet's managers. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .cdi import VENDOR_NAME
from .containerd import NOT_CONFIGURED
from .mig import GONE
from .nvml_refused import NOT_LOADED

_NODE = "kubectl describe node NODE | grep -A8 -E 'Capacity|Allocatable|Taints'"
_PLUGIN = "kubectl -n kube-system logs ds/nvidia-device-plugin-daemonset --tail=30"

PLUGIN_RUNTIME = Cause(
    id="device-plugin-without-runtime",
    title="The device plugin runs under plain runc and sees no driver",
    why="It needs the nvidia runtime itself: as default runtime, or by runtimeClassName: nvidia.",
    proof=f"{_PLUGIN}; crictl info | grep -i defaultRuntimeName",
    shows="Incompatible strategy detected auto, or no NVML library; defaultRuntimeName runc",
    fix="Make nvidia containerd's default runtime, or give the plugin runtimeClassName: nvidia "
    "(and create that RuntimeClass).",
    commands=(
        "nvidia-ctk runtime configure --runtime=containerd --set-as-default",
        "systemctl restart containerd",
    ),
    sources=("NVIDIA/k8s-device-plugin issues 1220, 1134 and 1470",),
    hints=(r"incompatible (strategy|platform)", r"NVML", r"discovery strategy"),
)

NO_PLUGIN = Cause(
    id="device-plugin-not-running",
    title="No device plugin runs on the node, or it has nothing to announce",
    why="A taint, a node selector, a plugin that waits, or a kubelet restart that lost it.",
    proof=f"{_NODE}; kubectl -A get pods -o wide | grep -i device-plugin",
    shows="no nvidia.com/gpu in Capacity, and no pod on the node",
    fix="Tolerate the taint, label the node, restart the plugin.",
    commands=("kubectl -n kube-system rollout restart ds/nvidia-device-plugin-daemonset",),
    sources=("NVIDIA/k8s-device-plugin README",),
    hints=(r"insufficient nvidia\.com/gpu", r"0/\d+ nodes"),
)

ALL_TAKEN = Cause(
    id="gpus-all-allocated",
    title="All GPUs of fitting nodes are taken, or the pod asks for more than one node has",
    why="GPUs are whole numbers of one node; requests and limits must be equal.",
    proof="kubectl describe node NODE | grep -A12 'Allocated resources'; kubectl describe pod POD",
    shows="nvidia.com/gpu allocated up to capacity",
    fix="Wait, ask for fewer, or share GPUs (time slicing, MPS, MIG).",
    commands=("kubectl get pods -A -o wide --field-selector status.phase=Running",),
    sources=("Kubernetes documentation, schedule GPUs",),
    hints=(r"insufficient nvidia\.com",),
)

VISIBLE_ENV = Cause(
    id="envvar-when-unprivileged",
    title="Any image may ask for GPUs by NVIDIA_VISIBLE_DEVICES",
    why="CUDA images set it to all, and the default of the toolkit accepts it from everybody: the "
    "scheduler is bypassed.",
    proof="grep -n accept-nvidia /etc/nvidia-container-runtime/config.toml; crictl info | grep -i "
    "defaultRuntimeName",
    shows="accept-nvidia-visible-devices-envvar-when-unprivileged = true (or not set), and "
    "nvidia as "
    "default runtime",
    fix="Set it to false and accept-nvidia-visible-devices-as-volume-mounts to true, with the "
    "plugin's DEVICE_LIST_STRATEGY=volume-mounts; or use CDI.",
    commands=(
        "nvidia-ctk config --set accept-nvidia-visible-devices-envvar-when-unprivileged=false "
        "--set accept-nvidia-visible-devices-as-volume-mounts=true --in-place",
    ),
    sources=("bottlerocket-os/bottlerocket PR 3718", "NVIDIA/k8s-device-plugin issue 87"),
    cases=("CO-005",),
    hints=(r"without a (GPU )?request", r"all GPUs", r"VISIBLE_DEVICES"),
)

HALF_HARDENED = Cause(
    id="visible-devices-no-channel",
    title="The variable is refused and no other channel is open",
    why="accept-…-envvar-when-unprivileged is false while volume mounts are not accepted, or the "
    "device plugin still uses the strategy envvar.",
    proof="grep -n accept-nvidia /etc/nvidia-container-runtime/config.toml; kubectl -n "
    "kube-system get "
    "ds -o yaml | grep -A1 DEVICE_LIST_STRATEGY",
    shows="false and false, or envvar",
    fix="Accept volume mounts and use the plugin's matching strategy.",
    commands=(
        "nvidia-ctk config --set accept-nvidia-visible-devices-as-volume-mounts=true --in-place",
        "kubectl -n kube-system set env ds/nvidia-device-plugin-daemonset "
        "DEVICE_LIST_STRATEGY=volume-mounts",
    ),
    sources=("NVIDIA/k8s-device-plugin issue 203",),
    cases=("CO-006",),
    hints=(r"insufficient privileges",),
)

INIT_CONTAINER = Cause(
    id="topology-manager-init-containers",
    title="An init container takes part in the alignment",
    why="Its requests are aligned with the others and can make a fitting pod fail, and "
    "single-numa-node refuses what does not fit one node.",
    proof="kubectl get pod POD -o yaml | grep -A8 -E 'initContainers|resources'; grep "
    "topologyManager "
    "/var/lib/kubelet/config.yaml",
    shows="an init container with other requests, and single-numa-node",
    fix="Give init containers requests of the same shape, use restricted or best-effort, or a "
    "kubelet "
    "with the fix.",
    commands=("kubectl describe pod POD",),
    sources=("kubernetes/kubernetes issues 123816 and 84597",),
    cases=("TP-011",),
    hints=(r"init[- ]?container", r"single-numa-node"),
)

TOO_BIG_FOR_NODE = Cause(
    id="topology-manager-too-large",
    title="The request does not fit one NUMA node",
    why="CPUs, memory and GPUs together must fit where single-numa-node wants them.",
    proof="lscpu | grep NUMA; nvidia-smi topo -m; cat /var/lib/kubelet/cpu_manager_state",
    shows="fewer free CPUs or GPUs per node than asked for",
    fix="Ask for less, or use restricted (or best-effort) with prefer-closest-numa-nodes.",
    commands=("nvidia-smi topo -m",),
    sources=("Kubernetes documentation, topology manager policies",),
    hints=(r"topology", r"\d GPUs"),
)

STATE_FILE = Cause(
    id="kubelet-state-file",
    title="The manager's state file does not fit the new policy",
    why="After a change of cpuManagerPolicy or memoryManagerPolicy the kubelet refuses the old "
    "file.",
    proof="cat /var/lib/kubelet/cpu_manager_state /var/lib/kubelet/memory_manager_state",
    shows="another policyName",
    fix="Drain the node, stop the kubelet, remove the file, start it.",
    commands=(
        "systemctl stop kubelet",
        "rm /var/lib/kubelet/cpu_manager_state /var/lib/kubelet/memory_manager_state",
        "systemctl start kubelet",
    ),
    sources=("Kubernetes documentation, CPU management policies",),
    hints=(r"state", r"policy"),
)

OPERATOR_ORDER = Cause(
    id="operator-driver-not-ready",
    title="The operator's driver or toolkit pod is not ready",
    why="All others wait for its validations: a driver container that cannot build, nouveau, a "
    "host "
    "driver beside it, or a wrong containerd configuration.",
    proof="kubectl -n gpu-operator get pods; kubectl -n gpu-operator logs -l "
    "app=nvidia-driver-daemonset --tail=20; kubectl -n gpu-operator logs -l "
    "app=nvidia-operator-validator --all-containers --tail=10",
    shows="the first pod that is not Running",
    fix="Correct that one. With a driver on the host set driver.enabled=false, with the toolkit "
    "on it "
    "toolkit.enabled=false.",
    commands=("kubectl -n gpu-operator get pods",),
    sources=("NVIDIA GPU Operator documentation, troubleshooting",),
    hints=(r"validat", r"init:\d/\d", r"operator"),
)

MIXED_MODES = Cause(
    id="operator-mixed-device-lists",
    title="CDI workloads and NVIDIA_VISIBLE_DEVICES are mixed in one cluster",
    why="With CDI on, privileged pods get NVIDIA_VISIBLE_DEVICES=void; with CDI off, CDI names "
    "do not "
    "resolve. The runtime classes nvidia, nvidia-legacy and nvidia-cdi do not coexist in all "
    "releases.",
    proof="kubectl get clusterpolicy -o yaml | grep -A3 'cdi:'; kubectl get runtimeclass",
    shows="cdi.enabled, and pods that need the other way",
    fix="Choose one mode for each node pool.",
    commands=("kubectl get runtimeclass",),
    sources=("NVIDIA/gpu-operator issue 2115",),
    cases=("TK-043",),
    hints=(r"void", r"cdi", r"privileged"),
)

_FLAG = Cause(
    id="device-plugin-unknown-flag",
    title="The device plugin has no such flag",
    why="There is no --enable-cdi: the strategy is chosen by --device-list-strategy=cdi-cri.",
    proof=_PLUGIN,
    shows="flag provided but not defined",
    fix="Remove the flag; use DEVICE_LIST_STRATEGY=cdi-cri (plugin 0.17.3 or newer).",
    commands=(
        "kubectl -n kube-system set env ds/nvidia-device-plugin-daemonset "
        "DEVICE_LIST_STRATEGY=cdi-cri",
    ),
    sources=("k8s-device-plugin main.go",),
    hints=(r"enable-cdi", r"flag"),
)

_UNHEALTHY = Cause(
    id="device-plugin-marked-unhealthy",
    title="The plugin took the GPU out after an Xid",
    why="It marks a GPU unhealthy for application-independent Xids until it is restarted.",
    proof=f"{_PLUGIN} | grep -i -E 'xid|unhealthy'; dmesg | grep Xid | tail",
    shows="XidCriticalError … marking device as unhealthy",
    fix="Follow the Xid's action, then restart the plugin.",
    commands=("kubectl -n kube-system rollout restart ds/nvidia-device-plugin-daemonset",),
    sources=("k8s-device-plugin internal/rm/health.go",),
    hints=(r"unhealthy", r"xid"),
)

SYMPTOMS = (
    Symptom(
        id="device-plugin-no-gpu",
        title="The device plugin finds no GPU",
        patterns=(
            r"Incompatible (strategy|platform) detected",
            r"invalid device discovery strategy",
            r"If this is a GPU node, did you configure the NVIDIA Container Toolkit",
            r"Detected non-NVML platform",
            r"No devices found\. Waiting indefinitely",
            r"failed to construct resource managers",
        ),
        causes=(PLUGIN_RUNTIME, NOT_LOADED, GONE),
        tell_apart=f"nvidia-smi -L; {_PLUGIN}; crictl info | grep -i -A3 runtime; {_NODE}",
        sources=("NVIDIA/k8s-device-plugin issue 1220",),
    ),
    Symptom(
        id="pod-pending-gpu",
        title="A pod waits for a GPU",
        patterns=(
            r"UnexpectedAdmissionError",
            r"requested number of devices unavailable",
            r"time-?slicing.{0,60}(not applied|no effect|1 GPU|ignored)",
            r"Insufficient nvidia\.com/\S{1,80}",
            r"Insufficient (amd|habana|gpu)\.\S{1,80}",
            r"UnexpectedAdmissionError.{0,120}nvidia\.com",
            r"Allocate failed due to .{0,80}(nvidia|unhealthy|devices unavailable)",
            r"no nvidia\.com/gpu.{0,40}(capacity|allocatable|node)",
            r"nvidia\.com/gpu: 0\b",
        ),
        causes=(NO_PLUGIN, ALL_TAKEN, PLUGIN_RUNTIME, GONE, _UNHEALTHY),
        tell_apart=f"{_NODE}; kubectl -A get pods -o wide | grep -i device-plugin; {_PLUGIN}",
        sources=("NVIDIA/k8s-device-plugin README",),
    ),
    Symptom(
        id="device-marked-unhealthy",
        title="The device plugin marked a GPU unhealthy",
        patterns=(
            r"XidCriticalError",
            r"marking device as unhealthy",
            r"device .{0,40}is unhealthy",
        ),
        causes=(_UNHEALTHY,),
        tell_apart=f"{_PLUGIN}; dmesg | grep Xid | tail",
        sources=("k8s-device-plugin internal/rm/health.go",),
    ),
    Symptom(
        id="pods-see-all-gpus",
        title="Pods see GPUs that they did not ask for",
        patterns=(
            r"(pods?|containers?) (without a GPU request )?(sees?|gets?|have|has) "
            r"(all|every|extra) "
            r"(the )?GPUs?",
            r"see(s)? all GPUs because",
            r"(all|every) GPUs?.{0,40}without (a )?(request|limit)",
        ),
        causes=(VISIBLE_ENV,),
        tell_apart="grep -n accept-nvidia /etc/nvidia-container-runtime/config.toml; crictl info | "
        "grep -i defaultRuntimeName; kubectl get pod POD -o yaml | grep -i -A1 privileged",
        sources=("bottlerocket-os/bottlerocket PR 3718",),
        cases=("CO-005",),
    ),
    Symptom(
        id="envvar-refused",
        title="The list of devices by environment variable is refused",
        patterns=(
            r"insufficient privileges to read device list from NVIDIA_VISIBLE_DEVICES",
            r"Ignoring devices requested by environment variable",
        ),
        causes=(HALF_HARDENED,),
        tell_apart="grep -n accept-nvidia /etc/nvidia-container-runtime/config.toml; kubectl -n "
        "kube-system get ds -o yaml | grep -A1 DEVICE_LIST_STRATEGY",
        sources=("NVIDIA/k8s-device-plugin issue 203",),
        cases=("CO-006",),
    ),
    Symptom(
        id="topology-affinity",
        title="The topology manager refuses a pod",
        patterns=(
            r"TopologyAffinityError",
            r"Resources cannot be allocated with Topology locality",
        ),
        causes=(INIT_CONTAINER, TOO_BIG_FOR_NODE),
        tell_apart="grep -E 'Manager' /var/lib/kubelet/config.yaml; kubectl get pod POD -o yaml "
        "| grep "
        "-A8 -E 'nitContainers|resources'; lscpu | grep NUMA; nvidia-smi topo -m",
        sources=("kubernetes/kubernetes issue 123816",),
        cases=("TP-011",),
    ),
    Symptom(
        id="kubelet-manager-state",
        title="The kubelet refuses its manager's state",
        patterns=(
            r"(cpu|memory)_?manager_?state.{0,80}",
            r"configured policy .{0,20}differs from state checkpoint policy",
            r"could not (restore|initialize) (state|checkpoint).{0,60}(manager|policy)",
            r"(cpu|memory) ?manager state.{0,60}(checksum|invalid|corrupt)",
            r"current set of available CPUs.{0,40}doesn.?t match",
        ),
        causes=(STATE_FILE,),
        tell_apart="cat /var/lib/kubelet/cpu_manager_state; grep Manager "
        "/var/lib/kubelet/config.yaml",
        sources=("Kubernetes documentation, CPU management policies",),
    ),
    Symptom(
        id="operator-not-ready",
        title="Pods of the GPU operator wait or fail",
        patterns=(
            r"waiting for (nvidia )?(container )?(toolkit|driver|mofed).{0,30}(to be "
            r")?(setup|ready|valid)",
            r"(driver|toolkit|cuda|plugin)-validation.{0,60}(fail|Init|waiting|error|CrashLoop)",
            r"nvidia-(driver|container-toolkit|operator-validator|dcgm)\S{0,80}.{0,40}(CrashLoopBackOff|"
            r"Init:\S{1,80}|\bError\b(?! processing))",
            r"clusterpolicy.{0,40}(notReady|not ready)",
            r"stat failed: /run/nvidia/driver",
            r"/run/nvidia/(driver|validations)\S{0,80}.{0,40}(no such|not found)",
        ),
        causes=(OPERATOR_ORDER, NOT_CONFIGURED, NOT_LOADED),
        tell_apart="kubectl -n gpu-operator get pods -o wide; nvidia-smi; lsmod | grep -E "
        "'nvidia|nouveau'; containerd config dump | grep nvidia",
        sources=("NVIDIA GPU Operator documentation, troubleshooting",),
    ),
    Symptom(
        id="operator-cdi-mix",
        title="CDI and NVIDIA_VISIBLE_DEVICES in one cluster",
        patterns=(
            r"privileged pods get NVIDIA_VISIBLE_DEVICES=void",
            r"CDI (off|on):",
            r"runtimeClass\w* .?nvidia-(cdi|legacy)",
        ),
        causes=(MIXED_MODES, VENDOR_NAME),
        tell_apart="kubectl get clusterpolicy -o yaml | grep -A3 'cdi:'; kubectl get runtimeclass; "
        "kubectl -n kube-system get ds -o yaml | grep -A1 DEVICE_LIST_STRATEGY",
        sources=("NVIDIA/gpu-operator issue 2115",),
        cases=("TK-043",),
    ),
    Symptom(
        id="device-plugin-flag",
        title="The device plugin does not know a flag",
        patterns=(r"(flag provided but not defined|unknown flag): ?-{1,2}enable-cdi",),
        causes=(_FLAG,),
        tell_apart=_PLUGIN,
        sources=("k8s-device-plugin main.go",),
    ),
)
