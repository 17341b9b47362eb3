# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.realtime import manage
from ansible_collections.steadygpu.host.plugins.modules import rt_scheduling


@pytest.fixture
def play(tmp_path, capsys, monkeypatch):
    """Runs the module on an old kernel, whose files lie in a scratch tree."""
    root = str(tmp_path)
    for path, text in (
        ("proc/sys/kernel/osrelease", "5.14.0-503.el9.x86_64"),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")
    present = functools.partial(manage.ensure_present, root=root)
    monkeypatch.setattr(rt_scheduling, "ensure_present", present)
    monkeypatch.setattr(
        rt_scheduling, "ensure_absent", functools.partial(manage.ensure_absent, root=root)
    )

    def run(**options):
        with patch_module_args(options), pytest.raises(SystemExit) as ended:
            rt_scheduling.main()
        return int(ended.value.code or 0), json.loads(capsys.readouterr().out)

    return run


def test_a_preset_is_told_with_its_margin_and_taken_back(play, tmp_path):
    sysctl = tmp_path / "proc/sys/kernel/sched_rt_runtime_us"
    _code, seen = play(preset="margin-60", _ansible_check_mode=True)
    assert seen["changed"]
    assert sysctl.read_text() == "950000\n"
    _code, done = play(preset="margin-60", _ansible_diff=True)
    assert done["actions"] == seen["actions"]
    assert done["kernel"]["holds_back"] == "throttling"
    assert done["margins"][0]["percent"] == 60
    assert sysctl.read_text() == "400000\n"
    assert "sched_rt_runtime_us = 400000" in done["diff"][0]["after"]
    assert not play(preset="margin-60")[1]["changed"]
    assert play(state="absent")[1]["changed"]
    assert sysctl.read_text() == "950000\n"
    assert not play(state="absent")[1]["changed"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"preset": "margin-30", "runtime_us": 700000}, "mutually exclusive"),
        ({"preset": "margin-30", "period_us": 500000}, "a preset is for a period of"),
        ({"runtime_us": -1}, "means no limit"),
        ({"partition_cpus": "all"}, "numbers and ranges"),
    ],
)
def test_what_is_not_meant_is_refused(play, options, said):
    code, result = play(**options)
    assert code == 1
    assert said in result["msg"]
