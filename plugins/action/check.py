# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``check``: the host is read in one round trip and judged here.

Rules for every kind of file would cost a host seconds to compile each time, and reading YAML
needs a library that hosts need not have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.steadygpu.host.plugins.module_utils.checks.live import judge_host
from ansible_collections.steadygpu.host.plugins.plugin_utils import checks_result
from ansible_collections.steadygpu.host.plugins.plugin_utils.facts import KEY

_NEEDED = ("gpu", "docker")


class ActionModule(ActionBase):
    """One round trip, then the rules."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """See :class:`ansible.plugins.action.ActionBase`."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        gathered = (variables.get("ansible_facts") or {}).get(KEY) or {}
        facts = _plain(self._task.args.get("facts") or gathered)
        missing = [section for section in _NEEDED if section not in facts]
        if missing:
            said = (
                f"{KEY} has no section {missing[0]}: run steadygpu.host.gpu_facts and "
                "steadygpu.host.runtime_facts on this host first, or role steadygpu.host.facts"
            )
            return {"failed": True, "changed": False, "msg": said}
        # What the module needs of the facts; the rest (flags of the daemon may hold a password)
        # would stand in the host's own log.
        needed = {"gpu": facts["gpu"], "docker": {"status": (facts["docker"] or {}).get("status")}}
        read = self._read_host({**self._task.args, "facts": needed}, task_vars)
        # The texts of files may hold secrets: they are judged here and go no further.
        evidence, more = read.pop("evidence", None), read.pop("more", None) or {}
        if evidence is None:
            return read
        name = str(variables.get("inventory_hostname") or "")
        return {**read, **self._judge(facts, evidence, name, more)}

    def _read_host(self, arguments: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        """The module's own result, which no log may show.

        With -vvv a connection prints all that a host answers, except where no_log forbids it. An
        answer that is no JSON (a login banner, a lost connection) is made part of the result.
        """
        # Not the task's own no_log, which would hide the findings as well.
        context: Any = getattr(self._connection, "_play_context", self._play_context)
        former, context.no_log = context.no_log, True
        try:
            read: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        finally:
            context.no_log = former
        if read.get("module_stdout"):
            read["module_stdout"] = "(not shown: it may hold the texts of files)"
        return read

    def _judge(
        self, facts: Mapping[str, Any], evidence: Mapping[str, Any], name: str, more: dict[str, str]
    ) -> dict[str, Any]:
        arguments = _plain(self._task.args)
        verdict = judge_host(facts, evidence, name, more)
        return checks_result.build(
            verdict,
            accept=arguments.get("accept") or {},
            fail_on=str(arguments.get("fail_on") or "never"),
        )


def _plain(value: Any) -> Any:
    """Without the tags that core >= 2.19 puts on values."""
    return json.loads(json.dumps(value))
