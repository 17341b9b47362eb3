# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clusters: runtime classes, containerd files of k3s and its kin, networks, NUMA. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom

_WHERE = (
    "ps -eo args | grep '[c]ontainerd '; ls /run/containerd /run/k3s/containerd "
    "/var/lib/rancher/*/agent/etc/containerd 2>/dev/null; kubectl -n gpu-operator get "
    "clusterpolicy -o yaml | grep -A12 'toolkit:'"
)

NO_RUNTIME_CLASS = Cause(
    id="runtime-class-missing",
    title="The cluster has no RuntimeClass of that name",
    why="runtimeClassName names an object of the API; the device plugin's chart does not make it, "
    "the GPU operator does. The handler in containerd is another thing and is needed too.",
    proof="kubectl get runtimeclass; containerd config dump | grep -A3 runtimes.nvidia",
    shows="no nvidia in the list",
    fix="Create the RuntimeClass, and the handler on each GPU node.",
    commands=(
        "printf 'apiVersion: node.k8s.io/v1\\nkind: RuntimeClass\\nmetadata: {name: nvidia}\\n"
        "handler: nvidia\\n' | kubectl apply -f -",
    ),
    sources=("Kubernetes documentation, runtime class", "k3s documentation, advanced"),
    hints=(r"RuntimeClass",),
)

SOCKET_ELSEWHERE = Cause(
    id="toolkit-socket-elsewhere",
    title="The toolkit container looks for containerd in the wrong place",
    why="k3s, rke2, k0s and microk8s have containerd's socket and file elsewhere than "
    "/run/containerd and /etc/containerd.",
    proof=_WHERE,
    shows="a socket and a file below /run/k3s and /var/lib/rancher (or k0s, snap)",
    fix="Set both in the operator's toolkit.env: k3s and rke2 take CONTAINERD_SOCKET="
    "/run/k3s/containerd/containerd.sock and CONTAINERD_CONFIG=/var/lib/rancher/k3s (or rke2)/"
    "agent/etc/containerd/config.toml.tmpl (config.toml is written anew at each start).",
    commands=("kubectl edit clusterpolicy cluster-policy",),
    sources=("NVIDIA/gpu-operator issues 406, 473 and 522", "rancher/rke2-docs issue 263"),
    hints=(
        r"signaling|dial",
        r"\b(k3s|rke2|k0s|microk8s)\b",
        r"CONTAINERD_(CONFIG|SOCKET)",
        r"/run/k3s|/var/lib/rancher",
    ),
)

CNI_LOST = Cause(
    id="containerd-cni-overwritten",
    title="The rewritten containerd file names another directory of CNI plugins",
    why="A toolkit (container) that writes the whole file takes CNI paths from defaults; the "
    "cloud's node had its own bin_dir, and no new pod gets a network.",
    proof="containerd config dump | grep -A4 'cni'; ls /opt/cni/bin; ls /etc/containerd/conf.d",
    shows="bin_dir = /opt/cni/bin, and the plugin in another directory",
    fix="Restore bin_dir and conf_dir of the node's image; use a toolkit that writes drop-ins "
    "(1.18 and newer) with RUNTIME_CONFIG_SOURCE=file.",
    commands=("containerd config dump | grep -n -A4 cni", "systemctl restart containerd"),
    sources=("NVIDIA/nvidia-container-toolkit issue 1222",),
    hints=(r"toolkit|operator|bin_dir|containerd",),
)

_CNI_ABSENT = Cause(
    id="cni-plugin-missing",
    title="The network plugin is not installed on the node",
    why="The kubelet's node is Ready only with a CNI configuration and its programs.",
    proof="ls /etc/cni/net.d /opt/cni/bin; kubectl -n kube-system get pods -o wide",
    shows="no program of that name",
    fix="Install or restart the cluster's network add-on on this node.",
    commands=("kubectl -n kube-system get ds",),
    sources=("Kubernetes documentation, network plugins",),
)

MANY_NODES = Cause(
    id="topology-manager-numa-limit",
    title="The topology manager takes 8 NUMA nodes at most by default",
    why="Hosts with sub-NUMA clustering, or whose GPUs appear as NUMA nodes (GH200, GB200), have "
    "more; the kubelet then refuses every policy but none.",
    proof="lscpu | grep -i numa; grep -i topologyManager /var/lib/kubelet/config.yaml",
    shows="more than 8 nodes",
    fix="Set topologyManagerPolicyOptions: {max-allowable-numa-nodes: '16'} (Kubernetes 1.31 and "
    "newer), fewer nodes per socket in the firmware, or the policy none.",
    commands=("systemctl restart kubelet",),
    sources=("Kubernetes documentation, topology manager policy options",),
)

_TOOLKIT_VERSION = Cause(
    id="containerd-dropin-version",
    title="The toolkit wrote its drop-in in a version that this containerd does not read",
    why="It asks `containerd config dump`, which prints the newest version the program knows; the "
    "daemon that reads the file (another one, or an older one) knows less.",
    proof="grep -n ^version /etc/containerd/config.toml /etc/containerd/conf.d/99-nvidia.toml; "
    "containerd --version; ps -eo args | grep '[c]ontainerd '",
    shows="two versions",
    fix="Make the toolkit take the version from the file: RUNTIME_CONFIG_SOURCE=file, or "
    "nvidia-ctk runtime configure --config-source=file; then restart containerd.",
    commands=(
        "nvidia-ctk runtime configure --runtime=containerd --config-source=file",
        "systemctl restart containerd",
    ),
    sources=("azimuth-cloud/capi-helm-charts PR 838", "NVIDIA/aicr issue 1237"),
    hints=(r"conf\.d|99-nvidia|drop-?in", r"toolkit|nvidia-ctk"),
)

_CGROUP_KEY = Cause(
    id="containerd-systemd-cgroup-key",
    title="systemd_cgroup belongs to the first runtime of containerd, not to runc.v2",
    why="With io.containerd.runc.v2 the cgroup driver is an option of each runtime; the old key in "
    "the CRI section stops the plugin.",
    proof="grep -n -i systemd_\\?cgroup /etc/containerd/config.toml",
    shows="systemd_cgroup = true below the CRI section",
    fix="Remove it and write SystemdCgroup = true below options of every runtime.",
    commands=("steadygpu check /etc/containerd/config.toml", "systemctl restart containerd"),
    sources=("containerd docs/cri/config.md",),
    hints=(r"systemd_cgroup",),
)

_LIMIT = Cause(
    id="k8s-gpu-request-without-limit",
    title="GPUs are asked for by limits",
    why="Extended resources cannot be overcommitted: a request needs an equal limit, and a limit "
    "alone is enough.",
    proof="steadygpu check FILE",
    shows="requests without limits",
    fix="Write limits: {nvidia.com/gpu: 1}.",
    commands=("steadygpu check FILE",),
    sources=("Kubernetes documentation, schedule GPUs",),
)

_IMPORT_REPLACES = Cause(
    id="containerd-import-replaces",
    title="An imported file replaces whole plugin sections of the main file",
    why="containerd merges files by plugin: before 2.0 a section such as io.containerd.grpc.v1.cri "
    "in a drop-in takes the place of the main file's (registry, sandbox image, CNI are lost).",
    proof="containerd config dump | grep -n -E 'config_path|sandbox|bin_dir'; grep -rn "
    "'grpc.v1.cri' /etc/containerd",
    shows="defaults where the main file has values",
    fix="Put all settings of the plugin into one file, or repeat them in the drop-in; a toolkit "
    "from 1.18 on copies the section into its drop-in.",
    commands=("containerd config dump", "systemctl restart containerd"),
    sources=("containerd docs/man/containerd-config.toml.5.md", "NVIDIA/gpu-operator issue 301"),
    hints=(r"import|drop-?in",),
)

_WRITTEN_ANEW = Cause(
    id="containerd-file-generated",
    title="k3s and rke2 write this file anew at each start",
    why="config.toml below /var/lib/rancher is generated; changes belong into config.toml.tmpl "
    "(config-v3.toml.tmpl for containerd 2) beside it.",
    proof="ls -l /var/lib/rancher/*/agent/etc/containerd",
    shows="a config.toml as new as the last start, and no template",
    fix="Copy it to config.toml.tmpl, make the change there and restart k3s; for nvidia nothing is "
    "needed, since k3s finds nvidia-container-runtime by itself at its start.",
    commands=("systemctl restart k3s",),
    sources=("k3s documentation, advanced, NVIDIA container runtime",),
    hints=(r"k3s|rke2|rancher",),
)

SYMPTOMS = (
    Symptom(
        id="containerd-import-replaces",
        title="Settings vanish when a file is imported",
        patterns=(
            r"(settings?|registry|cni|mirrors?).{0,60}(vanish|gone|lost|ignored|disappear).{0,60}"
            r"(import|drop-?in)",
            r"(containerd|\.toml).{0,80}imports?.{0,40}(overrid|replac|overwrit)\w*",
        ),
        causes=(_IMPORT_REPLACES,),
        tell_apart="containerd config dump | grep -n -E 'config_path|sandbox|bin_dir'",
        sources=("NVIDIA/gpu-operator issue 301",),
    ),
    Symptom(
        id="containerd-file-generated",
        title="Changes to a generated containerd file are lost",
        patterns=(
            r"rancher/(k3s|rke2)/agent/etc/containerd/config\.toml.{0,80}(gone|lost|overwrit|reset|revert)",
            r"(k3s|rke2).{0,60}(overwrites?|resets?|reverts?|regenerates?).{0,40}config\.toml",
        ),
        causes=(_WRITTEN_ANEW,),
        tell_apart="ls -l /var/lib/rancher/*/agent/etc/containerd",
        sources=("k3s documentation, advanced",),
    ),
    Symptom(
        id="gpu-limit-required",
        title="A GPU is requested without a limit",
        patterns=(
            r"Limit must be set for non overcommitable resources",
            r"nvidia\.com/gpu.{0,60}(must be equal to|limit.{0,20}request)",
        ),
        causes=(_LIMIT,),
        tell_apart="steadygpu check FILE",
        sources=("Kubernetes documentation, schedule GPUs",),
    ),
    Symptom(
        id="containerd-systemd-cgroup-key",
        title="containerd refuses systemd_cgroup",
        patterns=(r"systemd_cgroup\W{0,3} only works for runtime",),
        causes=(_CGROUP_KEY,),
        tell_apart="grep -n -i systemd_\\?cgroup /etc/containerd/config.toml",
        sources=("containerd docs/cri/config.md",),
    ),
    Symptom(
        id="runtime-class-not-found",
        title="The RuntimeClass does not exist",
        patterns=(
            r"RuntimeClass\W{1,4}[\w-]{1,40}\W{1,4}(is )?not found",
            r"runtimeclass(es)?\S{0,30} .{0,40}not found",
        ),
        causes=(NO_RUNTIME_CLASS,),
        tell_apart="kubectl get runtimeclass",
        sources=("Kubernetes documentation, runtime class",),
    ),
    Symptom(
        id="toolkit-signals-containerd",
        title="The toolkit container cannot reach containerd",
        patterns=(
            r"Error signal+ing (containerd|docker|crio|cri-o)",
            r"/runtime/sock-dir/\S{1,60}: connect: no such file",
            r"unable to (dial|signal|restart) (containerd|runtime)",
        ),
        causes=(SOCKET_ELSEWHERE,),
        tell_apart=_WHERE,
        sources=("NVIDIA/gpu-operator issue 406",),
    ),
    Symptom(
        id="cni-plugin-not-found",
        title="Pods get no network",
        patterns=(
            r"failed to find plugin \S{1,40} in path",
            r"failed to setup network for sandbox",
            r"cni plugin not initialized|NetworkPluginNotReady",
        ),
        causes=(CNI_LOST, _CNI_ABSENT),
        tell_apart="containerd config dump | grep -A4 cni; ls /opt/cni/bin /etc/cni/net.d",
        sources=("NVIDIA/nvidia-container-toolkit issue 1222",),
    ),
    Symptom(
        id="kubelet-numa-nodes",
        title="The kubelet refuses a host with many NUMA nodes",
        patterns=(
            r"unsupported on machines with more than \d+ NUMA",
            r"more than 8 NUMA nodes",
            r"max-allowable-numa-nodes",
        ),
        causes=(MANY_NODES,),
        tell_apart="lscpu | grep -i numa; grep -i topologyManager /var/lib/kubelet/config.yaml",
        sources=("Kubernetes documentation, topology manager",),
    ),
    Symptom(
        id="containerd-dropin-refused",
        title="containerd refuses the toolkit's drop-in",
        patterns=(
            r"(99-nvidia|conf\.d/\S{1,40})\.toml.{0,120}(version|refuse|fail|expected)",
            r"refuses? .{0,20}drop-?in",
        ),
        causes=(_TOOLKIT_VERSION,),
        tell_apart="grep -n ^version /etc/containerd/config.toml /etc/containerd/conf.d/*.toml; "
        "containerd --version",
        sources=("azimuth-cloud/capi-helm-charts PR 838",),
    ),
)
