# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``checkpoint``: which run this is, who runs it, and is the other dead.

A window belongs to the run that opened it. A run that was killed, or whose controller was, never
closes its window; the next run from the same controller can see that the process is gone and goes
on in its place, instead of being refused until the window expires.
"""

from __future__ import annotations

import getpass
import multiprocessing
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

_UNKNOWN = "unknown"
_RUN = re.compile(
    r"ansible, pid (?P<pid>\d+) on (?P<host>\S+) "
    r"\(start (?P<start>\S+), boot (?P<boot>\S+), pid namespace (?P<namespace>\S+)\)"
)


@dataclass(frozen=True)
class Run:
    """One run of ansible-playbook, told from every other one.

    ``pid`` means something only on one kernel (``boot``, its boot id) and in one ``namespace``:
    two containers on a machine have a pid 7 each. ``start`` is when the process started, in the
    kernel's ticks, since a pid is used again. What a controller cannot tell is ``unknown``.
    """

    pid: int
    host: str
    start: str
    boot: str
    namespace: str

    def __str__(self) -> str:
        return (
            f"ansible, pid {self.pid} on {self.host} "
            f"(start {self.start}, boot {self.boot}, pid namespace {self.namespace})"
        )


def parse_run(text: str) -> Run | None:
    """A run from its text; None for what is no run of ours, such as one of the command line."""
    found = _RUN.fullmatch(text)
    if found is None:
        return None
    return Run(int(found["pid"]), found["host"], found["start"], found["boot"], found["namespace"])


def this_run() -> Run:
    """The run that this task belongs to: the process that forked the worker we are in."""
    parent = multiprocessing.parent_process()
    pid = os.getpid() if parent is None or parent.pid is None else parent.pid
    try:
        namespace = re.sub(r"\D", "", os.readlink("/proc/self/ns/pid")) or _UNKNOWN
    except OSError:
        namespace = _UNKNOWN
    stat = _stat(pid)
    # A controller without /proc: the run's directory for temporary files is its own as well.
    start = stat[19] if stat else os.path.basename(constants.DEFAULT_LOCAL_TMP)
    return Run(pid, socket.gethostname() or _UNKNOWN, start, _boot() or _UNKNOWN, namespace)


def has_ended(run: Run, here: Run) -> bool:
    """Is ``run`` certainly over? ``here`` is a run of this controller.

    Of a run on another kernel, or in another pid namespace, nothing is known: False.
    """
    place = (here.host, here.boot, here.namespace)
    if (run.host, run.boot, run.namespace) != place or _UNKNOWN in place:
        return False
    try:
        os.kill(run.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        # It exists and is somebody else's; where /proc is mounted with hidepid we see no more.
        pass
    stat = _stat(run.pid)
    return bool(stat) and (stat[19] != run.start or stat[0] in ("Z", "X"))


def person(task_vars: Mapping[str, Any], host: str) -> str:
    """Who changes the host: AWX's user and job where AWX runs the play, else ``user@host``."""
    job = next((task_vars[name] for name in _names("job_id") if task_vars.get(name)), None)
    user = next((task_vars[name] for name in _names("user_name") if task_vars.get(name)), None)
    if job or user:
        return " ".join([str(user or "AWX")] + ([f"(AWX job {job})"] if job else []))
    try:
        login = getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as in many containers
        login = f"uid {os.getuid()}"
    if login == "root" and os.environ.get("SUDO_USER"):
        login = os.environ["SUDO_USER"]
    return f"{login}@{host}"


def _names(end: str) -> tuple[str, str]:
    return f"awx_{end}", f"tower_{end}"


def _stat(pid: int) -> list[str]:
    """/proc/PID/stat from its third field on, the state; [] when it cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
            # The second field is the program's name, which may hold spaces and parentheses.
            fields = handle.read().rpartition(")")[2].split()
    except OSError:
        return []
    return fields if len(fields) > 19 else []


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as handle:
            return handle.read().strip()
    except OSError:
        return ""


class ActionModule(ActionBase):
    """One round trip; a second one when the run that holds the window is dead."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """See :class:`ansible.plugins.action.ActionBase`."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        here = this_run()
        arguments = {
            **self._task.args,
            "run": str(here),
            "who": self._task.args.get("who") or person(variables, here.host),
            "what": self._task.args.get("what") or self._what(variables),
        }
        result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        holder = parse_run(str(result.get("busy_run") or ""))
        if not result.get("failed") or holder is None or not has_ended(holder, here):
            return result
        Display().warning(
            f"the open change belongs to {holder}, and that process is gone: this run goes on in "
            "its place"
        )
        return dict(
            self._execute_module(module_args={**arguments, "takeover": True}, task_vars=task_vars)
        )

    def _what(self, variables: Mapping[str, Any]) -> str:
        """The role that the task is in, else the play."""
        role = self._task._role
        return str(role.get_name() if role else variables.get("ansible_play_name", ""))
