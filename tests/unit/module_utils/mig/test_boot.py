# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit that brings layouts back, and the file it reads."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.mig import boot, cdi, targets
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import MigError, Wanted
from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.machine import gpu, instance

OFF = targets.Target("GPU-off", Wanted(False))
HALVES = targets.of_layout(
    gpu("A100", 0, [instance("3g.20gb@0:4", 2), instance("3g.20gb@4:4", 1, 1, 2)])
)
UNIT = "etc/systemd/system/steadygpu-mig.service"


@pytest.fixture
def unit(tmp_path: Path) -> configparser.RawConfigParser:
    """The unit as it is written."""
    boot.persist(boot.Config((OFF,)), check_mode=False, root=str(tmp_path))
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(tmp_path / UNIT)
    return parser


def test_what_is_kept_is_read_back_with_its_places_in_the_order_of_their_making(
    tmp_path: Path,
) -> None:
    kept = boot.Config((HALVES, OFF), cdi.Settings("/etc/cdi/nvidia.yaml", "/opt/ctk"))
    boot.persist(kept, check_mode=False, root=str(tmp_path))
    read = boot.read_config(str(tmp_path))
    assert read is not None
    assert read.cdi == kept.cdi
    assert targets.to_json(read.gpus) == targets.to_json(kept.gpus)
    assert read.gpus[0].instances is not None
    assert [one.placement.start for one in read.gpus[0].instances] == [4, 0]
    assert [one.slices for one in read.gpus[0].instances[0].compute] == [1, 2]


def test_check_mode_says_the_same_and_writes_nothing(tmp_path: Path) -> None:
    config = boot.Config((OFF,))
    told = boot.persist(config, check_mode=True, root=str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert boot.persist(config, check_mode=False, root=str(tmp_path)) == told
    assert boot.persist(config, check_mode=False, root=str(tmp_path)) == []
    told = boot.forget(check_mode=True, root=str(tmp_path))
    assert (tmp_path / UNIT).exists()
    assert boot.forget(check_mode=False, root=str(tmp_path)) == told
    assert boot.forget(check_mode=False, root=str(tmp_path)) == []
    left = [path.name for path in tmp_path.rglob("*") if not path.is_dir()]
    assert left == ["vouched.jsonl"]


def test_a_masked_unit_is_left_alone_and_nothing_is_kept(tmp_path: Path) -> None:
    path = tmp_path / UNIT
    path.parent.mkdir(parents=True)
    path.symlink_to("/dev/null")
    with pytest.raises(MigError, match=r"systemctl unmask steadygpu-mig\.service"):
        boot.persist(boot.Config((OFF,)), check_mode=False, root=str(tmp_path))
    assert boot.forget(check_mode=False, root=str(tmp_path)) == []
    assert [one for one in tmp_path.rglob("*") if not one.is_dir() or one.is_symlink()] == [path]


def test_the_unit_runs_before_every_engine_and_cannot_keep_one_from_starting(
    unit: configparser.RawConfigParser,
) -> None:
    before = unit["Unit"]["Before"].split()
    for engine in ("docker", "containerd", "podman", "crio", "kubelet", "nvidia-cdi-refresh"):
        assert f"{engine}.service" in before
    assert not {"Requires", "BindsTo", "RequiredBy"} & {
        key for part in unit.values() for key in part
    }
    assert unit["Service"]["Type"] == "oneshot"
    assert unit["Unit"]["ConditionPathExists"] == "/etc/steadygpu/mig.json"


def test_the_run_ends_itself_in_good_order_before_systemd_would_end_it_anywhere(
    unit: configparser.RawConfigParser,
) -> None:
    assert int(unit["Service"]["TimeoutStartSec"]) > boot.BUDGET_S > 2 * boot.DEADLINE_S


def test_gpus_of_earlier_changes_stay_kept() -> None:
    former = boot.Config((targets.Target("GPU-a", Wanted(True, {})), OFF))
    merged = boot.merged(former, [targets.Target("GPU-a", Wanted(False)), HALVES])
    assert {one.uuid: one.wanted.enabled for one in merged} == {
        "GPU-a": False,
        "GPU-off": False,
        HALVES.uuid: True,
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 1, "gpus": 3, "cdi": null}',
        '{"version": 1, "gpus": [{}], "cdi": 1}',
        '{"version": 2, "gpus": [], "cdi": null}',
        '{"gpus": [], "cdi": null}',
        '{"version": 1, "cdi": null, "gpus": [{"uuid": "GPU-a", "mig": true, "instances": null,'
        ' "devices": {"1g.5gb": "seven"}}]}',
    ],
    ids=["empty", "list", "number", "no-gpu", "newer", "no-version", "words-for-counts"],
)
def test_a_file_that_is_not_ours_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "etc/steadygpu/mig.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(MigError, match=r"mig\.json is not what this program writes"):
        boot.read_config(str(tmp_path))
