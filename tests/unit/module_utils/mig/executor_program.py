# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The executor on a simulated driver: a list of jobs in JSON on stdin, one answer for each.

The library is chosen by LD_LIBRARY_PATH when a process starts, so this is a program. Each job
runs in a fork, so that one that is killed does not end the others: its answer is ``null``.

A job's systemd is a dictionary in a file. ``kill_at`` ends it with SIGKILL right before its
N-th event, where an event is an NVML call that changes something, a unit stopped or started,
or a change in a directory; with ``every_call`` every NVML call is one. ``fail`` lets one NVML
call answer with an error: ``{"call": name, "nth": 1, "code": 23}``. ``answers`` are answers of
NVML functions by name; an ``old`` driver has no second version of structures.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import signal
import sys
from pathlib import Path
from typing import Any, Callable, NoReturn

import pynvml

from ansible_collections.steadygpu.host.plugins.module_utils import units
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import nvml as nvml_library
from ansible_collections.steadygpu.host.plugins.module_utils.mig import (
    apply,
    boot,
    cdi,
    change,
    run,
    stop_set,
    view,
)
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import MigError
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed

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
        self._answers = job.get("answers", {})
        self._old = bool(job.get("old"))
        self._seen = mmap.mmap(-1, 8)
        self.changes = mmap.mmap(-1, 8)

    def __getattr__(self, name: str) -> Any:
        found = getattr(pynvml, name)
        if not name.startswith("nvml") or not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            if self._every_call or name in CHANGES:
                self._events.happen()
            self.changes[0] |= name in CHANGES
            if self._old and named.get("version") == 2:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
            if name in self._answers:
                return self._answers[name]
            if self._fail and name == self._fail["call"]:
                self._seen[0] += 1
                if self._seen[0] == self._fail["nth"]:
                    raise pynvml.NVMLError(self._fail["code"])
            return found(*arguments, **named)

        return call


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

    def command(self, argv: list[str], *_rest: Any) -> Completed:
        """As ``systemctl VERB --no-block UNIT`` run as a program."""
        self.act(argv[1], argv[-1])
        return Completed(argv, 0, "", "")


def main() -> None:
    """All jobs, one after the other."""
    print(json.dumps([in_fork(job) for job in json.load(sys.stdin)]))


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
    boot.start_later = list
    run._SETTLE_S = 0.5
    for name in ("replace", "unlink", "symlink"):
        setattr(os, name, events.before(getattr(os, name)))
    return {**work(job, root), "events": events.count, "wrote": library.changes[0]}


def work(job: dict[str, Any], root: str) -> dict[str, Any]:
    """The verb of the job; an error is an answer too."""
    directory = os.path.join(root, "var/lib/steadygpu/mig")
    try:
        if job["verb"] == "view":
            return view.read(
                job.get("deadline_s", 20.0), job.get("socket", "/nowhere"), directory, root
            )
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
        "needs": outcome.needs,
        "reason": outcome.reason,
        "before": outcome.before,
        "after": outcome.after,
    }


if __name__ == "__main__":
    main()
