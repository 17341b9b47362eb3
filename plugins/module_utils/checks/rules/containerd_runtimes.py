# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on containerd's runtimes for Kubernetes, CDI and the API's address. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...containerd.config import CRI_TABLES, REMOVED_SHIMS, RUNC_SHIM, Runtime
from ...versions import at_least
from ..documents.containerd import ContainerdConfig
from ..host import HostView
from ..model import Hit, Needs, Position, Severity
from ..registry import rule
from .daemon_runtimes import outdated

_CRI = "containerd docs/cri/config.md"
_RUNC_IN_NAME = re.compile(r"runc[-_.]v?(\d+\.\d+\.\d+)(?![\d.])")


def _place(runtime: Runtime, *path: str) -> Position:
    """Where one of a runtime's own keys stands."""
    parent = runtime.node.get(*path[:-1])
    key = parent.keys.get(path[-1]) if parent is not None else None
    line, column = (key.line, key.column) if key else (runtime.node.line, runtime.node.column)
    return Position(runtime.file.path, line, column)


@rule(
    "containerd-systemd-cgroup-differs",
    "Runtimes that disagree about the cgroup driver",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="The driver is an option of each runtime. Where runc uses systemd and another runtime "
    "does not, its pods land in a tree that systemd does not know, and are killed or lose their "
    "limits; in the opposite mix: expected cgroupsPath to be of format slice:prefix:name.",
    fix="Set SystemdCgroup = true in the options of every runtime on a node whose kubelet uses "
    "the systemd driver.",
    sources=("k3s-io/k3s PR 8470", "containerd issue 4857", _CRI),
    cases=("CG-012",),
)
def containerd_systemd_cgroup_differs(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """One says true, another says nothing."""
    runc_like = [r for r in doc.config.runtimes() if r.is_runc_like]
    named = [r.name for r in runc_like if r.systemd_cgroup]
    if not named:
        return
    for runtime in runc_like:
        if runtime.systemd_cgroup or runtime.file is not doc.config.main:
            continue
        if runtime.name in named:
            continue  # the same runtime in two files
        seen = f"The runtime {runtime.name} has no SystemdCgroup = true; {', '.join(named)} has."
        table = f'plugins."{runtime.table}".containerd.runtimes.{runtime.name}.options'
        yield Hit(doc.runtime_place(runtime), seen, f"In [{table}]: SystemdCgroup = true")


@rule(
    "containerd-default-runtime-undefined",
    "The default runtime is not defined",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="The plugin for Kubernetes does not load: no corresponding runtime configured in "
    "containerd.runtimes; the kubelet finds no runtime.",
    fix="Define the runtime, or take the name away.",
    sources=("containerd internal/cri/config/config.go ValidateRuntimeConfig", _CRI),
)
def containerd_default_runtime_undefined(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """default_runtime_name without its table."""
    if doc.is_drop_in or doc.config.unread:
        return
    for file, table, node in doc.config.default_runtimes():
        # Tables that count together are those of one name.
        defined = {r.name for r in doc.config.runtimes() if r.table == table}
        disabled = {n.value for n in doc.config.main.texts("disabled_plugins")}
        if file is doc.config.main and node.value not in {"runc", *defined}:
            seen = f'default_runtime_name is "{node.value}"; runtimes has {_names(defined)}.'
            off = bool(disabled & {"cri", *CRI_TABLES})
            told = off or doc.is_fragment
            yield Hit(doc.place(node), seen, severity=Severity.INFO if told else None)


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) if names else "nothing"


@rule(
    "containerd-shim-removed",
    "A shim that containerd 2.0 no longer has",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="containerd 2.0 removed the first generation of shims; pods of this runtime do not "
    "start.",
    fix='Write runtime_type = "io.containerd.runc.v2" and options.BinaryName for the program.',
    sources=("containerd docs/containerd-2.0.md", "containerd RELEASES.md"),
    needs=(Needs("containerd", ">=2.0"),),
    unknown=Severity.WARNING,
    row="22,24",
)
def containerd_shim_removed(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """A shim that containerd 2.0 no longer has."""
    for runtime in doc.own_runtimes():
        if runtime.kind in REMOVED_SHIMS:
            seen = f"runtime_type of {runtime.name} is {runtime.kind}."
            yield Hit(_place(runtime, "runtime_type"), seen)


@rule(
    "containerd-runtime-key",
    "A runtime has no such key",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="containerd ignores the key (or, for runtime_engine and runtime_root beside the v2 "
    "shim, refuses it): the program that was meant is not run.",
    fix='Write runtime_type = "io.containerd.runc.v2", and in options BinaryName = '
    '"/usr/bin/nvidia-container-runtime"; or hand out GPUs by CDI.',
    sources=("containerd internal/cri/config/config.go", "containerd pkg/cri/config at v1.7.24"),
    row="24",
)
def containerd_runtime_key(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Row 24: shim = containerd-shim, and the like."""
    wrong = ("shim", "runtime_engine", "runtime_root", "BinaryName", "SystemdCgroup", "runtime")
    for runtime in doc.own_runtimes():
        for name in wrong:
            node = runtime.node.get(name)
            if node is None or node.value == "":
                continue
            if name.startswith("runtime_") and runtime.kind != RUNC_SHIM:
                continue
            where = "belongs into options" if name[:1].isupper() else "is no key of a runtime"
            yield Hit(_place(runtime, name), f"{name} of {runtime.name} {where}.")


@rule(
    "containerd-nvidia-without-binary",
    "The runtime nvidia runs plain runc",
    Severity.WARNING,
    reads=ContainerdConfig,
    reason="Without BinaryName the shim runs runc: pods of this runtime get no GPU from the "
    "NVIDIA runtime.",
    fix='In its options: BinaryName = "/usr/bin/nvidia-container-runtime".',
    sources=(_CRI, "NVIDIA container toolkit install guide"),
)
def containerd_nvidia_without_binary(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Name and program do not fit."""
    all_named = [r for r in doc.config.runtimes() if r.name == "nvidia"]
    if any(r.binary or r.node.get("runtime_path") for r in all_named):
        return
    for runtime in doc.own_runtimes():
        if runtime.name == "nvidia" and runtime.kind in (None, RUNC_SHIM):
            place = doc.runtime_place(runtime)
            yield Hit(place, "The runtime nvidia has no BinaryName.")


@rule(
    "containerd-runc-outdated",
    "A runtime whose name says that it is an old runc",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="A runc that was put there by hand is not updated with the package. Releases before "
    "1.2.8, 1.3.3 and 1.4.0 let a container write to the host.",
    fix="Remove the runtime, or put a patched runc in its place and check it with --version.",
    sources=("runc CHANGELOG: CVE-2025-31133, CVE-2025-52565, CVE-2025-52881",),
    row="46,56",
)
def containerd_runc_outdated(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """The version stands in the path."""
    for runtime in doc.own_runtimes():
        found = _RUNC_IN_NAME.search(runtime.binary or "")
        if found and outdated(found.group(1)):
            place = _place(runtime, "options", "BinaryName")
            seen = f"BinaryName of {runtime.name} is {runtime.binary}: runc {found.group(1)}."
            yield Hit(place, seen, commands=(f"{runtime.binary} --version",))


@rule(
    "containerd-cdi-off",
    "CDI is off in containerd",
    Severity.WARNING,
    reads=ContainerdConfig,
    reason="Pods then get no CDI devices: what the device plugin hands out with the strategies "
    "cdi-cri and cdi-annotations does not arrive. containerd 2.0 has it on unless told "
    "otherwise, 1.7 has it off, and from 2.3 on an explicit false is deprecated.",
    fix="Write enable_cdi = true, or remove the line with containerd 2.0 and newer.",
    sources=("containerd docs/containerd-2.0.md", "containerd internal/cri/config/config.go"),
    needs=(Needs("containerd", ">=1.7"),),
    unknown=Severity.INFO,
    row="P9",
)
def containerd_cdi_off(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """enable_cdi = false; what 1.7 writes as its default is only told."""
    for table in CRI_TABLES:
        if doc.value("plugins", table, "enable_cdi") is False:
            known = host.version("containerd")
            young = known is not None and at_least(known, "2.0.0")
            severity = None if young else Severity.INFO
            yield Hit(
                doc.key_place("plugins", table, "enable_cdi"),
                "enable_cdi is false.",
                severity=severity,
            )


@rule(
    "containerd-tcp-without-tls",
    "containerd's API listens on TCP without TLS",
    Severity.ERROR,
    reads=ContainerdConfig,
    reason="Whoever can open a connection to containerd's API is root on this host.",
    fix="Remove the address: the unix socket is enough for Docker and the kubelet.",
    sources=("containerd docs/ops.md", "containerd cmd/containerd/server/config at v2.3.4"),
)
def containerd_tcp_without_tls(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """[grpc] tcp_address without tcp_tls_ca."""
    for path, key, ca in (
        (("grpc",), "tcp_address", "tcp_tls_ca"),
        (("plugins", "io.containerd.server.v1.grpc-tcp"), "address", "tls_ca"),
    ):
        node = doc.get(*path, key)
        if node is not None and node.value and not doc.value(*path, ca):
            local = str(node.value).startswith(("127.", "localhost:", "[::1]"))
            seen = f"{key} is {node.value}; {ca} is not set."
            yield Hit(doc.place(node), seen, severity=Severity.WARNING if local else None)


@rule(
    "containerd-registry-password",
    "A registry's password in containerd's config.toml",
    Severity.INFO,
    reads=ContainerdConfig,
    reason="The file is usually readable by every user, and containerd 2.x no longer wants "
    "credentials there.",
    fix="Use image pull secrets, or make the file readable by root alone.",
    sources=("containerd docs/cri/registry.md",),
)
def containerd_registry_password(doc: ContainerdConfig, host: HostView) -> Iterator[Hit]:
    """Names only: the values are secrets."""
    for table in (*CRI_TABLES, "io.containerd.cri.v1.images"):
        configs = doc.get("plugins", table, "registry", "configs")
        for key, node in configs.items() if configs is not None else ():
            for name in ("password", "auth", "identitytoken"):
                secret = node.get("auth", name)
                if secret is not None and secret.value:
                    seen = f"registry.configs.{key.name}.auth has {name}."
                    yield Hit(doc.place(secret), seen)
