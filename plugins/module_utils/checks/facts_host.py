# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts and evidence of a live host in, the view that rules judge against out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .host import Gpu, HostPackage, HostView, MigDevice
from .preflight import platform_key
from .versions.components import PACKAGES_OF

_NOTHING: Mapping[str, Any] = {}

# Where a component's own version stands in the facts.
_FACTS_OF = {
    "docker": ("docker", "version"),
    "containerd": ("containerd", "version"),
    "runc": ("runc", "version"),
    "toolkit": ("toolkit", "version"),
    "driver": ("gpu", "driver", "version"),
    "nvidia_kernel_module": ("gpu", "driver", "version"),
    "library": ("gpu", "driver", "library_version"),
    "cuda": ("gpu", "driver", "cuda_version"),
    "fabric_manager": ("gpu", "fabric_manager", "version"),
    "kernel": ("kernel", "release"),
    "systemd": ("systemd", "version"),
    "cgroup": ("cgroup", "version"),
}
_PROGRAMS = ("docker_cli", "compose", "podman")


def from_facts(
    gpu_host: Mapping[str, Any], evidence: Mapping[str, Any] | None = None, name: str = ""
) -> HostView:
    """What is known of a live host.

    ``gpu_host`` is ``ansible_facts['gpu_host']``; a section that was not gathered leaves its
    fields unknown. ``evidence`` is what ``engine/evidence.py`` gathers beside it. Nothing here
    raises: a value that is not of its documented type counts as not known.
    """
    seen = evidence or _NOTHING
    docker = _map(gpu_host, "docker")
    running = docker.get("status") == "running"
    packages = _packages(gpu_host, seen)
    return HostView(
        live=True,
        name=name,
        versions=_versions(gpu_host, seen, packages),
        packages=packages,
        os=platform_key(gpu_host["os"]) if _map(gpu_host, "os") else None,
        gpus=_gpus(gpu_host),
        vendors=_vendors(gpu_host, seen),
        cpus=_cpus(gpu_host, seen),
        nodes=_nodes(gpu_host, seen),
        memory_mib=_memory(gpu_host, seen),
        cgroup_driver=_text(docker, "cgroup_driver"),
        runtimes=frozenset(_texts(docker, "runtimes")) if running else None,
        default_runtime=_text(docker, "default_runtime"),
        live_restore=_truth(docker, "live_restore"),
        rootless=_truth(seen, "rootless"),
        cdi_enabled=_truth(_map(docker, "cdi"), "enabled") if running else None,
        cdi_devices=_cdi_devices(gpu_host),
        toolkit_mode=_text(seen, "toolkit_mode"),
        hook_on_path=_on_path(seen, "nvidia-container-runtime-hook"),
        modules={
            key: value
            for key, value in _map(gpu_host, "gpu", "modules").items()
            if isinstance(value, bool)
        },
        cmdline=_text(_map(gpu_host, "kernel"), "cmdline"),
        weights_work=_weights_work(seen),
        selinux=_text(seen, "selinux"),
        selinux_types=(
            frozenset(_texts(seen, "selinux_types"))
            if isinstance(seen.get("selinux_types"), list)
            else None
        ),
        facts=gpu_host,
        evidence=seen,
    )


def _versions(
    facts: Mapping[str, Any], seen: Mapping[str, Any], packages: Mapping[str, HostPackage]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for component, path in _FACTS_OF.items():
        value = _map(facts, *path[:-1]).get(path[-1])
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
            found[component] = str(value)
    programs = _map(seen, "programs")
    for component in _PROGRAMS:
        value = programs.get(component)
        if isinstance(value, str) and value:
            found[component] = value
    # What no facts module reads, such as the release of a GPU Operator, may be given beside them.
    for component, value in _map(seen, "versions").items():
        if isinstance(value, str) and value:
            found.setdefault(component, value)
    for component, names in PACKAGES_OF.items():
        if component not in found:
            named = next((packages[name] for name in names if name in packages), None)
            if named is not None:
                found[component] = named.version
    return found


def _packages(facts: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, HostPackage]:
    found: dict[str, HostPackage] = {}
    for source in (_map(facts, "packages", "installed"), _map(seen, "packages")):
        for name, entry in source.items():
            version = _text(entry, "version") if isinstance(entry, Mapping) else None
            if version:
                held = _truth(entry, "held") or False
                found[name] = HostPackage(version, held, _text(entry, "candidate"))
    return found


def _gpus(facts: Mapping[str, Any]) -> tuple[Gpu, ...] | None:
    gpu = _map(facts, "gpu")
    devices = gpu.get("devices")
    driver = _map(gpu, "driver")
    if not isinstance(devices, list) or driver.get("hidden"):
        return None
    if not devices and (gpu.get("pci") or driver.get("status") == "unresponsive"):
        return None  # there are GPUs, and nobody can name them now
    return tuple(
        _gpu(device, order) for order, device in enumerate(devices) if isinstance(device, Mapping)
    )


def _gpu(device: Mapping[str, Any], order: int) -> Gpu:
    mig = _map(device, "mig")
    return Gpu(
        index=_number(device, "index", order),
        uuid=_text(device, "uuid"),
        name=_text(device, "name"),
        architecture=_text(device, "architecture"),
        memory_mib=_whole(_map(device, "memory_mib"), "total"),
        numa_node=_whole(device, "numa_node"),
        cpus=_text(device, "cpus"),
        mig=mig.get("current") is True,
        mig_pending=mig.get("pending") is True,
        mig_devices=tuple(
            MigDevice(_number(entry, "index", at), str(entry["uuid"]), str(entry["profile"]))
            for at, entry in enumerate(_list(mig, "devices"))
            if isinstance(entry, Mapping) and entry.get("uuid") and entry.get("profile")
        ),
        nvlink=bool(_map(device, "nvlink").get("count")),
        error=_text(device, "error"),
    )


def _vendors(facts: Mapping[str, Any], seen: Mapping[str, Any]) -> frozenset[str]:
    gpu = _map(facts, "gpu")
    nvidia = {"nvidia"} if gpu.get("devices") or gpu.get("pci") else set()
    return frozenset(nvidia | set(_texts(seen, "vendors")))


def _cpu_nodes(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = _list(_map(facts, "gpu"), "numa_nodes")
    return [n for n in entries if isinstance(n, Mapping) and n.get("kind") == "cpu"]


def _cpus(facts: Mapping[str, Any], seen: Mapping[str, Any]) -> str | None:
    online = _text(seen, "cpus")
    return online or ",".join(_text(node, "cpus") or "" for node in _cpu_nodes(facts)) or None


def _nodes(facts: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[int, str]:
    given = _map(seen, "nodes")
    if given:
        return {int(node): str(cpus) for node, cpus in given.items() if str(node).isdecimal()}
    return {
        _number(node, "node", order): _text(node, "cpus") or ""
        for order, node in enumerate(_cpu_nodes(facts))
    }


def _memory(facts: Mapping[str, Any], seen: Mapping[str, Any]) -> int | None:
    given = _whole(seen, "memory_mib")
    if given is not None:
        return given
    sizes = [_whole(node, "memory_mib") for node in _cpu_nodes(facts)]
    whole = [size for size in sizes if size is not None]
    return sum(whole) if whole and len(whole) == len(sizes) else None


def _cdi_devices(facts: Mapping[str, Any]) -> frozenset[str] | None:
    """What the engine can resolve: its own list where it gives one, else that of the files."""
    listed = _map(facts, "docker", "cdi").get("devices")
    specs = _map(facts, "cdi").get("specs")
    if not isinstance(listed, list) and not isinstance(specs, list):
        return None
    if isinstance(listed, list) and listed:
        return frozenset(str(device) for device in listed)
    found: set[str] = set()
    for spec in specs if isinstance(specs, list) else []:
        if isinstance(spec, Mapping) and spec.get("status") == "valid":
            kind = spec.get("kind")
            names = _texts(spec, "devices")
            found.update(name if "=" in name else f"{kind}={name}" for name in names)
    return frozenset(found)


def _weights_work(seen: Mapping[str, Any]) -> bool | None:
    io = seen.get("io")
    return bool(io.get("iocost") or io.get("bfq")) if isinstance(io, Mapping) else None


def _on_path(seen: Mapping[str, Any], program: str) -> bool | None:
    programs = _map(seen, "programs")
    return bool(programs[program]) if program in programs else None


def _map(facts: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    inside: Any = facts
    for step in path:
        inside = inside.get(step) if isinstance(inside, Mapping) else None
    return inside if isinstance(inside, Mapping) else _NOTHING


def _text(facts: Mapping[str, Any], key: str) -> str | None:
    value = facts.get(key)
    return value if isinstance(value, str) and value else None


def _list(facts: Mapping[str, Any], key: str) -> list[Any]:
    value = facts.get(key)
    return value if isinstance(value, list) else []


def _texts(facts: Mapping[str, Any], key: str) -> list[str]:
    return [str(entry) for entry in _list(facts, key)]


def _truth(facts: Mapping[str, Any], key: str) -> bool | None:
    value = facts.get(key)
    return value if isinstance(value, bool) else None


def _whole(facts: Mapping[str, Any], key: str) -> int | None:
    value = facts.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(facts: Mapping[str, Any], key: str, otherwise: int) -> int:
    value = _whole(facts, key)
    return otherwise if value is None else value
