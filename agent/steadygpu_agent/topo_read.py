# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where ``steadygpu topo`` takes a machine from: this host, or a text that says what it is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ansible_collections.steadygpu.host.plugins.module_utils.topology import affinity as near
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Machine,
    TopologyError,
)

if TYPE_CHECKING:
    from ansible_collections.steadygpu.host.plugins.module_utils.topology.bandwidth import Measured
    from ansible_collections.steadygpu.host.plugins.module_utils.topology.remembered import Record

_WANTED = (
    "wanted is the output of nvidia-smi topo -m, nvidia-smi -q -x or steadygpu facts --json, "
    "an XML file of hwloc (lstopo --of xml), or an NCCL topology file"
)
# A log of eight GPUs with all their processes has less than one.
_MOST_MIB = 20

FACTS, SMI, HWLOC, NCCL, MATRIX = "facts", "smi", "hwloc", "nccl", "matrix"

# What is looked for in a text, the surest first. A ticket may hold both a matrix and a log of
# nvidia-smi; the matrix says more of the topology.
_KINDS = (
    (FACTS, re.compile(r"\A\s*\{")),
    (HWLOC, re.compile(r"<topology[\s>]")),
    (NCCL, re.compile(r"<(?:system|graphs)[\s/>]")),
    (MATRIX, re.compile(r"^.*\bGPU0\b.*(?:\bGPU1\b|CPU Affinity|\sX\b)", re.MULTILINE)),
    (SMI, re.compile(r"<nvidia_smi_log[\s>]|<gpu\s+id=")),
    (HWLOC, re.compile(r"^\s*(?:Machine|System)\b.*\(|HostBridge", re.MULTILINE)),
    (MATRIX, re.compile(r"\bGPU\d+\b")),
)


@dataclass(frozen=True)
class Affinity:
    """How near each pair of GPUs is, from 0 to 1; measured, then by ``tool``, or derived."""

    values: list[list[float | None]]
    basis: str
    tool: str | None = None


@dataclass(frozen=True)
class Reading:
    """A machine and, by index, what the driver says is wrong with a GPU.

    ``measured`` is the affinity that facts hold where the host remembers a measurement.
    """

    machine: Machine
    sick: Mapping[int, str]
    measured: Affinity | None = None


def read(source: str | None, deadline_s: float, title: str | None = None) -> Reading:
    """The machine in the file ``source`` (``-``: standard input), or this one.

    The driver of this host is asked for at most ``deadline_s`` seconds. Raises TopologyError.
    """
    found = _this_host(deadline_s) if source is None else parse(_read(source), source)
    return replace(found, machine=replace(found.machine, title=title)) if title else found


def affinity(one: Machine, bandwidth: str | None, remembered: Affinity | None = None) -> Affinity:
    """Measured where ``bandwidth`` names a file of a tool's output, or as ``remembered``.

    Derived where there is neither. Raises TopologyError.
    """
    if bandwidth is None:
        return remembered or Affinity(near.derived(one.levels), near.DERIVED)
    found = _bandwidth(bandwidth)
    try:
        return Affinity(near.measured(one.levels, found.gb_s), near.MEASURED, found.tool)
    except ValueError as error:
        raise TopologyError(f"{_shown(bandwidth)}: {error}") from None


def record(one: Machine, bandwidth: str) -> Record:
    """What this host shall remember of the tool's output in ``bandwidth``. Raises TopologyError."""
    from ansible_collections.steadygpu.host.plugins.module_utils.topology import remembered

    found = _bandwidth(bandwidth)
    try:
        return remembered.record(found, one.gpus, one.levels)
    except TopologyError as error:
        raise TopologyError(f"{_shown(bandwidth)}: {error}") from None


def parse(text: str, name: str = "-") -> Reading:
    """The machine that ``text`` describes, whatever of the known kinds it is.

    Raises TopologyError, which names the file, what was seen and what was wanted.
    """
    try:
        return _parse(text)
    except TopologyError as error:
        raise TopologyError(f"{_shown(name)}: {error}") from None


def kind(text: str) -> str | None:
    """FACTS, SMI, HWLOC, NCCL or MATRIX, by content; None for none of them."""
    return next((one for one, mark in _KINDS if mark.search(text)), None)


def _parse(text: str) -> Reading:
    from ansible_collections.steadygpu.host.plugins.module_utils.topology import (
        hwloc,
        nccl_machine,
        nccl_xml,
        smi_matrix,
        smi_xml,
    )

    found = kind(text)
    if found == FACTS:
        return _of_saved_facts(text)
    if found == SMI:
        return _of_facts(smi_xml.parse(text), smi_xml.SOURCE)
    if found == HWLOC:
        return Reading(hwloc.parse(text), {})
    if found == NCCL:
        return Reading(nccl_machine.machine(nccl_xml.parse(text)), {})
    if found == MATRIX:
        return Reading(smi_matrix.parse(text), {})
    raise TopologyError(f"{_seen(text)}; {_WANTED}")


def _of_saved_facts(text: str) -> Reading:
    """Facts from a file, which anybody may have edited."""
    gpu = _gpu_section(text)
    try:
        found = _of_facts(gpu, "steadygpu facts")
        if _is_sound(found.machine):
            return found
        seen = "a text or a number is something else"
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        seen = f"{type(error).__name__}: {error}"
    raise TopologyError(f"JSON that is not of the shape of facts ({seen}); {_WANTED}")


def _is_sound(machine: Machine) -> bool:
    """Is every text a text that a terminal may show, and every number a number?"""
    texts: list[Any] = list(machine.remarks)
    numbers: list[Any] = []
    for gpu in machine.gpus:
        texts += [gpu.name, *gpu.pci_path, *gpu.mig]
        texts += _known(gpu.model, gpu.uuid, gpu.pci_address, gpu.cpus)
        numbers += [*gpu.numa_nodes, *_known(gpu.memory_mib)]
    for nic in machine.nics:
        texts += [nic.name, *nic.pci_path, *nic.rdma, *_known(nic.pci_address)]
        numbers += nic.numa_nodes
    for node in machine.nodes:
        texts.append(node.cpus)
        numbers += [node.number, *_known(node.memory_mib)]
    # A bool is an int to Python, and here a mistake.
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in numbers)
    return whole and all(
        isinstance(one, str) and one.replace("\n", " ").isprintable() for one in texts
    )


def _known(*values: Any) -> list[Any]:
    return [value for value in values if value is not None]


def _gpu_section(text: str) -> Mapping[str, Any]:
    """The ``gpu`` section of saved facts, however much stands around it."""
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise TopologyError(f"JSON that cannot be read: {error}; {_WANTED}") from None
    for key in ("ansible_facts", "gpu_host", "gpu"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict) or not isinstance(found.get("devices"), list):
        raise TopologyError(f"JSON without gpu.devices; {_WANTED}")
    return found


def _bandwidth(path: str) -> Measured:
    from ansible_collections.steadygpu.host.plugins.module_utils.topology import bandwidth

    text = _read(path)
    try:
        return bandwidth.parse(text)
    except TopologyError as error:
        raise TopologyError(f"{_shown(path)}: {error}") from None


def _seen(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if not line:
        return "the text is empty"
    return f"begins with {line[:60]!r}, which no topology does"


def _shown(path: str) -> str:
    return "standard input" if path == "-" else path


def _read(path: str) -> str:
    """The file's text. Bytes that are not UTF-8 are replaced: tickets pass many hands."""
    limit = _MOST_MIB * 1024 * 1024
    try:
        if path == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with open(path, "rb") as handle:
                data = handle.read(limit + 1)
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}; name a file that can be read") from None
    if len(data) > limit:
        raise TopologyError(f"{path}: more than {_MOST_MIB} MiB; {_WANTED}")
    # PowerShell's > writes UTF-16.
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return data.decode(encoding, errors="replace")


def _this_host(deadline_s: float) -> Reading:
    from steadygpu_agent import facts as host

    return _of_facts(host.collect([host.GPU], deadline_s)[host.GPU], "this host")


def _of_facts(gpu: Mapping[str, Any], source: str) -> Reading:
    """What the ``gpu`` section of the facts describes, with what it says is wrong."""
    from ansible_collections.steadygpu.host.plugins.module_utils.topology import facts

    found = facts.machine(gpu, source=source)
    errors = [one.get("error") for one in gpu["devices"] if isinstance(one, dict)]
    sick = {index: str(error) for index, error in enumerate(errors) if error}
    reason = (gpu.get("driver") or {}).get("reason")
    remarks = [str(reason)] if reason else []
    remarks += [f"{found.gpus[index].name}: {error}" for index, error in sick.items()]
    machine = replace(found, remarks=(*remarks, *found.remarks))
    return Reading(machine, sick, _remembered(gpu.get("topology") or {}, len(found.gpus)))


def _remembered(topology: Mapping[str, Any], size: int) -> Affinity | None:
    """The affinity of the facts where it was measured. Raises ValueError for one that is none."""
    if topology.get("affinity_basis") != near.MEASURED:
        return None
    values, tool = topology.get("affinity"), topology.get("affinity_tool")
    if not isinstance(tool, str) or not tool.isprintable():
        raise ValueError("topology.affinity_tool is no name of a tool")
    if (
        not isinstance(values, list)
        or [len(row) for row in values] != [size] * size
        or not all(_is_share(cell) for row in values for cell in row)
    ):
        raise ValueError(f"topology.affinity is no matrix of {size} × {size} numbers from 0 to 1")
    return Affinity(values, near.MEASURED, tool)


def _is_share(cell: Any) -> bool:
    return cell is None or (type(cell) in (int, float) and 0 <= cell <= 1)
