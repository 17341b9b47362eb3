# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Output that people paste: kernel logs, lspci, nvidia-smi, apt. Typed documents. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Position


@dataclass(frozen=True)
class XidLine:
    """An Xid of a kernel log: ``slot`` is the GPU's address as written, ``text`` what follows.

    ``times`` is how often the same Xid of the same GPU stands in the log; ``at`` is the first.
    """

    number: int
    slot: str
    text: str
    at: Position
    times: int = 1


@dataclass(frozen=True)
class Refusal:
    """A card that the driver left alone. ``why`` is ``open``, ``legacy``, ``needs-open`` or
    ``unsupported``; ``card`` names it as the log does; ``branch`` is the legacy branch, or "".
    """

    why: str
    card: str
    branch: str
    at: Position


@dataclass(frozen=True)
class ModuleMismatch:
    """The releases of the client's libraries and of the loaded kernel module."""

    library: str
    module: str
    at: Position


@dataclass(frozen=True)
class DriverLog:
    """What the NVIDIA driver wrote into a log. ``failed`` are GPUs it could not initialise."""

    at: Position
    xids: tuple[XidLine, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    mismatches: tuple[ModuleMismatch, ...] = ()
    failed: tuple[XidLine, ...] = ()
    rejected: tuple[Position, ...] = ()


@dataclass(frozen=True)
class PciEntry:
    """One function of ``lspci``: ``what`` is its class, ``name`` vendor and device as printed.

    ``driver`` is the kernel driver in use, "" where it is not printed. ``acs`` are the flags of
    ACSCtl that are switched on, and ``acs_at`` their place; None where there is no such line.
    """

    address: str
    what: str
    name: str
    at: Position
    driver: str = ""
    acs: frozenset[str] | None = None
    acs_at: Position | None = None

    @property
    def is_nvidia_gpu(self) -> bool:
        """Is it a display device of NVIDIA?"""
        return self.is_display and ("nvidia" in self.name.lower() or "10de:" in self.name.lower())

    @property
    def is_display(self) -> bool:
        """Is it a VGA, 3D or display controller?"""
        return any(word in self.what.lower() for word in ("vga", "3d controller", "display"))

    @property
    def is_switch(self) -> bool:
        """Is it a port of a PCIe switch, as far as its name tells?"""
        known = ("switch", "pex8", "pex9", "plx", "switchtec", "pm85", "pm40", "xio3130")
        return "bridge" in self.what.lower() and any(w in self.name.lower() for w in known)


@dataclass(frozen=True)
class PciListing:
    """The functions of one ``lspci``."""

    at: Position
    entries: tuple[PciEntry, ...]


@dataclass(frozen=True)
class SmiGpu:
    """One GPU of ``nvidia-smi -q -x``. A mode is None where the card has none."""

    at: Position
    name: str
    mig: bool | None
    mig_pending: bool | None
    mig_devices: int
    driver: str
    error: str


@dataclass(frozen=True)
class TopologyTable:
    """The words of ``nvidia-smi topo -m`` between GPUs, and between GPUs and network cards."""

    at: Position
    gpus: int
    nics: int
    words: frozenset[str]
    nic_words: frozenset[str]


@dataclass(frozen=True)
class PackageOutput:
    """A line of apt or dnf that says what is wrong. ``what`` is ``key``, ``held``, ``conflict``,
    ``signed-by`` or ``locked``; ``names`` are keys, packages or addresses it names.
    """

    at: Position
    what: str
    said: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogText:
    """The whole of a text that is no configuration: rules look for known messages in it."""

    at: Position
    text: str
