# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel and the services next to it are told: command line, sysctl, irqbalance, apt.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model import Given, Position


@dataclass(frozen=True)
class KernelCmdline:
    """A kernel command line. ``parameters`` are in order; one without ``=`` has the value "".

    ``spelled`` of each is the parameter's name.
    """

    at: Position
    parameters: tuple[Given, ...] = ()

    def all(self, name: str) -> tuple[Given, ...]:
        """Every value of a parameter; ``-`` and ``_`` are one letter to the kernel."""
        wanted = name.replace("-", "_")
        return tuple(p for p in self.parameters if p.spelled.replace("-", "_") == wanted)

    def words(self, name: str) -> list[tuple[str, Given]]:
        """The words of a parameter that takes a comma-separated list."""
        return [(word, given) for given in self.all(name) for word in given.value.split(",")]


@dataclass(frozen=True)
class SysctlFile:
    """A sysctl file. ``settings`` are in order, each with its name in dots as ``spelled``."""

    at: Position
    settings: tuple[Given, ...] = ()

    def last(self, name: str) -> Given | None:
        """The assignment that counts."""
        found = [setting for setting in self.settings if setting.spelled == name]
        return found[-1] if found else None


@dataclass(frozen=True)
class IrqbalanceFile:
    """irqbalance's environment file: its variables by name.

    ``noted`` is a kernel parameter (``isolcpus=8-15``) that a comment of the file mentions.
    """

    at: Position
    variables: Mapping[str, Given] = field(default_factory=dict)
    noted: str = ""


@dataclass(frozen=True)
class AptSource:
    """One source of packages. ``uri`` ends with a slash, ``suite`` is as written.

    ``signed_by`` is None where the source names no key of its own, and ``inline key`` where the
    key stands in the file; ``trusted`` is ``[trusted=yes]``.
    """

    at: Position
    uri: str
    suite: str
    signed_by: str | None = None
    trusted: bool = False
    kinds: tuple[str, ...] = ("deb",)


@dataclass(frozen=True)
class AptSources:
    """The sources in one file (or in a text with several). ``malformed`` are lines that are none.

    Of a file with stanzas no line is malformed: what it lacks, its stanzas lack.
    """

    at: Position
    sources: tuple[AptSource, ...] = ()
    malformed: tuple[Given, ...] = ()
