# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""hwloc's XML and console text to one picture. Pure. What the two hold is ``hwloc_devices``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree

from . import hwloc_console, lists, xmltext
from .hwloc_devices import OsDevice, PciDevice, cpu_list, machine, node
from .model import Machine, Node, TopologyError

SOURCE = "hwloc"
WANTED = "wanted is what lstopo --of xml writes, which holds <topology>, or lstopo -v prints"

# Memory that a device brings has the CPUs near it in its cpuset, and none of its own.
_DEVICE_MEMORY = ("GPUMemory", "CXL")
_NUMBER = re.compile(r"[0-9]{1,18}")
_PCI_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}):[0-9a-f]{4}\]", re.IGNORECASE)


def parse(text: str) -> Machine:
    """The picture in a file of hwloc, XML or console text. Raises TopologyError."""
    if re.search(r"<topology[\s>]", text):
        return _parse_xml(text)
    return hwloc_console.parse(text, SOURCE, WANTED)


@dataclass
class _Walk:
    """What is found on the way through the objects."""

    devices: list[PciDevice] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class _Above:
    """Where an object hangs: the chain from its host bridge, the CPUs and nodes beside it."""

    chain: tuple[str, ...] = ()
    cpus: str = ""
    nodes: tuple[int, ...] = ()


def _parse_xml(text: str) -> Machine:
    root = xmltext.read(text, ("topology",), WANTED)
    objects = [child for child in root if child.tag == "object"]
    if not objects:
        raise TopologyError(f"line {_line(root)}: <topology> has no <object>: {WANTED}")
    found = _Walk()
    for one in objects:
        _numa_nodes(one, found)
    with_cpus = frozenset(one.number for one in found.nodes)
    for one in objects:
        _walk(one, _Above(), with_cpus, found)
    title = _info(objects[0]).get("DMIProductName")
    version = root.get("version") or "1"
    return machine(found.devices, found.nodes, f"{SOURCE} {version}", title, _bandwidth(root))


def _numa_nodes(element: ElementTree.Element, found: _Walk) -> None:
    """The nodes that have CPUs of their own, in the order of the file."""
    if element.get("type") == "NUMANode":
        number, cpus = _integer(element.get("os_index")), cpu_list(element.get("cpuset") or "")
        is_device = (element.get("subtype") or "").startswith(_DEVICE_MEMORY)
        if number is not None and cpus and not is_device:
            found.nodes.append(node(number, cpus, _integer(element.get("local_memory"))))
    for child in element:
        _numa_nodes(child, found)


def _walk(
    element: ElementTree.Element,
    above: _Above,
    with_cpus: frozenset[int],
    found: _Walk,
) -> None:
    kind = element.get("type") or ""
    here = above
    if kind == "Bridge":
        # A host bridge (0-1) is no PCI function: the buses below it name it.
        name = element.get("pci_busid") or "host bridge {}".format(element.get("bridge_pci"))
        here = _Above((*above.chain, name), above.cpus, above.nodes)
    elif kind == "PCIDev":
        found.devices.append(_device(element, above))
    elif element.get("cpuset"):
        near = _nodes_of(element.get("nodeset") or "", with_cpus)
        here = _Above((), cpu_list(element.get("cpuset") or ""), near or above.nodes)
    for child in element:
        if child.tag == "object":
            _walk(child, here, with_cpus, found)


def _device(element: ElementTree.Element, above: _Above) -> PciDevice:
    address = (element.get("pci_busid") or "").lower()
    if not address:
        raise TopologyError(f"line {_line(element)}: a PCIDev has no pci_busid")
    match = _PCI_TYPE.match(element.get("pci_type") or "")
    below = [one for one in element.iter("object") if one.get("type") == "OSDev"]
    ids = {"PCIDev:{}".format(element.get("gp_index"))}
    ids.update("OSDev:{}".format(one.get("gp_index")) for one in below)
    return PciDevice(
        address=address,
        pci_class=match.group(1).lower() if match else "",
        vendor=match.group(2).lower() if match else "",
        chain=(*(above.chain or (f"host bridge of {address}",)), address),
        nodes=above.nodes,
        cpus=above.cpus,
        subtype=element.get("subtype") or "",
        os_devices=tuple(
            OsDevice(one.get("name") or "", _is_rdma(one.get("osdev_type")), _info(one))
            for one in below
        ),
        ids=frozenset(ids),
    )


def _is_rdma(kind: str | None) -> bool:
    """The kind OpenFabrics: 3 in hwloc 1 and 2, a bit of value 32 since version 3."""
    number = _integer(kind)
    return number is not None and (number == 3 or bool(number & 32))


def _integer(text: str | None) -> int | None:
    return int(text) if text and _NUMBER.fullmatch(text) else None


def _nodes_of(nodeset: str, with_cpus: frozenset[int]) -> tuple[int, ...]:
    try:
        return tuple(number for number in lists.of_mask(nodeset) if number in with_cpus)
    except ValueError:
        return ()


def _info(element: ElementTree.Element) -> dict[str, str]:
    return {one.get("name") or "": one.get("value") or "" for one in element if one.tag == "info"}


def _bandwidth(root: ElementTree.Element) -> dict[str, dict[str, int]]:
    """The matrix NVLinkBandwidth, from object to object; {} when the file has none."""
    for matrix in root:
        if matrix.tag.startswith("distances2") and matrix.get("name") == "NVLinkBandwidth":
            kind = matrix.get("type")
            names = _words(matrix, "indexes")
            if kind:
                # All objects are of one type, and only their numbers are written.
                names = [f"{kind}:{name}" for name in names]
            values = [_integer(word) or 0 for word in _words(matrix, "u64values")]
            if len(values) != len(names) ** 2:
                raise TopologyError(
                    f"line {_line(matrix)}: NVLinkBandwidth has {len(values)} values for "
                    f"{len(names)} objects, wanted are {len(names) ** 2}"
                )
            rows = [values[i * len(names) : (i + 1) * len(names)] for i in range(len(names))]
            return {name: dict(zip(names, row)) for name, row in zip(names, rows)}
    return {}


def _words(matrix: ElementTree.Element, tag: str) -> list[str]:
    return [word for one in matrix if one.tag == tag for word in (one.text or "").split()]


def _line(element: ElementTree.Element) -> int:
    return element.line if isinstance(element, xmltext.Element) else 0
