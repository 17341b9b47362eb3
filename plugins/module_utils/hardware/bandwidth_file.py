# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bandwidth that was measured between this host's GPUs, kept in a file of ours."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .. import vouched
from ..topology import remembered
from ..topology.model import TopologyError

PATH = "var/lib/steadygpu/bandwidth.json"
# A host of 64 GPUs has a quarter of this.
_MOST_BYTES = 512 * 1024


@dataclass(frozen=True)
class Memory:
    """``record`` is None where nothing is kept; with a ``reason``, where it cannot be used."""

    record: remembered.Record | None = None
    reason: str | None = None


def read(root: str = "/") -> Memory:
    """What is kept. A file that cannot be read or understood is a reason, never an error."""
    path = where(root)
    try:
        with open(path, "rb") as handle:
            data = handle.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Memory()
    except OSError as error:
        return Memory(reason=f"{path} is not used: {error.strerror}")
    if len(data) > _MOST_BYTES:
        return Memory(reason=f"{path} is not used: it is larger than {_MOST_BYTES // 1024} KiB")
    try:
        return Memory(remembered.parse(data.decode("utf-8", errors="replace")))
    except TopologyError as error:
        return Memory(reason=f"{path} is not used: {error}")


def write(record: remembered.Record, root: str = "/") -> None:
    """Keep ``record`` instead of the former one. Raises OSError and leaves that one."""
    # Facts are gathered by any user.
    vouched.write(where(root), remembered.render(record), mode=0o644, root=root)


def forget(root: str = "/") -> bool:
    """Remove what is kept; False when there was nothing. Raises OSError."""
    return vouched.remove(where(root), root)


def where(root: str = "/") -> str:
    """The path of the file."""
    return os.path.join(root, PATH)
