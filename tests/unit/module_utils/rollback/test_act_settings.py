# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change that is undone takes its live values back too, not only its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import scope
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Checkpoint,
    Entry,
    Host,
    Reason,
    RestoreOptions,
    State,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import (
    act_settings,
    actors_api,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.plan import (
    make_plan,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.plan_files import (
    Writers,
    plan_paths,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings import between, record
from ansible_collections.steadygpu.host.plugins.module_utils.settings.apply import Keeper
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import Target

from .acting import Former

PATH = record.path_of("numa")


def pages(wanted: str) -> Target:
    return Target("pages", "number", "/sys/pages", wanted)


QOS = Target("iocost", "line", "/sys/qos", "8:0 enable=1", neutral="8:0 enable=0")


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys/pages").write_text("8\n")
    (tmp_path / "sys/qos").write_text("")
    return tmp_path


def keep(host: Path, *targets: Target) -> None:
    Keeper("numa", root=str(host)).keep(targets)


def back(host: Path, former: Former, entry: Entry) -> Sequence[str]:
    step = former.step(actors_api.SETTINGS, PATH, entry)
    done = act_settings.act(step, former.context(str(host)))
    assert not done.left
    return done.notes


def values(host: Path) -> tuple[str, str]:
    return (host / "sys/pages").read_text(), (host / "sys/qos").read_text()


def test_settings_that_were_not_there_go_with_their_record(host: Path) -> None:
    keep(host, pages("512"), QOS)
    notes = back(host, Former(), ABSENT)
    assert notes == ("set iocost to 8:0 enable=0 (is 8:0 enable=1)", "set pages to 8 (is 512)")
    assert values(host) == ("8\n", "8:0 enable=0\n")
    assert not (host / PATH.lstrip("/")).exists()
    assert back(host, Former(), ABSENT) == ()


@pytest.mark.parametrize("later", [(pages("256"),), (QOS,), ()])
def test_a_later_change_goes_back_to_the_one_before(host: Path, later: Sequence[Target]) -> None:
    keep(host, pages("512"))
    former = Former()
    entry = former.keep((host / PATH.lstrip("/")).read_bytes(), 0o600)
    if later:
        keep(host, *later)
    else:
        Keeper("numa", root=str(host)).absent()
    back(host, former, entry)
    assert values(host)[0] == "512\n"
    assert record.load("numa", str(host)) == record.parse(
        "numa", former.contents[entry.digest or ""].decode()
    )


def test_what_somebody_set_by_hand_since_stays(host: Path) -> None:
    keep(host, pages("512"))
    (host / "sys/pages").write_text("64\n")
    assert back(host, Former(), ABSENT) == ()
    assert values(host)[0] == "64\n"


def test_a_value_that_is_refused_is_left_and_said(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(host, pages("512"))

    def refuse(*_args: object) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(between, "write_live", refuse)
    former = Former()
    step = former.step(actors_api.SETTINGS, PATH)
    done = act_settings.act(step, former.context(str(host)))
    assert [(one.subject, one.pending) for one in done.left] == [("settings of numa", True)]
    assert "pages could not be set to 8: Device or resource busy" in done.left[0].reason
    assert done.changed


def test_a_damaged_record_is_put_back_without_a_guess(host: Path) -> None:
    keep(host, pages("512"))
    (host / PATH.lstrip("/")).write_text("{")
    (note,) = back(host, Former(), ABSENT)
    assert "live values of numa stay as they are" in note
    assert values(host)[0] == "512\n"


def test_what_the_boot_loader_reads_is_made_anew_only_where_its_files_change() -> None:
    path = "/etc/modprobe.d/steadygpu.conf"
    now = State(files={path: Former().keep(b"x"), "/etc/cdi/steadygpu-x.json": Former().keep(b"x")})
    for gone, kinds in (((path,), ["boot"]), ((), [])):
        target = State(files={one: entry for one, entry in now.files.items() if one not in gone})
        checkpoint = Checkpoint("1-00000000", 1, 0.0, Host("m", "host"), Reason(), target)
        plan = make_plan(checkpoint, now, {path: ["x"]}, None, RestoreOptions(), scope.areas(), "m")
        assert [step.kind for step in plan.steps if step.kind != "file"] == kinds


def test_the_plan_brings_a_record_back_with_its_values(host: Path) -> None:
    now = {PATH: Former().keep(b"{}")}
    plan = plan_paths({PATH: ABSENT}, now, scope.areas(), Writers(window_open=True))
    assert [(step.kind, step.subject) for step in plan.settings] == [("settings", PATH)]
    assert plan.files == []


@pytest.mark.parametrize("owner", ["acs", "kernel"])
@pytest.mark.parametrize("left", [[], ["a register: GPUs are in use"]])
def test_a_record_stays_while_what_only_it_knows_cannot_go_back(
    host: Path, monkeypatch: pytest.MonkeyPatch, owner: str, left: list[str]
) -> None:
    record.save(record.Record(owner, extra={"words": ["iommu=pt"]}), str(host))
    room = {"acs": act_settings.bridges, "kernel": act_settings.generated}[owner]
    monkeypatch.setattr(room, "go_back", lambda *_args: (["something"], left))
    former = Former()
    path = record.path_of(owner)
    done = act_settings.act(former.step(actors_api.SETTINGS, path), former.context(str(host)))
    assert (record.load(owner, str(host)) is None) == (not left)
    assert done.notes == ("something",)
    assert [(one.reason, one.pending) for one in done.left] == [(one, True) for one in left]
