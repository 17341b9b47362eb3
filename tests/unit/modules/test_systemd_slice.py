# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.slices import reader
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import Outcome, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.slices.several import Together
from ansible_collections.steadygpu.host.plugins.module_utils.slices.tree import Host
from ansible_collections.steadygpu.host.plugins.modules import systemd_slice


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Wish]:
    """The slices that the module would keep, on a host of 10 GiB and four cores."""
    wishes: list[Wish] = []

    def ensure(some: Sequence[Wish], _check: bool, parent: bool, owns: bool) -> Together:
        wishes.extend(some)
        slices = {wish.name: Outcome(control_group="/" + wish.name) for wish in some}
        actions = ["docker parent"] if parent else []
        return Together(actions=actions, slices=slices, docker_parent_is_ours=owns)

    cores = tuple((0, (cpu,)) for cpu in range(4))
    monkeypatch.setattr(reader, "shareable", lambda: Host(10 << 30, 10000, cores))
    monkeypatch.setattr(systemd_slice, "ensure_slices", ensure)
    return wishes


def run(arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    with patch_module_args(arguments), pytest.raises(SystemExit):
        systemd_slice.main()
    answer = json.loads(capsys.readouterr().out)
    assert isinstance(answer, dict)
    return answer


def test_a_tree_and_a_slice_beside_it(
    asked: list[Wish], capsys: pytest.CaptureFixture[str]
) -> None:
    slices = {"ai-workload.slice": {"properties": {"MemoryMax": "8G"}}}
    tree = {"reserve": {"cores": 1}, "members": {"batch": {}}}
    answer = run({"slices": slices, "tree": tree, "docker_parent": "gpu-batch.slice"}, capsys)
    assert [wish.name for wish in asked] == ["gpu.slice", "gpu-batch.slice", "ai-workload.slice"]
    assert asked[0].settings["AllowedCPUs"].lines == ("1-3",)
    assert answer["changed"]
    assert answer["slices"]["gpu-batch.slice"]["properties"]["TasksMax"] == 2700


def test_nothing_asked_is_all_taken_back(
    asked: list[Wish], capsys: pytest.CaptureFixture[str]
) -> None:
    assert not run({"slices": {}, "tree": {}}, capsys)["changed"]
    slices = {"slices": {"a.slice": {}}, "state": "absent"}
    assert not run(slices, capsys)["changed"]
    assert asked == []


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_cgroup_parent_that_the_engine_keeps_is_not_taken_back(
    elsewhere: bool,
    asked: list[Wish],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(systemd_slice, "docker_key_is_ours", lambda _path: True)
    answer = run({"slices": {}, "docker_parent_elsewhere": elsewhere}, capsys)
    assert answer["docker_parent_is_ours"] is not elsewhere
    assert asked == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "one of the following is required: name, slices, tree"),
        ({"name": "a.slice", "slices": {}}, "mutually exclusive"),
        ({"slices": {"a.slice": {}}, "docker_parent": "b.slice"}, "one of the slices of this task"),
        ({"slices": {"system.slice": {}}}, "belongs to systemd itself"),
        ({"slices": {"a.slice": {"description": "a\nb"}}}, "several lines"),
        ({"slices": {"a.slice": {"properties": {"Delegate": True}}}}, "a.slice:\nDelegate: "),
        ({"tree": {"members": {"a-b": {}}}}, "a dash nests"),
        ({"name": "a-.slice"}, "no slice name"),
    ],
)
def test_what_cannot_be_is_told(
    arguments: dict[str, Any],
    said: str,
    asked: list[Wish],
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = run(arguments, capsys)
    assert answer["failed"]
    assert said in answer["msg"]
    assert asked == []
