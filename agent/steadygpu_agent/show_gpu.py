# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person should know of the GPUs beyond the tables: holders, faults, what is unknown.

Pure. Facts of an earlier release, which lack these keys, say nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_UNKNOWN = "-"
_LABEL = 12
_CONTAINER_ID = 12


def host_words(gpu: dict[str, Any]) -> list[str]:
    """The machine around the GPUs in a few words."""
    words = []
    switches = gpu.get("nvswitches")
    if switches:
        words.append(f"{switches} NVSwitches")
    manager = gpu.get("fabric_manager") or {}
    if switches or manager.get("status") == "running":
        words.append(
            " ".join(["fabric manager", manager["status"], manager["version"] or ""]).strip()
        )
    daemon = gpu.get("persistence_daemon") or {}
    if daemon:
        words.append(f"persistence daemon {daemon['status']}")
    if gpu.get("iommu"):
        words.append(f"IOMMU {'on' if gpu['iommu']['enabled'] else 'off'}")
    if gpu.get("secure_boot"):
        words.append(f"Secure Boot {gpu['secure_boot']}")
    return words


def holder_rows(devices: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A table with one row a process and the GPUs it holds; [] when nobody does."""
    found: dict[tuple[int, str], list[tuple[dict[str, Any], int]]] = {}
    for device in devices:
        for holder in device.get("holders") or []:
            found.setdefault((holder["pid"], holder["kind"]), []).append((holder, device["index"]))
    rows = []
    for held in found.values():
        holder = held[0][0]
        used = [one["used_mib"] for one, _index in held if one["used_mib"] is not None]
        rows.append(
            [
                holder["name"],
                str(holder["pid"]),
                holder["kind"],
                (holder["container"] or _UNKNOWN)[:_CONTAINER_ID],
                str(sum(used)) if used else _UNKNOWN,
                ",".join(str(index) for _holder, index in held),
            ]
        )
    return [["HOLDER", "PID", "KIND", "CONTAINER", "USED MiB", "GPUS"], *rows] if rows else []


def notes(gpu: dict[str, Any]) -> list[str]:
    """Lines a reader must not miss, the faults first, then what could not be read."""
    topology = gpu.get("topology") or {}
    lines = [_labelled("refused", f"{one['address']}: {one['reason']}") for one in _refused(gpu)]
    reason = (gpu.get("fabric_manager") or {}).get("reason")
    lines += [_labelled("fabric", reason)] if reason else []
    lines += _fabrics(gpu["devices"])
    lines += [line for device in gpu["devices"] for line in _xid(device)]
    lines += [_labelled("note", text) for text in topology.get("remarks") or []]
    lines += [_labelled("disagree", text) for text in topology.get("disagreements") or []]
    return lines + _unknown(gpu["devices"])


def _refused(gpu: dict[str, Any]) -> list[dict[str, Any]]:
    """Cards the driver left alone. Where they are the driver's whole story it is told there."""
    told = gpu["driver"]["reason"] or ""
    return [one for one in gpu["pci"] if one.get("reason") and one["reason"] not in told]


def _fabrics(devices: Sequence[dict[str, Any]]) -> list[str]:
    """GPUs that have not joined their NVLink fabric: CUDA does not start on them."""
    waiting: dict[str, list[int]] = {}
    for device in devices:
        fabric = device.get("fabric")
        if fabric and fabric["state"] in ("not_started", "in_progress"):
            waiting.setdefault(fabric["state"].replace("_", " "), []).append(device["index"])
    return [
        _labelled("fabric", f"registration {state} on {_gpus(indices)}")
        for state, indices in waiting.items()
    ]


def _xid(device: dict[str, Any]) -> list[str]:
    """The last Xid of a GPU, and how many there were."""
    xids = device.get("xids")
    if not xids:
        return []
    last = xids[-1]
    more = f", the last of {len(xids)}" if len(xids) > 1 else ""
    said = f": {last['text']}" if last["text"] else ""
    return [
        _labelled(
            "xid",
            f"GPU {device['index']}: {last['xid']}{said} ({last['seconds']:g} s after boot{more})",
        )
    ]


def _unknown(devices: Sequence[dict[str, Any]]) -> list[str]:
    """Fields that could not be read, one line for each reason, with the GPUs it holds for."""
    fields: dict[str, dict[str, list[int]]] = {}
    for device in devices:
        for name, reason in (device.get("errors") or {}).items():
            fields.setdefault(reason, {}).setdefault(name, []).append(device["index"])
    lines = []
    for reason, names in fields.items():
        indices = sorted({index for found in names.values() for index in found})
        whose = "every GPU" if len(indices) == len(devices) else _gpus(indices)
        lines.append(_labelled("unknown", f"{', '.join(sorted(names))} of {whose}: {reason}"))
    return lines


def _gpus(indices: Sequence[int]) -> str:
    return f"GPU {', '.join(str(index) for index in indices)}"


def _labelled(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"
