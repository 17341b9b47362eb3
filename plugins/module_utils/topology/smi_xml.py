# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``nvidia-smi -q -x`` to the shape of the facts: what a ticket says of its GPUs. Pure.

Schemas v10 to v13 (drivers R418 to R595) were read; a tag that is not known is left out. What the
XML does not say is None. The result goes where the ``gpu`` section of the facts goes, for
example into ``facts.machine``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from ..process_kinds import kind_of
from . import xmltext

SOURCE = "nvidia-smi -q -x"
WANTED = "wanted is the output of nvidia-smi -q -x, or a <gpu> element of it"

# A value nvidia-smi has not, and what stands where it could not read one.
_NOTHING = frozenset(("", "n/a", "[n/a]", "none", "not supported", "[not supported]"))
_FAILED = re.compile(
    r"err!|unknown error|gpu is lost|requires reset|reset required|insufficient permission",
    re.IGNORECASE,
)
_SICK = re.compile(r"unknown error|gpu is lost|requires reset|reset required", re.IGNORECASE)

_Element = ElementTree.Element


def parse(text: str) -> dict[str, Any]:
    """``driver``, ``source`` and ``devices`` as in the facts. Raises TopologyError.

    A lone ``<gpu>`` element, as people paste it, is a log of one GPU.
    """
    log = xmltext.read(_rooted(text), ("nvidia_smi_log",), WANTED)
    found = [element for element in log if element.tag == "gpu"]
    attached = _integer(_text(log, "attached_gpus"))
    # With -i the log has some of the GPUs, and does not number them.
    numbered = attached is None or attached == len(found)
    version = _text(log, "driver_version")
    return {
        "driver": {
            "status": "loaded" if version else None,
            "version": version,
            "flavour": None,
            "library_version": None,
            "cuda_version": _text(log, "cuda_version"),
            "reason": None,
        },
        "source": SOURCE,
        "devices": [_device(one, i if numbered else None) for i, one in enumerate(found)],
    }


def _rooted(text: str) -> str:
    """The text with a root around lone GPUs, on the same lines."""
    start = re.search(r"<gpu[\s>]", text)
    end = text.rfind("</gpu>")
    if "<nvidia_smi_log" in text or start is None or end < start.start():
        return text
    end += len("</gpu>")
    gpus = text[start.start() : end]
    return f"{text[: start.start()]}<nvidia_smi_log>{gpus}</nvidia_smi_log>"


def _device(gpu: _Element, index: int | None) -> dict[str, Any]:
    errors = _errors(gpu)
    sick = [text for text in errors.values() if _SICK.search(text)]
    return {
        "index": index,
        "uuid": _text(gpu, "uuid"),
        "minor": _integer(_text(gpu, "minor_number")),
        "name": _text(gpu, "product_name"),
        "architecture": _architecture(_text(gpu, "product_architecture")),
        "pci_address": _address(_text(gpu, "pci/pci_bus_id") or gpu.get("id") or ""),
        "pci_path": [],
        "numa_node": None,
        "cpus": None,
        "memory_node": None,
        "memory_mib": _amounts(gpu, "fb_memory_usage", ("total", "used", "free", "reserved")),
        "bar1_mib": _amounts(gpu, "bar1_memory_usage", ("total", "used")),
        "compute_mode": _lower(_text(gpu, "compute_mode")),
        "persistence": _switch(_text(gpu, "persistence_mode")),
        "display": _switch(_text(gpu, "display_active")),
        "gsp": _gsp(gpu),
        "ecc": _ecc(gpu),
        "remapped_rows": _remapped_rows(gpu),
        "xids": None,
        "power": _power(gpu),
        "clocks": _clocks(gpu),
        "pcie": _pcie(gpu),
        "mig": _mig(gpu),
        "nvlink": None,
        "fabric": _fabric(gpu),
        "holders": _holders(gpu),
        "error": sick[0] if sick else None,
        "errors": errors,
    }


def _text(element: _Element, path: str) -> str | None:
    """The text of a tag; None where there is none, or N/A, or an error instead of a value."""
    text = (element.findtext(path) or "").strip()
    is_error = text.startswith("Requested functionality") or _FAILED.search(text)
    return None if text.lower() in _NOTHING or is_error else text


def _errors(gpu: _Element) -> dict[str, str]:
    """Tags that hold an error instead of a value, by their name, and what the driver asks for."""
    found = {
        one.tag: one.text.strip().strip("[]")
        for one in gpu.iter()
        if one.text and one.tag != "process_name" and not len(one) and _FAILED.search(one.text)
    }
    action = _text(gpu, "gpu_recovery_action")
    return {**found, "gpu_recovery_action": f"the driver asks for: {action}"} if action else found


def _integer(text: str | None) -> int | None:
    """The number at the start of ``19968 MiB``, ``16x`` or ``4``."""
    match = re.match(r"[0-9]{1,18}(?![0-9])", text or "")
    return int(match.group()) if match else None


def _decimal(text: str | None) -> float | None:
    match = re.match(r"[0-9]{1,18}(?:\.[0-9]+)?", text or "")
    return float(match.group()) if match else None


def _switch(text: str | None) -> bool | None:
    words = {"enabled": True, "yes": True, "disabled": False, "no": False}
    return words.get((text or "").lower())


def _lower(text: str | None) -> str | None:
    return text.lower().replace(" ", "_") if text else None


def _architecture(text: str | None) -> str | None:
    """As the facts call it: ``ada`` of ``Ada Lovelace``."""
    return text.lower().split()[0] if text else None


def _address(text: str) -> str | None:
    """As sysfs writes it: nvidia-smi gives the domain eight digits."""
    domain, _colon, rest = text.lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}" if rest else None
    except ValueError:
        return None


def _some(values: dict[str, Any]) -> dict[str, Any] | None:
    """None instead of a group of which nothing is known."""
    return values if any(value is not None for value in values.values()) else None


def _amounts(gpu: _Element, tag: str, names: Sequence[str]) -> dict[str, Any] | None:
    return _some({name: _integer(_text(gpu, f"{tag}/{name}")) for name in names})


def _gsp(gpu: _Element) -> bool | None:
    """Does the GPU run GSP firmware? Drivers before R510 do not say."""
    if gpu.find("gsp_firmware_version") is None:
        return None
    return _text(gpu, "gsp_firmware_version") is not None


def _ecc(gpu: _Element) -> dict[str, Any] | None:
    mode = {
        "current": _switch(_text(gpu, "ecc_mode/current_ecc")),
        "pending": _switch(_text(gpu, "ecc_mode/pending_ecc")),
    }
    if _some(mode) is None:
        return None
    return {**mode, "corrected": _ecc_errors(gpu, 1), "uncorrected": _ecc_errors(gpu, 2)}


def _ecc_errors(gpu: _Element, bits: int) -> int | None:
    """Errors since the driver was loaded; v10 and v11 have totals, later ones kinds of memory."""
    volatile = gpu.find("ecc_errors/volatile")
    if volatile is None:
        return None
    total = _text(volatile, "{}_bit/total".format("single" if bits == 1 else "double"))
    if total is not None:
        return _integer(total)
    is_wanted = re.compile(r"(?:sram|dram)_(un)?correctable").match
    counts = [
        _integer(_text(volatile, one.tag))
        for one in volatile
        for match in [is_wanted(one.tag)]
        if match is not None and bool(match.group(1)) == (bits != 1)
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _remapped_rows(gpu: _Element) -> dict[str, Any] | None:
    return _some(
        {
            "corrected": _integer(_text(gpu, "remapped_rows/remapped_row_corr")),
            "uncorrected": _integer(_text(gpu, "remapped_rows/remapped_row_unc")),
            "pending": _switch(_text(gpu, "remapped_rows/remapped_row_pending")),
            "failed": _switch(_text(gpu, "remapped_rows/remapped_row_failure")),
        }
    )


def _power(gpu: _Element) -> dict[str, Any] | None:
    """v12 renamed the group, and the limit in it."""
    tag = "gpu_power_readings" if gpu.find("gpu_power_readings") is not None else "power_readings"
    limit = _text(gpu, f"{tag}/current_power_limit") or _text(gpu, f"{tag}/power_limit")
    return _some(
        {
            "limit_w": _decimal(limit),
            "default_w": _decimal(_text(gpu, f"{tag}/default_power_limit")),
            "min_w": _decimal(_text(gpu, f"{tag}/min_power_limit")),
            "max_w": _decimal(_text(gpu, f"{tag}/max_power_limit")),
        }
    )


def _clocks(gpu: _Element) -> dict[str, Any] | None:
    return _some(
        {
            "sm_mhz": _integer(_text(gpu, "clocks/sm_clock")),
            "memory_mhz": _integer(_text(gpu, "clocks/mem_clock")),
            "sm_max_mhz": _integer(_text(gpu, "max_clocks/sm_clock")),
            "memory_max_mhz": _integer(_text(gpu, "max_clocks/mem_clock")),
        }
    )


def _pcie(gpu: _Element) -> dict[str, Any] | None:
    link = "pci/pci_gpu_link_info"
    return _some(
        {
            "generation": _integer(_text(gpu, f"{link}/pcie_gen/current_link_gen")),
            "generation_max": _integer(_text(gpu, f"{link}/pcie_gen/max_link_gen")),
            "width": _integer(_text(gpu, f"{link}/link_widths/current_link_width")),
            "width_max": _integer(_text(gpu, f"{link}/link_widths/max_link_width")),
        }
    )


def _mig(gpu: _Element) -> dict[str, Any] | None:
    """None before R450, which knew no MIG, and of a lost GPU; N/A is one that cannot do it."""
    if gpu.find("mig_mode") is None or _FAILED.search(gpu.findtext("mig_mode/current_mig") or ""):
        return None
    current = _switch(_text(gpu, "mig_mode/current_mig"))
    pending = _switch(_text(gpu, "mig_mode/pending_mig"))
    listed = gpu.find("mig_devices")
    return {
        "supported": current is not None or pending is not None,
        "current": bool(current),
        "pending": bool(current if pending is None else pending),
        "devices": None
        if listed is None
        else [_mig_device(one) for one in listed if one.tag == "mig_device"],
    }


def _mig_device(device: _Element) -> dict[str, Any]:
    """The profile and its place are not in the XML."""
    return {
        "index": _integer(_text(device, "index")),
        "uuid": _text(device, "uuid"),
        "profile": None,
        "gpu_instance": _integer(_text(device, "gpu_instance_id")),
        "compute_instance": _integer(_text(device, "compute_instance_id")),
        "start": None,
        "size": None,
        "memory_mib": _integer(_text(device, "fb_memory_usage/total")),
    }


def _fabric(gpu: _Element) -> dict[str, Any] | None:
    fabric = gpu.find("fabric")
    if fabric is None:
        return None
    state = _lower(_text(fabric, "state")) or "not_supported"
    known = ("not_supported", "not_started", "in_progress", "completed")
    return {
        "state": state if state in known else "unknown",
        "status": _text(fabric, "status"),
        "cluster_uuid": _text(fabric, "clusterUuid"),
        "clique_id": _integer(_text(fabric, "cliqueId")),
    }


def _holders(gpu: _Element) -> list[dict[str, Any]] | None:
    """The processes that nvidia-smi saw. A process of another PID namespace is not among them."""
    processes = gpu.find("processes")
    if processes is None or (processes.text or "").strip() == "N/A":
        return None
    return [_holder(one) for one in processes if one.tag == "process_info"]


def _holder(process: _Element) -> dict[str, Any]:
    command = _text(process, "process_name")
    name = command.split()[0].rpartition("/")[2] if command else None
    return {
        "pid": _integer(_text(process, "pid")),
        "name": name,
        "kind": kind_of(name or "", None),
        "container": None,
        "used_mib": _integer(_text(process, "used_memory")),
    }
