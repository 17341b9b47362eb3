# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts as a page a person reads. Pure: a dictionary in, text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    parts = [_driver(gpu["driver"])]
    if gpu["devices"]:
        parts.append(_table(_device_rows(gpu["devices"])))
        parts.append(_table(_topology_rows(gpu["devices"], gpu["links"])))
    elif gpu["pci"]:
        rows = [["PCI", "ID", "KERNEL DRIVER"]]
        rows += [
            [one["address"], f"{one['vendor']}:{one['device']}", one["driver"] or _UNKNOWN]
            for one in gpu["pci"]
        ]
        parts.append(_table(rows))
    if gpu["numa_nodes"]:
        parts.append(
            _table(
                [["NUMA", "CPUS", "MEMORY (MiB)"]]
                + [
                    [str(node["node"]), node["cpus"] or _UNKNOWN, str(node["memory_mib"])]
                    for node in gpu["numa_nodes"]
                ]
            )
        )
    missing = [node["path"] for node in gpu["nodes"] if not node["exists"]]
    if missing:
        parts.append("missing device nodes: " + ", ".join(missing))
    return "\n\n".join(parts)


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
    return rows


def _mig(mig: dict[str, bool]) -> str:
    if not mig["supported"]:
        return "no"
    now = "on" if mig["current"] else "off"
    if mig["current"] == mig["pending"]:
        return now
    return f"{now}, {'on' if mig['pending'] else 'off'} after reset"


def _topology_rows(
    devices: Sequence[dict[str, Any]], links: Sequence[Sequence[str]]
) -> list[list[str]]:
    names = [f"GPU{device['index']}" for device in devices]
    return [["", *names]] + [[name, *row] for name, row in zip(names, links)]


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


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )
