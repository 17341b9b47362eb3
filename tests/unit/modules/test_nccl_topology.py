# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Device
from ansible_collections.steadygpu.host.plugins.module_utils.nccl import host
from ansible_collections.steadygpu.host.plugins.modules import nccl_topology
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_host import (
    GRAPH,
    FakeHost,
    recorded,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_tests import program

CONTENT = recorded("azure-ncv4-topo.xml")


class Play:
    """Runs the module on a virtual machine with four GPUs that hides its tree."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.fake = FakeHost(directory / "root")
        self.fake.as_in(CONTENT)
        self.file = directory / "nccl-topology.xml"
        self.spec = directory / "steadygpu-nccl.json"
        self.unit = directory / "root/etc/systemd/system/steadygpu-nccl.service"
        self.tests = directory / "nccl-tests"
        self.user: str | None = None
        self.warnings: list[str] = []
        self._capsys = capsys

    def run(self, **options: Any) -> tuple[int, dict[str, Any]]:
        """Exit status and result."""
        asked = {
            "content": CONTENT,
            "path": str(self.file),
            "spec_path": str(self.spec),
            "nccl_tests": str(self.tests),
            **options,
        }
        asked = {key: value for key, value in asked.items() if value is not None}
        with patch_module_args(asked), pytest.raises(SystemExit) as ended:
            nccl_topology.main()
        return int(ended.value.code or 0), json.loads(self._capsys.readouterr().out)


@pytest.fixture
def play(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Play:
    made = Play(tmp_path, capsys)
    devices = [Device(index, minor=index) for index in range(4)]
    read = host.read
    monkeypatch.setattr(nccl_topology.host, "read", lambda: read(made.fake.root, "x86_64"))
    wanted = functools.partial(nccl_topology.manage.Wanted, root=str(made.fake.root))
    monkeypatch.setattr(nccl_topology.manage, "Wanted", wanted)
    # Where the controller's code is loaded too, a warning goes to its display, not to the result.
    monkeypatch.setattr(
        nccl_topology.AnsibleModule, "warn", lambda module, text: made.warnings.append(text)
    )
    monkeypatch.setattr(nccl_topology.users, "gpus", lambda deadline_s: devices)
    monkeypatch.setattr(nccl_topology.users, "busy", lambda gpus: made.user)
    return made


def test_check_run_again_and_remove(play: Play) -> None:
    status, predicted = play.run(_ansible_check_mode=True)
    assert (status, predicted["changed"], play.file.exists()) == (0, True, False)
    assert not play.unit.exists()
    assert predicted["gate"]["reason"] == "check mode runs nothing on a GPU"
    _status, done = play.run()
    assert (done["changed"], done["status"], done["injected"]) == (True, "absent", True)
    assert done["actions"] == predicted["actions"]
    assert done["actions"][-1] == "enable steadygpu-nccl.service"
    assert f'--spec-path "{play.spec}"' in play.unit.read_text()
    assert done["device"] == "steadygpu.dev/nccl=topology"
    assert done["diff"][0]["after"] == play.file.read_text()
    assert any("NCCL takes for 8 GT/s" in text for text in play.warnings)
    assert "nccl-tests has it" in done["gate"]["reason"]
    _status, again = play.run()
    assert (again["changed"], again["actions"], again["status"]) == (False, [], "fresh")
    assert again["fingerprint"] == done["fingerprint"]
    _status, gone = play.run(state="absent", content=None)
    assert (gone["changed"], gone["injected"]) == (True, False)
    assert gone["actions"][0] == "disable steadygpu-nccl.service"
    assert [play.file.exists(), play.spec.exists(), play.unit.exists()] == [False] * 3


@pytest.mark.parametrize(
    ("after", "status", "gate"),
    [("58.7", 0, "better"), ("41.6", 0, "same"), ("20.0", 1, "worse"), ("crash", 1, "failed")],
)
def test_bandwidth_decides_whether_the_file_is_used(
    play: Play, after: str, status: int, gate: str
) -> None:
    program(play.tests, before="41.6", after=after)
    ended, result = play.run()
    assert (ended, result["gate"]["status"]) == (status, gate)
    assert play.spec.exists() == play.file.exists() == result["injected"] == (status == 0)
    assert play.unit.exists() == (status == 0)
    assert result["gate"]["before_gbs"] == 41.6
    if status:
        assert f"bandwidth is {gate}" in result["msg"]


def test_a_held_gpu_is_never_measured_on(play: Play) -> None:
    program(play.tests)
    play.user = "GPU 3 is held by python (pid 4711)"
    status, result = play.run()
    assert (status, result["injected"]) == (0, True)
    assert result["gate"] == {
        "status": "not_measured",
        "before_gbs": None,
        "after_gbs": None,
        "reason": play.user,
    }
    assert not (play.tests / "calls").exists()


@pytest.mark.parametrize(
    "options", [{"gate": "never"}, {"_ansible_check_mode": True}, {"state": "absent"}]
)
def test_nothing_runs_on_a_gpu_where_nothing_is_to_be_measured(
    play: Play, options: dict[str, Any]
) -> None:
    program(play.tests)
    _status, result = play.run(**options)
    assert result["gate"]["status"] == "not_measured"
    assert not (play.tests / "calls").exists()


def test_an_unchanged_file_is_not_measured_again(play: Play) -> None:
    program(play.tests)
    play.run()
    calls = (play.tests / "calls").read_text()
    _status, again = play.run()
    assert again["gate"]["reason"] == "nothing new: the same file is in use"
    assert (play.tests / "calls").read_text() == calls


def test_a_worse_file_leaves_the_former_one_in_use(play: Play) -> None:
    play.run()
    before = play.file.read_text()
    program(play.tests, before="41.6", after="20")
    status, result = play.run(content=CONTENT.replace('link_speed=""', 'link_speed="8 GT/s"'))
    assert (status, result["changed"], result["injected"]) == (1, False, True)
    assert play.file.read_text() == before


def test_a_stale_file_fails_and_is_withdrawn_but_not_in_check_mode(play: Play) -> None:
    play.run()
    play.fake.remove("0003:00:00.0")
    play.fake.add(["0003:00:00.0"], numa_node=0)
    before = play.spec.read_text()
    status, predicted = play.run(_ansible_check_mode=True)
    assert (status, predicted["changed"], predicted["status"]) == (1, True, "stale")
    assert play.spec.read_text() == before
    status, done = play.run()
    assert (status, done["changed"], done["injected"]) == (1, True, False)
    assert done["actions"] == predicted["actions"]
    assert "this host is sha256:" in done["msg"]
    assert "NCCL_TOPO_FILE" not in play.spec.read_text()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (recorded(GRAPH), "graph file"),
        (recorded("azure-ndv4-topo.xml"), "does not fit this host"),
        (None, "cannot be guessed"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    play: Play, content: str | None, said: str
) -> None:
    status, result = play.run(content=content)
    assert (status, result["changed"]) == (1, False)
    assert said in result["msg"]
    assert [play.file.exists(), play.spec.exists()] == [False, False]


def test_a_path_that_cannot_be_written_is_named(play: Play) -> None:
    play.file.parent.joinpath("blocked").write_text("")
    path = str(play.file.parent / "blocked/nccl.xml")
    status, result = play.run(path=path)
    assert status == 1
    assert "could not be read or written" in result["msg"]
    assert not play.spec.exists()
