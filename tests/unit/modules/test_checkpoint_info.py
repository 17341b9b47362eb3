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

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import take, window
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Reason,
    RestoreOptions,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import restore
from ansible_collections.steadygpu.host.plugins.modules import checkpoint_info
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.fake_host import (
    DAEMON,
    OWN,
    FakeHost,
)

Read = Callable[..., dict[str, Any]]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """The host that the module finds itself on."""
    fake = FakeHost(tmp_path)
    monkeypatch.setattr(checkpoint_info, "LiveHost", lambda **options: fake)
    monkeypatch.setattr(checkpoint_info, "Store", fake.store)
    return fake


@pytest.fixture
def read(host: FakeHost, capsys: pytest.CaptureFixture[str]) -> Read:
    """The module's result; it never writes."""

    def go(**options: Any) -> dict[str, Any]:
        before = sorted(Path(host.root).rglob("*"))
        with patch_module_args(options), pytest.raises(SystemExit):
            checkpoint_info.main()
        assert sorted(Path(host.root).rglob("*")) == before
        return dict(json.loads(capsys.readouterr().out))

    return go


def test_a_host_without_checkpoints(host: FakeHost, read: Read) -> None:
    result = read()
    assert not result["changed"]
    assert (result["checkpoints"], result["labels"], result["pending"]) == ([], {}, [])
    assert (result["window"], result["restore_unfinished"]) == (None, False)
    assert "there are no checkpoints yet" in read(diff={})["msg"]


def test_who_did_what_when(host: FakeHost, read: Read) -> None:
    reason = Reason("ada@desk", "limits", "OPS-1", "tuesday", "role engine")
    first = take.take(host.store(), host, reason, ["/srv/mine"], ["burned-in"]).checkpoint
    host.later(60)
    host.ours(OWN, "new\n")
    window.begin(host.store(), host, "run 1", "a play", 600, reason)
    host.later(100)
    result = read()
    told = result["checkpoints"][0]
    assert told["id"] == first
    assert told["taken_at"] == "1970-01-12T13:46:40Z"
    assert (told["labels"], told["paths"], told["hostname"]) == (
        ["burned-in"],
        ["/srv/mine"],
        "gpu01",
    )
    for key in ("who", "why", "ticket", "window", "what"):
        assert told[key] == getattr(reason, key)
    assert result["labels"] == {"burned-in": first}
    assert result["window"]["base"] == result["checkpoints"][1]["id"]
    assert result["window"]["seconds_left"] == 500
    host.later(1000)
    assert read()["window"]["seconds_left"] == 0


def test_what_a_restore_left_for_later(host: FakeHost, read: Read) -> None:
    host.ours(DAEMON, "{}\n")
    saved = take.take(host.store(), host, Reason()).checkpoint
    host.ours(DAEMON, '{"debug": true}\n')
    host.pending = {DAEMON: "takes effect at Docker's next restart"}
    restore.restore(host.store(), saved, RestoreOptions(), host)
    assert read()["pending"] == [
        {
            "subject": DAEMON,
            "reason": "takes effect at Docker's next restart",
            "pending": True,
        }
    ]


def test_an_interrupted_restore_is_seen(host: FakeHost, read: Read) -> None:
    host.ours(DAEMON, "{}\n")
    saved = take.take(host.store(), host, Reason()).checkpoint
    host.ours(DAEMON, '{"debug": true}\n')

    def power_cut(step: object) -> None:
        raise KeyboardInterrupt

    host.before_step = power_cut
    with pytest.raises(KeyboardInterrupt):
        restore.restore(host.store(), saved, RestoreOptions(), host)
    assert read()["restore_unfinished"]


def test_a_damaged_checkpoint_is_named_beside_the_others(host: FakeHost, read: Read) -> None:
    first = take.take(host.store(), host, Reason()).checkpoint
    host.ours(OWN, "new\n")
    second = take.take(host.store(), host, Reason()).checkpoint
    (damaged,) = Path(host.root).rglob(f"{first}.json")
    damaged.write_text("{")
    result = read()
    assert [one["id"] for one in result["checkpoints"]] == [second]
    assert len(result["damaged"]) == 1
    assert str(damaged) in result["damaged"][0]


def test_since_the_last_confirmed_change(host: FakeHost, read: Read) -> None:
    window.begin(host.store(), host, "run 1", "a play", 600, Reason())
    host.ours(OWN, "limit: 1\npassword: hunter2\n")
    stable = window.confirm(host.store(), host, "run 1", 20, None).checkpoint
    unchanged = read(diff={"from": "stable"})
    assert unchanged["difference"] == {
        "before": stable,
        "after": "now",
        "empty": True,
        "changes": [],
    }
    host.theirs(OWN, "limit: 2\npassword: hunter3\n")
    result = read(diff={"from": "stable"})
    (change,) = result["difference"]["changes"]
    assert (change["part"], change["subject"], change["kind"]) == ("file", OWN, "changed")
    assert "+limit: 2" in change["lines"]
    assert not result["difference"]["empty"]
    assert "+limit: 2" in result["text"]
    assert "hunter" not in json.dumps(result)
    # Of the change itself, by its default.
    result = read(diff={"to": "stable"})
    assert [one["kind"] for one in result["difference"]["changes"] if one["subject"] == OWN] == [
        "added"
    ]


def test_what_there_is_is_named_when_the_asked_is_not(host: FakeHost, read: Read) -> None:
    saved = take.take(host.store(), host, Reason(), labels=["burned-in"]).checkpoint
    message = read(diff={"from": "burnd-in"})["msg"]
    assert "burnd-in" in message
    assert f"{saved} (burned-in)" in message
