# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd and its CRI: versions of its file, runtimes, imports. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .cluster import SOCKET_ELSEWHERE

_DUMP = (
    "containerd config dump | grep -n -E 'version|imports|disabled_plugins|default_runtime|nvidia'"
)
_FILES = "grep -n -E '^version|^imports|disabled_plugins' /etc/containerd/config.toml; ls -l "
_FILES += "/etc/containerd/conf.d /etc/containerd/config.d"

TOOLKIT_OLD = Cause(
    id="toolkit-containerd-config-3",
    title="The toolkit cannot read a version 3 configuration",
    why="containerd 2 (and k0s with 1.7) writes version 3; the toolkit reads it from 1.17.4.",
    proof="grep -n ^version /etc/containerd/config.toml; nvidia-ctk --version; containerd "
    "--version",
    shows="version = 3 and a toolkit before 1.17.4",
    fix="Upgrade the toolkit to 1.19.1 or newer (GPU Operator 26.3.2).",
    commands=("apt-get install --only-upgrade nvidia-container-toolkit",),
    sources=("NVIDIA/gpu-operator issue 2060", "NVIDIA/nvidia-container-toolkit issues 803, 1067"),
    cases=("RT-013",),
    hints=(r"version: ?[34]", r"toolkit", r"operator"),
    holds=holds.rules_out(holds.version("toolkit", "<1.17.4")),
)

CONTAINERD_OLD = Cause(
    id="containerd-config-version",
    title="This containerd does not know the version of its own file",
    why="containerd 1.x reads version 2, 2.0 to 2.2 read up to 3, 2.3 reads 4. The file was made "
    "by "
    "a newer release, or another containerd runs than the one that made it.",
    proof="grep -n ^version /etc/containerd/config.toml; containerd --version; ps -C containerd -o "
    "args",
    shows="a version above what the release reads",
    fix="Write the file for this release: containerd config default, or migrate with the newer "
    "one.",
    commands=("containerd config default",),
    sources=("containerd docs/cri/config.md, RELEASES.md",),
    hints=(r"expected containerd config version", r"downgrad"),
)

NOT_CONFIGURED = Cause(
    id="containerd-nvidia-runtime-missing",
    title="containerd has no runtime called nvidia",
    why="A RuntimeClass (or the operator's pods) ask for the handler nvidia, which the file in use "
    "does not define, or containerd was not restarted.",
    proof="containerd config dump | grep -A8 'runtimes.nvidia'; crictl info | grep -A3 nvidia",
    shows="nothing",
    fix="Configure it and restart containerd; in k3s and rke2 restart the service, which finds the "
    "toolkit by itself and writes its own config.toml.",
    commands=("nvidia-ctk runtime configure --runtime=containerd", "systemctl restart containerd"),
    sources=("NVIDIA/k8s-device-plugin issue 479", "NVIDIA Container Toolkit install guide"),
    hints=(r"no runtime for", r"RuntimeClass", r"k3s|rke2"),
)

DROPIN = Cause(
    id="containerd-dropin-not-imported",
    title="The drop-in lies in a directory that is not imported",
    why="Toolkit 1.18.0 wrote /etc/containerd/config.d where conf.d was meant; other files import "
    "neither.",
    proof=_FILES,
    shows="99-nvidia.toml in a directory that imports does not name",
    fix="Upgrade the toolkit, or move the file and see that imports covers it.",
    commands=(
        "mv /etc/containerd/config.d/99-nvidia.toml /etc/containerd/conf.d/",
        "systemctl restart containerd",
    ),
    sources=("NVIDIA/nvidia-container-toolkit issue 1404, PR 1407",),
    cases=("RT-015",),
    hints=(r"conf(ig)?\.d", r"imports?", r"1\.18\.0"),
)

V1_KEYS = Cause(
    id="containerd-section-of-other-version",
    title="Sections of another version of the file are ignored without an error",
    why="Version 2 calls the CRI section io.containerd.grpc.v1.cri, version 3 "
    "io.containerd.cri.v1.runtime; plugins.cri belongs to version 1.",
    proof=f"grep -n -E '^version|plugins' /etc/containerd/config.toml; {_DUMP}",
    shows="section names that do not belong to the version in the first line",
    fix="Rename the sections to match the version, or let containerd config migrate do it.",
    commands=("containerd config migrate", "systemctl restart containerd"),
    sources=("containerd issues 5042, 4806 and 3843",),
    cases=("RT-012",),
    hints=(r"ignored", r"default_runtime_name", r"plugins\.cri"),
)

CRI_OFF = Cause(
    id="containerd-cri-disabled",
    title="The CRI plugin is switched off",
    why='The file of Docker\'s containerd.io package has disabled_plugins = ["cri"]: right on '
    "Docker hosts, wrong on Kubernetes nodes.",
    proof="grep -n disabled_plugins /etc/containerd/config.toml; ctr plugins ls | grep cri",
    shows='"cri" in the list',
    fix="Remove cri from it on nodes that use CRI and restart containerd.",
    commands=(
        "sed -i 's/^disabled_plugins.*/disabled_plugins = []/' /etc/containerd/config.toml",
        "systemctl restart containerd",
    ),
    sources=("NVIDIA/k8s-device-plugin issue 406",),
    cases=("RT-017",),
    hints=(r"disabled_plugins", r"RuntimeService", r"kubelet cannot"),
)

TWO = Cause(
    id="two-containerds",
    title="There are two containerds on the host",
    why="k3s, rke2, k0s and microk8s bring their own; the one on PATH (of Docker) describes "
    "another "
    "daemon, file and version.",
    proof="ps -eo args | grep '[c]ontainerd ' ; command -v containerd; ls /run/containerd "
    "/run/k3s/containerd",
    shows="two programs, or a socket elsewhere",
    fix="Point the tool to the right file, socket and program (CONTAINERD_CONFIG, "
    "CONTAINERD_SOCKET, "
    "--config-source=file).",
    commands=(
        "nvidia-ctk runtime configure --runtime=containerd --config=/var/lib/rancher/k3s/agent/etc/"
        "containerd/config.toml.tmpl",
    ),
    sources=("NVIDIA/nvidia-container-toolkit issue 982", "NVIDIA/gpu-operator issue 1323"),
    cases=("RT-019", "RT-020"),
    hints=(r"k3s|rke2|k0s|microk8s", r"wrong containerd", r"PATH"),
)

K0S = Cause(
    id="containerd-not-on-path",
    title="The toolkit container asks a containerd program that is not there",
    why="From GPU Operator 24.9 it reads `containerd config dump`; k0s embeds its containerd.",
    proof="command -v containerd; ls /etc/k0s/containerd.d",
    shows="no program",
    fix="Set RUNTIME_CONFIG_SOURCE=file, CONTAINERD_CONFIG=/etc/k0s/containerd.d/nvidia.toml and "
    "CONTAINERD_SOCKET=/run/k0s/containerd.sock in the operator's toolkit.env.",
    commands=("kubectl -n gpu-operator edit clusterpolicy",),
    sources=("NVIDIA/gpu-operator issue 1323",),
    cases=("RT-020",),
    hints=(r"k0s", r"operator", r"config dump"),
)

_SHIM_V1 = Cause(
    id="containerd-shim-removed",
    title="A runtime of containerd 1 was removed in 2.0",
    why="io.containerd.runtime.v1.linux and io.containerd.runc.v1 are gone; aufs and the CRI "
    "v1alpha2 "
    "interface, too.",
    proof="grep -rn -E 'runtime.v1.linux|runc.v1|v1alpha2|aufs' /etc/containerd; ctr "
    "deprecations list",
    shows="the old name",
    fix='runtime_type = "io.containerd.runc.v2", with options.BinaryName for nvidia.',
    commands=("containerd config migrate",),
    sources=("containerd docs/containerd-2.0.md",),
    hints=(r"runtime\.v1\.linux|runc\.v1", r"containerd 2"),
)

_SOCKET = Cause(
    id="containerd-not-running",
    title="containerd does not run, or listens elsewhere",
    why="A faulty file, or a socket of k3s or another engine.",
    proof="systemctl status containerd --no-pager; journalctl -u containerd -n 20 --no-pager; ls "
    "/run/containerd /run/k3s/containerd",
    shows="failed, or no socket",
    fix="Correct what the journal names and start it; give crictl the right --runtime-endpoint.",
    commands=("systemctl restart containerd",),
    sources=("containerd documentation",),
    hints=(r"connection refused|no such file", r"sock"),
)

_LOADER_TOML = Cause(
    id="containerd-config-syntax",
    title="The file is not valid TOML",
    why="A table defined twice after an edit by hand or a template, or a quote that is missing.",
    proof="containerd config dump >/dev/null; steadygpu check /etc/containerd/config.toml",
    shows="the place",
    fix="Correct the place that steadygpu check names.",
    commands=("steadygpu check /etc/containerd/config.toml",),
    sources=("TOML 1.0",),
    hints=(r"toml",),
)

SYMPTOMS = (
    Symptom(
        id="containerd-config-version",
        title="The version of containerd's file is not understood",
        patterns=(
            r"unsupported config version:? ?\d",
            r"(failed to load TOML.{0,120})?expected containerd config version",
            r"unable to load (containerd )?config: unsupported",
            r"config version .{0,20}(is )?not supported",
        ),
        causes=(TOOLKIT_OLD, CONTAINERD_OLD, TWO),
        tell_apart="grep -n ^version /etc/containerd/config.toml; nvidia-ctk --version; containerd "
        "--version; ps -eo args | grep '[c]ontainerd'",
        sources=("NVIDIA/gpu-operator issue 2060",),
        cases=("RT-013",),
    ),
    Symptom(
        id="containerd-no-runtime",
        title="No runtime of that name is configured",
        patterns=(
            r"no runtime for \W{0,2}\w[\w-]* ?\W{0,2} ?is configured",
            r"failed to get sandbox runtime",
            r"runtime handler .{0,20}nvidia.{0,30}(not found|unknown|not supported)",
            r"RuntimeHandler .{0,30}not supported",
        ),
        causes=(NOT_CONFIGURED, DROPIN, V1_KEYS, TWO, CRI_OFF, SOCKET_ELSEWHERE),
        tell_apart=f"{_DUMP}; {_FILES}; ps -eo args | grep '[c]ontainerd'",
        sources=("NVIDIA/k8s-device-plugin issue 479",),
        cases=("RT-015",),
    ),
    Symptom(
        id="containerd-setting-ignored",
        title="A setting of containerd has no effect",
        patterns=(
            r"setting is ignored without an error.{0,60}",
            r"pods run under runc",
            r"nvidia settings have no effect",
            r"generated config has the version and paths of the wrong containerd",
            r"Ignoring unknown key in TOML",
            r"(containerd|config\.toml).{0,60}(ignored|no effect)",
        ),
        causes=(V1_KEYS, CRI_OFF, TWO, DROPIN),
        tell_apart=f"{_DUMP}; {_FILES}; ps -eo args | grep '[c]ontainerd'",
        sources=("containerd issue 5042",),
        cases=("RT-012", "RT-017", "RT-019"),
    ),
    Symptom(
        id="containerd-cri-disabled",
        title="The kubelet cannot use containerd's CRI",
        patterns=(
            r"unknown service runtime\.v1\S{0,80}\.RuntimeService",
            r"kubelet cannot use the runtime",
            r"CRI v1 (runtime|image) API is not implemented",
            r"validate CRI v1 (runtime|image) API",
        ),
        causes=(CRI_OFF, _SOCKET, _SHIM_V1),
        tell_apart="grep -n disabled_plugins /etc/containerd/config.toml; ctr plugins ls | grep "
        "cri; "
        "containerd --version",
        sources=("NVIDIA/k8s-device-plugin issue 406",),
        cases=("RT-017",),
    ),
    Symptom(
        id="toolkit-reads-containerd",
        title="The toolkit container cannot read containerd's configuration",
        patterns=(
            r"toolkit container fails to read the containerd",
            r"(failed|unable|error) to (read|load|dump|get|retrieve).{0,30}containerd config\w*",
            r"containerd config dump.{0,60}(fail|not found|error)",
            r"error(:)? failed to (execute|run).{0,30}containerd",
        ),
        causes=(K0S, TWO, TOOLKIT_OLD),
        tell_apart="command -v containerd; ps -eo args | grep '[c]ontainerd'; ls /etc/k0s "
        "/var/lib/rancher 2>/dev/null",
        sources=("NVIDIA/gpu-operator issue 1323",),
        cases=("RT-019", "RT-020"),
    ),
    Symptom(
        id="containerd-shim-v1",
        title="A runtime of containerd 1 is asked for",
        patterns=(
            r"shim v1.{0,40}removed",
            r"io\.containerd\.(runtime\.v1\.linux|runc\.v1)",
            r"containerd-shim(?!-)\S{0,80}.{0,40}(not found|no such)",
            r"unknown service runtime\.v1alpha2",
        ),
        causes=(_SHIM_V1,),
        tell_apart="containerd --version; grep -rn runtime_type /etc/containerd",
        sources=("containerd docs/containerd-2.0.md",),
    ),
    Symptom(
        id="containerd-down",
        title="containerd does not answer",
        patterns=(
            r"containerd\.sock.{0,60}(connection refused|no such file|connect:)",
            r"failed to (dial|connect).{0,20}containerd",
            r"containerd\.service: (Failed|Main process exited)",
        ),
        causes=(_SOCKET, _LOADER_TOML, CONTAINERD_OLD),
        tell_apart="systemctl status containerd --no-pager; journalctl -u containerd -n 20 "
        "--no-pager; ls /run/containerd",
        sources=("containerd documentation",),
    ),
    Symptom(
        id="containerd-toml",
        title="A TOML file does not parse",
        patterns=(
            r"(?<![\w.])toml: ",
            r"failed to load TOML",
            r"(table|key) .{0,40}(already (exists|defined)|redefin)",
        ),
        causes=(_LOADER_TOML,),
        tell_apart="containerd config dump >/dev/null; steadygpu check /etc/containerd/config.toml "
        "/etc/nvidia-container-runtime/config.toml",
        sources=("TOML 1.0",),
    ),
)
