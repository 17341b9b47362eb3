# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry out a plan for containerd's configuration, and undo it when the daemon does not follow.

Written, read back through containerd's own dump, and only then restarted; then the daemon is asked
whether it is well: its plugins, the NRI socket, Docker, and the shims of everybody's containers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .. import vouched
from ..atomic import read_text
from ..process import CommandMissingError
from ..secrets import by_key
from ..units import UnitError
from .dump import compare
from .names import show_path
from .plan import Plan
from .record import RECORD_PATH, Record, dump_record
from .restart import reasons_against
from .tool import UNIT, DumpError, Tool, await_true
from .trial import parsed


class ContainerdFailedError(Exception):
    """containerd did not take the change; the former state was put back or the message says not."""


_FORESEEN = (ContainerdFailedError, DumpError, UnitError, CommandMissingError, OSError)


@dataclass(frozen=True)
class Outcome:
    """``applied`` as :attr:`Plan.how`; ``warnings`` are what was seen on the way."""

    applied: str
    warnings: tuple[str, ...] = ()


def carry_out(
    plan: Plan, tool: Tool, timeout_s: float = 120.0, record_path: str = RECORD_PATH
) -> Outcome:
    """Write the record and the files, prove them, restart, and see that all are well.

    Raises ContainerdFailedError after putting back what was there, OSError when only the record of
    a finished change could not be made smaller: the next run does that.
    """
    if plan.how == "not_installed":
        raise ContainerdFailedError(
            "containerd is not installed, neither the program nor its unit: install it first (the "
            "role engine installs Docker with it), or leave the settings out"
        )
    run = _Run(plan, tool, timeout_s, record_path)
    try:
        run.forward()
    except _FORESEEN as error:
        raise ContainerdFailedError(run.undo(error)) from error
    _put_record(record_path, replace(plan.record, pending=plan.pending is not None))
    return Outcome(plan.how, tuple(run.warnings))


class _Run:
    def __init__(self, plan: Plan, tool: Tool, timeout_s: float, record_path: str) -> None:
        self._plan = plan
        self._tool = tool
        self._timeout_s = timeout_s
        self._record_path = record_path
        self._restarted = False
        self.warnings: list[str] = []

    # -- forward -------------------------------------------------------------------------

    def forward(self) -> None:
        """Raises any of ``_FORESEEN`` wherever it stands then."""
        plan = self._plan
        if plan.files:
            claims = plan.record if plan.present else plan.record_before
            unread = plan.how == "restart" or plan.pending is not None
            unread = unread or plan.record_before.pending
            _put_record(self._record_path, replace(claims, pending=unread))
        for change in plan.files:
            if change.kept_as and change.before is not None:
                vouched.write(change.kept_as, change.before, mode=0o600)
            _put(change.path, change.after, change.mode)
        if plan.files:
            self._prove()
        if plan.how == "restart":
            self._restart()

    def _prove(self) -> None:
        """What containerd makes of the files that are there is what it made of the trial."""
        plan = self._plan
        if plan.expected is None or not os.path.exists(plan.path):
            return
        seen = parsed(self._tool.dump(plan.path))
        difference = compare(plan.expected, seen, ())
        wrong = [show_path(path) for path in (*difference.lost, *difference.new)]
        if wrong:
            raise ContainerdFailedError(
                "containerd config dump shows another value than was tried out of "
                + ", ".join(wrong)
            )

    def _restart(self) -> None:
        plan = self._plan
        state = self._tool.state()
        reasons = [] if plan.forced else reasons_against(state, ())
        if reasons:
            raise ContainerdFailedError("since the plan was made: " + "; ".join(reasons))
        well = self._well()
        before = {shim.pid: shim.name for shim in state.shims}
        self._restarted = True
        self._tool.restart()
        self._await_well(well)
        if plan.nri_socket and not os.path.exists(plan.nri_socket):
            raise ContainerdFailedError(f"NRI is on, and its socket {plan.nri_socket} is not there")
        if state.docker_active and not await_true(self._tool.docker_answers, self._timeout_s):
            raise ContainerdFailedError("Docker does not find containerd again")
        left = {shim.pid for shim in self._tool.state().shims}
        gone = [name for pid, name in before.items() if pid not in left]
        if gone:
            self.warnings.append(
                f"these containers ended while containerd was restarted: {', '.join(gone)}"
            )

    def _well(self) -> frozenset[str]:
        """The plugins that are well; none are known where the daemon cannot be asked."""
        with contextlib.suppress(DumpError):
            return _of_status(self._tool.plugins(), "ok")
        return frozenset()

    def _await_well(self, before: frozenset[str]) -> None:
        said: list[str] = ["it does not answer"]

        def well() -> bool:
            try:
                statuses = self._tool.plugins()
            except DumpError as error:
                said[:] = [str(error)]
                return False
            failed = _of_status(statuses, "error") & (before | set(self._plan.watch))
            said[:] = [f"the plugin {name} does not load" for name in sorted(failed)]
            return not failed

        # What has failed to load stays so until the next start.
        if not await_true(lambda: well() or said[0].startswith("the plugin"), self._timeout_s):
            raise ContainerdFailedError("; ".join(said))
        if said:
            raise ContainerdFailedError("; ".join(said))

    # -- back ----------------------------------------------------------------------------

    def undo(self, error: Exception) -> str:
        """Restore the former files and daemon; the whole story for the error message."""
        plan = self._plan
        log = f". Its last words:\n{self._tool.log()}" if self._restarted else ""
        try:
            for change in reversed(plan.files):
                _put(change.path, change.before, None)
        except OSError as other:
            back = f"The former files could not all be put back: {other}"
        else:
            back = self._tell_back()
        # A record that claims too much does no harm.
        with contextlib.suppress(OSError):
            _put_record(self._record_path, plan.record_before)
        what = (
            "did not take the new configuration" if self._restarted else "was not told of anything"
        )
        said = f"containerd {what}: {error}. {back}{log}"
        return by_key.clean(said, plan.secrets)

    def _tell_back(self) -> str:
        done = "The former files were put back"
        if not self._restarted:
            return done
        state = self._tool.state()
        reasons = [] if self._plan.forced else reasons_against(state, ())
        if state.status == "running" and reasons:
            return f"{done}; {UNIT} was not restarted again: {'; '.join(reasons)}"
        try:
            self._tool.restart()
        except (UnitError, CommandMissingError) as error:
            return f"{done}, and containerd does not start with them either: {error}"
        return f"{done}, and containerd runs with them again"


def _of_status(statuses: Mapping[str, str], status: str) -> frozenset[str]:
    return frozenset(name for name, one in statuses.items() if one == status)


def _put(path: str, text: str | None, mode: int | None) -> None:
    if text is None:
        vouched.remove(path)
    elif read_text(path) != text:
        vouched.write(path, text, mode)


def _put_record(path: str, record: Record) -> None:
    if record == Record():
        vouched.remove(path)
    elif read_text(path) != dump_record(record):
        vouched.write(path, dump_record(record), mode=0o600)
