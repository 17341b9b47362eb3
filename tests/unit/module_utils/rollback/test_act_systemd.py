# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Units and daemon-reloads on the way back, and what is not done for somebody's sake."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import units
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_control import (
    EngineState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import Service
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Done,
    RollbackError,
    Step,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import act_systemd
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors_api import (
    Context,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.shim_process import (
    ID,
    container,
    shim,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.acting import (
    Former,
    failed,
)

SOCKET = "/nowhere"


@dataclass
class Systemd:
    """A pretended systemd: the units that are enabled, active, and of type oneshot."""

    root: Path
    enabled: set[str] = field(default_factory=set)
    active: set[str] = field(default_factory=set)
    oneshot: set[str] = field(default_factory=set)
    endangered: list[str] = field(default_factory=list)
    reloads: int = 0
    broken: str = ""

    def show(self, unit: str, _properties: Sequence[str]) -> dict[str, str]:
        return {
            "LoadState": "loaded",
            "ActiveState": "active" if unit in self.active else "inactive",
            "Type": "oneshot" if unit in self.oneshot else "notify",
        }

    def act(self, verb: str, unit: str, _deadline_s: float = 120.0) -> None:
        if unit == self.broken:
            raise units.UnitError(f"systemctl {verb} {unit} failed: it is broken")
        (self.active.add if verb == "start" else self.active.discard)(unit)

    def daemon_reload(self, _deadline_s: float = 60.0) -> None:
        self.reloads += 1

    def run(self, argv: Sequence[str], _deadline_s: float = 30.0) -> Completed:
        verb, unit = argv[1], argv[-1]
        if verb == "is-enabled":
            on = unit in self.enabled
            return Completed(list(argv), 0 if on else 1, "enabled\n" if on else "disabled\n", "")
        if verb in ("enable", "disable"):
            if unit == self.broken:
                return failed("it is broken")
            (self.enabled.add if verb == "enable" else self.enabled.discard)(unit)
            self.reloads += "--no-reload" not in argv
        return Completed(list(argv), 0, "", "")

    def context(self) -> Context:
        return Former().context(str(self.root))


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    pretended = Systemd(tmp_path)
    monkeypatch.setattr(act_systemd.units, "show", pretended.show)
    monkeypatch.setattr(act_systemd.units, "act", pretended.act)
    monkeypatch.setattr(act_systemd.units, "daemon_reload", pretended.daemon_reload)
    monkeypatch.setattr(act_systemd, "run", pretended.run)
    monkeypatch.setattr(act_systemd.reload, "endangered", lambda _socket: pretended.endangered)
    return pretended


def unit(systemd: Systemd, name: str, **details: str) -> Done:
    return act_systemd.unit(Step("unit", name, "", details), systemd.context(), SOCKET)


# -- daemon-reload -----------------------------------------------------------------------


def test_systemd_is_told_of_changed_files(systemd: Systemd) -> None:
    step = Step("systemd_reload", "systemd", "", {"paths": ["/etc/systemd/system/a.service"]})
    assert act_systemd.tell(step, systemd.context(), SOCKET) == Done(True)
    assert systemd.reloads == 1


def test_a_reload_that_may_take_a_gpu_is_left_to_the_next_one(systemd: Systemd) -> None:
    systemd.endangered = ["container train"]
    step = Step("systemd_reload", "systemd", "", {"paths": ["/etc/systemd/system/a.service"]})
    done = act_systemd.tell(step, systemd.context(), SOCKET)
    assert (done.changed, systemd.reloads, done.left[0].pending) == (False, 0, True)
    for words in ("a.service", "container train", "next daemon-reload"):
        assert words in done.left[0].reason


def test_without_systemd_nobody_is_told(systemd: Systemd) -> None:
    (systemd.root / "run/systemd/system").rmdir()
    step = Step("systemd_reload", "systemd", "", {"paths": []})
    assert act_systemd.tell(step, systemd.context(), SOCKET) == Done()
    assert unit(systemd, "docker.service", enabled="enabled").left[0].pending


# -- units -------------------------------------------------------------------------------


def test_units_are_switched_and_started_once(systemd: Systemd) -> None:
    name = "nvidia-persistenced.service"
    assert unit(systemd, name, enabled="enabled", active="active") == Done(True)
    assert (systemd.enabled, systemd.active) == ({name}, {name})
    assert unit(systemd, name, enabled="enabled", active="active") == Done()
    assert unit(systemd, name, enabled="disabled", active="inactive") == Done(True)
    assert (systemd.enabled, systemd.active) == (set(), set())
    assert unit(systemd, name, enabled="disabled") == Done()


def test_what_the_step_does_not_name_is_not_touched(systemd: Systemd) -> None:
    systemd.active = {"docker.service"}
    assert unit(systemd, "docker.service", enabled="enabled") == Done(True)
    assert systemd.active == {"docker.service"}


def test_links_are_made_without_a_reload_that_may_take_a_gpu(systemd: Systemd) -> None:
    systemd.endangered = ["container train"]
    unit(systemd, "docker.service", enabled="enabled")
    assert (systemd.enabled, systemd.reloads) == ({"docker.service"}, 0)
    systemd.endangered = []
    unit(systemd, "docker.service", enabled="disabled")
    assert systemd.reloads == 1


@pytest.mark.parametrize("name", ["docker.service", "docker.socket", "containerd.service"])
@pytest.mark.parametrize("where", ["containerd/containerd", "docker/containerd/containerd"])
def test_an_engine_is_not_stopped_while_a_container_runs(
    systemd: Systemd, name: str, where: str
) -> None:
    systemd.active = {name}
    shim(systemd.root, address=f"/run/{where}.sock")
    container(systemd.root, f"/system.slice/docker-{ID}.scope")
    done = unit(systemd, name, active="inactive")
    assert (done.changed, systemd.active, done.left[0].pending) == (False, {name}, True)
    assert f"moby/{ID[:12]}" in done.left[0].reason
    assert f"systemctl stop {name}" in done.left[0].reason


def test_an_idle_engine_is_stopped(systemd: Systemd) -> None:
    systemd.active = {"docker.service"}
    assert unit(systemd, "docker.service", active="inactive") == Done(True)
    assert systemd.active == set()


@pytest.mark.parametrize("name", ["docker.service", "docker.socket"])
@pytest.mark.parametrize("config", ["{}", '{"live-restore": tru', '{"live-restore": true}'])
def test_a_docker_is_not_started_that_would_end_who_lives_on(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch, name: str, config: str
) -> None:
    state = EngineState("stopped", version="28.5.2", living=("train",))
    monkeypatch.setattr(act_systemd.DockerDaemon, "state", lambda _self: state)
    (systemd.root / "etc/docker").mkdir(parents=True)
    (systemd.root / "etc/docker/daemon.json").write_text(config)
    done = unit(systemd, name, active="active")
    if config.endswith("true}"):
        assert (done, systemd.active) == (Done(True), {name})
        return
    assert (done.changed, systemd.active, done.left[0].pending) == (False, set(), True)
    for words in ("train", "live-restore is off", f"systemctl start {name}"):
        assert words in done.left[0].reason
    assert "restart: always" not in done.left[0].reason


def test_an_older_containerd_that_ends_newer_shims_is_not_called_harmless(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {"containerd.service": Service("loaded", "active", main_pid=7)}
    monkeypatch.setattr(act_systemd, "read_services", lambda _names: runs)
    monkeypatch.setattr(act_systemd, "program_version", lambda _name: "1.7.24")
    path = systemd.root / "etc/containerd/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("")
    step = Step("containerd", "containerd.service", "", {"paths": ["/etc/containerd/config.toml"]})
    [left] = act_systemd.containerd(step, systemd.context()).left
    assert "Running containers live on" in left.reason
    shim(systemd.root, bootstrap='{"version": 3}')
    container(systemd.root, f"/system.slice/docker-{ID}.scope")
    [left] = act_systemd.containerd(step, systemd.context()).left
    assert f"ends moby/{ID[:12]} when it starts" in left.reason
    assert "live on" not in left.reason


def test_fabric_manager_is_left_to_a_person(systemd: Systemd) -> None:
    systemd.active = {"nvidia-fabricmanager.service"}
    done = unit(systemd, "nvidia-fabricmanager.service", active="inactive")
    assert systemd.active
    assert "programs on the GPUs" in done.left[0].reason


def test_a_boot_job_is_ended_and_never_done_again(systemd: Systemd) -> None:
    name = "steadygpu-mig.service"
    systemd.oneshot = systemd.active = {name}
    assert unit(systemd, name, active="inactive") == Done(True)
    systemd.oneshot = {name}
    done = unit(systemd, name, active="active")
    assert systemd.active == set()
    assert "at boot" in done.left[0].reason


@pytest.mark.parametrize("details", [{"enabled": "enabled"}, {"active": "active"}])
def test_a_unit_that_does_not_obey_is_an_error(systemd: Systemd, details: dict[str, str]) -> None:
    systemd.broken = "docker.service"
    with pytest.raises(RollbackError, match=r"docker\.service failed: it is broken"):
        unit(systemd, "docker.service", **details)


# -- containerd --------------------------------------------------------------------------


def told(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch, paths: list[str], started: float | None
) -> Done:
    service = Service("loaded", "active" if started is not None else "inactive", True, 1)
    monkeypatch.setattr(act_systemd, "read_services", lambda names: {names[0]: service})
    monkeypatch.setattr(act_systemd, "process_start", lambda pid, root: started)
    step = Step("containerd", "containerd.service", "", {"paths": paths})
    return act_systemd.containerd(step, systemd.context())


def test_a_containerd_older_than_its_file_waits_for_a_restart(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = systemd.root / "etc/containerd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("version = 2\n")
    changed = os.lstat(config).st_ctime
    paths = ["/etc/containerd/config.toml"]
    done = told(systemd, monkeypatch, paths, changed - 60)
    assert done.left[0].pending
    assert "/etc/containerd/config.toml" in done.left[0].reason
    assert "systemctl restart containerd.service" in done.left[0].reason
    assert told(systemd, monkeypatch, paths, changed + 60) == Done()
    assert told(systemd, monkeypatch, paths, None) == Done()
    config.unlink()
    assert told(systemd, monkeypatch, paths, changed - 60).left


def test_registry_settings_are_read_at_each_pull(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ["/etc/containerd/certs.d/docker.io/hosts.toml"]
    assert told(systemd, monkeypatch, paths, 1.0) == Done()
