# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who listens on addresses that others can reach."""

from __future__ import annotations

import glob
import os
import re
from typing import Any

from . import files

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def read_listeners(root: str = "/") -> list[dict[str, str | None]]:
    """TCP sockets that listen on other addresses than loopback: ``address`` and ``process``.

    ``process`` is None where its owner could not be seen: others' sockets need root.
    """
    found: dict[str, str] = {}
    for name in ("tcp", "tcp6"):
        text = files.text(os.path.join(root, "proc/net", name))
        found.update(parse_tcp(text))
    owners = _owners(root, set(found)) if found else {}
    pairs = {(address, owners.get(inode)) for inode, address in found.items()}
    listed: list[dict[str, Any]] = [{"address": a, "process": p} for a, p in pairs]
    return sorted(listed, key=lambda entry: (entry["address"], entry["process"] or ""))


def parse_tcp(text: str) -> dict[str, str]:
    """``/proc/net/tcp`` or ``tcp6``: inode to ``ADDRESS:PORT`` of listeners, without loopback."""
    found = {}
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN:
            host, _colon, port = fields[1].partition(":")
            address = _address(host)
            if address is not None:
                found[fields[9]] = f"{address}:{int(port, 16)}"
    return found


def _address(hexadecimal: str) -> str | None:
    """The kernel's little-endian words as an address; None for loopback."""
    raw = b"".join(
        bytes.fromhex(hexadecimal[start : start + 8])[::-1]
        for start in range(0, len(hexadecimal), 8)
    )
    if len(raw) == 16 and raw[:12] == b"\0" * 10 + b"\xff\xff":
        raw = raw[12:]
    if len(raw) == 4:
        return None if raw[0] == 127 else ".".join(str(byte) for byte in raw)
    if raw == b"\0" * 15 + b"\1":
        return None
    groups = [f"{raw[place] << 8 | raw[place + 1]:x}" for place in range(0, 16, 2)]
    return "[::]" if not any(raw) else "[{}]".format(":".join(groups))


def _owners(root: str, inodes: set[str]) -> dict[str, str]:
    owners: dict[str, str] = {}
    for directory in glob.glob(os.path.join(root, "proc/[0-9]*")):
        for link in glob.glob(os.path.join(directory, "fd", "*")):
            try:
                match = _SOCKET.match(os.readlink(link))
            except OSError:
                continue
            if match and match.group(1) in inodes:
                name = files.text(os.path.join(directory, "comm"))
                owners.setdefault(match.group(1), name.strip())
    return owners
