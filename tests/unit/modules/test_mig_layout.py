# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module makes of its options, of an outcome and of an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.mig import change
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import MigError
from ansible_collections.steadygpu.host.plugins.modules import mig_layout

PENDING = {"gpu": 0, "uuid": "GPU-a", "needs": "reboot", "reason": "GPU 0 waits. Reboot"}


class Core:
    """The core, which notes what it was asked and answers as it is told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, change.Options]] = []
        self.answer = change.Outcome()
        self.error: MigError | None = None
        self.warnings: list[str] = []

    def apply(self, options: change.Options) -> change.Outcome:
        return self._tell("apply", options)

    def foresee(self, options: change.Options) -> change.Outcome:
        return self._tell("foresee", options)

    def _tell(self, verb: str, options: change.Options) -> change.Outcome:
        self.asked.append((verb, options))
        if self.error is not None:
            raise self.error
        return self.answer


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    """The module's core is this one."""
    core = Core()
    monkeypatch.setattr(mig_layout, "apply", core)
    # Where the controller's code is loaded too, a warning goes to its display, not to the result.
    monkeypatch.setattr(
        mig_layout.AnsibleModule, "warn", lambda module, text: core.warnings.append(text)
    )
    return core


def run(capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[int, dict[str, Any]]:
    """Exit status and result of the module."""
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        mig_layout.main()
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def test_options_reach_the_core(core: Core, capsys: pytest.CaptureFixture[str]) -> None:
    status, _result = run(
        capsys,
        layout=[{"devices": "all", "mig-enabled": False}],
        stop=["dcgm.service"],
        persist=False,
        cdi_path="/etc/cdi/nvidia.json",
        deadline_s=7,
        socket="/run/other.sock",
    )
    verb, options = core.asked[0]
    assert (status, verb) == (0, "apply")
    assert options.layout == [{"devices": "all", "mig-enabled": False}]
    assert (list(options.stop), options.persist, options.deadline_s) == (["dcgm.service"], False, 7)
    assert options.specification is not None
    assert options.specification.path == "/etc/cdi/nvidia.json"
    assert (options.socket, options.specification.socket) == ("/run/other.sock", "/run/other.sock")


def test_check_mode_and_undo(core: Core, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, state="previous", cdi_path="", _ansible_check_mode=True)
    verb, options = core.asked[0]
    assert verb == "foresee"
    assert options.previous
    assert options.specification is None


def test_a_layout_is_required_unless_one_goes_back(
    core: Core, capsys: pytest.CaptureFixture[str]
) -> None:
    status, result = run(capsys)
    assert status == 1
    assert "layout" in result["msg"]
    assert core.asked == []


def test_a_pending_mode_is_no_failure(core: Core, capsys: pytest.CaptureFixture[str]) -> None:
    core.answer = change.Outcome(
        "pending",
        ["GPU 0: enable MIG mode"],
        ["a warning"],
        ["a note"],
        [dict(PENDING, needs="reset"), PENDING],
        before="off\n",
        after="off, on after a reset\n",
    )
    status, result = run(capsys, layout="all-1g.5gb", _ansible_diff=True)
    assert status == 0
    assert (result["status"], result["needs"], result["changed"]) == ("pending", "reboot", True)
    assert "GPU 0 waits. Reboot" in result["reason"]
    assert (core.warnings, result["notes"]) == (["a warning"], ["a note"])
    assert (result["diff"]["before"], result["diff"]["after"]) == (
        "off\n",
        "off, on after a reset\n",
    )


@pytest.mark.parametrize(
    ("error", "changed", "actions"),
    [
        (MigError("in use by training"), False, []),
        (
            change.ApplyError("failed; as before", ["stop dcgm.service"]),
            True,
            ["stop dcgm.service"],
        ),
    ],
)
def test_an_error_tells_what_was_done_all_the_same(
    core: Core,
    capsys: pytest.CaptureFixture[str],
    error: MigError,
    changed: bool,
    actions: list[str],
) -> None:
    core.error = error
    status, result = run(capsys, layout="all-1g.5gb")
    assert status == 1
    assert (result["msg"], result["changed"], result["actions"]) == (str(error), changed, actions)
