# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real host as a restore sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Done,
    RollbackError,
    Step,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation.files import (
    MemorySink,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import (
    actors,
    actors_api,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors_api import (
    RestoreHost,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.acting import Former

KINDS = {
    value
    for name, value in vars(actors_api).items()
    if name.isupper() and isinstance(value, str) and name != "PATH_KINDS"
}


def test_every_kind_of_step_has_somebody_who_does_it() -> None:
    assert set(actors.LiveHost().actors()) == KINDS


def test_a_tree_of_files_gets_its_files_back_and_nothing_of_this_machine_is_touched(
    tmp_path: Path,
) -> None:
    host: RestoreHost = actors.LiveHost(str(tmp_path))
    assert set(host.actors()) == actors_api.PATH_KINDS
    former = Former()
    entry = former.keep(b'{"debug": true}', 0o600)
    step = former.step("docker", "/etc/docker/daemon.json", entry)
    act = host.actors()["docker"]
    assert act(step, former.context(host.root)) == Done(True)
    path = tmp_path / "etc/docker/daemon.json"
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b'{"debug": true}', 0o600)
    assert act(step, former.context(host.root)) == Done()
    state = host.observe(MemorySink(), ())
    assert state.files["/etc/docker/daemon.json"] == entry
    assert act(former.step("docker", "/etc/docker/daemon.json", ABSENT), former.context(host.root))
    assert not path.exists()


def test_the_moment_is_of_this_boot_and_goes_on() -> None:
    host = actors.LiveHost()
    first, second = host.moment(), host.moment()
    assert first.boot == second.boot
    assert first.uptime <= second.uptime


def test_a_kernel_setting_is_written_and_a_refusal_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swappiness = tmp_path / "proc/sys/vm/swappiness"
    swappiness.parent.mkdir(parents=True)
    swappiness.write_text("60\n")
    step = Step("sysctl", "vm.swappiness", "", {"value": "10"})
    context = Former().context(str(tmp_path))
    assert actors.set_sysctl(step, context) == Done(True)
    assert swappiness.read_text().strip() == "10"
    assert actors.set_sysctl(step, context) == Done()
    missing = Step("sysctl", "vm.nothing", "", {"value": "10"})
    with pytest.raises(RollbackError, match=r"vm\.nothing"):
        actors.set_sysctl(missing, context)
