# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the runtimes that daemon.json defines, and on the one it makes the default. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...versions import parse
from ..documents.daemon import DaemonConfig
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule
from .daemon_listen import unit_flags

_SETUP = "moby daemon/runtime_unix.go setupRuntimes"
_SEEN = "seen on Docker 26.1.5 and 28.5.2"

# Shims that containerd 2.0 removed (containerd docs/containerd-2.0.md).
REMOVED_SHIMS = ("io.containerd.runtime.v1.linux", "io.containerd.runc.v1")

# The first releases without the container escapes of November 2025, by minor release
# (runc CHANGELOG: CVE-2025-31133, CVE-2025-52565, CVE-2025-52881).
_RUNC_FLOORS = ((1, 2, 8), (1, 3, 3))

_RUNC_IN_NAME = re.compile(r"runc[-_.]v?(\d+\.\d+\.\d+)(?![\d.])")


@rule(
    "default-runtime-undefined",
    "default-runtime names a runtime that is not defined",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd does not start when its default runtime does not exist, and dockerd "
    "--validate does not notice: specified default runtime does not exist.",
    fix="Define the runtime under runtimes, or remove default-runtime.",
    sources=(_SETUP, _SEEN),
    cases=("RT-002",),
)
def default_runtime_undefined(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """default-runtime without its entry."""
    node = doc.get("default-runtime")
    if node is None or not isinstance(node.value, str) or not node.value:
        return
    name = node.value
    defined = [runtime for runtime, _node in doc.runtimes()]
    if name in ("runc", *defined) or name.startswith("io.containerd."):
        return
    flags = unit_flags(host) or {}
    added = [word.partition("=")[0] for word in flags.get("--add-runtime", "").split(",")]
    if name in added or name in (host.runtimes or ()):
        return
    fix = f'Add "runtimes": {{"{name}": {{"path": "{_program(name)}"}}}}, or remove the key.'
    commands = (
        ("sudo nvidia-ctk runtime configure --runtime=docker --set-as-default --dry-run",)
        if name == "nvidia"
        else ()
    )
    seen = f'default-runtime is "{name}"; runtimes has {_names(defined)}.'
    known = host.live or bool(flags)
    assumed = () if known else (f"no flag --add-runtime={name} in the daemon's unit",)
    yield Hit(doc.place(node), seen, fix, commands, assumed=assumed)


def _program(name: str) -> str:
    return "nvidia-container-runtime" if name == "nvidia" else f"/usr/bin/{name}"


def _names(names: list[str]) -> str:
    return ", ".join(names) if names else "nothing"


@rule(
    "runtime-name-reserved",
    "The runtime name runc is reserved",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="runc is built in: dockerd does not start with a runtime of that name "
    "(runtime name 'runc' is reserved).",
    fix='Choose another name and make it the default: "default-runtime": "nvidia".',
    sources=(_SETUP, "docker/for-linux issue 144"),
    cases=("RT-011",),
)
def runtime_name_reserved(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """runtimes.runc."""
    if doc.get("runtimes", "runc") is not None:
        yield Hit(doc.key_place("runtimes", "runc"), "runtimes defines runc anew.")


@rule(
    "runtime-incomplete",
    "A runtime that dockerd refuses",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="A runtime is either path with runtimeArgs or runtimeType with options; dockerd does "
    "not start with anything else.",
    fix="Give path, or runtimeType with options.",
    sources=(_SETUP,),
)
def runtime_incomplete(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Both ways, or neither, in one runtime."""
    for name, node in doc.runtimes():
        if not node.is_map or name == "runc" or name.startswith("<"):
            continue
        has = {
            key for key in ("path", "runtimeType", "options") if doc.value("runtimes", name, key)
        }
        if not has & {"path", "runtimeType"}:
            seen = f"runtimes.{name} has neither path nor runtimeType."
        elif {"path", "runtimeType"} <= has:
            seen = f"runtimes.{name} has both path and runtimeType."
        elif {"path", "options"} <= has:
            seen = f"runtimes.{name} has options beside path; options belong to a runtimeType."
        elif "runtimeType" in has and doc.value("runtimes", name, "runtimeArgs"):
            seen = f"runtimes.{name} has runtimeArgs beside runtimeType; they belong to a path."
        else:
            continue
        yield Hit(doc.key_place("runtimes", name), seen)


@rule(
    "runtime-args-subcommand",
    "runtimeArgs with a flag of a subcommand",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="Docker puts runtimeArgs before runc's subcommand, where only global flags are known: "
    "every container of this runtime fails to start.",
    fix="Remove the argument.",
    sources=("moby daemon/runtime_unix.go wrapRuntime", "runc create.go"),
    row="58",
)
def runtime_args_subcommand(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """--no-pivot and the other flags of create and run."""
    for name, node in doc.runtimes():
        args = node.get("runtimeArgs")
        for word in args.elements() if args else ():
            flag = str(word.value).partition("=")[0]
            if flag in ("--no-pivot", "--no-new-keyring", "--preserve-fds", "--bundle", "-b"):
                seen = f"runtimes.{name}.runtimeArgs has {flag}, a flag of runc create."
                yield Hit(doc.place(word), seen)


@rule(
    "runtime-args-systemd-cgroup",
    "runtimeArgs with --systemd-cgroup",
    Severity.WARNING,
    reads=DaemonConfig,
    reason="Docker tells the runtime which cgroup driver to use, from native.cgroupdriver. A "
    "runtime that is told otherwise by its arguments gets a cgroup path of the wrong form.",
    fix='Set "exec-opts": ["native.cgroupdriver=systemd"] and remove the argument.',
    sources=("moby daemon/runtime_unix.go", "runc libcontainer/specconv"),
    row="57",
)
def runtime_args_systemd_cgroup(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """The driver given in the wrong place."""
    driver = doc.cgroup_driver or host.cgroup_driver
    for name, node in doc.runtimes():
        args = node.get("runtimeArgs")
        for word in args.elements() if args else ():
            if str(word.value).startswith("--systemd-cgroup"):
                seen = f"runtimes.{name}.runtimeArgs has {word.value}."
                same = driver == "systemd"
                yield Hit(doc.place(word), seen, severity=Severity.INFO if same else None)


@rule(
    "runtime-shim-removed",
    "A shim that containerd no longer has",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="containerd 2.0 removed the first generation of shims: containers of this runtime do "
    "not start.",
    fix='Write "runtimeType": "io.containerd.runc.v2".',
    sources=("containerd docs/containerd-2.0.md", "containerd RELEASES.md"),
    row="22",
)
def runtime_shim_removed(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """In daemon.json."""
    containerd = host.version("containerd")
    if containerd is not None and parse(containerd) < (2,):
        return
    for name, node in doc.runtimes():
        shim = node.get("runtimeType")
        if shim is not None and shim.value in REMOVED_SHIMS:
            known = containerd is not None
            yield Hit(
                doc.place(shim),
                f"runtimes.{name}.runtimeType is {shim.value}.",
                severity=None if known else Severity.WARNING,
                assumed=() if known else ("containerd >=2.0",),
            )


@rule(
    "runtime-runc-outdated",
    "A runtime whose name says that it is an old runc",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="A runc that was put there by hand is not updated with the package. Releases before "
    "1.2.8, 1.3.3 and 1.4.0 let a container write to the host.",
    fix="Remove the runtime, or put a patched runc in its place and check it with --version.",
    sources=("runc CHANGELOG: CVE-2025-31133, CVE-2025-52565, CVE-2025-52881",),
    row="46,56",
)
def runtime_runc_outdated(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """The version stands in the path."""
    for name, node in doc.runtimes():
        path = node.get("path")
        found = _RUNC_IN_NAME.search(str(path.value)) if path is not None else None
        if path is not None and found and outdated(found.group(1)):
            seen = f"runtimes.{name}.path is {path.value}: runc {found.group(1)}."
            yield Hit(doc.place(path), seen, commands=(f"{path.value} --version",))


def outdated(version: str) -> bool:
    """Is this upstream release of runc older than the first patched one of its minor release?"""
    have = parse(version)
    floor = next((f for f in _RUNC_FLOORS if f[:2] == have[:2]), (1, 2, 8))
    return have < floor if have < (1, 4) else False


@rule(
    "swarm-generic-resource-runtime",
    "Swarm gives services no GPU without a GPU runtime as the default",
    Severity.WARNING,
    reads=DaemonConfig,
    reason="A service has no --gpus, --device or --runtime: what injects the GPU that Swarm "
    "assigned is the daemon's default runtime.",
    fix='Set "default-runtime" to the runtime that reads DOCKER_RESOURCE_… (nvidia).',
    sources=("docker service create --help", "seen with Swarm on Docker 26.1.5"),
)
def swarm_generic_resource_runtime(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """node-generic-resources with GPUs beside runc as the default."""
    gpus = _gpu_resources(doc)
    default = doc.value("default-runtime") or host.default_runtime or "runc"
    if gpus and default == "runc":
        seen = "node-generic-resources names GPUs; the default runtime is runc."
        yield Hit(doc.key_place("node-generic-resources"), seen)


@rule(
    "swarm-resource-toolkit",
    "Swarm's GPU assignment needs the toolkit's help",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="The assignment reaches a container as DOCKER_RESOURCE_NAME, which the NVIDIA runtime "
    "reads only when swarm-resource in its config.toml names it; in the mode jit-cdi, the default "
    "from 1.18.0, it is not read before 1.19.0: every replica then sees the same GPUs.",
    fix='Set swarm-resource = "DOCKER_RESOURCE_GPU" (the name after NVIDIA- … as in the list) in '
    "/etc/nvidia-container-runtime/config.toml, with toolkit 1.19.0 or newer, or mode legacy.",
    sources=(
        "NVIDIA/nvidia-container-toolkit issues 57 and 1599",
        "NVIDIA/nvidia-container-toolkit CHANGELOG 1.19.0-rc.2",
    ),
    cases=("RT-029",),
)
def swarm_resource_toolkit(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Whether the toolkit is known to be old, or what it must be."""
    resources = _gpu_resources(doc)
    default = str(doc.value("default-runtime") or "")
    if not resources or not default.startswith("nvidia"):
        return
    variable = "DOCKER_RESOURCE_" + resources[0].partition("=")[0].upper()
    place = doc.key_place("node-generic-resources")
    toolkit, mode = host.version("toolkit"), host.toolkit_mode
    fix = (
        f'Set swarm-resource = "{variable}" in /etc/nvidia-container-runtime/config.toml, with '
        "toolkit 1.19.0 or newer (before that: mode legacy)."
    )
    if toolkit and (1, 18) <= parse(toolkit)[:2] < (1, 19) and mode in (None, "auto", "jit-cdi"):
        yield Hit(place, f"The toolkit is {toolkit}, whose jit-cdi mode ignores {variable}.", fix)
    elif not host.live:
        seen = f"Replicas get their GPUs by {variable}, which config.toml must name."
        yield Hit(place, seen, fix, severity=Severity.INFO, assumed=("toolkit >=1.19.0",))


def _gpu_resources(doc: DaemonConfig) -> list[str]:
    words = [node.value for node in doc.texts("node-generic-resources")]
    return [word for word in words if "gpu" in word.lower()]
