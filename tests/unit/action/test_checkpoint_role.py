# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role ``checkpoint`` in real plays: who begins ends it, and what a person reads afterwards.

The module on the "host" is a stand-in that notes what it is asked, and whether a window is open.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# The first line of its file says whether a window is open; the others what was asked.
MODULE = """\
#!/usr/bin/python
from __future__ import annotations
from ansible.module_utils.basic import AnsibleModule

NAMES = [
    *("run", "who", "what", "window", "why", "ticket", "takeover", "state", "confirm_within"),
    *("paths", "keep", "max_age_days", "packages"),
]


def main() -> None:
    module = AnsibleModule({name: {"type": "raw"} for name in NAMES}, supports_check_mode=True)
    with open("NOTES", encoding="utf-8") as handle:
        before, *asked = handle.read().splitlines()
    state = module.params["state"]
    if state == "restore" and before == "shut":
        module.fail_json(msg="no change is open")
    now = "open" if state == "begin" else "shut"
    with open("NOTES", "w", encoding="utf-8") as handle:
        handle.write("\\n".join([before if module.check_mode else now, *asked, state]))
    module.exit_json(
        changed=False,
        opened=state == "begin" and before == "shut",
        what=module.params["what"],
        checkpoint="7-0123abcd",
        conflicts=["/etc/steadygpu/a"],
        left=[{"subject": "docker.io", "reason": "only when told", "pending": False}],
    )


if __name__ == "__main__":
    main()
"""


class Notes:
    """What the stand-in was asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("shut")

    @property
    def asked(self) -> list[str]:
        """The states, in order."""
        return self.path.read_text().splitlines()[1:]


@pytest.fixture
def notes(tmp_path: Path, controller: Any) -> Notes:
    """Plays run with the stand-in for the module, and with the role as it is."""
    notes = Notes(tmp_path / "notes")
    host = tmp_path / "collections" / "ansible_collections" / "steadygpu" / "host"
    (host / "plugins" / "modules").mkdir(parents=True)
    real = controller.collections / "ansible_collections"
    (host.parents[1] / "ansible").symlink_to(real / "ansible")
    for name in ("meta", "galaxy.yml", "roles"):
        (host / name).symlink_to(real / "steadygpu" / "host" / name)
    for name in ("action", "callback", "module_utils", "plugin_utils"):
        (host / "plugins" / name).symlink_to(real / "steadygpu" / "host" / "plugins" / name)
    module = host / "plugins" / "modules" / "checkpoint.py"
    module.write_text(MODULE.replace("NOTES", str(notes.path)))
    controller.collections = tmp_path / "collections"
    return notes


def role(tasks: str, what: str) -> dict[str, Any]:
    """A task that does one part of the role."""
    return {
        "ansible.builtin.include_role": {"name": "steadygpu.host.checkpoint", "tasks_from": tasks},
        "vars": {"checkpoint_what": what},
    }


def change(what: str, *tasks: dict[str, Any]) -> dict[str, Any]:
    """Tasks that are confirmed, or undone when one fails."""
    return {
        "block": [role("begin", what), *tasks, role("confirm", what)],
        "rescue": [role("undo", what)],
    }


def fails(*reasons: str) -> dict[str, Any]:
    """A task that fails once for each reason."""
    return {"ansible.builtin.fail": {"msg": "{{ item }}"}, "loop": list(reasons)}


NOTHING = {"ansible.builtin.debug": {"msg": "work"}}


def test_what_is_inside_leaves_the_window_to_who_opened_it(controller: Any, notes: Notes) -> None:
    results = controller.play(change("outer", change("inner", NOTHING), NOTHING))
    assert notes.asked == ["begin", "confirm"]
    assert not any(result.get("failed") for result in results)
    assert not any("validate_args_context" in result for result in results)


def test_a_failure_inside_is_undone_once_and_says_why(controller: Any, notes: Notes) -> None:
    results = controller.play(change("outer", change("inner", fails("disk on fire", "no"))))
    assert notes.asked == ["begin", "restore"]
    assert results[-1]["failed"]
    assert results[-1]["msg"].splitlines() == [
        "disk on fire",
        "no",
        "The host was put back to checkpoint 7-0123abcd.",
        "Left as it is: docker.io: only when told",
        "Somebody else had changed /etc/steadygpu/a; that version lies beside it as "
        "/etc/steadygpu/a.steadygpu-conflict.",
    ]


@pytest.mark.parametrize("check", [False, True])
def test_what_comes_after_a_rescued_failure_begins_again(
    controller: Any, notes: Notes, check: bool
) -> None:
    rescued = {"block": [change("first", fails("no"))], "rescue": [NOTHING]}
    results = controller.play(rescued, change("second", NOTHING), check=check)
    undone = [] if check else ["restore"]
    assert notes.asked == ["begin", *undone, "begin", "confirm"]
    assert not results[-1].get("failed")


def test_a_way_back_that_fails_does_not_hide_what_failed_first(
    controller: Any, notes: Notes
) -> None:
    shut = {"ansible.builtin.copy": {"content": "shut", "dest": str(notes.path)}}
    results = controller.play(change("a play", shut, fails("disk on fire")))
    first, second, *_more = results[-1]["msg"].splitlines()
    assert first == "disk on fire"
    assert second == "The host could NOT be put back: no change is open"
