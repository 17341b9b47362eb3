# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A systemctl that reads unit files as they are; what runs is in ``/recorded/systemd.json``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed

RECORDED = "/recorded/systemd.json"
_DIRECTORIES = ("/etc/systemd/system", "/usr/lib/systemd/system")


def systemctl(argv: Sequence[str], _stdin: str | None) -> Completed:
    """``show`` and ``is-enabled`` answer, ``start`` and ``stop`` are recorded, the rest is done."""
    verb = next(word for word in argv[1:] if not word.startswith("-"))
    names = [word for word in argv[1:] if not word.startswith("-") and word != verb]
    if verb == "show":
        return Completed(tuple(argv), 0, "\n\n".join(map(_show, names)) + "\n", "")
    if verb == "is-enabled":
        links = ["enabled" if _is_linked(name) else "disabled" for name in names]
        return Completed(tuple(argv), 0, "\n".join(links) + "\n", "")
    running = _running()
    if verb in ("start", "restart"):
        running |= set(names)
    elif verb == "stop":
        running -= set(names)
    write_atomic(RECORDED, json.dumps({"running": sorted(running)}))
    return Completed(tuple(argv), 0, "", "")


def _running() -> set[str]:
    path = Path(RECORDED)
    return set(json.loads(path.read_text())["running"]) if path.exists() else set()


def _is_linked(name: str) -> bool:
    return os.path.islink(f"/etc/systemd/system/multi-user.target.wants/{name}")


def _show(name: str) -> str:
    there = any(os.path.exists(f"{directory}/{name}") for directory in _DIRECTORIES)
    linked = _is_linked(name)
    return "\n".join(
        (
            f"Id={name}",
            f"LoadState={'loaded' if there else 'not-found'}",
            f"ActiveState={'active' if name in _running() else 'inactive'}",
            f"UnitFileState={'enabled' if linked else 'disabled' if there else ''}",
            "MainPID=0",
            "After=",
        )
    )
