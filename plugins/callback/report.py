# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prints, after the recap, what was found, changed and verified on every GPU host."""

from __future__ import annotations

DOCUMENTATION = r"""
name: report
type: aggregate
short_description: A short report of every GPU host after a run
version_added: "0.1.0"
author: steadygpu.host contributors (@steadygpu)
description:
  - Prints host, engine versions, GPUs and topology, what was changed and what was verified,
    one block a host.
  - Only hosts whose facts were read by this collection appear.
requirements:
  - enable in configuration, C(callbacks_enabled = steadygpu.host.report)
"""

from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase

from ansible_collections.steadygpu.host.plugins.plugin_utils.report import HostReport, render


class CallbackModule(CallbackBase):
    """Collects results while the run goes on; renders in plugin_utils/report.py."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "steadygpu.host.report"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._reports: dict[str, HostReport] = {}

    def _report(self, result: Any) -> HostReport:
        name = result.host.get_name()
        return self._reports.setdefault(name, HostReport(name))

    def v2_runner_on_ok(self, result: Any) -> None:
        """Keep newer facts, changes and checks."""
        report, answer = self._report(result), result.result
        facts = (answer.get("ansible_facts") or {}).get("gpu_host")
        if facts:
            report.facts = dict(facts)
        self._note_changes(report, result.task.get_name(), answer)
        report.checks += answer.get("checks") or []
        self._note_settings(report, answer)
        # Roles used alone open one window after the other: the first goes back the whole way.
        if answer.get("opened") and report.base is None:
            report.base = str(answer.get("checkpoint"))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Keep the checks and the message; a rescue that fails later says it better."""
        report, answer = self._report(result), result.result
        report.checks += answer.get("checks") or []
        self._note_settings(report, answer)
        if not ignore_errors:
            report.failure = "{}: {}".format(result.task.get_name(), answer.get("msg"))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Keep the reason."""
        self._report(result).failure = "unreachable: {}".format(result.result.get("msg"))

    @staticmethod
    def _note_settings(report: HostReport, answer: dict[str, Any]) -> None:
        """What was read back last counts; a module tells of its own, verify of all."""
        for item in answer.get("results") or [answer]:
            for setting in item.get("settings") or []:
                where = (setting.get("name"), setting.get("source"))
                report.settings[" ".join(map(str, where))] = setting

    @staticmethod
    def _note_changes(report: HostReport, task: str, answer: dict[str, Any]) -> None:
        for item in answer.get("results") or [answer]:
            if item.get("changed"):
                what = [str(line) for line in item.get("actions") or [task.split(" : ")[-1]]]
                # A loop that changed four packages is one thing to read.
                report.changes += [line for line in what if line not in report.changes]

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print what was kept."""
        check_mode = bool(context.CLIARGS.get("check"))
        for name in sorted(self._reports):
            report = self._reports[name]
            if report.facts or report.failure:
                for line in render(report, check_mode):
                    self._display.display(line)
