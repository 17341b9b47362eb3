# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on settings for Kubernetes that containerd's plugin refuses or ignores. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from ...containerd.config import CRI_IMAGES_V3, CRI_TABLES
from ..documents.containerd import ContainerdConfig
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule

_VALIDATE = "containerd pkg/cri/config/config.go at v1.7.24"


@rule(
    "containerd-systemd-cgroup-key",
    "systemd_cgroup is a key of the first shims",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="With the v2 shim containerd 1.x refuses it and loads no plugin for Kubernetes "
    "(systemd_cgroup only works for runtime io.containerd.runtime.v1.linux); 2.0 ignores it.",
    fix="Remove it, and set SystemdCgroup = true in the options of each runtime.",
    sources=(_VALIDATE + " ValidatePluginConfig", "containerd docs/cri/config.md"),
    cases=("CG-012",),
)
def containerd_systemd_cgroup_key(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """The key of version 1 on the plugin's own table."""
    for table in CRI_TABLES:
        if doc.value("plugins", table, "systemd_cgroup") is True:
            place = doc.key_place("plugins", table, "systemd_cgroup")
            yield Hit(place, "systemd_cgroup is true.")


@rule(
    "containerd-option-type",
    "SystemdCgroup wants true or false",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="containerd cannot decode the runtime's options then, and its pods do not start.",
    fix="Write SystemdCgroup = true, without quotes.",
    sources=("containerd docs/cri/config.md",),
)
def containerd_option_type(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """A text where a truth value belongs."""
    for runtime in doc.own_runtimes():
        node = runtime.option("SystemdCgroup")
        if node is not None and not isinstance(node.value, bool):
            seen = f"SystemdCgroup of {runtime.name} is {node.text or 'no value'!r}."
            yield Hit(doc.place(node), seen)


@rule(
    "containerd-default-runtime-table",
    "A default runtime as containerd 1.x knew it",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="containerd 2.0 removed the tables default_runtime and untrusted_workload_runtime: "
    "pods run under runc.",
    fix='Define the runtime in runtimes and write default_runtime_name = "nvidia".',
    sources=("containerd RELEASES.md, Deprecated config properties", _VALIDATE),
    needs=(Needs("containerd", ">=2.0"),),
    unknown=Severity.WARNING,
)
def containerd_default_runtime_table(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Tables with a type of their own; containerd 1.x writes empty ones."""
    for table in CRI_TABLES:
        for name in ("default_runtime", "untrusted_workload_runtime"):
            if doc.value("plugins", table, "containerd", name, "runtime_type"):
                place = doc.key_place("plugins", table, "containerd", name)
                yield Hit(place, f"{name} is a table.")


@rule(
    "containerd-mirrors-and-config-path",
    "Mirrors beside config_path",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="containerd refuses both together and loads no plugin for Kubernetes: mirrors cannot "
    "be set when config_path is provided.",
    fix="Keep config_path, and write the mirrors into hosts.toml below it.",
    sources=(_VALIDATE + " ValidatePluginConfig", "containerd docs/hosts.md"),
)
def containerd_mirrors_and_config_path(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """registry.mirrors with registry.config_path."""
    for table in (*CRI_TABLES, CRI_IMAGES_V3):
        registry = doc.get("plugins", table, "registry")
        mirrors = registry.get("mirrors") if registry is not None else None
        path = doc.value("plugins", table, "registry", "config_path")
        if mirrors is not None and mirrors.value and path:
            place = doc.key_place("plugins", table, "registry", "mirrors")
            yield Hit(place, "registry has mirrors and config_path.")


_WRONG_PROGRAMS = (
    "nvidia-container-runtime-hook",
    "nvidia-container-toolkit",
    "nvidia-container-cli",
    "nvidia-docker",
    "nvidia-ctk",
    "nvidia-cdi-hook",
    "containerd-shim",
    "containerd-shim-runc-v2",
)


@rule(
    "containerd-binary-not-a-runtime",
    "BinaryName is no runtime",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="The shim calls the program as it calls runc; a hook or a tool does not answer, and no "
    "pod of this runtime starts.",
    fix='Write BinaryName = "/usr/bin/nvidia-container-runtime".',
    sources=("NVIDIA container toolkit install guide", "containerd docs/cri/config.md"),
)
def containerd_binary_not_a_runtime(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """The hook where the runtime is meant."""
    for runtime in doc.own_runtimes():
        program = posixpath.basename(runtime.binary or "")
        node = runtime.option("BinaryName")
        if node is not None and program in _WRONG_PROGRAMS:
            yield Hit(doc.place(node), f"BinaryName of {runtime.name} is {runtime.binary}.")
