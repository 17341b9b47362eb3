# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role ``migrate`` in real plays: who goes back, and from what.

The modules on the "host" are stand-ins that note what they are asked and answer as they are told.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

MODULE = """\
#!/usr/bin/python
from __future__ import annotations
import json
from ansible.module_utils.basic import AnsibleModule

NAMES = [
    *("run", "who", "what", "window", "why", "ticket", "takeover", "state", "confirm_within"),
    *("paths", "keep", "max_age_days", "packages", "on_newer", "hold", "files", "offline"),
    *("options", "also_change", "also_remove", "step", "containers", "accept", "start"),
    "restart_timeout_s",
]


def main() -> None:
    module = AnsibleModule({name: {"type": "raw"} for name in NAMES}, supports_check_mode=True)
    given = module.params
    asked = " ".join(["THIS", *(given[key] for key in ("state", "step") if given[key])])
    with open("NOTES", "a", encoding="utf-8") as notes:
        notes.write(json.dumps([asked, given["packages"], given["start"]]) + "\\n")
    with open("ANSWERS", encoding="utf-8") as answers:
        answer = json.load(answers).get(asked, {})
    if "msg" in answer:
        module.fail_json(**answer)
    module.exit_json(**{"changed": False, "what": given["what"], "restarted": [], **answer})


if __name__ == "__main__":
    main()
"""
MODULES = ("checkpoint", "package_set", "engine_upgrade")
BEFORE, AFTER = {"docker.io": "26.1.5"}, {"docker.io": "28.5.2"}
PLAN = {
    "packages": AFTER,
    "packages_before": BEFORE,
    "containers": {"trainer": 4711},
}
BEGUN: dict[str, Any] = {
    "checkpoint begin": {"opened": True},
    "checkpoint restore": {"checkpoint": "7-0123abcd", "conflicts": [], "left": []},
}
PACKAGES = {"docker.io": {"version": "26.1.5", "held": True}}


class Host:
    """A host with stand-ins, and a controller that runs the role's change on it."""

    def __init__(self, controller: Any, directory: Path) -> None:
        self._controller = controller
        self._notes = directory / "notes"
        self._answers = directory / "answers"
        real = controller.collections / "ansible_collections"
        self.roles = real / "steadygpu" / "host" / "roles"
        host = directory / "collections" / "ansible_collections" / "steadygpu" / "host"
        (host / "plugins" / "modules").mkdir(parents=True)
        (host.parents[1] / "ansible").symlink_to(real / "ansible")
        for name in ("meta", "galaxy.yml", "roles"):
            (host / name).symlink_to(real / "steadygpu" / "host" / name)
        for name in ("action", "callback", "filter", "module_utils", "plugin_utils"):
            (host / "plugins" / name).symlink_to(real / "steadygpu" / "host" / "plugins" / name)
        for name in MODULES:
            text = MODULE.replace("NOTES", str(self._notes))
            text = text.replace("ANSWERS", str(self._answers)).replace("THIS", name)
            (host / "plugins" / "modules" / f"{name}.py").write_text(text)
        controller.collections = directory / "collections"

    @property
    def asked(self) -> list[list[Any]]:
        """What the modules were asked, in order: who and what, the packages, and ``start``."""
        return [json.loads(line) for line in self._notes.read_text().splitlines()]

    def change(self, answers: dict[str, Any], status: str = "running") -> list[dict[str, Any]]:
        """Run the change, with what the modules answer and how Docker was before."""
        self._answers.write_text(json.dumps(answers))
        variables: dict[str, Any] = {}
        for part in ("defaults", "vars"):
            file = self.roles / "migrate" / part / "main.yml"
            variables.update(yaml.safe_load(file.read_text(encoding="utf-8")))
        variables["__migrate_plan"] = {**PLAN, "status": status}
        facts = {"packages": {"installed": PACKAGES}}
        results: list[dict[str, Any]] = self._controller.play(
            {"ansible.builtin.set_fact": {"gpu_host": facts, "cacheable": True}},
            {
                "ansible.builtin.include_tasks": str(self.roles / "migrate/tasks/change.yml"),
                "vars": {**variables, "migrate_verify": False},
            },
        )
        return results


@pytest.fixture
def host(controller: Any, tmp_path: Path) -> Host:
    """See :class:`Host`."""
    return Host(controller, tmp_path)


def test_who_could_not_begin_puts_nothing_back(host: Host) -> None:
    busy = {"msg": "ada@desk has a change open on this host"}
    results = host.change({"checkpoint begin": busy})
    assert [asked[0] for asked in host.asked] == ["checkpoint begin"]
    assert results[-1]["failed"]
    assert "ada@desk has a change open" in results[-1]["msg"]


def test_a_release_that_does_not_prove_itself_is_taken_back(host: Host) -> None:
    # The switch back is refused too, which must not hide why.
    results = host.change({**BEGUN, "engine_upgrade switch": {"msg": "trainer has ended"}})
    assert host.asked == [
        ["checkpoint begin", None, None],
        ["package_set", AFTER, None],
        ["engine_upgrade switch", None, None],
        ["package_set", BEFORE, None],
        ["engine_upgrade switch", None, True],
        ["checkpoint restore", False, None],
    ]
    assert results[-1]["msg"].startswith("trainer has ended")
    assert any("NOT as it was: trainer" in str(result.get("msg")) for result in results)


def test_packages_that_restarted_somebody_are_taken_back(host: Host) -> None:
    answers = {**BEGUN, "package_set": {"restarted": ["docker.service"]}}
    answers["engine_upgrade switch"] = {"lost": ["trainer"]}
    results = host.change(answers, status="stopped")
    assert [asked[0] for asked in host.asked] == [
        "checkpoint begin",
        "package_set",
        "package_set",
        "engine_upgrade switch",
        "checkpoint restore",
    ]
    # A Docker that was stopped stays so.
    assert host.asked[3][2] is False
    assert "have restarted docker.service" in results[-1]["msg"]
    assert any("do not run on: trainer" in str(result.get("msg")) for result in results)
