# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's half of ``agent_install``: names the artifact, sends it only when asked."""

from __future__ import annotations

import os
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.steadygpu.host.plugins.module_utils.generations import file_digest

_COLLECTION = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_CARRIED = os.path.join(_COLLECTION, "roles", "agent", "files", "steadygpu.pyz")


class ActionModule(ActionBase):
    """One round trip with the digest; a second one with the file if the host lacks it."""

    TRANSFERS_FILES = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """See :class:`ansible.plugins.action.ActionBase`."""
        super().run(tmp, task_vars)
        if self._task.args.get("state") == "absent":
            return self._module(task_vars)
        source = self._artifact()
        digest = file_digest(source)
        result = self._module(task_vars, sha256=digest)
        if not result.pop("artifact_needed", False):
            return result
        directory = self._make_tmp_path()
        try:
            remote = self._connection._shell.join_path(directory, "steadygpu.pyz")
            self._transfer_file(source, remote)
            self._fixup_perms2((directory, remote))
            result = self._module(task_vars, sha256=digest, artifact=remote)
        finally:
            self._remove_tmp_path(directory)
        result.pop("artifact_needed", None)
        return result

    def _module(self, task_vars: dict[str, Any] | None, **ours: str) -> dict[str, Any]:
        arguments = {**self._task.args, "sha256": None, "artifact": None, **ours}
        result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        return result

    def _artifact(self) -> str:
        """The artifact on the controller: ``src`` of the task, or what the collection carries."""
        named = self._task.args.get("src")
        if named:
            try:
                return str(self._find_needle("files", named))
            except AnsibleError as error:
                raise AnsibleActionFail(
                    f"the agent artifact src={named} is not on the controller; build it with "
                    "'make agent' in a checkout, or leave src out to take the one the released "
                    "collection carries in roles/agent/files"
                ) from error
        if os.path.isfile(_CARRIED):
            return _CARRIED
        raise AnsibleActionFail(
            f"{_CARRIED} is missing: the released collection carries it; in a checkout run "
            "'make agent', or set src to an artifact that is built"
        )
