# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the vendor's refresh unit, in a block of our own in its environment file.

``nvidia-cdi-refresh.service`` runs ``nvidia-ctk cdi generate`` with the variables of this file.
What the play asks for must stand here too, or the next boot makes another specification.
Pure, but for :func:`read`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..atomic import read_text
from ..engine.services import parse_environment_file

PATH = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
# The unit's and the tool's own defaults, which need not be said.
DEFAULT_OUTPUT = "/var/run/cdi/nvidia.yaml"
DEFAULT_STRATEGIES = ("index", "uuid")

_OUTPUT = "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH"
_STRATEGIES = "NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES"
_FLAGS = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS"
_BEGIN = "# BEGIN steadygpu.host.cdi_spec, which also removes it"
_END = "# END steadygpu.host.cdi_spec"


class ForeignValueError(Exception):
    """Somebody else set a variable to another value. The message says which."""


@dataclass(frozen=True)
class EnvPlan:
    """``after`` is None where the file is not to be there."""

    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        """Is there anything to write?"""
        return self.before != self.after


def read(root: str = "/") -> str | None:
    """The text of the file; None without one. Raises OSError."""
    return read_text(os.path.join(root, PATH.lstrip("/")))


def wanted(output: str, strategies: Sequence[str], flags: Sequence[str]) -> dict[str, str]:
    """The variables that differ from the defaults."""
    found = {}
    if _plain(output) != _plain(DEFAULT_OUTPUT):
        found[_OUTPUT] = output
    if tuple(sorted(strategies)) != DEFAULT_STRATEGIES:
        found[_STRATEGIES] = ",".join(strategies)
    if flags:
        found[_FLAGS] = ",".join(flags)
    return found


def plan(text: str | None, variables: Mapping[str, str]) -> EnvPlan:
    """The file with these variables, or without any of ours. Raises ForeignValueError.

    All other lines stay as they are.
    """
    rest = _without_block(text or "")
    theirs = parse_environment_file(rest)
    for name, default in ((_OUTPUT, DEFAULT_OUTPUT), (_STRATEGIES, ",".join(DEFAULT_STRATEGIES))):
        value = theirs.get(name)
        if value is not None and not _same(value, variables.get(name, default)):
            raise ForeignValueError(_words(name, value, variables.get(name, default)))
    left = {}
    for name, value in variables.items():
        if name not in theirs:
            left[name] = value
        elif name == _FLAGS and not set(value.split(",")) <= set(theirs[name].split(",")):
            raise ForeignValueError(_words(name, theirs[name], f"{theirs[name]},{value}"))
    if not left:
        return plan_absent(text)
    gap = "" if not rest or rest.endswith("\n") else "\n"
    lines = [_BEGIN, *(f"{name}={value}" for name, value in left.items()), _END]
    return EnvPlan(text, rest + gap + "\n".join(lines) + "\n")


def plan_absent(text: str | None) -> EnvPlan:
    """The file without our block. One that has nothing else goes."""
    rest = _without_block(text or "")
    return EnvPlan(text, text if rest == (text or "") else rest or None)


def _words(name: str, value: str, wanted_value: str) -> str:
    return (
        f"{PATH} sets {name}={value}, which is not of this collection, and wanted is "
        f"{wanted_value}: at the next boot nvidia-cdi-refresh.service would make another "
        "specification. Change the line, or the options path and device_name_strategy"
    )


def _same(one: str, other: str) -> bool:
    if one.startswith("/"):
        return _plain(one) == _plain(other)
    return set(one.split(",")) == set(other.split(","))


def _plain(path: str) -> str:
    path = os.path.normpath(path)
    return path[len("/var") :] if path.startswith("/var/run/") else path


def _without_block(text: str) -> str:
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        # A block that lost its end is over where something of others begins.
        inside = bare == _BEGIN or (inside and (bare == _END or bare.startswith("NVIDIA_CTK_")))
        if not inside:
            kept.append(line)
        inside = inside and bare != _END
    return "".join(kept)
