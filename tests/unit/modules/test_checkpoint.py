# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module with a real store and a host below a scratch directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.modules import checkpoint
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.fake_host import (
    DAEMON,
    OWN,
    FakeHost,
)

Run = Callable[..., dict[str, Any]]
DECLARED = "/srv/site.conf"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """The host that the module finds itself on, with a file of ours and Docker's."""
    fake = FakeHost(tmp_path)
    fake.ours(OWN, "old\n")
    fake.theirs(DAEMON, "{}\n")
    monkeypatch.setattr(checkpoint, "LiveHost", lambda **options: fake)
    monkeypatch.setattr(checkpoint, "Store", lambda **options: fake.store())
    return fake


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the controller's code is loaded too, a warning goes to its display instead."""
    told: list[str] = []
    monkeypatch.setattr(checkpoint.AnsibleModule, "warn", lambda module, text: told.append(text))
    return told


@pytest.fixture
def run(host: FakeHost, warnings: list[str], capsys: pytest.CaptureFixture[str]) -> Run:
    """The module's result; a failure is one with ``failed``."""

    def go(state: str, check: bool = False, diff: bool = False, **options: Any) -> dict[str, Any]:
        asked = {
            "state": state,
            "run": "run 1",
            "who": "ada@desk",
            "what": "a play",
            "_ansible_check_mode": check,
            "_ansible_diff": diff,
            **options,
        }
        with patch_module_args(asked), pytest.raises(SystemExit):
            checkpoint.main()
        return dict(json.loads(capsys.readouterr().out))

    return go


def written(host: FakeHost) -> dict[str, bytes]:
    """Every file of the host, the store's as well."""
    return {
        str(path.relative_to(host.root)): path.read_bytes()
        for path in Path(host.root).rglob("*")
        if path.is_file()
    }


# -- a change ---------------------------------------------------------------------------


def test_a_change_is_begun_joined_and_confirmed(host: FakeHost, run: Run) -> None:
    begun = run("begin", confirm_within="30m", why="tests", ticket="OPS-1")
    assert (begun["changed"], begun["opened"], begun["what"]) == (False, True, "a play")
    assert begun["window"]["base"] == begun["checkpoint"]
    assert begun["window"]["seconds_left"] == 1800
    assert (begun["window"]["who"], begun["window"]["ticket"]) == ("ada@desk", "OPS-1")
    host.ours(OWN, "new\n")
    joined = run("begin", what="role engine")
    assert not joined["opened"]
    assert joined["window"]["joined"] == ["role engine"]
    assert joined["checkpoint"] == begun["checkpoint"]
    done = run("confirm")
    assert (done["changed"], done["window"]) == (False, None)
    assert host.store().labels() == {
        "before-change": begun["checkpoint"],
        "stable": done["checkpoint"],
    }
    assert "no change is open" in run("confirm")["notes"]


def test_a_failed_change_is_undone(host: FakeHost, run: Run) -> None:
    begun = run("begin")
    host.ours(OWN, "new\n")
    host.ours(DAEMON, '{"debug": true}\n')
    undone = run("restore", diff=True)
    assert undone["changed"]
    assert (undone["checkpoint"], undone["window"]) == (begun["checkpoint"], None)
    assert (undone["left"], undone["conflicts"]) == ([], [])
    assert (host.text(OWN), host.text(DAEMON)) == ("old\n", "{}\n")
    assert any(DAEMON in action for action in undone["actions"])
    shown = undone["diff"]["prepared"]
    for line in ('-{"debug": true}', "+{}", "-new", "+old", OWN, DAEMON):
        assert line in shown


def test_what_others_changed_is_kept_or_left_and_told(host: FakeHost, run: Run) -> None:
    host.ours(OWN, "settled\n")
    run("begin")
    run("confirm")
    run("begin")
    host.theirs(DAEMON, '{"theirs": 1}\n')
    host.ours(OWN, "new\n")
    host.theirs(OWN, "by hand\n")
    undone = run("restore")
    assert undone["conflicts"] == [OWN]
    assert host.kept(OWN) == ["by hand\n"]
    assert [(one["subject"], one["pending"]) for one in undone["left"]] == [(DAEMON, False)]
    assert "not by this collection" in undone["left"][0]["reason"]
    assert host.text(DAEMON) == '{"theirs": 1}\n'


def test_without_a_window_a_restore_never_undoes_an_earlier_change(
    host: FakeHost, run: Run
) -> None:
    run("begin")
    host.ours(OWN, "confirmed\n")
    run("confirm")
    refused = run("restore")
    assert refused["failed"]
    assert "nothing to undo" in refused["msg"]
    assert host.text(OWN) == "confirmed\n"
    assert run("restore", checkpoint="before-change")["changed"]
    assert host.text(OWN) == "old\n"


def test_paths_of_the_user_come_back_as_well(host: FakeHost, run: Run) -> None:
    host.theirs(DECLARED, "mine\n")
    run("begin", paths=[DECLARED])
    host.theirs(DECLARED, "changed by a template\n")
    run("restore")
    assert host.text(DECLARED) == "mine\n"
    assert "absolute" in run("present", paths=["srv/site.conf"])["msg"]


# -- two runs ---------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["begin", "confirm", "restore"])
@pytest.mark.parametrize("check", [False, True])
def test_another_run_is_refused_and_named(
    host: FakeHost, run: Run, state: str, check: bool
) -> None:
    run("begin", why="the night shift's")
    before = written(host)
    refused = run(state, check=check, run="run 2")
    assert refused["failed"]
    assert refused["busy_run"] == "run 1"
    for words in ("ada@desk", "a play", "the night shift's", "takeover"):
        assert words in refused["msg"]
    assert written(host) == before


def test_another_checkpoint_is_not_restored_under_a_running_change(
    host: FakeHost, run: Run
) -> None:
    first = run("present")["checkpoint"]
    host.ours(OWN, "new\n")
    run("begin")
    refused = run("restore", checkpoint=first, run="run 2")
    assert refused["busy_run"] == "run 1"
    assert host.text(OWN) == "new\n"
    assert run("restore", checkpoint=first, run="run 2", takeover=True)["changed"]
    assert host.text(OWN) == "old\n"


def test_a_takeover_goes_back_to_where_the_first_run_began(
    host: FakeHost, run: Run, warnings: list[str]
) -> None:
    begun = run("begin")
    host.ours(OWN, "half done\n")
    taken = run("begin", run="run 2", takeover=True)
    assert taken["opened"]
    assert taken["window"]["run"] == "run 2"
    assert taken["checkpoint"] == begun["checkpoint"]
    assert any("taken over" in text for text in warnings)
    run("restore", run="run 2")
    assert host.text(OWN) == "old\n"


# -- check mode -------------------------------------------------------------------------


def test_check_mode_on_a_bare_host_goes_through_and_writes_nothing(
    host: FakeHost, run: Run
) -> None:
    before = written(host)
    assert run("begin", check=True)["opened"]
    assert run("begin", check=True)["window"] is None
    assert not run("confirm", check=True)["changed"]
    undone = run("restore", check=True, diff=True)
    assert not undone["changed"]
    assert "check mode" in undone["notes"][0]
    taken = run("present", check=True, labels=["first"])
    assert (taken["changed"], taken["checkpoint"]) == (True, "")
    assert len(taken["actions"]) == 2
    assert not run("absent", check=True, labels=["first"])["changed"]
    assert written(host) == before


def test_check_mode_foresees_a_restore(host: FakeHost, run: Run) -> None:
    saved = run("present")["checkpoint"]
    host.ours(OWN, "new\n")
    host.theirs(DAEMON, '{"theirs": 1}\n')
    before = written(host)
    dry = run("restore", check=True, diff=True, checkpoint=saved)
    assert written(host) == before
    wet = run("restore", diff=True, checkpoint=saved)
    for key in ("changed", "actions", "conflicts", "checkpoint", "diff"):
        assert dry[key] == wet[key]
    assert "+old" in wet["diff"]["prepared"]
    # What is left as it is does not change, so it is no difference.
    assert "theirs" not in wet["diff"]["prepared"]
    again = run("restore", diff=True, checkpoint=saved)
    assert (again["changed"], again["actions"], again["diff"]["prepared"]) == (False, [], "")


def test_a_secret_is_in_no_result(host: FakeHost, run: Run) -> None:
    saved = run("present")["checkpoint"]
    host.ours(DAEMON, '{"http-proxy": "http://ada:hunter2@proxy", "token": "hunter2"}\n')
    for check in (True, False):
        assert "hunter2" not in json.dumps(run("restore", check=check, diff=True, checkpoint=saved))


# -- checkpoints ------------------------------------------------------------------------


def test_the_same_state_is_taken_once_and_labels_move(host: FakeHost, run: Run) -> None:
    first = run("present", labels=["burned-in"])
    assert first["actions"] == [
        f"take checkpoint {first['checkpoint']}",
        f"label {first['checkpoint']} as burned-in",
    ]
    again = run("present", labels=["burned-in"])
    assert (again["changed"], again["checkpoint"]) == (False, first["checkpoint"])
    assert not run("present", check=True, labels=["burned-in"])["changed"]
    host.ours(OWN, "new\n")
    moved = run("present", labels=["burned-in"])
    assert moved["actions"][1].endswith(f"as burned-in, which was {first['checkpoint']}")
    assert host.store().labels() == {"burned-in": moved["checkpoint"]}


def test_a_label_that_cannot_be_one_takes_nothing(host: FakeHost, run: Run) -> None:
    assert "cannot be a label" in run("present", labels=["Not This"])["msg"]
    assert host.store().summaries() == []


def test_labels_and_checkpoints_go_and_stay_gone(host: FakeHost, run: Run) -> None:
    first = run("present", labels=["one", "two"])["checkpoint"]
    host.ours(OWN, "new\n")
    run("present")
    assert run("absent", labels=["one", "none"])["actions"] == [f"remove label one from {first}"]
    for check in (True, False):
        assert "is labelled two" in run("absent", check=check, checkpoint=first)["msg"]
    dry = run("absent", check=True, checkpoint=first, labels=["two"])
    gone = run("absent", checkpoint=first, labels=["two"])
    assert dry["actions"] == gone["actions"]
    assert gone["actions"] == [f"remove label two from {first}", f"remove checkpoint {first}"]
    assert first not in [one.id for one in host.store().summaries()]
    assert not run("absent", checkpoint=first, labels=["two"])["changed"]
    assert "whole id" in run("absent", checkpoint="stable")["msg"]


@pytest.mark.parametrize("check", [True, False])
def test_what_is_needed_is_not_removed(host: FakeHost, run: Run, check: bool) -> None:
    base = run("begin")["checkpoint"]
    host.store().label("mine", base)
    refused = run("absent", check=check, checkpoint=base, labels=["mine"])
    assert "base of the open window" in refused["msg"]
    assert host.store().labels() == {"mine": base}
    host.ours(OWN, "new\n")
    after = run("confirm")["checkpoint"]
    refused = run("absent", check=check, checkpoint=after, labels=["stable"])
    assert "left behind last" in refused["msg"]
    assert [one.id for one in host.store().summaries()] == [base, after]


def test_what_could_not_be_read_is_a_warning(host: FakeHost, run: Run, warnings: list[str]) -> None:
    host.unknown = {"mig": "the driver did not answer in 20 s"}
    assert run("present")["changed"]
    assert any("mig" in text and "did not answer" in text for text in warnings)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1H 30M", 5400), ("1d", 86400)],
)
def test_durations(text: str, wanted: int) -> None:
    assert checkpoint.seconds(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "-5", "0h", "soon", "1.5h", "h", "1h30", "\u0662h"])
def test_what_is_no_duration_opens_no_window(host: FakeHost, run: Run, text: str) -> None:
    refused = run("begin", confirm_within=text)
    assert refused["failed"]
    assert "wanted is a number of seconds above 0" in refused["msg"]
    assert host.store().window() is None
