# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tree a file was made for: a hash over the GPUs and NICs as sysfs shows them. Pure.

The stamp is a comment before ``<system>``, which NCCL skips (xml.cc, xmlSkipComment). It lists
what was hashed, so that a stale file can say what changed. A NIC that the file does not name is
not hashed: NCCL places it by sysfs, and the virtual function of a cloud's own Ethernet comes and
goes with the servicing of its host.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .host import Function, Host

_STAMP = re.compile(
    r"\A<!-- steadygpu\.host nccl_topology\n(sha256:[0-9a-f]{64})\n((?:(?:gpu|nic) .+\n)*)-->\n"
)
_TEMPLATE = "<!-- steadygpu.host nccl_topology\n{0}\n{1}-->\n"


@dataclass(frozen=True)
class Stamp:
    """``lines`` are the devices that were hashed, one each."""

    lines: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """``sha256:`` and 64 hexadecimal digits."""
        text = "".join(f"{line}\n" for line in self.lines)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    @property
    def nics(self) -> list[str]:
        """Addresses of the NICs it covers."""
        return [line.split()[1] for line in self.lines if line.startswith("nic ")]


def of_host(host: Host, nics: Collection[str]) -> Stamp:
    """The stamp of this host: all its GPUs, and those of ``nics`` (addresses) that it has."""
    named = [one for one in host.functions.values() if one.is_nic and one.address in nics]
    lines = [_line("gpu", one) for one in host.gpus] + [_line("nic", one) for one in named]
    return Stamp(tuple(sorted(lines)))


def stamped(stamp: Stamp, body: str) -> str:
    """The file: the stamp, then the topology as it was given."""
    lines = "".join(f"{line}\n" for line in stamp.lines)
    return _TEMPLATE.format(stamp.fingerprint, lines) + body


def split(text: str) -> tuple[Stamp | None, str]:
    """The stamp and what follows it. None for a file without one, or with one that was edited."""
    match = _STAMP.match(text)
    if not match:
        return None, text
    stamp = Stamp(tuple(match.group(2).splitlines()))
    return (stamp if stamp.fingerprint == match.group(1) else None), text[match.end() :]


def difference(made_for: Stamp, now: Stamp) -> str:
    """What changed between two trees, for a person: devices by their lines."""
    parts = [
        word + ": " + "; ".join(lines)
        for word, lines in (
            ("was", _without(made_for.lines, now.lines)),
            ("is", _without(now.lines, made_for.lines)),
        )
        if lines
    ]
    return ", ".join(parts) or "the same devices"


def _line(kind: str, one: Function) -> str:
    node = "none" if one.numa_node is None else str(one.numa_node)
    path = "/".join(one.path) or one.address
    return f"{kind} {one.address} {one.vendor}:{one.device} node {node} path {path}"


def _without(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    return [line for line in lines if line not in others]
