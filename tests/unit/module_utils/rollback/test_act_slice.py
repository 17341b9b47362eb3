# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A slice comes back with its effect, or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Done,
    Entry,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import act_slice
from ansible_collections.steadygpu.host.plugins.module_utils.slices import manage, refusals, reload
from ansible_collections.steadygpu.host.plugins.module_utils.slices import reader as slice_reader
from ansible_collections.steadygpu.host.plugins.module_utils.slices.manage import ensure_present
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.squeeze import MemoryUse
from ansible_collections.steadygpu.host.plugins.module_utils.slices.unit_text import render
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.acting import Former
from ansible_collections.steadygpu.host.tests.unit.module_utils.slices.pretended import (
    MACHINE,
    NAME,
    Systemd,
    wish,
)


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    pretended = Systemd(tmp_path / NAME)
    for module, name, value in (
        (manage.units, "show", pretended.show),
        (manage.units, "act", pretended.act),
        (manage.units, "daemon_reload", pretended.daemon_reload),
        (manage, "run", pretended.run),
        (refusals, "run", pretended.run),
        (reload, "endangered", lambda: pretended.endangered),
        (slice_reader, "memory_use", lambda _group: pretended.use),
        (slice_reader, "has_systemd", lambda _root="/": True),
        (slice_reader, "cgroup_fault", lambda: None),
        (slice_reader, "machine", lambda _settings: MACHINE),
        (slice_reader, "slice_files", pretended.slice_files),
        (slice_reader, "processes", lambda _group: pretended.inside),
        (slice_reader, "drop_ins", lambda _name: {}),
        (slice_reader, "control_drop_ins", lambda _name: {}),
    ):
        monkeypatch.setattr(module, name, value)
    return pretended


def ours(**properties: Any) -> str:
    return render("Training at 50%", parse_properties(properties).values())


def restore(systemd: Systemd, text: str | None, mode: int = 0o644) -> Done:
    former = Former()
    entry: Entry = ABSENT if text is None else former.keep(text.encode(), mode)
    step = former.step("slice", str(systemd.path), entry)
    return act_slice.act(step, former.context())


def test_a_changed_slice_has_its_former_values_in_file_and_kernel(systemd: Systemd) -> None:
    ensure_present(wish(systemd, 600), check_mode=False)
    text = ours(TasksMax=512, MemoryMax="1G")
    assert restore(systemd, text, 0o600) == Done(True)
    assert (systemd.file(), systemd.loaded) == (text, text)
    assert systemd.slice_files("")["pids.max"] == "512"
    assert systemd.slice_files("")["memory.max"] == str(1 << 30)
    assert os.stat(systemd.path).st_mode & 0o777 == 0o600
    assert restore(systemd, text, 0o600) == Done()


def test_a_property_that_came_since_is_reset(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    restore(systemd, ours(MemoryMax="1G"))
    assert systemd.slice_files("")["pids.max"] == "max"


def test_a_slice_that_was_deleted_is_there_and_active_again(systemd: Systemd) -> None:
    text = ours(TasksMax=512)
    restore(systemd, text)
    assert (systemd.file(), systemd.active) == (text, True)
    assert systemd.slice_files("")["pids.max"] == "512"


def test_a_slice_that_was_not_there_goes_when_nobody_lives_in_it(systemd: Systemd) -> None:
    ensure_present(wish(systemd), check_mode=False)
    systemd.inside = {"docker-1.scope": [4711]}
    done = restore(systemd, None)
    assert (done.changed, done.left[0].pending) == (False, True)
    assert "4711" in done.left[0].reason
    assert systemd.file() is not None
    assert systemd.active
    systemd.inside = {}
    assert restore(systemd, None) == Done(True)
    assert (systemd.file(), systemd.active) == (None, False)
    assert restore(systemd, None) == Done()


@pytest.mark.parametrize("why", ["squeeze", "reload"])
def test_what_would_hurt_somebody_waits_and_the_file_waits_with_it(
    systemd: Systemd, why: str
) -> None:
    ensure_present(wish(systemd, 600), check_mode=False)
    before, kernel = systemd.file(), dict(systemd.kernel)
    if why == "squeeze":
        systemd.use = MemoryUse(current=2 << 30)
    else:
        systemd.endangered = ["container train"]
    done = restore(systemd, ours(TasksMax=512, MemoryMax="1G"))
    assert (done.changed, done.left[0].pending) == (False, True)
    assert ("train" if why == "reload" else "MemoryMax=1G is below") in done.left[0].reason
    assert (systemd.file(), systemd.kernel) == (before, kernel)


def test_a_file_of_somebody_else_comes_back_byte_by_byte_with_what_it_sets(
    systemd: Systemd,
) -> None:
    ensure_present(wish(systemd, 600), check_mode=False)
    text = (
        "# by hand\n[Unit]\nDescription=Ours\n[Slice]\nTasksMax=9\nTasksMax=\nTasksMax=512\n"
        "DefaultMemoryLow=1G\n"
    )
    assert restore(systemd, text) == Done(True)
    assert (systemd.file(), systemd.loaded) == (text, text)
    assert systemd.slice_files("")["pids.max"] == "512"


def test_a_value_that_this_program_does_not_know_is_left_whole(systemd: Systemd) -> None:
    ensure_present(wish(systemd, 600), check_mode=False)
    before = systemd.file()
    done = restore(systemd, "[Slice]\nTasksMax=lots\n")
    assert "TasksMax=lots" in done.left[0].reason
    assert systemd.file() == before


def test_where_no_systemd_runs_the_file_alone_comes_back(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_reader, "has_systemd", lambda _root="/": False)
    assert restore(systemd, ours(TasksMax=512)) == Done(True)
    assert systemd.file() == ours(TasksMax=512)
    assert not systemd.active
