# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's topology files: the tree of CPUs, PCI functions, GPUs and networks. Pure.

NCCL reads such a file from ``NCCL_TOPO_FILE`` and writes one to ``NCCL_TOPO_DUMP_FILE``. What
its tags hold: NVIDIA/nccl src/graph/xml.cc and topo.cc. ``parse`` takes every file that is XML,
also one NCCL's own small reader would refuse; ``render`` writes one that NCCL reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar, Union
from xml.sax.saxutils import quoteattr

from . import xmltext
from .model import TopologyError

WANTED = "wanted is a topology file of NCCL, which begins with <system"

Attributes = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NvLink:
    """``count`` links to ``target``, a PCI address; ``tclass`` is the class over there."""

    target: str
    count: int | None = None
    tclass: str | None = None
    extra: Attributes = ()

    @property
    def to_switch(self) -> bool:
        """Does it end at an NVSwitch? It is PCI class 0680, and that of one a VM cannot see."""
        return (self.tclass or "").startswith("0x0680")


@dataclass(frozen=True)
class C2c:
    """The links of a GPU to its CPU on Grace hosts."""

    bw: int | None = None
    count: int | None = None
    extra: Attributes = ()


@dataclass(frozen=True)
class Gpu:
    """What NCCL found out about a GPU. A written file leaves it to NCCL and has none."""

    dev: int | None = None
    sm: int | None = None
    rank: int | None = None
    gdr: int | None = None
    extra: Attributes = ()
    nvlinks: tuple[NvLink, ...] = ()
    c2cs: tuple[C2c, ...] = ()


@dataclass(frozen=True)
class Net:
    """One network device; ``speed`` in Mbit/s, ``latency`` in µs."""

    name: str | None = None
    dev: int | None = None
    speed: int | None = None
    port: int | None = None
    latency: str | None = None
    guid: str | None = None
    maxconn: int | None = None
    gdr: int | None = None
    extra: Attributes = ()


@dataclass(frozen=True)
class Nic:
    """A network adapter: below its PCI function, or below a CPU when NCCL knows no function."""

    extra: Attributes = ()
    nets: tuple[Net, ...] = ()


@dataclass(frozen=True)
class Pci:
    """One PCI function. A switch is one function, without its ports; root ports are left out.

    Numbers are hexadecimal text as written, ``"0x030200"``.
    """

    busid: str
    pci_class: str | None = None
    vendor: str | None = None
    device: str | None = None
    subsystem_vendor: str | None = None
    subsystem_device: str | None = None
    link_speed: str | None = None
    link_width: int | None = None
    extra: Attributes = ()
    children: tuple[Pci | Gpu | Nic, ...] = ()

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """More than one where a GPU is shared by MPS partitions (``mlopart``)."""
        return tuple(child for child in self.children if isinstance(child, Gpu))

    @property
    def nics(self) -> tuple[Nic, ...]:
        """The adapters below this function."""
        return tuple(child for child in self.children if isinstance(child, Nic))

    @property
    def functions(self) -> tuple[Pci, ...]:
        """The PCI functions directly below this one."""
        return tuple(child for child in self.children if isinstance(child, Pci))


@dataclass(frozen=True)
class Cpu:
    """One NUMA node. ``affinity`` is a mask of 32-bit words, as sysfs prints ``cpumap``.

    ``host_hash`` tells the hosts of a dump that spans several (multi-node NVLink) apart.
    """

    host_hash: str | None = None
    numaid: int | None = None
    affinity: str | None = None
    arch: str | None = None
    vendor: str | None = None
    familyid: int | None = None
    modelid: int | None = None
    extra: Attributes = ()
    children: tuple[Pci | Nic, ...] = ()

    @property
    def functions(self) -> tuple[Pci, ...]:
        """The PCI functions directly below this CPU."""
        return tuple(child for child in self.children if isinstance(child, Pci))


@dataclass(frozen=True)
class NcclTree:
    """A whole file. ``unread`` names tags that are not understood and were left out."""

    version: int | None = None
    extra: Attributes = ()
    cpus: tuple[Cpu, ...] = ()
    unread: tuple[str, ...] = ()

    def functions(self) -> Iterator[tuple[Cpu, tuple[Pci, ...]]]:
        """Every PCI function as its CPU and the chain down to it, in the order of the file."""
        for cpu in self.cpus:
            for function in cpu.functions:
                for chain in _chains((function,)):
                    yield cpu, chain


Tag = Union[NcclTree, Cpu, Pci, Gpu, Nic, Net, NvLink, C2c]
_T = TypeVar("_T", NcclTree, Cpu, Pci, Gpu, Nic, Net, NvLink, C2c)
_TAGS: Mapping[str, tuple[str, ...]] = {
    "system": ("cpu",),
    "cpu": ("pci", "nic"),
    "pci": ("pci", "gpu", "nic"),
    "gpu": ("nvlink", "c2c"),
    "nic": ("net",),
    "net": (),
    "nvlink": (),
    "c2c": (),
}
_NAMES: Mapping[type[Any], str] = {
    NcclTree: "system",
    Cpu: "cpu",
    Pci: "pci",
    Gpu: "gpu",
    Nic: "nic",
    Net: "net",
    NvLink: "nvlink",
    C2c: "c2c",
}
# The attribute whose name Python keeps for itself.
_RENAMED = {"pci_class": "class"}
_NUMBERS = frozenset(
    (
        *("version", "numaid", "familyid", "modelid", "dev", "sm", "rank", "gdr"),
        *("speed", "port", "maxconn", "count", "bw", "link_width"),
    )
)
_NUMBER = re.compile(r"\s*([+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}))")
_NOT_ATTRIBUTES = frozenset(("extra", "children", "cpus", "nets", "nvlinks", "c2cs", "unread"))


def parse(text: str) -> NcclTree:
    """The tree of a topology file. Raises TopologyError naming the line."""
    root = xmltext.read(text, ("system", "graphs"), WANTED)
    if root.tag == "graphs":
        raise TopologyError(
            "this is a graph file (<graphs>), which NCCL reads through NCCL_GRAPH_FILE: it holds "
            "rings and trees, not the machine. Wanted is a topology file (<system>); "
            "NCCL_TOPO_DUMP_FILE writes one"
        )
    unread: list[str] = []
    cpus = [_cpu(child, unread) for child in _known(root, unread)]
    return _tag(NcclTree, root, cpus=tuple(cpus), unread=tuple(dict.fromkeys(unread)))


def render(tree: NcclTree) -> str:
    """The file of a tree, in the one form its fields determine: NCCL reads it."""
    return "\n".join(_lines(tree, 0)) + "\n"


def _cpu(element: xmltext.Element, unread: list[str]) -> Cpu:
    children = tuple(
        _pci(child, unread) if child.tag == "pci" else _nic(child, unread)
        for child in _known(element, unread)
    )
    return _tag(Cpu, element, children=children)


def _pci(element: xmltext.Element, unread: list[str]) -> Pci:
    if not element.get("busid"):
        raise TopologyError(f"line {element.line}: <pci> has no busid")
    children: list[Pci | Gpu | Nic] = []
    for child in _known(element, unread):
        if child.tag == "pci":
            children.append(_pci(child, unread))
        elif child.tag == "gpu":
            children.append(_gpu(child, unread))
        else:
            children.append(_nic(child, unread))
    return _tag(Pci, element, children=tuple(children))


def _gpu(element: xmltext.Element, unread: list[str]) -> Gpu:
    links = list(_known(element, unread))
    return _tag(
        Gpu,
        element,
        nvlinks=tuple(_nvlink(link) for link in links if link.tag == "nvlink"),
        c2cs=tuple(_tag(C2c, link) for link in links if link.tag == "c2c"),
    )


def _nic(element: xmltext.Element, unread: list[str]) -> Nic:
    return _tag(Nic, element, nets=tuple(_tag(Net, net) for net in _known(element, unread)))


def _nvlink(element: xmltext.Element) -> NvLink:
    if not element.get("target"):
        raise TopologyError(f"line {element.line}: <nvlink> has no target")
    return _tag(NvLink, element)


def _known(element: xmltext.Element, unread: list[str]) -> Iterator[xmltext.Element]:
    """The children that belong here; the names of the others go to ``unread``."""
    for child in element:
        if not isinstance(child, xmltext.Element):
            continue
        if child.tag in _TAGS[element.tag]:
            yield child
        else:
            unread.append(child.tag)


def _tag(kind: type[_T], element: xmltext.Element, **children: Any) -> _T:
    """A tag's value: its known attributes by field, the others in ``extra``."""
    names = {_RENAMED.get(one, one): one for one in _attribute_fields(kind)}
    values: dict[str, Any] = {}
    extra = []
    for key, value in element.attrib.items():
        if key not in names:
            extra.append((key, value))
        elif key in _NUMBERS:
            values[names[key]] = _number(element, key, value)
        else:
            values[names[key]] = value
    return kind(**values, extra=tuple(extra), **children)


def _attribute_fields(kind: type[Any]) -> list[str]:
    return [one.name for one in fields(kind) if one.name not in _NOT_ATTRIBUTES]


def _number(element: xmltext.Element, key: str, value: str) -> int | None:
    """A number, decimal or 0x, from its beginning as C's strtol reads it; "" is unknown."""
    if not value.strip():
        return None
    match = _NUMBER.match(value)
    if match is None:
        raise TopologyError(
            f"line {element.line}: {key}={value!r} of <{element.tag}> is not a number"
        )
    return int(match.group(1), 16 if "x" in match.group(1).lower() else 10)


def _chains(above: tuple[Pci, ...]) -> Iterator[tuple[Pci, ...]]:
    yield above
    for below in above[-1].functions:
        yield from _chains((*above, below))


def _lines(tag: Tag, depth: int) -> Iterator[str]:
    name = _NAMES[type(tag)]
    written = "".join(f" {key}={_quoted(value)}" for key, value in _attributes(tag))
    inner = [line for child in _children(tag) for line in _lines(child, depth + 1)]
    indent = "  " * depth
    if not inner:
        yield f"{indent}<{name}{written}/>"
        return
    yield f"{indent}<{name}{written}>"
    yield from inner
    yield f"{indent}</{name}>"


def _attributes(tag: Tag) -> Iterator[tuple[str, str]]:
    for name in _attribute_fields(type(tag)):
        value = getattr(tag, name)
        if value is not None:
            yield _RENAMED.get(name, name), str(value)
    yield from tag.extra


def _quoted(value: str) -> str:
    """In double quotes: NCCL undoes no escapes, so a value that needs one is refused."""
    quoted = quoteattr(value)
    if quoted != f'"{value}"':
        raise TopologyError(f"NCCL cannot read the attribute value {value!r}")
    return quoted


def _children(tag: Tag) -> tuple[Tag, ...]:
    if isinstance(tag, NcclTree):
        return tag.cpus
    if isinstance(tag, (Cpu, Pci)):
        return tag.children
    if isinstance(tag, Gpu):
        return (*tag.nvlinks, *tag.c2cs)
    return tag.nets if isinstance(tag, Nic) else ()
