# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the driver wrote into the kernel log: Xids, and why it refused a card."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import files
from .model import Xid

# A record is at most this long (LOG_LINE_MAX and its dictionary); a shorter buffer is EINVAL.
_RECORD = 16384
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_PREFIX = re.compile(r"^\s*NVRM:\s*", re.MULTILINE)
# "Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
_XID = re.compile(
    r"Xid \((?:PCI:)?([0-9a-fA-F]+(?::[0-9a-fA-F]+)+)(?:\.\d)?\): ([0-9]{1,9})"
    r"(?:, pid=[^,]*)?(?:, name=[^,]*)?(?:, )?\s*(.*)"
)
# The words changed over the years: "The NVIDIA GPU 0000:03:00.0 (PCI ID: 10de:1bb3)
# installed in this system is …", "The NVIDIA GeForce GTX 870M GPU installed in this system is …".
_REFUSED = re.compile(
    r"The NVIDIA (?P<card>.{0,120}?)\s*installed in this system is\s+"
    r"(?:(?P<open>not supported by open)|"
    r"supported through the NVIDIA\s+(?P<branch>\S+)\s+Legacy|(?P<unsupported>not supported))",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)
_NOT_INITIALISED = re.compile(r"GPU (?P<card>[0-9a-f:.]+): RmInitAdapter failed! \((?P<code>\S+)\)")


@dataclass(frozen=True)
class Record:
    """One message of the driver, its prefix removed, ``seconds`` after boot."""

    seconds: float
    text: str


@dataclass(frozen=True)
class Messages:
    """The driver's messages. ``reason`` says why they could not be read."""

    records: list[Record] = field(default_factory=list)
    reason: str | None = None


def read(root: str = "/") -> Messages:
    """All messages with the driver's mark that the ring buffer still holds; it forgets."""
    path = os.path.join(root, "dev/kmsg")
    try:
        log = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return Messages(reason=_why(path, error))
    try:
        return Messages(parse(_drain(log)))
    except OSError as error:
        return Messages(reason=_why(path, error))
    finally:
        os.close(log)


def parse(raw: Sequence[bytes]) -> list[Record]:
    r"""The driver's records in /dev/kmsg's form: ``level,sequence,microseconds,flags;text``.

    The kernel escapes a line feed inside a message as ``\x0a``.
    """
    records = []
    for line in (line for chunk in raw if b"NVRM" in chunk for line in chunk.split(b"\n")):
        header, mark, body = line.decode("utf-8", "replace").partition(";")
        fields = header.split(",")
        if not mark or "NVRM" not in body or len(fields) < 3:
            continue
        microseconds = files.number(fields[2])
        if microseconds is None:
            continue
        text = _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), body)
        records.append(Record(microseconds / 1e6, _PREFIX.sub("", text).strip()))
    return records


def xids(records: Sequence[Record]) -> dict[str, list[Xid]]:
    """Xids in their order, by PCI address without the function: ``0000:01:00``."""
    found: dict[str, list[Xid]] = {}
    for record in records:
        match = _XID.match(record.text)
        if match:
            slot = _slot(match.group(1))
            xid = Xid(
                int(match.group(2)), round(record.seconds, 3), " ".join(match.group(3).split())
            )
            found.setdefault(slot, []).append(xid)
    return found


def refusals(records: Sequence[Record]) -> dict[str | None, str]:
    """Why the driver left a card alone, by its PCI address; by None where it named no address.

    The driver breaks these sentences into lines, and the kernel may store each as a record.
    """
    text = " ".join(" ".join(record.text.split()) for record in records)
    found: dict[str | None, str] = {}
    for match in _REFUSED.finditer(text):
        address = _ADDRESS.search(match.group("card"))
        key = address.group(0).lower() if address else None
        if match.group("open"):
            found[key] = (
                "not supported by the open kernel modules, which need a GPU with a GSP (Turing or "
                "newer): install the proprietary modules of a branch that knows this GPU"
            )
        elif match.group("branch"):
            found[key] = (
                f"this driver release ignores the GPU; the {match.group('branch')} legacy branch "
                "is its last: install that branch and hold it"
            )
        else:
            found[key] = (
                "not supported by this driver release: install a branch that knows this GPU"
            )
    for match in _NOT_INITIALISED.finditer(text):
        found[match.group("card").lower()] = (
            f"the driver could not initialise it (RmInitAdapter failed, {match.group('code')}): "
            "look at dmesg for NVRM"
        )
    return found


def slot_of(pci_address: str) -> str:
    """``0000:01:00.0`` without its function: how an Xid names a GPU."""
    return pci_address.partition(".")[0]


def _slot(written: str) -> str:
    """The slot as sysfs writes it, from ``0000:01:00``, ``00000000:01:00`` or ``01:00``."""
    parts = written.lower().split(":")
    domain = parts[-3] if len(parts) > 2 else "0"
    return ":".join([f"{int(domain, 16):04x}", *parts[-2:]])


def _why(path: str, error: OSError) -> str:
    said = f"{path}: {error.strerror}"
    return f"{said}; run as root" if isinstance(error, PermissionError) else said


def _drain(log: int) -> list[bytes]:
    """Every record there is now. One that was overwritten while we read is skipped."""
    chunks: list[bytes] = []
    while True:
        try:
            chunk = os.read(log, _RECORD)
        except BlockingIOError:
            return chunks
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            continue
        if not chunk:
            return chunks
        chunks.append(chunk)
