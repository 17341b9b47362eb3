# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module ``package_set`` brought: the record in ``/var/lib/steadygpu/owned``.

Of each package the version before the first change, the one it was brought to, and whether its hold
is ours. The record is written before the package manager runs, so that nothing of ours is ever
taken for somebody's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import vouched
from ..atomic import read_text
from .model import RefusedError

PATH = "/var/lib/steadygpu/owned/packages.json"
_VERSION = 1


@dataclass(frozen=True)
class Entry:
    """``former`` None: it was not installed. ``version`` None: its version was never ours."""

    former: str | None
    version: str | None
    hold: bool = False

    @property
    def installed(self) -> bool:
        """Was it us who brought this package to the host?"""
        return self.former is None and self.version is not None


def read(root: str = "/") -> dict[str, Entry]:
    """By package name. Raises RefusedError for a record that cannot be understood, OSError."""
    path = _path(root)
    text = read_text(path)
    if text is None:
        return {}
    try:
        said = json.loads(text)
        if said["version"] != _VERSION:
            raise ValueError(f"its version is {said['version']}, known is {_VERSION}")
        return {name: _entry(one) for name, one in said["packages"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RefusedError(
            f"{path} cannot be understood ({error}). It tells which packages this module brought: "
            "put it back from a checkpoint, or move it away to begin anew"
        ) from error


def write(entries: Mapping[str, Entry], root: str = "/") -> None:
    """Replace the record, or remove an empty one. Raises OSError."""
    path = _path(root)
    if not entries:
        vouched.remove(path, root)
        return
    text = json.dumps(
        {
            "version": _VERSION,
            "packages": {name: vars(entries[name]) for name in sorted(entries)},
        },
        indent=2,
    )
    if read_text(path) != text + "\n":
        vouched.write(path, text + "\n", mode=0o600, root=root)


def _entry(said: Mapping[str, Any]) -> Entry:
    former, version = said["former"], said["version"]
    for one in (former, version):
        if one is not None and not isinstance(one, str):
            raise ValueError(f"{one!r} is not a version")
    return Entry(former, version, said["hold"] is True)


def _path(root: str) -> str:
    return os.path.join(root, PATH.lstrip("/"))
