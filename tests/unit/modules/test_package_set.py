# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import apply
from ansible_collections.steadygpu.host.plugins.modules import package_set
from ansible_collections.steadygpu.host.tests.unit.module_utils.package_sets.machine import (
    Machine,
    machine,
)

__all__ = ["machine"]


@pytest.fixture
def run(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs the module on the made-up host."""
    host = apply.Host(str(machine.root), "/nowhere")
    monkeypatch.setattr(package_set.apply, "Host", lambda socket: host)

    def act(**options: Any) -> dict[str, Any]:
        with patch_module_args(options), pytest.raises(SystemExit):
            package_set.main()
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return act


def test_check_do_and_do_again(machine: Machine, run: Any) -> None:
    machine.has(runc="1.1")
    machine.offers = {"runc": ["1.3"]}
    machine.brings = {"libseccomp2": "2.6"}
    wanted = {"packages": {"runc": "1.3"}}
    foreseen = run(**wanted, _ansible_check_mode=True)
    done = run(**wanted)
    for answer in (foreseen, done):
        assert answer["changed"]
        assert answer["packages"] == {"runc": {"before": "1.1", "after": "1.3", "held": True}}
        assert answer["new"] == ["libseccomp2"]
        assert answer["diff"]["after"] == "runc 1.3 (held)\nlibseccomp2 2.6\n"
    assert foreseen["actions"] == done["actions"]
    again = run(**wanted)
    assert (again["changed"], again["actions"]) == (False, [])
    assert run(state="absent")["changed"]


def test_a_refusal_says_that_nothing_was_changed(machine: Machine, run: Any) -> None:
    machine.has(runc="1.1", libc6="2.41")
    machine.offers = {"runc": ["1.3"]}
    machine.brings = {"libc6": "2.42"}
    answer = run(packages={"runc": "1.3"})
    assert (answer["failed"], answer["refused"]) == (True, True)
    assert (answer["would_change"], answer["would_remove"]) == (["libc6"], [])
    machine.brings = {}
    machine.fails = ["E: Sub-process /usr/bin/dpkg returned an error code (1)"]
    answer = run(packages={"runc": "1.3"})
    assert (answer["failed"], answer["refused"]) == (True, False)


def test_versions_that_yaml_took_for_numbers(machine: Machine, run: Any) -> None:
    machine.offers = {"tini": ["0.19"]}
    assert run(packages={"tini": 0.19})["packages"]["tini"]["after"] == "0.19"
