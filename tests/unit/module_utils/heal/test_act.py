# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps carried out on a pretended host: what is run, what is proved, what is left alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine import cdi_generate
from ansible_collections.steadygpu.host.plugins.module_utils.heal import (
    act,
    containers,
    healing,
    plan,
    sight,
)
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import (
    DeviceNode,
    GpuContainer,
    Sight,
    Step,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed

NULL = DeviceNode("/dev/null", "c", 1, 3)
ZERO = DeviceNode("/dev/zero", "c", 1, 5)
TTY = DeviceNode("/dev/tty", "c", 5, 0)
TRAINER = GpuContainer(
    id="a" * 64,
    name="trainer",
    namespace="moby",
    pid=42,
    group="/docker-a.scope",
    scope="docker-a.scope",
    by_hook=True,
    # Nodes that every machine has stand for the GPU's.
    given=(NULL, ZERO),
    lost=(NULL,),
    others=(TTY,),
    allowed=("DevicePolicy=strict", "DeviceAllow=/dev/tty rwm"),
)
ACCESS = Step("gpu-access", "trainer", "lost", "opened", (), "")


class Programs:
    """Stands for the programs of the host: what was run, and what each answers."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.answers: dict[str, Completed] = {}
        self.env: dict[str, str] = {}
        self.when: Callable[[str], None] = lambda command: None

    def __call__(
        self, argv: list[str], deadline_s: float = 30.0, env: dict[str, str] | None = None
    ) -> Completed:
        command = " ".join(argv)
        self.env = env or {}
        self.ran.append(command)
        self.when(command)
        return self.answers.get(argv[0], Completed(argv, 0, "", ""))


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    """No program of this machine is run, and nothing is waited for."""
    found = Programs()
    monkeypatch.setattr(act.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(act, "run", found)
    return found


def _sees(monkeypatch: pytest.MonkeyPatch, *states: GpuContainer) -> None:
    """The container as each further look shows it; the last one stays."""
    left = list(states)
    monkeypatch.setattr(containers, "again", lambda one: left.pop(0) if len(left) > 1 else left[0])


def _seen(*found: GpuContainer) -> Sight:
    return Sight(facts={}, containers=found)


def test_a_lost_gpu_is_granted_in_one_call_and_proved(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sees(monkeypatch, TRAINER, replace(TRAINER, lost=()))
    done = act.carry_out(ACCESS, _seen(TRAINER), 5)
    assert programs.ran == [
        "systemctl set-property --runtime docker-a.scope "
        "DeviceAllow=/dev/null rwm DeviceAllow=/dev/zero rwm"
    ]
    assert (done.healed, done.after) == (True, "container trainer may open /dev/null, /dev/zero")


def test_a_grant_that_does_not_help_is_no_success(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sees(monkeypatch, TRAINER)
    done = act.carry_out(ACCESS, _seen(TRAINER), 5)
    assert not done.healed
    assert "still may not open /dev/null" in done.after


def test_a_device_that_the_grant_took_is_given_back_at_once(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    healed = replace(TRAINER, lost=())
    _sees(monkeypatch, TRAINER, *[replace(healed, others=())] * 3, healed)
    done = act.carry_out(ACCESS, _seen(TRAINER), 5)
    assert len(programs.ran) == 2
    # By number: the host may have another device where the container has this one.
    assert "DeviceAllow=/dev/char/5:0 rwm" in programs.ran[1]
    assert done.healed


def test_systemd_may_write_the_rules_after_it_has_answered(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sees(monkeypatch, TRAINER, TRAINER, replace(TRAINER, lost=()))
    done = act.carry_out(ACCESS, _seen(TRAINER), 5)
    assert (done.healed, len(programs.ran)) == (True, 1)


def test_another_container_of_that_name_is_not_taken_for_it(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sees(monkeypatch, TRAINER, replace(TRAINER, lost=()))
    podmans = replace(TRAINER, namespace="", scope="libpod-a.scope")
    act.carry_out(ACCESS, _seen(podmans, TRAINER), 5)
    assert "docker-a.scope" in programs.ran[0]


def test_a_gpu_that_came_back_meanwhile_is_left_alone(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sees(monkeypatch, replace(TRAINER, lost=()))
    done = act.carry_out(ACCESS, _seen(TRAINER), 5)
    assert (done.healed, done.actions, programs.ran) == (True, (), [])


def test_a_host_node_with_another_number_is_not_granted(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # systemd would look at the host's node, and hand over another device.
    wrong = replace(TRAINER, given=(DeviceNode("/dev/null", "c", 195, 0),))
    _sees(monkeypatch, wrong)
    done = act.carry_out(ACCESS, _seen(wrong), 5)
    assert not done.healed
    assert "nothing was changed" in done.after
    assert programs.ran == []


def test_what_a_program_answers_is_in_the_result(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sees(monkeypatch, TRAINER)
    programs.answers["systemctl"] = Completed(["systemctl"], 1, "", "Unit not loaded")
    done = act.carry_out(ACCESS, _seen(TRAINER), 5)
    assert not done.healed
    assert "Unit not loaded" in done.after


# -- CDI ---------------------------------------------------------------------------------

GPU = {
    "source": "nvml",
    "driver": {"status": "loaded", "version": "550.163.01"},
    "devices": [{"index": 0, "uuid": "GPU-a"}],
}
OLD = '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0"}, {"name": "1"}]}'
NEW = '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0"}]}'


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A stale specification."""
    path = tmp_path / "nvidia.json"
    path.write_text(OLD)
    return path


def _generates(monkeypatch: pytest.MonkeyPatch, text: str) -> list[Any]:
    asked: list[Any] = []

    def generate(ctk: str, strategies: Any, form: str, deadline_s: float) -> str:
        asked.append(strategies)
        return text

    monkeypatch.setattr(cdi_generate, "generate", generate)
    return asked


def test_a_stale_specification_is_replaced_and_the_former_kept(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _generates(monkeypatch, NEW)
    step = Step("cdi-spec", str(spec), "", "", (), "")
    done = act.carry_out(step, Sight(facts={"gpu": GPU}), 5)
    assert (done.healed, done.after) == (True, f"{spec} names 0")
    assert asked == [("index",)]
    assert spec.read_text() == NEW
    assert Path(f"{spec}{plan.KEPT}").read_text() == OLD


@pytest.mark.parametrize("text", [OLD, "{}", NEW.replace('"0"', '"GPU-other"')])
def test_a_tool_that_makes_no_better_one_changes_nothing(
    spec: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    _generates(monkeypatch, text)
    done = act.carry_out(Step("cdi-spec", str(spec), "", "", (), ""), Sight({"gpu": GPU}), 5)
    assert not done.healed
    assert "was left as it is" in done.after
    assert (spec.read_text(), os.listdir(spec.parent)) == (OLD, ["nvidia.json"])


RICH = (
    '{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0"}, {"name": "1"}, '
    '{"name": "mine"}, {"name": "all"}], "containerEdits": {"mounts": [{"hostPath": "/usr/lib/'
    'libcuda.so.550.163.01"}], "deviceNodes": [{"path": "/dev/nvidia-uvm"}]}}'
)
NO_NAME = RICH.replace('{"name": "1"}, {"name": "mine"}, ', "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NO_NAME, "the name mine"),
        (RICH.replace('{"name": "1"}, ', "").replace("libcuda", "libother"), "libcuda.so"),
        (RICH.replace('{"name": "1"}, ', "").replace("/dev/nvidia-uvm", "/dev/x"), "nvidia-uvm"),
    ],
)
def test_a_specification_is_not_replaced_by_a_poorer_one(
    spec: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    spec.write_text(RICH)
    _generates(monkeypatch, text)
    done = act.carry_out(Step("cdi-spec", str(spec), "", "", (), ""), Sight({"gpu": GPU}), 5)
    assert words in done.after
    assert (spec.read_text(), os.listdir(spec.parent)) == (RICH, ["nvidia.json"])


# -- units -------------------------------------------------------------------------------


@pytest.fixture
def drop_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the order is written."""
    path = tmp_path / "nvidia-cdi-refresh.service.d/10-steadygpu-order.conf"
    monkeypatch.setattr(plan, "DROP_IN", str(path))
    return path


ORDER = Step("cdi-order", "", "", "", (), "")


VERIFY = "systemd-analyze verify multi-user.target"
CYCLE = "docker.service: Found ordering cycle on nvidia-cdi-refresh.service/start"


def test_the_order_is_written_and_tried_and_systemd_is_not_reloaded(
    programs: Programs, drop_in: Path
) -> None:
    # A cycle that was there before is none of ours.
    programs.answers["systemd-analyze"] = Completed([], 0, "", "a: Found ordering cycle on b/start")
    done = act.carry_out(ORDER, Sight({}), 5)
    assert done.healed
    assert "Before=docker.service" in drop_in.read_text()
    assert programs.ran == [VERIFY, VERIFY]


def test_an_order_that_makes_a_cycle_is_never_written(programs: Programs, drop_in: Path) -> None:
    def answer(command: str) -> None:
        tried = programs.env.get("SYSTEMD_UNIT_PATH", "")
        assert not drop_in.parent.exists()
        if tried:
            assert tried.endswith(":")
            (written,) = Path(tried[:-1]).rglob("*.conf")
            assert written.parent.name == drop_in.parent.name
        programs.answers["systemd-analyze"] = Completed([], 0, "", CYCLE if tried else "")

    programs.when = answer
    done = act.carry_out(ORDER, Sight({}), 5)
    assert not done.healed
    assert "nothing was written" in done.after
    assert not drop_in.parent.exists()


def test_without_an_answer_about_cycles_nothing_is_written(
    programs: Programs, drop_in: Path
) -> None:
    programs.answers["systemd-analyze"] = Completed([], -9, "", "", timed_out=True)
    assert not act.carry_out(ORDER, Sight({}), 5).healed
    assert not drop_in.parent.exists()


def test_a_unit_is_enabled_without_a_reload(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = plan.REFRESH_SERVICE
    enabled = {name: UnitState("loaded", "enabled")}
    monkeypatch.setattr(sight, "read_units", lambda deadline_s: enabled)
    command = f"systemctl enable --no-reload {name}"
    done = act.carry_out(Step("cdi-refresh", name, "", "", (command,), ""), Sight({}), 5)
    assert (done.healed, programs.ran) == (True, [command])


# -- the whole ---------------------------------------------------------------------------

BROKEN = Sight(
    facts={
        "gpu": {
            **GPU,
            "modules": {"nvidia": True, "nvidia_uvm": False},
            "nodes": [],
        }
    },
    containers=(TRAINER,),
)


def test_without_apply_nothing_is_run(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "read", lambda deadline_s, socket: BROKEN)
    outcome = healing.heal(apply=False)
    assert [step.id for step in outcome.plan.steps] == ["uvm", "gpu-access:trainer"]
    assert (outcome.applied, programs.ran) == (False, [])
    assert outcome.actions[0] == "modprobe nvidia_uvm"


def test_a_failed_step_does_not_stop_the_others(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sight, "read", lambda deadline_s, socket: BROKEN)
    monkeypatch.setattr(healing, "_LOCK", str(tmp_path / "lock"))
    _sees(monkeypatch, TRAINER, replace(TRAINER, lost=()))
    programs.answers["modprobe"] = Completed([], 1, "", "Key was rejected by service")
    outcome = healing.heal(apply=True)
    assert [one.step.id for one in outcome.failed] == ["uvm"]
    assert "Key was rejected" in outcome.failed[0].after
    assert outcome.done[1].healed
    assert outcome.plan.recreate == ("container trainer",)


def test_a_container_that_a_repair_cost_its_gpu_gets_it_back_as_well(
    programs: Programs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # After a daemon-reload systemd may write the rules of all containers with those of one.
    fine = replace(TRAINER, id="b" * 64, name="other", scope="docker-b.scope", lost=())
    sights = [
        Sight(facts={}, containers=(TRAINER, fine)),
        Sight(facts={}, containers=(replace(TRAINER, lost=()), replace(fine, lost=(NULL,)))),
        Sight(facts={}, containers=(replace(TRAINER, lost=()), fine)),
    ]
    monkeypatch.setattr(sight, "read", lambda deadline_s, socket: sights.pop(0))
    monkeypatch.setattr(healing, "_LOCK", str(tmp_path / "lock"))
    granted = {"docker-a.scope", "docker-b.scope"}

    def again(one: GpuContainer) -> GpuContainer:
        done = any(f"{one.scope} " in ran for ran in programs.ran)
        return replace(one, lost=() if done else (NULL,))

    monkeypatch.setattr(containers, "again", again)
    outcome = healing.heal(apply=True, only=["gpu-access:trainer"])
    assert [one.step.subject for one in outcome.done] == ["trainer", "other"]
    assert not outcome.failed
    assert {ran.split()[3] for ran in programs.ran} == granted


def test_two_runs_do_not_heal_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = str(tmp_path / "lock")
    monkeypatch.setattr(healing, "_LOCK", lock)
    with healing._lock():
        with pytest.raises(healing.HealError, match="another steadygpu heal runs"):
            healing.heal(apply=True)
