# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The executor on a simulated driver: on each line of stdin a list of jobs in JSON, answered
with a line that has one answer for each.

The library is chosen by LD_LIBRARY_PATH when a process starts, so this is a program. Each job
runs in a fork, so that one that is killed does not end the others: its answer is ``null``.

A job's systemd is a dictionary in a file. ``kill_at`` ends it with SIGKILL right before its
N-th event, where an event is an NVML call that changes something, a unit stopped or started,
or a change in a directory; with ``every_call`` every NVML call is one. ``fail`` lets one NVML
call answer with an error: ``{"call": name, "nth": 1, "code": 23}``; ``comes`` lets somebody be
given a GPU right before one, ``{"call": name, "nth": 1, "gpu": 0, "name": "sleep"}``, who is seen
in /proc and not by the driver; ``hangs`` is a call that does not return. ``answers`` are answers
of NVML functions by name; an ``old`` driver has no second version of structures. ``unseen`` says
why not every process can be seen. ``budget_s`` is the time that a run has at boot.
"""

from __future__ import annotations

import functools
import io
import json
import mmap
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable, NoReturn

import pynvml

from ansible_collections.steadygpu.host.plugins.module_utils import units
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import holders
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import nvml as nvml_library
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Holder
from ansible_collections.steadygpu.host.plugins.module_utils.mig import (
    apply,
    boot,
    cdi,
    change,
    holders_view,
    nvml_mig,
    run,
    stop_set,
    targets,
    view,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import MigError
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Checkpoint,
    Entry,
    Reason,
    RestoreOptions,
    RollbackError,
    State,
    Step,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import Host as HostName
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import act_mig
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors_api import (
    Context,
)

CHANGES = (
    "nvmlDeviceSetMigMode",
    "nvmlDeviceCreateGpuInstanceWithPlacement",
    "nvmlGpuInstanceDestroy",
    "nvmlGpuInstanceCreateComputeInstance",
    "nvmlComputeInstanceDestroy",
)


class Events:
    """A counter that the forked NVML children share, and the end it leads to."""

    def __init__(self, kill_at: int | None) -> None:
        self._shared = mmap.mmap(-1, 8)
        self._kill_at = kill_at
        self._main = os.getpid()

    @property
    def count(self) -> int:
        """How many there were."""
        return int.from_bytes(self._shared[:8], "little")

    def happen(self) -> None:
        """One more; the one that was asked for does not happen."""
        if self._kill_at is not None and self.count + 1 == self._kill_at:
            self._end()
        self._shared[:8] = (self.count + 1).to_bytes(8, "little")

    def _end(self) -> NoReturn:
        os.kill(self._main, signal.SIGKILL)
        # The NVML child dies with its parent: a kill -9 of the whole process group.
        os._exit(1)

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, counted."""

        @functools.wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            self.happen()
            return function(*arguments, **named)

        return counted


class Library:
    """pynvml whose calls are counted and can be made to fail."""

    def __init__(self, events: Events, job: dict[str, Any]) -> None:
        self._events = events
        self._every_call = bool(job.get("every_call"))
        self._fail = job.get("fail")
        self._comes = job.get("comes")
        self._granted = Path(job["root"], "granted.json")
        self._hangs = job.get("hangs")
        self._answers = job.get("answers", {})
        self._old = bool(job.get("old"))
        self._seen = {"fail": mmap.mmap(-1, 8), "comes": mmap.mmap(-1, 8)}
        self._changes = mmap.mmap(-1, 8)
        self._sessions = mmap.mmap(-1, 8)

    def __getattr__(self, name: str) -> Any:
        found = getattr(pynvml, name)
        if not name.startswith("nvml") or not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            if self._every_call or name in CHANGES:
                self._events.happen()
            self._changes[0] |= name in CHANGES
            self._sessions[0] += name == "nvmlInit"
            if name == self._hangs:
                time.sleep(600)
            if self._comes and self._is_time("comes", self._comes, name):
                self._granted.write_text(json.dumps({self._comes["gpu"]: self._comes["name"]}))
            if self._old and named.get("version") == 2:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            if name in self._answers:
                return self._answers[name]
            if self._fail and self._is_time("fail", self._fail, name):
                raise pynvml.NVMLError(self._fail["code"])
            return found(*arguments, **named)

        return call

    @property
    def counts(self) -> dict[str, int]:
        """``wrote``: was any call made that may change a GPU; ``sessions``: how many there were."""
        return {"wrote": self._changes[0], "sessions": self._sessions[0]}

    def _is_time(self, what: str, moment: dict[str, Any], name: str) -> bool:
        """Is this the call that the job means? Without ``nth`` every one is."""
        if name != moment["call"]:
            return False
        seen = self._seen[what]
        seen[0] += 1
        return moment.get("nth") in (None, seen[0])

    def look(self, look: Callable[..., holders.Sight]) -> Callable[..., holders.Sight]:
        """The search for holders, which also finds who was given a GPU."""

        def found(minors: Any, root: str) -> holders.Sight:
            sight = look(minors, root)
            text = self._granted.read_text() if self._granted.exists() else "{}"
            for index, name in json.loads(text).items():
                if int(index) in sight.holders:
                    sight.holders[int(index)].append(Holder(1, name, "granted", "c" * 64))
            return sight

        return found


class Systemd:
    """``{unit: {"active": bool, "RequiredBy": [...]}}`` in a file; ``log`` has what was done."""

    def __init__(self, path: Path, events: Events) -> None:
        self._path = path
        self._events = events

    def _read(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._path.read_text())
        return document

    def show(self, unit: str, properties: Any) -> dict[str, str]:
        """As ``systemctl show``."""
        known = self._read()["units"].get(unit)
        if known is None:
            return {"Id": unit, "ActiveState": "inactive"}
        shown = {key: " ".join(known.get(key, [])) for key in properties}
        active = "active" if known["active"] else "inactive"
        return {**shown, "Id": unit, "ActiveState": active}

    def act(self, verb: str, unit: str, deadline_s: float = 120.0) -> None:
        """As ``systemctl VERB UNIT``."""
        del deadline_s
        self._events.happen()
        document = self._read()
        if document["units"].get(unit, {}).get("refuses") == verb:
            raise units.UnitError(f"systemctl {verb} {unit} failed: no")
        document["units"].setdefault(unit, {})["active"] = verb == "start"
        document["log"].append(f"{verb} {unit}")
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(document))
        new.rename(self._path)

    def start_later(self) -> list[str]:
        """As ``systemd-run … steadygpu mig resume``."""
        document = self._read()
        document["log"].append("resume once Docker runs")
        self._path.write_text(json.dumps(document))
        return []

    def command(self, argv: list[str], *_rest: Any) -> Completed:
        """As ``systemctl VERB --no-block UNIT`` run as a program."""
        self.act(argv[1], argv[-1])
        return Completed(argv, 0, "", "")


def main() -> None:
    """All jobs of all lines, one after the other."""
    for line in sys.stdin:
        print(json.dumps([in_fork(job) for job in json.loads(line)]), flush=True)


def in_fork(job: dict[str, Any]) -> dict[str, Any] | None:
    """One job in a process of its own; None when it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        answer = json.dumps(prepared(job)).encode()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and "kill_at" in job:
        return None
    found: dict[str, Any] = json.loads(text)
    return found


def prepared(job: dict[str, Any]) -> dict[str, Any]:
    """The job with its driver, its systemd and its end."""
    root = job["root"]
    os.environ["SIMGPU_STATE"] = job["state"]
    events = Events(job.get("kill_at"))
    library = Library(events, job)
    systemd = Systemd(Path(root, "units.json"), events)
    nvml_library.load = lambda: library
    units.show, units.act = systemd.show, systemd.act
    stop_set.run = systemd.command
    boot.start_later = systemd.start_later
    boot.BUDGET_S = job.get("budget_s", boot.BUDGET_S)
    run._SETTLE_S = 0.5
    # The tests may run where not every process can be looked at.
    holders_view.why_unseen = lambda *_sight: job.get("unseen")
    holders.look = library.look(holders.look)
    for name in ("replace", "unlink", "symlink"):
        setattr(os, name, events.before(getattr(os, name)))
    return {**work(job, root), "events": events.count, **library.counts}


def work(job: dict[str, Any], root: str) -> dict[str, Any]:
    """The verb of the job; an error is an answer too."""
    directory = os.path.join(root, "var/lib/steadygpu/mig")
    try:
        if job["verb"] == "view":
            return view.read(
                job.get("deadline_s", 20.0), job.get("socket", "/nowhere"), directory, root
            )
        if job["verb"] == "targets":
            return {"gpus": kept()}
        if job["verb"] == "restore":
            return restore(job, root)
        given = dict(job.get("options", {}))
        if "specification" in given:
            given["specification"] = cdi.Settings(**given["specification"])
        options = change.Options(
            **{
                "specification": None,
                "socket": "/nowhere",
                "deadline_s": 20.0,
                **given,
                "directory": directory,
                "root": root,
            }
        )
        outcome = getattr(apply, job["verb"])(options)
    except MigError as error:
        return {"error": str(error), "actions": getattr(error, "actions", [])}
    return {
        "status": outcome.status,
        "changed": outcome.changed,
        "actions": outcome.actions,
        "warnings": outcome.warnings,
        "notes": outcome.notes,
        "needs": outcome.needs,
        "reason": outcome.reason,
        "before": outcome.before,
        "after": outcome.after,
    }


def kept() -> list[dict[str, Any]]:
    """The layout of all GPUs as a checkpoint has it."""
    return targets.to_json([targets.of_layout(gpu) for gpu in nvml_mig.read(20.0).layouts])


def restore(job: dict[str, Any], root: str) -> dict[str, Any]:
    """The way back to the GPUs of the job; ``specification`` is among the files of then and now."""
    specification = job.get("specification")
    files = {specification: Entry("file", digest="0" * 64)} if specification else {}
    target = Checkpoint("1-0", 1, 0.0, HostName("m", "h"), Reason(), State(files=files))
    context = Context(lambda digest: io.BytesIO(), RestoreOptions(deadline_s=20.0), target, root)
    try:
        done = act_mig.act(Step("mig", "GPUs", "", {"gpus": job["gpus"]}), context, "/nowhere")
    except RollbackError as error:
        return {"error": str(error)}
    return {
        "changed": done.changed,
        "left": [[left.reason, left.pending] for left in done.left],
        "notes": list(done.notes),
    }


if __name__ == "__main__":
    main()
