# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who makes a specification anew: the vendor's units where there are some, else ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import boot_unit
from ansible_collections.steadygpu.host.plugins.module_utils.cdi import env_file, units
from ansible_collections.steadygpu.host.plugins.module_utils.cdi.units import Upkeep
from ansible_collections.steadygpu.host.plugins.module_utils.heal import act, plan
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import (
    Done,
    Sight,
    Step,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed

UPKEEP = Upkeep("/var/run/cdi/nvidia.yaml", "/usr/bin/nvidia-ctk", ("index", "uuid"))
DOCKER = UnitState("loaded", "enabled", "active", frozenset({"containerd.service"}))
VENDOR = {
    plan.REFRESH_SERVICE: UnitState("loaded", "enabled", "inactive"),
    plan.REFRESH_PATH: UnitState("loaded", "enabled", "active"),
    plan.ENGINE: DOCKER,
}
BARE = {name: UnitState() for name in VENDOR} | {plan.ENGINE: DOCKER}
ORDERED = {plan.DROP_IN: plan.DROP_IN_TEXT}
DIRECTORY = "etc/systemd/system"
OWN = [f"{DIRECTORY}/{name}" for name in (units.SERVICE, units.PATH_UNIT)]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that were run."""
    found: list[str] = []

    def run(argv: list[str], *_rest: object) -> Completed:
        found.append(" ".join(argv))
        return Completed(argv, 0, "", "")

    monkeypatch.setattr(units, "run", run)
    return found


def _plan(
    states: Mapping[str, UnitState], drop_ins: Mapping[str, str], upkeep: Upkeep = UPKEEP
) -> units.UnitsPlan:
    return units.plan_present(upkeep, states, drop_ins, None)


def test_the_vendors_units_are_adopted_as_they_are() -> None:
    found = _plan(VENDOR, ORDERED)
    assert (found.by, found.steps, found.install, found.warnings) == ("vendor", (), (), ())
    assert not found.env.changed
    after = UnitState("loaded", "enabled", "active", frozenset({plan.REFRESH_SERVICE}))
    assert _plan({**VENDOR, plan.ENGINE: after}, {}).steps == ()


def test_F1_RT_15_a_wrong_order_at_boot_is_found(tmp_path: Path) -> None:  # noqa: N802
    [step] = _plan(VENDOR, {}).steps
    assert "not ordered after nvidia-cdi-refresh.service" in step.seen
    assert "daemon-reload" not in " ".join(step.commands)


def test_the_diff_has_units_and_drop_in(tmp_path: Path) -> None:
    root = str(tmp_path)
    ordered = _plan(VENDOR, {})
    assert units.texts(ordered, root) == [(plan.DROP_IN, "", plan.DROP_IN_TEXT)]
    found = _plan({name: UnitState() for name in VENDOR}, {})
    service, path_unit = units.own_units(UPKEEP)
    assert [(path, after) for path, _before, after in units.texts(found, root)] == [
        (service.path, service.text),
        (path_unit.path, path_unit.text),
    ]
    for unit in (service, path_unit):
        boot_unit.install(unit, False, root)
    assert units.texts(found, root) == []
    away = units.plan_absent(UPKEEP, {}, {}, None)
    assert units.texts(away, root) == [
        (service.path, service.text, ""),
        (path_unit.path, path_unit.text, ""),
    ]
    (tmp_path / service.path[1:]).write_text("# of somebody\n")
    assert [path for path, _before, _after in units.texts(away, root)] == [path_unit.path]


def test_an_order_that_would_be_a_cycle_is_only_told() -> None:
    late = UnitState("loaded", "enabled", "inactive", frozenset({"multi-user.target"}))
    found = _plan({**VENDOR, plan.REFRESH_SERVICE: late}, {})
    assert found.steps == ()
    assert "would be a cycle" in found.warnings[0]


def test_a_disabled_unit_is_enabled_and_a_masked_one_is_left() -> None:
    off = UnitState("loaded", "disabled", "inactive")
    [step] = _plan({**VENDOR, plan.REFRESH_PATH: off}, ORDERED).steps
    assert step.commands[0] == "systemctl enable --no-reload nvidia-cdi-refresh.path"
    masked = UnitState("masked", "masked", "inactive")
    found = _plan({**VENDOR, plan.REFRESH_PATH: masked}, ORDERED)
    assert (found.by, found.steps, found.install) == ("vendor", (), ())
    assert "systemctl unmask nvidia-cdi-refresh.path" in found.warnings[0]


def test_a_vendors_unit_that_was_enabled_and_not_started_is_started(
    tmp_path: Path, ran: list[str]
) -> None:
    # As after a kill between the two.
    stopped = {**VENDOR, plan.REFRESH_PATH: UnitState("loaded", "enabled", "inactive")}
    done = units.carry_out(_plan(stopped, ORDERED), False, 5, str(tmp_path))
    assert done.actions == ["start nvidia-cdi-refresh.path"]
    assert ran == ["systemctl start nvidia-cdi-refresh.path"]


def test_what_differs_from_the_vendors_defaults_is_told_to_its_unit() -> None:
    upkeep = Upkeep("/etc/cdi/n.yaml", "/usr/bin/nvidia-ctk", ("index",), ("flag",))
    after = units.plan_present(upkeep, VENDOR, ORDERED, "# theirs\n").env.after or ""
    assert after.startswith("# theirs\n")
    assert "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/etc/cdi/n.yaml\n" in after
    foreign = "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/opt/x.yaml\n"
    with pytest.raises(units.UnitsError, match="not of this collection"):
        units.plan_present(upkeep, VENDOR, ORDERED, foreign)


def test_without_them_ours_are_written_started_and_removed(tmp_path: Path, ran: list[str]) -> None:
    root = str(tmp_path)
    found = _plan(BARE, {})
    assert found.by == "own"
    told = units.carry_out(found, True, 5, root).actions
    assert (list(tmp_path.iterdir()), ran) == ([], [])
    assert units.carry_out(found, False, 5, root).actions == told
    assert told == [
        f"write /{OWN[0]}",
        "enable steadygpu-cdi.service",
        f"write /{OWN[1]}",
        "enable steadygpu-cdi.path",
        "start steadygpu-cdi.path",
    ]
    assert ran == ["systemctl start steadygpu-cdi.path"]
    running = {**BARE, units.PATH_UNIT: UnitState("loaded", "enabled", "active")}
    assert units.carry_out(_plan(running, {}), False, 5, root).actions == []
    gone = units.carry_out(units.plan_absent(UPKEEP, running, {}, None), False, 5, root)
    assert f"remove /{OWN[0]}" in gone.actions
    assert not any((tmp_path / path).exists() for path in OWN)
    assert "systemctl stop steadygpu-cdi.path" in ran
    assert not any("reload" in one for one in ran)


def test_ours_go_when_the_vendors_come(tmp_path: Path, ran: list[str]) -> None:
    units.carry_out(_plan(BARE, {}), False, 5, str(tmp_path))
    done = units.carry_out(_plan(VENDOR, ORDERED), False, 5, str(tmp_path))
    assert [one for one in done.actions if one.startswith("remove")] == [
        f"remove /{OWN[1]}",
        f"remove /{OWN[0]}",
    ]


def test_our_unit_runs_after_the_driver_and_before_every_engine() -> None:
    service, path = units.own_units(
        Upkeep("/etc/cdi/a b%.yaml", "/usr/bin/nvidia-ctk", ("uuid",), ("flag",))
    )
    lines = service.text.splitlines()
    [before] = [line for line in lines if line.startswith("Before=")]
    assert {"docker.service", "containerd.service", "kubelet.service"} <= set(before[7:].split())
    assert "nvidia-persistenced.service" in service.text
    assert (
        'ExecStart=/usr/bin/nvidia-ctk cdi generate "--output=/etc/cdi/a b%%.yaml" '
        "--device-name-strategy=uuid --feature-flag=flag"
    ) in lines
    assert "TimeoutStartSec=90" in lines
    assert "Unit=steadygpu-cdi.service" in path.text


def test_a_unit_of_our_name_that_is_not_ours_is_refused_before_anything(tmp_path: Path) -> None:
    (tmp_path / DIRECTORY).mkdir(parents=True)
    (tmp_path / OWN[1]).write_text("[Path]\n")
    with pytest.raises(units.UnitsError, match=r"steadygpu-cdi\.path is not of steadygpu"):
        units.carry_out(_plan(BARE, {}), False, 5, str(tmp_path))
    assert os.listdir(tmp_path / DIRECTORY) == ["steadygpu-cdi.path"]


def test_a_step_that_does_not_help_is_told_and_does_not_fail_the_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def carry_out(step: Step, seen: Sight, deadline_s: float) -> Done:
        return Done(step, False, "systemd-analyze verify did not end", ("tried",))

    monkeypatch.setattr(act, "carry_out", carry_out)
    done = units.carry_out(_plan(VENDOR, {}), False, 5, str(tmp_path))
    assert done.actions == ["tried"]
    assert "could not be changed: systemd-analyze verify did not end" in done.warnings[0]
    assert units.carry_out(_plan(VENDOR, {}), True, 5, str(tmp_path)).actions[0].startswith("mkdir")


def test_absent_takes_back_the_order_and_the_block(tmp_path: Path, ran: list[str]) -> None:
    root = str(tmp_path)
    for path, text in ((plan.DROP_IN, plan.DROP_IN_TEXT), (env_file.PATH, "# theirs\n")):
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True)
        place.write_text(text)
    upkeep = Upkeep("/etc/cdi/n.yaml", "/usr/bin/nvidia-ctk", ("index",))
    env = env_file.read(root)
    units.carry_out(units.plan_present(upkeep, VENDOR, ORDERED, env), False, 5, root)
    assert "BEGIN steadygpu" in (env_file.read(root) or "")
    drop_ins = units.read_drop_ins(root)
    found = units.plan_absent(upkeep, VENDOR, drop_ins, env_file.read(root))
    done = units.carry_out(found, False, 5, root)
    assert done.actions == [f"remove {plan.DROP_IN}", f"write {env_file.PATH}"]
    assert env_file.read(root) == "# theirs\n"
    assert "makes a specification again at the next boot" in found.warnings[0]
    edited = {plan.DROP_IN: "[Unit]\nBefore=docker.service\n"}
    assert not units.plan_absent(upkeep, VENDOR, edited, None).drop_in


def test_without_systemd_it_says_that_nobody_does_it() -> None:
    found = _plan({}, {})
    assert (found.by, found.steps, found.install) == ("nobody", (), ())
    assert "no systemd" in found.warnings[0]


def _number(text: str, key: str) -> int:
    [line] = [line for line in text.splitlines() if line.startswith(f"{key}=")]
    return int(line.partition("=")[2])


def test_a_driver_that_hangs_is_not_tried_for_ever() -> None:
    text = units.own_units(UPKEEP)[0].text
    longest = (
        _number(text, "TimeoutStartSec")
        + 2 * _number(text, "TimeoutStopSec")
        + _number(text, "RestartSec")
    )
    assert _number(text, "StartLimitIntervalSec") >= _number(text, "StartLimitBurst") * longest
    # What the path unit asked for and went well is no try.
    assert f"ExecStartPost=-/usr/bin/systemctl reset-failed {units.SERVICE}" in text.splitlines()


def test_a_unit_of_an_older_release_is_replaced(tmp_path: Path, ran: list[str]) -> None:
    units.carry_out(_plan(BARE, {}), False, 5, str(tmp_path))
    place = tmp_path / OWN[0]
    text = place.read_text()
    place.write_text(text.replace("Sec=1800", "Sec=120").replace("TimeoutStopSec=15\n", ""))
    running = {**BARE, units.PATH_UNIT: UnitState("loaded", "enabled", "active")}
    found = units.carry_out(_plan(running, {}), False, 5, str(tmp_path))
    assert (found.actions, place.read_text()) == ([f"write /{OWN[0]}"], text)
