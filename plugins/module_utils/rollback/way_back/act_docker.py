# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way back of ``daemon.json``: the file, and what the daemon has learnt from it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...atomic import read_exact
from ...engine import daemon_restore, runtime_users
from ...engine.daemon_apply import DaemonFailedError
from ...engine.daemon_control import UNIT, DockerDaemon, EngineState
from ...engine.daemon_plan import Engine
from ...engine.docker_api import DockerClient, EngineError, EngineUnreachableError
from ...process import find_program
from .. import codec
from ..model import ABSENT, Done, Entry, Left, RollbackError, Step
from . import act_packages, put_back
from .actors_api import Context, token


def act(step: Step, context: Context, socket: str) -> Done:
    """Bring ``step.subject`` to its entry and the running daemon to its text.

    Raises RollbackError with file and daemon as before.
    """
    client = DockerClient(socket)
    return carry_out(step, context, DockerDaemon(client, context.options.deadline_s), client)


def carry_out(step: Step, context: Context, engine: Engine, client: DockerClient) -> Done:
    """:func:`act` with an engine of the caller's."""
    path = step.subject
    entry = codec.entry_from_json(step.details["entry"])
    if entry.kind not in ("file", "absent"):
        # A link leads to somebody's own place: the daemon reads it there at its next start.
        changed = put_back.put_back(path, entry, context.content, context.root)
        told = f"{path} is a {entry.kind} again; Docker reads it at its next start"
        return Done(changed, left=(Left(path, told, pending=True),))
    try:
        done = daemon_restore.restore_config(
            _text(entry, context),
            engine,
            functools.partial(_carriers, client=client, path=path),
            context.options.deadline_s,
            path,
            stays=functools.partial(_stays, context=context, socket=client.socket_path),
            start=_ran(context),
            told=_told(step, context),
        )
    except (DaemonFailedError, EngineError, EngineUnreachableError, OSError) as error:
        raise RollbackError(str(error)) from error
    changed = _put_metadata(path, entry, done.text, context) or done.changed
    waiting = done.waiting or _still_waiting(step, engine)
    left = tuple(Left(path, reason, pending=True) for reason in waiting)
    return Done(changed, left, done.notes)


def _still_waiting(step: Step, engine: Engine) -> tuple[str, ...]:
    """What an earlier restore has left to the daemon's next start, which has not come yet."""
    waits = step.details.get("waits")
    started = engine.state().started_at if waits else None
    return (str(waits),) if started is not None and started <= step.details["said"] else ()


def _text(entry: Entry, context: Context) -> str | None:
    return None if entry.digest is None else _decoded(entry.digest, context)


def _decoded(digest: str, context: Context) -> str:
    with context.content(digest) as handle:
        # As dockerd reads it: what is no UTF-8 becomes U+FFFD. The bytes follow at the end.
        return handle.read().decode("utf-8", errors="replace")


def _told(step: Step, context: Context) -> str | None:
    """What the daemon read before this restore began; None if that cannot be told."""
    expected = step.details.get("expected")
    if expected == token(ABSENT):
        return ""
    try:
        return _decoded(str(expected), context) if codec.DIGEST.fullmatch(str(expected)) else None
    except RollbackError:
        return None


def _put_metadata(path: str, entry: Entry, text: str | None, context: Context) -> bool:
    """Mode, owner and bytes of ``entry``; where the text had to differ, mode and owner alone."""
    if text is None:
        return False
    if text == _text(entry, context):
        return put_back.put_back(path, entry, context.content, context.root)
    if not entry.there or text != read_exact(path):
        return False
    data = text.encode("utf-8")
    there = replace(entry, digest=hashlib.sha256(data).hexdigest(), size=len(data))
    return put_back.put_back(path, there, context.content, context.root)


def _ran(context: Context) -> bool:
    unit = context.target.state.units.get(UNIT)
    return unit is not None and unit.active == "active"


def _carriers(state: EngineState, client: DockerClient, path: str) -> Mapping[str, Sequence[str]]:
    asked = client if state.status == "running" else None
    return runtime_users.find(asked, runtime_users.data_root(state.info, state.flags, path))


def _stays(program: str, context: Context, socket: str) -> bool:
    """Will this program be there when the restore has ended?"""
    if find_program(program) is None:
        return False
    if not context.options.packages or act_packages.endangered(context.root, socket):
        return True
    owner = act_packages.owner_of(program)
    return owner is None or owner in context.target.state.packages
