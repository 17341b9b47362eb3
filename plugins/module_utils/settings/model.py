# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One setting of a host: what is wanted, what the machine says of it, how that is read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What became of a setting. Pending: it acts after the next boot.
EFFECTIVE = "effective"
DIFFERS = "differs"
INERT = "inert"
UNSUPPORTED = "unsupported"
PENDING = "pending"
VERDICTS = (EFFECTIVE, DIFFERS, INERT, UNSUPPORTED, PENDING)

# How a setting is read back. These have a file of the kernel that can be written at any time:
FILE = "file"
CHOICE = "choice"
NUMBER = "number"
SYSCTL = "sysctl"
INDICES = "indices"
LINE = "line"
LIVE_KINDS = (FILE, CHOICE, NUMBER, SYSCTL, INDICES, LINE)
# These are only looked at:
BOOT_PARAMETER = "boot_parameter"
BOOT_PARAMETER_ABSENT = "boot_parameter_absent"
MODULE_LOADED = "module_loaded"
MODULE_ABSENT = "module_absent"
MODULE_PARAMETER = "module_parameter"
ACS = "acs"
ENVIRONMENT = "environment"
KINDS = (
    *LIVE_KINDS,
    BOOT_PARAMETER,
    BOOT_PARAMETER_ABSENT,
    MODULE_LOADED,
    MODULE_ABSENT,
    MODULE_PARAMETER,
    ACS,
    ENVIRONMENT,
    INERT,
    UNSUPPORTED,
)


class SettingsError(Exception):
    """The settings cannot be what was asked. The message says what was seen and what to do."""


@dataclass(frozen=True)
class Setting:
    """One wanted setting and what the machine says of it.

    ``effective`` is None where nothing could be read; ``reason`` is one sentence, empty when the
    setting is effective; ``source`` is the path that was read, or a command.
    """

    name: str
    wanted: str
    effective: str | None
    verdict: str
    reason: str = ""
    source: str = ""

    def as_dict(self) -> dict[str, Any]:
        """What modules return in ``settings``."""
        return {
            "name": self.name,
            "wanted": self.wanted,
            "effective": self.effective,
            "verdict": self.verdict,
            "reason": self.reason,
            "source": self.source,
        }


@dataclass(frozen=True)
class Target:
    """How a setting is read back, now and whenever it is verified.

    ``path`` is, by ``kind``:

    - ``file``: a file whose text must be ``wanted``, blanks and line ends normalised;
    - ``choice``: a file such as ``none [bfq]``, whose bracketed word counts;
    - ``number``: a file that holds one integer;
    - ``sysctl``: a dotted key;
    - ``indices``: a file with a list such as ``0-3,8``, compared as a set;
    - ``line``: a file with a line for each thing, which the first word names; the other words of
      ``wanted`` must be in the line of that name;
    - ``boot_parameter``, ``boot_parameter_absent``: not used, ``wanted`` is looked for in
      /proc/cmdline;
    - ``module_loaded``, ``module_absent``: the name of a kernel module;
    - ``module_parameter``: ``module/parameter``;
    - ``acs``: the PCI address of a bridge, whose ACS control register is ``wanted`` in hexadecimal;
    - ``environment``: the name of a program, which runs with ``wanted``, ``KEY=VALUE``;
    - ``inert``, ``unsupported``: what is shown as effective, or empty.

    ``note`` is the reason of ``inert`` and ``unsupported``, and a hint for all others when they
    differ. ``neutral`` is what is written to take the setting back where there was no value before.
    """

    name: str
    kind: str
    path: str
    wanted: str
    note: str = ""
    neutral: str = ""

    @property
    def is_live(self) -> bool:
        """Can it be written to the kernel at any time?"""
        return self.kind in LIVE_KINDS

    @property
    def identity(self) -> tuple[str, ...]:
        """Two targets of the same identity are the same setting with another value."""
        if self.kind == LINE:
            return (self.kind, self.path, self.wanted.split()[0] if self.wanted.split() else "")
        if self.is_live:
            return (self.kind, self.path)
        return (self.kind, self.path, self.name)

    def as_dict(self) -> dict[str, str]:
        """As the record keeps it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "path": self.path,
            "wanted": self.wanted,
            "note": self.note,
            "neutral": self.neutral,
        }


def target_from_dict(said: Mapping[str, Any]) -> Target:
    """The inverse of :meth:`Target.as_dict`. Raises SettingsError."""
    fields = ("name", "kind", "path", "wanted", "note", "neutral")
    values = {key: said.get(key, "") for key in fields}
    if not all(isinstance(value, str) for value in values.values()):
        raise SettingsError(f"{dict(said)!r} is no setting: wanted text for {', '.join(fields)}")
    if values["kind"] not in KINDS:
        raise SettingsError(
            f"{values['name']} is of the kind {values['kind']!r}, which this version does not "
            f"know: wanted one of {', '.join(KINDS)}"
        )
    return Target(**values)
