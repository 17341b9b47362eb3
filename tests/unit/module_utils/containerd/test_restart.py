# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.containerd.apply import (
    ContainerdFailedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.names import Asked
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.refusals import (
    ContainerdRefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.restart import (
    reasons_against,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.shims import Shim
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.tool import ContainerdState
from ansible_collections.steadygpu.host.tests.unit.module_utils.containerd.fake_containerd import (
    CRI2,
    CRI3,
    CRUN,
    NEW,
    OLD,
    STOCK,
    FakeContainerd,
)


@pytest.fixture(params=[OLD, NEW])
def containerd(request: pytest.FixtureRequest, tmp_path: Path) -> FakeContainerd:
    host = FakeContainerd(tmp_path, request.param)
    host.write("config.toml", STOCK)
    return host


def _cri(host: FakeContainerd) -> str:
    return CRI2 if host.release == OLD else CRI3


TRAIN = Shim(42, "moby", "0123456789abcdef", in_unit=True)
ENDANGERED: list[tuple[dict[str, Any], str]] = [
    ({"kill_mode": "mixed", "shims": (TRAIN,)}, "KillMode=mixed.*moby/0123456789ab"),
    ({"stops": ("/usr/bin/pkill shim",), "shims": (TRAIN,)}, "a stop of containerd.service runs"),
    (
        {"along": ("docker.service",), "docker_running": ("train-7b",)},
        "stop docker.service.*train-7b.*live-restore",
    ),
    ({"along": ("docker.service",), "docker_reason": "timeout"}, "does not say what runs"),
    ({"along": ("jobs.service",)}, "stop jobs.service with it"),
]


@pytest.mark.parametrize(("has", "words"), ENDANGERED)
def test_a_restart_that_costs_somebody_is_refused_before_anything_is_written(
    containerd: FakeContainerd, has: dict[str, Any], words: str
) -> None:
    containerd.has = has
    before = containerd.texts()
    with pytest.raises(ContainerdRefusedError, match=words):
        containerd.run(CRUN)
    assert (containerd.texts(), containerd.done) == (before, [])
    containerd.run(CRUN, restart="always")
    assert containerd.done == ["restart"]


def test_a_restart_into_an_older_containerd_that_ends_newer_shims_is_refused(
    tmp_path: Path,
) -> None:
    newer = replace(TRAIN, version=3)
    host = FakeContainerd(tmp_path, OLD)
    host.write("config.toml", STOCK)
    host.has = {"shims": (newer,)}
    with pytest.raises(ContainerdRefusedError, match=r"shims of a newer one.*moby/0123456789ab"):
        host.run(CRUN)
    assert host.done == []
    state = ContainerdState("running", release=NEW, kill_mode="process", shims=(newer,))
    assert reasons_against(state, ()) == []


@pytest.mark.parametrize(
    "has",
    [
        {"kill_mode": "mixed"},
        {"shims": (TRAIN,)},
        {"along": ("docker.service",), "docker_running": ("train",), "live_restore": True},
        {"along": ("kubelet.service",)},
    ],
)
def test_a_restart_that_costs_nobody_is_done(
    containerd: FakeContainerd, has: dict[str, Any]
) -> None:
    containerd.has = has
    containerd.run(CRUN)
    assert containerd.done == ["restart"]


def test_what_containers_live_by_waits_for_them(containerd: FakeContainerd) -> None:
    containerd.has = {"shims": (TRAIN,)}
    asked = Asked(config={"state": "/run/elsewhere"})
    with pytest.raises(ContainerdRefusedError, match="containers live by state"):
        containerd.plan(asked)


@pytest.mark.parametrize("key", ["root", "state"])
def test_a_place_that_others_moved_is_not_taken_while_containers_run(
    containerd: FakeContainerd, key: str
) -> None:
    live = {f"live_{key}": containerd.value(key)}
    containerd.has = {"shims": (TRAIN,), **live}
    containerd.write("config.toml", f'{key} = "/data/moved"\n{STOCK}')
    before = containerd.texts()
    words = f"{key} is /data/moved in the files and /.* find 1 running container.*moby/0123456789ab"
    with pytest.raises(ContainerdRefusedError, match=words):
        containerd.run(CRUN)
    assert (containerd.texts(), containerd.done) == (before, [])
    containerd.run(CRUN, restart="never")
    assert containerd.done == []
    containerd.has = live  # they have ended
    containerd.run(CRUN)
    assert containerd.done == ["restart"]


def test_a_place_that_nobody_moved_is_no_reason(containerd: FakeContainerd) -> None:
    places = {f"live_{key}": containerd.value(key) for key in ("root", "state")}
    containerd.has = {"shims": (TRAIN,), **places}
    containerd.run(CRUN)
    assert containerd.done == ["restart"]


def test_never_writes_and_the_restart_is_pending_until_somebody_does_it(
    containerd: FakeContainerd,
) -> None:
    outcome = containerd.run(CRUN, restart="never")
    assert (outcome.applied, containerd.done) == ("none", [])
    plan = containerd.plan(CRUN, restart="never")
    assert (plan.changed, plan.pending is not None) == (False, True)
    assert containerd.plan(CRUN).how == "restart"
    containerd.started_at = 4e9  # somebody restarted it
    assert containerd.plan(CRUN).how == "none"


def test_what_others_changed_since_the_start_is_told(containerd: FakeContainerd) -> None:
    assert any("counts as well" in warning for warning in containerd.plan(CRUN).warnings)
    containerd.started_at = 4e9
    assert containerd.plan(CRUN).warnings == ()


def test_a_stopped_containerd_is_not_started(containerd: FakeContainerd) -> None:
    containerd.status = "stopped"
    assert containerd.run(CRUN).applied == "not_running"
    assert containerd.done == []


def test_a_bare_host_is_predicted_in_check_mode_and_refused_else(
    containerd: FakeContainerd,
) -> None:
    containerd.status = "absent"
    plan = containerd.plan(CRUN)
    assert (plan.changed, plan.how) == (True, "not_installed")
    with pytest.raises(ContainerdFailedError, match="containerd is not installed"):
        containerd.run(CRUN)
    assert not containerd.plan(Asked()).changed


@pytest.mark.parametrize(
    ("keeper", "words"),
    [("k3s", "config-v3.toml.d"), ("RKE2", "rancher/rke2"), ("k0s", "/etc/k0s/containerd.d")],
)
def test_rt_020_a_containerd_of_kubernetes_is_left_to_it(
    containerd: FakeContainerd, keeper: str, words: str
) -> None:
    containerd.has = {"keeper": keeper, "has_unit": False}
    with pytest.raises(ContainerdRefusedError, match=words):
        containerd.plan(CRUN)
    containerd.has = {"keeper": keeper}
    assert any(keeper in warning for warning in containerd.plan(CRUN).warnings)


def test_RT_019_a_containerd_without_a_unit_is_refused(  # noqa: N802
    containerd: FakeContainerd,
) -> None:
    containerd.has = {"has_unit": False}
    with pytest.raises(ContainerdRefusedError, match=r"no containerd\.service"):
        containerd.plan(CRUN)


def test_another_first_file_than_the_units_is_refused(containerd: FakeContainerd) -> None:
    containerd.has = {"config_path": "/etc/other.toml"}
    with pytest.raises(ContainerdRefusedError, match=r"reads /etc/other\.toml"):
        containerd.plan(CRUN, path=containerd.path)


# -- the way back ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["breaks", "dies"])
def test_a_containerd_that_does_not_take_it_gets_its_files_back(
    containerd: FakeContainerd, how: str
) -> None:
    before = containerd.texts()
    setattr(containerd, how, "crun")
    with pytest.raises(ContainerdFailedError) as caught:
        containerd.run(CRUN)
    assert containerd.texts() == before
    assert (containerd.done, containerd.status) == (["restart", "restart"], "running")
    assert "runs with them again" in str(caught.value)
    assert not (containerd.world / "record.json").exists()


def test_a_docker_that_does_not_find_it_again_is_an_error(containerd: FakeContainerd) -> None:
    containerd.has, containerd.deaf = {"docker_active": True}, True
    before = containerd.texts()
    with pytest.raises(ContainerdFailedError, match="Docker does not find containerd again"):
        containerd.run(CRUN)
    assert containerd.texts() == before


def test_an_nri_socket_that_does_not_come_is_an_error(tmp_path: Path) -> None:
    host = FakeContainerd(tmp_path, OLD)
    socket = {"plugins": {"io.containerd.nri.v1.nri": {"socket_path": str(tmp_path / "nri.sock")}}}
    with pytest.raises(ContainerdFailedError, match=r"nri\.sock is not there"):
        host.run(Asked(config=socket, nri=True))
    (tmp_path / "nri.sock").touch()
    host.run(Asked(config=socket, nri=True))
    assert host.value("plugins", "io.containerd.nri.v1.nri", "disable") is False


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("writes", range(4))
def test_a_run_that_is_killed_between_two_writes_is_finished_by_the_next(
    containerd: FakeContainerd, monkeypatch: pytest.MonkeyPatch, writes: int, present: bool
) -> None:
    before = containerd.texts()
    if not present:
        containerd.run(CRUN)
        containerd.started_at = 0.0
    left = [writes]

    def killed(*_given: Any, **_named: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt  # not one of the foreseen errors, so that nothing is undone

    module = "ansible_collections.steadygpu.host.plugins.module_utils.vouched.vouch"
    wish: dict[str, Any] = {"present": present}
    asked = CRUN if present else Asked()
    with monkeypatch.context() as patch:
        patch.setattr(module, killed)
        with pytest.raises(KeyboardInterrupt):
            containerd.run(asked, **wish)
    containerd.done.clear()
    containerd.run(asked, **wish)
    if present:
        assert containerd.value("plugins", _cri(containerd), "containerd", "runtimes", "crun")
    else:
        assert containerd.texts() == before
    assert not containerd.plan(asked, **wish).changed
