# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Does a topology file fit this host? Pure: tags and a host in, a verdict out.

The rules are what NCCL makes of a file (NVIDIA/nccl at 5067397c). ``xml.cc``: a device is found
by comparing its busid as text, and one that is not found is placed by sysfs as if there were no
file (ncclTopoGetPciNode); attributes that a tag lacks are read from sysfs and NVML, which only
works for a device that is there (ncclTopoGetXmlFromSys); branches without a GPU or NIC in use are
cut off (ncclTopoTrimXml). ``topo.cc``: ``class`` and ``busid`` must be there (ncclTopoAddPci), an
unknown speed counts as 8 GT/s and width 0 as 16 lanes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .host import Function, Host, mask_numbers
from .syntax import Tag

# int64ToBusId in NCCL's src/misc/utils.cc: "%04lx:%02lx:%02lx.%01lx".
_BUSID = re.compile(r"(?:[0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
# topo.cc, kvDictPciGen: compared as the beginning of the attribute.
_SPEEDS = (
    *("2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s"),
    *("5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"),
)
# topo.cc, kvDictCpuArch, and what uname calls the same machine.
ARCHES = {"x86_64": "x86_64", "aarch64": "arm64", "ppc64le": "ppc64"}
# What NCCL cannot complete for a bridge that only the file knows.
_NEEDED_OF_VIRTUAL = ("class", "link_speed", "link_width")
_FILLED_OF_CPU = ("affinity", "arch")


@dataclass(frozen=True)
class Verdict:
    """``errors`` forbid the file, ``warnings`` are to be shown; ``nics`` are the addresses of
    the host's NICs that the file places.
    """

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    nics: tuple[str, ...]


def judge(system: Tag, host: Host) -> Verdict:
    """Hold a file against the host. Every finding names its line."""
    tags = list(system.below("pci"))
    nics = [
        tag.attributes["busid"]
        for tag in tags
        if _kind(tag, host.functions) == "nic" and tag.attributes.get("busid") in host.functions
    ]
    errors = [
        *_version(system),
        *(text for cpu in system.named("cpu") for text in _cpu(cpu, host)),
        *_places(tags),
        *(text for tag in tags for text in _pci(tag, host)),
        *_missing_gpus(tags, host),
    ]
    warnings = [
        *(text for tag in tags for text in _guessed(tag)),
        *_missing_nics(nics, host),
        *_dumped(system),
    ]
    return Verdict(tuple(errors), tuple(warnings), tuple(nics))


def _version(system: Tag) -> Iterator[str]:
    version = system.attributes.get("version")
    if version != "1":
        yield f"line {system.line}: <system> has version {version or 'none'}, NCCL wants 1"
    if not system.named("cpu"):
        yield f"line {system.line}: <system> has no <cpu>, below which NCCL looks for devices"


def _cpu(cpu: Tag, host: Host) -> Iterator[str]:
    where, numa = f"line {cpu.line}: <cpu>", cpu.attributes.get("numaid", "")
    if not re.match(r"-?\d+\Z", numa):
        yield f"{where} has no numaid that is a number"
        return
    missing = [name for name in _FILLED_OF_CPU if name not in cpu.attributes]
    if missing and int(numa) not in host.cpu_masks:
        yield (
            f"{where} numaid {numa} has no {' and no '.join(missing)}, and NCCL cannot read it: "
            "this host shows no such NUMA node"
        )
    arch, own = cpu.attributes.get("arch"), ARCHES.get(host.machine, host.machine)
    if arch is not None and arch != own:
        yield f"{where} numaid {numa} has arch {arch}, this host is {own}"
    mask = cpu.attributes.get("affinity")
    if mask is None:
        return
    numbers = mask_numbers(mask)
    if numbers is None:
        yield (
            f"{where} numaid {numa} has affinity {mask!r}; wanted are words of 32 CPUs in "
            "hexadecimal, such as 000000ff,ffff0000"
        )
    elif host.cpus and set(numbers) - host.cpus:
        yield (
            f"{where} numaid {numa} has CPU {max(numbers)} in its affinity, this host has CPUs "
            f"up to {max(host.cpus)}: take the file of this machine type"
        )


def _places(tags: list[Tag]) -> Iterator[str]:
    first: dict[str, int] = {}
    for tag in tags:
        busid = tag.attributes.get("busid")
        if busid in first:
            yield f"line {tag.line}: {busid} is already on line {first[busid]}"
        elif busid is not None:
            first[busid] = tag.line


def _pci(tag: Tag, host: Host) -> Iterator[str]:
    busid = tag.attributes.get("busid")
    where = f"line {tag.line}: <pci>"
    if busid is None:
        yield f"{where} has no busid"
        return
    if not _BUSID.match(busid):
        yield (
            f"{where} has busid {busid!r}; NCCL compares it as text and would not find the "
            "device: write it in lower case with a domain of four digits, such as 0000:23:00.0"
        )
        return
    where, own, kind = f"{where} {busid}", host.functions.get(busid), _kind(tag, host.functions)
    if own is None:
        if kind:
            yield f"{where} is a {kind.upper()} in the file; this host has no such device"
        missing = [name for name in _NEEDED_OF_VIRTUAL if name not in tag.attributes]
        if missing:
            yield (
                f"{where} has no {', '.join(missing)}, and NCCL cannot read it: this host does "
                "not show the device"
            )
    elif kind == "gpu" and not own.is_gpu:
        yield f"{where} is a GPU in the file; on this host it is {_what(own)}"
    elif kind == "nic" and not own.is_nic:
        yield f"{where} is a NIC in the file; on this host it is {_what(own)}"
    elif own.is_gpu and kind != "gpu":
        yield f"{where} is a GPU of this host; the file gives it class {tag.attributes['class']}"


def _kind(tag: Tag, functions: Mapping[str, Function]) -> str:
    """``gpu``, ``nic`` or "" by the class in the file, else by that of the host's device."""
    written, own = tag.attributes.get("class"), functions.get(tag.attributes.get("busid", ""))
    code = written if written is not None else f"0x{own.pci_class}" if own else ""
    return "gpu" if code.startswith("0x03") else "nic" if code.startswith("0x02") else ""


def _what(own: Function) -> str:
    if own.driver == "vfio-pci":
        return "given away to a virtual machine (vfio-pci)"
    return f"a device of class {own.pci_class}"


def _missing_gpus(tags: list[Tag], host: Host) -> Iterator[str]:
    named = {tag.attributes.get("busid") for tag in tags}
    missing = [one.address for one in host.gpus if one.address not in named]
    if missing:
        yield (
            f"the file does not name GPU {', '.join(missing)} of this host: NCCL would place it "
            "as if there were no file"
        )


def _missing_nics(nics: list[str], host: Host) -> Iterator[str]:
    missing = [one.address for one in host.nics if one.address not in nics]
    if missing:
        yield (
            f"the file does not name RDMA NIC {', '.join(missing)} of this host: NCCL places it "
            "where sysfs shows it"
        )


def _guessed(tag: Tag) -> Iterator[str]:
    where = f"line {tag.line}: <pci> {tag.attributes.get('busid')}"
    speed, width = tag.attributes.get("link_speed"), tag.attributes.get("link_width")
    if speed is not None and not speed.startswith(_SPEEDS):
        yield f"{where} has link_speed {speed!r}, which NCCL takes for 8 GT/s"
    if width is not None and not (width.isdigit() and int(width)):
        yield f"{where} has link_width {width!r}, which NCCL takes for 16 lanes"


def _dumped(system: Tag) -> Iterator[str]:
    found = [tag for name in ("gpu", "net") for tag in system.below(name)]
    if found:
        yield (
            f"line {found[0].line}: <{found[0].name}> and its like were written by a run "
            "(NCCL_TOPO_DUMP_FILE) and hold that run's numbers; without them NCCL asks the host"
        )
