# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The indented text of ``lstopo -v``: a tree of objects, one a line. Pure.

A NUMA node has no CPU list here: its CPUs are the PUs below the object it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import lists
from .hwloc_devices import OsDevice, PciDevice, machine, node
from .model import Machine, Node, TopologyError
from .xmltext import DEEPEST, MOST_BYTES

_OBJECT = re.compile(
    r"(?P<indent>\s*)(?P<type>[A-Z][A-Za-z0-9]*)(?:\((?P<subtype>[^)]*)\))?"
    r"(?:\s+L#\d+)?(?:\s+\"(?P<name>[^\"]*)\")?(?:\s+\((?P<told>.*)\))?\s*$"
)
_PCI = re.compile(
    r"busid=(?P<address>[0-9a-fA-F:.]+) id=(?P<vendor>[0-9a-fA-F]{4}):[0-9a-fA-F]{4} "
    r"class=(?P<class>[0-9a-fA-F]{4})"
)
_BUSES = re.compile(r"buses=(\S+?\])")
_NUMBER = re.compile(r"\bP#(\d{1,9})\b")
_MEMORY = re.compile(r"\blocal=(\d{1,15})(KB|KiB|MB|MiB|GB|GiB|TB|TiB)?")
_SHIFTS = {"": 10, "K": 10, "M": 20, "G": 30, "T": 40}
_TITLE = re.compile(r"\b(?:DMIProductName|PlatformModel)=(?:\"([^\"]+)\"|(\S+))")
_IO = frozenset(("HostBridge", "PCIBridge", "Bridge", "PCI", "PCIDev"))
_DEVICE_MEMORY = ("GPUMemory", "CXL")
# The list of the objects ends where hwloc counts them.
_END = re.compile(r"\s*depth 0:")


@dataclass
class _Object:
    """One object of the text; ``line`` counts from 1."""

    type: str
    line: int
    indent: int
    subtype: str = ""
    name: str = ""
    told: str = ""
    above: _Object | None = None
    depth: int = 0
    below: list[_Object] = field(default_factory=list)

    def all(self) -> Iterator[_Object]:
        """The object itself and everything below it."""
        yield self
        for one in self.below:
            yield from one.all()


def parse(text: str, source: str, wanted: str) -> Machine:
    """The picture in a console text. Raises TopologyError naming the line."""
    top = _read(text, wanted)
    nodes = {number: one for one in top.all() for number in _node_number(one)}
    devices = [_device(one, nodes) for one in top.all() if one.type in ("PCI", "PCIDev")]
    match = _TITLE.search(top.told)
    title = (match.group(1) or match.group(2)) if match else None
    return machine(devices, [_node(number, nodes[number]) for number in nodes], source, title)


def _read(text: str, wanted: str) -> _Object:
    """The Machine of the text, with all below it."""
    if len(text) > MOST_BYTES:
        raise TopologyError(f"the text has more than {MOST_BYTES} characters: {wanted}")
    top: _Object | None = None
    last: _Object | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if _END.match(line):
            break
        match = _OBJECT.match(line)
        if match is None or (last is None and match["type"] != "Machine"):
            continue
        one = _Object(
            match["type"],
            number,
            len(match["indent"].expandtabs()),
            match["subtype"] or "",
            match["name"] or "",
            match["told"] or "",
        )
        if last is None:
            top = one
        else:
            one.above = _parent(last, one, wanted)
            one.depth = one.above.depth + 1
            if one.depth > DEEPEST:
                raise TopologyError(f"line {number}: objects are nested more than {DEEPEST} deep")
            one.above.below.append(one)
        last = one
    if top is None:
        raise TopologyError(f"no line that begins with Machine in the text: {wanted}")
    return top


def _parent(last: _Object, one: _Object, wanted: str) -> _Object:
    above: _Object | None = last
    while above is not None and above.indent >= one.indent:
        above = above.above
    if above is None:
        raise TopologyError(
            f"line {one.line}: {one.type} stands beside the machine and not below it; the "
            f"indentation was lost: {wanted}"
        )
    return above


def _node_number(one: _Object) -> list[int]:
    """The number of a NUMA node that has CPUs, as a list of one; [] for any other object."""
    match = _NUMBER.search(one.told)
    if one.type != "NUMANode" or match is None or one.subtype.startswith(_DEVICE_MEMORY):
        return []
    return [int(match.group(1))] if _cpus(_beside(one)) else []


def _beside(one: _Object) -> _Object:
    """What holds a node's CPUs: itself in hwloc 1, the object it stands in since version 2."""
    return one if one.below or one.above is None else one.above


def _node(number: int, one: _Object) -> Node:
    match = _MEMORY.search(one.told)
    size = int(match.group(1)) << _SHIFTS[(match.group(2) or "")[:1]] if match else None
    return node(number, _cpus(_beside(one)), size)


def _cpus(one: _Object) -> str:
    found = (_NUMBER.search(below.told) for below in one.all() if below.type == "PU")
    return lists.text_of(int(match.group(1)) for match in found if match)


def _device(one: _Object, nodes: dict[int, _Object]) -> PciDevice:
    match = _PCI.search(one.told)
    if match is None:
        raise TopologyError(
            f"line {one.line}: a PCI device without busid, id and class; lstopo -v prints them"
        )
    address = match["address"].lower()
    chain, place = _chain(one)
    return PciDevice(
        address=address,
        pci_class=match["class"].lower(),
        vendor=match["vendor"].lower(),
        chain=(*(chain or (f"host bridge of {address}",)), address),
        nodes=_near(place, nodes),
        cpus=_cpus(place),
        subtype=one.subtype,
        os_devices=tuple(
            OsDevice(below.name, below.type == "OpenFabrics")
            for below in one.all()
            if below.name and below is not one
        ),
    )


def _chain(one: _Object) -> tuple[tuple[str, ...], _Object]:
    """The bridges above a device, host bridge first, and the object they hang on."""
    chain: list[str] = []
    above = one.above
    while above is not None and above.type in _IO:
        told = _PCI.search(above.told)
        buses = _BUSES.search(above.told)
        if told is not None and above.type != "HostBridge":
            chain.append(told["address"].lower())
        else:
            chain.append(f"host bridge {buses.group(1) if buses else above.line}")
        above = above.above
    return tuple(reversed(chain)), above or one


def _near(place: _Object, nodes: dict[int, _Object]) -> tuple[int, ...]:
    """The nodes of the nearest object above that holds any, itself one in hwloc 1."""
    above: _Object | None = place
    while above is not None:
        inside = {id(one) for one in above.all()}
        found = tuple(sorted(number for number, one in nodes.items() if id(one) in inside))
        if found:
            return found
        above = above.above
    return ()
