# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lspci, nvidia-smi and apt printed, as it comes out of a ticket. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...topology import smi_matrix, smi_xml
from ...topology.model import TopologyError
from ..documents.dumps import PackageOutput, PciEntry, PciListing, SmiGpu, TopologyTable
from ..model import Position, Problem

_FUNCTION = re.compile(
    r"^(?P<address>(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]) "
    r"(?P<what>[A-Z0-9][^:]{2,60}?)(?: \[[0-9a-fA-F]{4}\])?: (?P<name>.+)$"
)
_ACS = re.compile(r"\bACSCtl:\s*(?P<flags>.*)$")
_DRIVER = re.compile(r"Kernel driver in use: (?P<driver>\S+)")
_GPU_ELEMENT = re.compile(r"<gpu[\s>]")
_TABLE = re.compile(
    r"^[ \t>]*GPU0[ \t]+(?:X|GPU1|PHB|SYS|NODE|PXB|PIX|NV)|^[ \t>]*GPU0\s+GPU1", re.MULTILINE
)

_KEY = re.compile(r"NO_PUBKEY ([0-9A-F]{8,40})|EXPKEYSIG ([0-9A-F]{8,40})")
_HELD = re.compile(
    r"Held packages were changed and -y was used|^The following held packages will be changed"
)
_CONFLICT = re.compile(r"you have held broken packages|have unmet dependencies")
_SIGNED_BY = re.compile(r"Conflicting values set for option Signed-By regarding source (\S+)")
_LOCKED = re.compile(r"Could not get lock (\S+?)\.? ")
_PACKAGE_LINE = re.compile(r"^ {1,4}([a-z0-9][a-z0-9.+-]+(?: [a-z0-9][a-z0-9.+-]+)*)\s*$")


def read_lspci(text: str, file: str) -> PciListing | None:
    """The functions in ``text``; None where there are none."""
    entries: list[PciEntry] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _FUNCTION.match(line.strip())
        if match:
            at = Position(file, number, len(line) - len(line.lstrip()) + 1)
            entries.append(PciEntry(match["address"], match["what"], match["name"].strip(), at))
        elif entries:
            entries[-1] = _detail(entries[-1], line, Position(file, number, 1))
    return PciListing(entries[0].at, tuple(entries)) if entries else None


def _detail(entry: PciEntry, line: str, at: Position) -> PciEntry:
    acs, driver = _ACS.search(line), _DRIVER.search(line)
    if acs:
        flags = frozenset(word[:-1] for word in acs["flags"].split() if word.endswith("+"))
        at = Position(at.file, at.line, acs.start() + 1)
        return PciEntry(entry.address, entry.what, entry.name, entry.at, entry.driver, flags, at)
    if driver:
        return PciEntry(
            entry.address,
            entry.what,
            entry.name,
            entry.at,
            driver["driver"],
            entry.acs,
            entry.acs_at,
        )
    return entry


def read_smi_xml(text: str, file: str) -> tuple[tuple[SmiGpu, ...], Problem | None]:
    """The GPUs of ``nvidia-smi -q -x`` in ``text``, and what could not be read of it."""
    if not _GPU_ELEMENT.search(text):
        return (), None
    try:
        read = smi_xml.parse(text)
    except TopologyError as error:
        return (), Problem(Position(file), f"nvidia-smi -q -x: {error}")
    places = [text.count("\n", 0, match.start()) + 1 for match in _GPU_ELEMENT.finditer(text)]
    gpus = []
    for index, device in enumerate(read["devices"]):
        line = places[index] if index < len(places) else 0
        mig = device.get("mig") or {}
        supported = bool(mig.get("supported"))
        gpus.append(
            SmiGpu(
                at=Position(file, line, 1 if line else 0),
                name=str(device.get("name") or f"GPU {index}"),
                mig=bool(mig.get("current")) if supported else None,
                mig_pending=bool(mig.get("pending")) if supported else None,
                mig_devices=len(mig.get("devices") or ()),
                driver=str(read["driver"].get("version") or ""),
                error=str(device.get("error") or ""),
            )
        )
    return tuple(gpus), None


def read_topology(text: str, file: str) -> TopologyTable | None:
    """The table of ``nvidia-smi topo -m`` in ``text``; None where there is no whole one."""
    match = _TABLE.search(text)
    if match is None:
        return None
    try:
        machine = smi_matrix.parse(text)
    except TopologyError:
        return None
    line = text.count("\n", 0, match.start()) + 1
    return TopologyTable(
        at=Position(file, line, 1),
        gpus=len(machine.gpus),
        nics=len(machine.nics),
        words=frozenset(
            word
            for i, row in enumerate(machine.levels)
            for j, word in enumerate(row)
            if i != j and word is not None
        ),
        nic_words=frozenset(w for row in machine.nic_levels for w in row if w is not None),
    )


def read_packages(text: str, file: str) -> Iterator[PackageOutput]:
    """What apt says is wrong, each thing once."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        found = _package_line(line, lines[number : number + 40])
        if found is None or found in seen:
            continue
        what, names = found
        if what == "held" and any(kind == "held" for kind, _names in seen):
            continue
        seen.add(found)
        column = len(line) - len(line.lstrip()) + 1
        yield PackageOutput(Position(file, number, column), what, line.strip()[:300], names)


def _package_line(line: str, after: list[str]) -> tuple[str, tuple[str, ...]] | None:
    keys = tuple(key for pair in _KEY.findall(line) for key in pair if key)
    if keys:
        return "key", keys
    if _HELD.search(line):
        names: list[str] = []
        for following in after:
            match = _PACKAGE_LINE.match(following)
            if match is None:
                break
            names.extend(match[1].split())
        return "held", tuple(names)
    for what, pattern in (("signed-by", _SIGNED_BY), ("locked", _LOCKED)):
        match = pattern.search(line)
        if match:
            return what, (match[1],)
    return ("conflict", ()) if _CONFLICT.search(line) else None
