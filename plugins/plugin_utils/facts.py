# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One fact key, filled by two modules: on the controller, sections are put together.

Ansible replaces a fact of the same name and does not merge it. Without this, gathering
runtime facts would drop the GPU facts of a minute ago.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

KEY = "gpu_host"


def merge_sections(former: Any, gathered: dict[str, Any]) -> dict[str, Any]:
    """``former`` with every gathered section in place of the old one of that name.

    ``former`` is what the host's facts hold under :data:`KEY`; anything but a dictionary
    of the same schema is not ours and is dropped.
    """
    if not isinstance(former, dict) or former.get("schema") != gathered.get("schema"):
        return gathered
    return {**former, **gathered}


class SectionFacts(ActionBase):
    """Runs the module of the action's own name and keeps the other module's sections."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """See :class:`ansible.plugins.action.ActionBase`."""
        super().run(tmp, task_vars)
        result: dict[str, Any] = self._execute_module(task_vars=task_vars)
        gathered = result.get("ansible_facts", {}).get(KEY)
        if gathered is not None:
            former = (task_vars or {}).get("ansible_facts", {}).get(KEY)
            result["ansible_facts"][KEY] = merge_sections(former, gathered)
        return result
