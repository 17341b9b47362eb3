# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu checkpoint`` on a host below a scratch directory: what a person types and reads."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import model, window
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.fake_host import (
    DAEMON,
    OWN,
    FakeHost,
    scratch,
)
from steadygpu_agent import checkpoint_run, cli

Command = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHost]:
    with scratch() as root:
        fake = FakeHost(root)
        monkeypatch.setattr(checkpoint_run, "_host", lambda _arguments: fake)
        fake.ours(DAEMON, '{"password": "hunter2hunter2"}\n')
        yield fake


@pytest.fixture
def steadygpu(host: FakeHost, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs one command line; its status and what it said on both outputs."""

    def run(verb: str, *arguments: str) -> tuple[int, str, str]:
        store = ["--store", host.store().directory]
        status = cli.main(["checkpoint", verb, *arguments, *store])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def begin(host: FakeHost, run: str = "another run") -> model.Outcome:
    """A play begins a change."""
    reason = model.Reason(who="anna", why="roll out", ticket="CHG-1", what="role x")
    return window.begin(host.store(), host, run, "role x", 3600, reason)


def taken(steadygpu: Command, *arguments: str) -> str:
    """The id of a new checkpoint."""
    status, out, _err = steadygpu("take", *arguments)
    assert status == 0
    return out.splitlines()[-1].split(":")[0]


def test_take_and_list(host: FakeHost, steadygpu: Command) -> None:
    name = taken(steadygpu, "--why", "before the holidays", "--label", "good", "--who", "anna")
    status, out, _err = steadygpu("list")
    assert status == 0
    assert name in out
    for words in ("good", "anna", "before the holidays"):
        assert words in out
    assert f"{name}: nothing differs from it" in steadygpu("take")[1]
    listed = json.loads(steadygpu("list", "--json")[1])
    assert [one["id"] for one in listed["checkpoints"]] == [name]
    assert (listed["labels"], listed["window"]) == ({"good": name}, None)


def test_an_empty_store_lists_nothing_and_says_what_to_do(steadygpu: Command) -> None:
    assert "steadygpu checkpoint take makes one" in steadygpu("list")[1]


def test_a_damaged_checkpoint_is_told(host: FakeHost, steadygpu: Command) -> None:
    name = taken(steadygpu)
    Path(host.store().directory, "checkpoints", f"{name}.json").write_text("{", encoding="utf-8")
    status, _out, err = steadygpu("list")
    assert status == 0
    assert f"{name}.json" in err
    assert f"{name}.json" in json.loads(steadygpu("list", "--json")[1])["damaged"][0]


def test_a_checkpoint_of_another_host_is_told_from_ours(
    host: FakeHost, steadygpu: Command, tmp_path: Path
) -> None:
    file = str(tmp_path / "export.tar")
    steadygpu("export", taken(steadygpu), file)
    host.name = model.Host("fedcba9876543210", "gpu02")
    assert "of gpu01" in steadygpu("list")[1]
    host.theirs(DAEMON, "{}\n")
    taken(steadygpu, "--why", "mine")
    assert "of gpu02" not in steadygpu("list")[1]


def test_diff_with_the_host_as_diff_does(host: FakeHost, steadygpu: Command) -> None:
    name = taken(steadygpu, "--label", "good")
    assert steadygpu("diff", "good")[:2] == (0, f"{name} → now: no difference\n")
    host.ours(DAEMON, '{"password": "correcthorse7"}\n')
    status, out, _err = steadygpu("diff", "good")
    assert status == 1
    assert f"~ {DAEMON}" in out
    assert '+{"password": "<redacted, changed>"}' in out
    assert "hunter2" not in out
    assert "correcthorse" not in out
    assert steadygpu("diff", "now", "good")[0] == 1


def test_diff_without_names_is_the_open_change(host: FakeHost, steadygpu: Command) -> None:
    base = begin(host).checkpoint
    host.ours(OWN, "a: 1\n")
    status, out, _err = steadygpu("diff")
    assert status == 1
    assert out.startswith(f"{base} → now: ")
    assert OWN in out


def test_diff_of_two_checkpoints_as_json_and_html(
    host: FakeHost, steadygpu: Command, tmp_path: Path
) -> None:
    first = taken(steadygpu, "--why", "first")
    host.ours(OWN, "a: 1\n")
    second = taken(steadygpu)
    status, out, _err = steadygpu("diff", first, second, "--json")
    found = json.loads(out)
    assert (status, found["before"], found["after"], found["empty"]) == (1, first, second, False)
    assert OWN in [one["subject"] for one in found["changes"]]
    page = tmp_path / "page.html"
    assert steadygpu("diff", first, second, "--html", str(page))[0] == 1
    text = page.read_text(encoding="utf-8")
    assert OWN in text
    assert "first" in text
    assert page.stat().st_mode & 0o777 == 0o600


def test_the_page_says_what_a_restore_would_leave(
    host: FakeHost, steadygpu: Command, tmp_path: Path
) -> None:
    name = taken(steadygpu)
    host.theirs(DAEMON, "{}\n")
    page = tmp_path / "page.html"
    steadygpu("diff", name, "--html", str(page))
    assert "Not restored" in page.read_text(encoding="utf-8")
    left = json.loads(steadygpu("diff", name, "--json")[1])["left"]
    assert [one["subject"] for one in left] == [DAEMON]


def test_trouble_of_diff_is_no_difference(steadygpu: Command) -> None:
    taken(steadygpu, "--label", "good")
    status, _out, err = steadygpu("diff", "no-such-label")
    assert status == 2
    assert "good" in err


def test_show_tells_what_there_was_without_secrets(host: FakeHost, steadygpu: Command) -> None:
    name = taken(steadygpu, "--why", "why not", "--who", "anna")
    status, out, _err = steadygpu("show", name)
    assert status == 0
    for words in (f"{name} of gpu01", "by anna", "why not", DAEMON):
        assert words in out
    assert "hunter2" not in out
    shown = json.loads(steadygpu("show", name, "--json")[1])
    assert shown["id"] == name
    assert DAEMON in [one["subject"] for one in shown["holds"]]


def test_restore_brings_back_and_a_dry_run_does_not(host: FakeHost, steadygpu: Command) -> None:
    name = taken(steadygpu, "--label", "good")
    host.ours(OWN, "a: 1\n")
    status, out, _err = steadygpu("restore", "good", "--dry-run")
    assert status == 0
    assert f"- {OWN}" in out
    assert f"{name}: nothing was changed yet" in out
    assert host.text(OWN) == "a: 1\n"
    status, out, _err = steadygpu("restore", "good")
    assert (status, host.text(OWN)) == (0, None)
    assert f"{name}: restored" in out
    assert f"{name}: nothing to restore" in steadygpu("restore", "good")[1]


def test_what_waits_for_a_container_is_left_for_later(host: FakeHost, steadygpu: Command) -> None:
    name = taken(steadygpu)
    host.ours(DAEMON, "{}\n")
    host.pending[DAEMON] = "takes effect at Docker's next restart, which would end container x"
    status, out, _err = steadygpu("restore", name)
    assert status == 3
    assert f"left for later: {DAEMON}: takes effect" in out
    assert "would end container x" in steadygpu("list")[1]


def test_others_work_is_kept_and_said(host: FakeHost, steadygpu: Command) -> None:
    host.ours(OWN, "a: 1\n")
    name = taken(steadygpu)
    host.ours(OWN, "a: 2\n")
    host.theirs(OWN, "a: theirs\n")
    _status, out, _err = steadygpu("restore", name)
    assert host.text(OWN) == "a: 1\n"
    assert host.kept(OWN) == ["a: theirs\n"]
    assert "kept what others wrote" in out


def test_the_open_change_is_undone_without_naming_it(host: FakeHost, steadygpu: Command) -> None:
    base = begin(host).checkpoint
    host.ours(OWN, "a: 1\n")
    out = steadygpu("list")[1]
    assert "A change is open" in out
    assert "role x, roll out, CHG-1, by anna" in out
    status, out, _err = steadygpu("restore")
    assert (status, host.text(OWN)) == (0, None)
    assert f"{base}: restored" in out
    status, _out, err = steadygpu("restore")
    assert status == 1
    assert "no change is open" in err


def test_an_open_change_of_another_is_not_passed_over(host: FakeHost, steadygpu: Command) -> None:
    host.ours(OWN, "a: 1\n")
    old = taken(steadygpu)
    host.ours(OWN, "a: 2\n")
    begin(host)
    status, _out, err = steadygpu("restore", old)
    assert (status, host.text(OWN)) == (1, "a: 2\n")
    assert "anna has a change open" in err
    assert steadygpu("restore", old, "--takeover")[0] == 0
    assert host.text(OWN) == "a: 1\n"


def test_confirm_keeps_the_change_of_whoever_began_it(host: FakeHost, steadygpu: Command) -> None:
    base = begin(host).checkpoint
    host.ours(OWN, "a: 1\n")
    status, out, _err = steadygpu("confirm")
    assert status == 0
    assert "is stable" in out
    assert host.store().labels()["before-change"] == base
    assert host.store().window() is None
    assert steadygpu("confirm")[:2] == (0, "note: no change is open\n")


def test_resume_ends_what_was_interrupted(host: FakeHost, steadygpu: Command) -> None:
    assert steadygpu("resume")[:2] == (0, "no restore was interrupted\n")
    name = taken(steadygpu)
    host.ours(DAEMON, "{}\n")

    def killed(step: object) -> None:
        raise KeyboardInterrupt

    host.before_step = killed
    assert steadygpu("restore", name)[0] == 130
    host.before_step = lambda step: None
    assert f"A restore to {name} was interrupted" in steadygpu("list")[1]
    status, out, _err = steadygpu("resume")
    assert status == 0
    assert "that was interrupted" in out
    assert host.text(DAEMON) == '{"password": "hunter2hunter2"}\n'


def test_labels_come_move_and_go(host: FakeHost, steadygpu: Command) -> None:
    first = taken(steadygpu)
    host.ours(OWN, "a: 1\n")
    second = taken(steadygpu)
    assert steadygpu("label", "good", first)[1] == f"{first} is good\n"
    assert steadygpu("label", "good", first)[1] == f"{first} is good already\n"
    assert steadygpu("label", "good", second)[1] == f"{second} is good, which was {first}\n"
    assert steadygpu("unlabel", "good")[0] == 0
    assert host.store().labels() == {}
    assert steadygpu("label", "Not One", first)[0] == 1


def test_export_and_import(host: FakeHost, steadygpu: Command, tmp_path: Path) -> None:
    name = taken(steadygpu)
    whole, safe = str(tmp_path / "whole.tar"), str(tmp_path / "safe.tar")
    assert "keep it like a password" in steadygpu("export", name, whole)[1]
    assert DAEMON in steadygpu("export", name, safe, "--without-secrets")[1]
    assert b"hunter2" in Path(whole).read_bytes()
    assert b"hunter2" not in Path(safe).read_bytes()
    assert steadygpu("import", whole)[:2] == (0, f"{name}\n")


def test_prune_and_migrate(host: FakeHost, steadygpu: Command) -> None:
    first = taken(steadygpu)
    host.ours(OWN, "a: 1\n")
    taken(steadygpu)
    out = steadygpu("prune", "--keep", "1")[1]
    assert out == f"removed {first}\nkept: 1\n"
    assert steadygpu("prune", "--keep", "0")[0] == 1
    assert steadygpu("migrate", "--to", "1")[0] == 0
    status, _out, err = steadygpu("migrate", "--to", "99")
    assert status == 1
    assert "99" in err


def test_only_root_may(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert cli.main(["checkpoint", "list"]) == 1
    assert cli.main(["checkpoint", "diff"]) == 2
    assert "root only" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["label", "x"], ["diff", "--json", "--html", "x"]])
def test_what_is_not_understood_is_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["checkpoint", *arguments])
    assert stopped.value.code == 2
    assert "usage: steadygpu checkpoint" in capsys.readouterr().err


def test_one_checkpoint_is_removed_unless_it_is_needed(host: FakeHost, steadygpu: Command) -> None:
    old = taken(steadygpu, "--label", "good")
    host.ours(OWN, "a: 1\n")
    new = taken(steadygpu)
    status, _out, err = steadygpu("remove", old)
    assert status == 1
    assert "labelled good" in err
    assert steadygpu("remove", "good")[0] == 1
    steadygpu("unlabel", "good")
    assert steadygpu("remove", old)[:2] == (0, f"remove checkpoint {old}\n")
    assert steadygpu("remove", old)[:2] == (0, f"there is no checkpoint {old}\n")
    listed = json.loads(steadygpu("list", "--json")[1])["checkpoints"]
    assert [one["id"] for one in listed] == [new]


def test_a_restore_from_a_copied_store_is_refused(
    host: FakeHost, capsys: pytest.CaptureFixture[str], steadygpu: Command, tmp_path: Path
) -> None:
    name = taken(steadygpu)
    copy = str(tmp_path / "copy")
    shutil.copytree(host.store().directory, copy)
    host.ours(OWN, "a: 1\n")
    for verb in (["restore", name], ["restore", name, "--dry-run"], ["resume"]):
        assert cli.main(["checkpoint", *verb, "--store", copy]) == 1
        assert "is not this host's own store" in capsys.readouterr().err
    assert host.text(OWN) == "a: 1\n"
    assert cli.main(["checkpoint", "diff", name, "--store", copy]) == 1


def test_what_could_not_be_read_is_shown_in_one_line(host: FakeHost, steadygpu: Command) -> None:
    host.unknown = {"units": "systemctl said:\nno bus"}
    status, _out, err = steadygpu("take")
    assert status == 0
    assert "systemctl said: no bus" in err
    shown = steadygpu("show", "1")[1]
    assert "  units: not known: systemctl said: no bus\n" in shown
    assert "known →" not in shown


def test_a_diff_says_what_a_restore_would_leave(host: FakeHost, steadygpu: Command) -> None:
    name = taken(steadygpu)
    host.theirs(DAEMON, "{}\n")
    out = steadygpu("diff", name)[1]
    assert f"  {DAEMON}: " in out.partition("Not restored\n")[2]


def test_a_change_by_hand_goes_back_where_its_path_was_named(
    host: FakeHost, steadygpu: Command
) -> None:
    before = host.text(DAEMON)
    name = taken(steadygpu, "--path", DAEMON)
    host.theirs(DAEMON, '{"log-driver": "local"}\n')
    assert steadygpu("restore", name)[0] == 0
    assert host.text(DAEMON) == before
    assert host.kept(DAEMON) == ['{"log-driver": "local"}\n']
