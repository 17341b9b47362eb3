# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts as a page a person reads. Pure: a dictionary in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import show_gpu
from .table import table

# The line of each runtime section: its keys in this order and how each is written; what is
# unknown is left out.
_LINES = {
    "os": {"name": "{}", "machine": "{}", "python": "Python {}"},
    "kernel": {"release": "{}"},
    "systemd": {"version": "{}"},
    "cgroup": {"version": "version {}", "controllers": "controllers {}"},
    "docker": {
        "status": "{}",
        "version": "{}",
        "storage_driver": "{}",
        "default_runtime": "default runtime {}",
        "reason": "{}",
    },
    "containerd": {"status": "{}", "version": "{}"},
    "runc": {"version": "{}"},
    "toolkit": {"status": "{}", "version": "{}"},
}
_UNKNOWN = "-"


def text(facts: dict[str, Any]) -> str:
    """The page for ``gpu_host`` or a part of it, without a newline at its end."""
    parts = []
    if "gpu" in facts:
        parts.append(_gpu(facts["gpu"]))
    lines = [_line(name, facts[name], words) for name, words in _LINES.items() if name in facts]
    if "cdi" in facts:
        lines += [_cdi_line(spec) for spec in facts["cdi"]["specs"]] or ["cdi         no specs"]
    if lines:
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _gpu(gpu: dict[str, Any]) -> str:
    devices = gpu["devices"]
    parts = ["\n".join([_driver(gpu["driver"]), *_host_lines(gpu)])]
    if devices:
        parts.append(table(_device_rows(devices)))
        parts.append(table(_topology_rows(devices, gpu["links"], gpu.get("nics") or [])))
    elif gpu["pci"]:
        rows = [["PCI", "ID", "KERNEL DRIVER"]]
        rows += [
            [one["address"], f"{one['vendor']}:{one['device']}", one["driver"] or _UNKNOWN]
            for one in gpu["pci"]
        ]
        parts.append(table(rows))
    holders = show_gpu.holder_rows(devices)
    if holders:
        parts.append(table(holders))
    if gpu["numa_nodes"]:
        parts.append(
            table(
                [["NUMA", "CPUS", "MEMORY (MiB)"]]
                + [
                    [str(node["node"]), node["cpus"] or _UNKNOWN, _known(node["memory_mib"])]
                    for node in gpu["numa_nodes"]
                ]
            )
        )
    notes = show_gpu.notes(gpu)
    if notes:
        parts.append("\n".join(notes))
    missing = [node["path"] for node in gpu["nodes"] if not node["exists"]]
    if missing:
        parts.append("missing device nodes: " + ", ".join(missing))
    return "\n\n".join(parts)


def _host_lines(gpu: dict[str, Any]) -> list[str]:
    """One line for what the machine adds to the driver; none where nothing of it is known."""
    words = show_gpu.host_words(gpu)
    return [f"{'host':<12}" + ", ".join(words)] if words else []


def _driver(driver: dict[str, Any]) -> str:
    words = [driver["status"].replace("_", " ")]
    if driver["version"]:
        words.append(driver["version"])
    if driver["flavour"]:
        words.append(f"{driver['flavour']} kernel modules")
    if driver["cuda_version"]:
        words.append(f"CUDA {driver['cuda_version']}")
    line = "driver      " + ", ".join(words)
    return f"{line}\n            {driver['reason']}" if driver["reason"] else line


def _device_rows(devices: Sequence[dict[str, Any]]) -> list[list[str]]:
    rows = [["GPU", "MODEL", "USED/TOTAL MiB", "PCI", "NUMA", "CPUS", "MIG", "NVLINK", "UUID"]]
    for device in devices:
        memory, mig, nvlink = device["memory_mib"], device["mig"], device["nvlink"]
        rows.append(
            [
                _known(device["index"]),
                _known(device["name"]),
                f"{memory['used']}/{memory['total']}" if memory else _UNKNOWN,
                _known(device["pci_address"]),
                _known(device["numa_node"]),
                _known(device["cpus"]),
                _mig(mig) if mig else _UNKNOWN,
                _known(nvlink["count"] if nvlink else None),
                device["error"] or _known(device["uuid"]),
            ]
        )
        rows += [_mig_row(device["index"], one) for one in (mig or {}).get("devices") or []]
    return rows


def _mig_row(gpu: int, device: dict[str, Any]) -> list[str]:
    """A MIG device below its GPU; its PCI place and CPUs are the GPU's."""
    memory = device["memory_mib"]
    return [
        f"{gpu}:{device['index']}",
        f"  MIG {_known(device['profile'])}",
        _UNKNOWN if memory is None else f"  {memory}",
        "",
        "",
        "",
        f"GI {_known(device['gpu_instance'])} CI {_known(device['compute_instance'])}",
        "",
        _known(device["uuid"]),
    ]


def _mig(mig: dict[str, Any]) -> str:
    if not mig["supported"]:
        return "no"
    now = "on" if mig["current"] else "off"
    if mig["current"] == mig["pending"]:
        return now
    return f"{now}, {'on' if mig['pending'] else 'off'} after reset"


def _topology_rows(
    devices: Sequence[dict[str, Any]],
    links: Sequence[Sequence[str | None]],
    nics: Sequence[dict[str, Any]],
) -> list[list[str]]:
    names = [f"GPU{device['index']}" for device in devices]
    rows = [["", *names]] + [[name, *map(_known, row)] for name, row in zip(names, links)]
    return rows + [[nic["name"], *map(_known, nic["levels"])] for nic in nics]


def _line(name: str, section: dict[str, Any], templates: Mapping[str, str]) -> str:
    words = []
    for key, template in templates.items():
        value = section.get(key)
        if value not in (None, [], ""):
            words.append(template.format(" ".join(value) if isinstance(value, list) else value))
    return f"{name:<12}{', '.join(words) or _UNKNOWN}"


def _cdi_line(spec: dict[str, Any]) -> str:
    words = [spec["kind"] or spec["status"], ", ".join(spec["devices"]), spec["reason"]]
    return f"{'cdi':<12}{spec['path']}: " + ": ".join(word for word in words if word)


def _known(value: Any) -> str:
    return _UNKNOWN if value is None else str(value)
