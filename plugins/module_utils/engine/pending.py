# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a running dockerd has not taken yet: its file says one thing, it does another.

Pure but for :func:`hook` and :func:`taken`, which look at files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..process import CommandMissingError, find_program, run
from ..versions import at_least
from .daemon_json import Record
from .daemon_rules import SHOWN, by_name, flag_conflicts, not_taken

# Since then ``--gpus`` goes through CDI where dockerd finds this program, and else as before (moby
# daemon/devices_nvidia_linux.go).
_CDI_HOOK_SINCE = "29.2.0"
_RUNTIME_HOOK, _CDI_HOOK = "nvidia-container-runtime-hook", "nvidia-cdi-hook"
# It stays over upgrades of the toolkit, which replace the hook itself.
_TOOLKIT_DIRECTORY = "/etc/nvidia-container-runtime"


@dataclass(frozen=True)
class Pending:
    """Sentences: what only a restart of dockerd brings, and for what a reload is enough."""

    restart: tuple[str, ...] = ()
    reload: tuple[str, ...] = ()


@dataclass(frozen=True)
class Daemon:
    """The daemon that runs; ``started_at`` in seconds since the epoch.

    ``stale``: another program lies in its place, as after an upgrade.
    """

    version: str
    flags: Mapping[str, str]
    started_at: float | None
    stale: bool = False


@dataclass(frozen=True)
class Hook:
    """The program that makes ``--gpus`` work, and since when it is there, in seconds."""

    name: str
    since: float


def judge(
    config: Mapping[str, Any],
    info: Mapping[str, Any],
    daemon: Daemon,
    record: Record,
    file_taken: bool,
    found: Hook | None,
) -> Pending:
    """What the daemon has not taken of its ``config``.

    ``info`` is its own word, ``file_taken`` that it started after the file was written. ``record``
    knows keys that we wrote and that it does not show.
    """
    version = daemon.version
    restart: list[str] = []
    reload: list[str] = []
    for key in SHOWN:
        if key not in config or flag_conflicts([key], daemon.flags):
            continue
        cold = bool(by_name([key], config, version).cold)
        for told in not_taken([key], config, info):
            (restart if cold else reload).append(f"{key} of daemon.json is not in force: {told}")
    unseen = [] if file_taken else [key for key in record.pending if key not in SHOWN]
    for key in by_name(unseen, config, version).keys:
        cold = bool(by_name([key], config, version).cold)
        told = f"{key} of daemon.json was changed, and dockerd was not told"
        (restart if cold else reload).append(told)
    if daemon.stale:
        restart.append(f"dockerd was replaced since it started, and {version} goes on until then")
    started_at = daemon.started_at
    if found is not None and started_at is not None and found.since > started_at:
        restart.append(
            f"{found.name} is younger than this dockerd, which looks for it only when it starts: "
            "until its restart --gpus fails with could not select device driver"
        )
    return Pending(tuple(restart), tuple(reload))


def taken(path: str, started_at: float | None, root: str = "/") -> bool:
    """Was the daemon started since its file was put there? Then it has taken all of it."""
    try:
        written = os.stat(os.path.join(root, path.lstrip("/"))).st_mtime
    except FileNotFoundError:
        return False
    return started_at is not None and started_at > written


def hook(version: str, started_at: float | None) -> Hook | None:
    """The hook that a dockerd of this version looks for; None when there is none.

    Its file may be younger than the toolkit on this host, because an upgrade replaced it. Then the
    age of the toolkit's directory counts, where the file system knows it.
    """
    names = (_CDI_HOOK, _RUNTIME_HOOK) if at_least(version, _CDI_HOOK_SINCE) else (_RUNTIME_HOOK,)
    there = [(name, path) for name in names if (path := find_program(name)) is not None]
    if not there:
        return None
    name, path = there[0]
    since = _since(path)
    if started_at is not None and since > started_at:
        since = min(since, _birth(_TOOLKIT_DIRECTORY) or since)
    return Hook(name, since)


def _since(path: str) -> float:
    """When the file came to its place: a package keeps the time of its content."""
    try:
        return os.stat(path).st_ctime
    except OSError:
        return 0.0


def _birth(path: str) -> float | None:
    try:
        done = run(["stat", "--format=%W", path], 10.0)
    except CommandMissingError:
        return None
    word = done.stdout.strip()
    return float(word) if done.ok and word.isdigit() and word != "0" else None
