# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The operations that are cut, in a server: one job in JSON on each line of stdin.

Each job, ``{"verb": …, "root": …, "traced": …}``, runs in a fork. Its process id is printed first;
a traced one stands still until it gets SIGCONT. When it has ended, a line in JSON says how: its
``answer``, the ``error`` it ended with, and the ``signal`` that killed it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import model, window
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage import transfer
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import restore
from ansible_collections.steadygpu.host.tests.cuts import world
from ansible_collections.steadygpu.host.tests.cuts.scratch_host import ScratchHost

RUN = "the run that is cut"
EXPORTED = "/exported.tar"
REASON = model.Reason(who="somebody", why="a better host", ticket="OPS-1")
_PR_SET_PTRACER = 0x59616D61  # linux/prctl.h; Yama lets only a parent trace otherwise
_ANYBODY = ctypes.c_ulong(-1)


def store_of(root: str) -> Store:
    """The store of a scratch host."""
    return Store(root + model.DIRECTORY, wait_s=5.0)


def perform(verb: str, root: str) -> Any:
    """Do one operation; what a user would see of it, in JSON types."""
    store, host = store_of(root), ScratchHost(root)
    if verb == "take":
        with store.locked():
            state = host.observe(store.sink, ())
            return store.add(state, REASON, host.machine()).id
    if verb == "write":
        world.write_ours(Path(root))
        return None
    if verb == "prune":
        with store.locked():
            return store.prune(1, None, 1_900_000_000.0)
    if verb == "export":
        return transfer.export(store, model.STABLE, root + EXPORTED)
    if verb == "import":
        return transfer.import_(store, root + EXPORTED).id
    if verb == "begin":
        return _told(window.begin(store, host, RUN, "play", 3600.0, REASON))
    if verb == "confirm":
        return _told(window.confirm(store, host, RUN, 20, 90.0))
    if verb == "undo":
        return _told(window.undo(store, host, RUN, model.RestoreOptions()))
    if verb == "resume":
        outcome = restore.resume(store, host)
        return _told(outcome) if outcome else None
    if verb == "back":
        target = model.BEFORE_CHANGE
        return _told(restore.restore(store, target, model.RestoreOptions(), host))
    if verb == "forward":
        return _told(restore.restore(store, model.STABLE, model.RestoreOptions(), host))
    raise ValueError(f"no such operation: {verb}")


def _told(outcome: model.Outcome) -> dict[str, Any]:
    return {
        "changed": outcome.changed,
        "conflicts": outcome.conflicts,
        "left": [[left.subject, left.reason] for left in outcome.left],
        "warnings": outcome.warnings,
    }


def main(act: Callable[[str, str], Any] = perform) -> None:
    """Serve until stdin ends; ``act`` does an operation by its verb below a root."""
    for line in sys.stdin:
        job = json.loads(line)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _job(job, writer, act)
        os.close(writer)
        if job["traced"]:
            os.waitpid(pid, os.WUNTRACED)
        print(pid, flush=True)
        with os.fdopen(reader) as stream:
            said = stream.read()
        _pid, status = os.waitpid(pid, 0)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        ended = {"answer": None, "error": None, "signal": number}
        print(json.dumps({**ended, **(json.loads(said) if said else {})}), flush=True)


def _job(job: dict[str, Any], writer: int, act: Callable[[str, str], Any]) -> None:
    """The child: never returns."""
    if job["traced"]:
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY)
        os.kill(os.getpid(), signal.SIGSTOP)
    try:
        said = {"answer": act(job["verb"], job["root"])}
    except BaseException:
        said = {"error": traceback.format_exc()}
    os.write(writer, json.dumps(said).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
