# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person reads from ``steadygpu mig``."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.mig import change
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import MigError
from steadygpu_agent import cli, mig_run

FOUND: dict[str, Any] = {
    "driver_version": "550.163.01",
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-a",
            "pci_address": "0000:07:00.0",
            "name": "NVIDIA A100-SXM4-40GB",
            "mig": {"supported": True, "current": True, "pending": False},
            "instances": [
                {
                    "id": 1,
                    "profile": "3g.20gb",
                    "start": 4,
                    "size": 4,
                    "devices": [{"profile": "3g.20gb", "id": 0, "uuid": "MIG-x"}],
                }
            ],
            "profiles": [{"name": "1g.5gb", "slices": 1, "most": 7, "placements": ["0:1"]}],
            "holders": [
                {"pid": 12, "name": "python3", "owner": "container:training", "kind": "container"},
                {"pid": None, "name": "nvidia_drm", "owner": "module:nvidia_drm"},
            ],
        }
    ],
    "previous": None,
    "boot": [],
    "unfinished": True,
}


def test_show_has_devices_offers_holders_and_what_is_unfinished() -> None:
    page = mig_run.page(FOUND)
    for words in (
        "GPU 0  NVIDIA A100-SXM4-40GB  GPU-a  MIG on, off after a reset",
        "0    3g.20gb  4:4    MIG-x",
        "offers: 1g.5gb (up to 7)",
        "held by python3 (pid 12) of container:training",
        "held by nvidia_drm of module:nvidia_drm",
        "A change did not end",
        "nothing to undo",
    ):
        assert words in page


@pytest.mark.parametrize(
    ("outcome", "status", "words"),
    [
        (change.Outcome("applied", ["GPU 0: enable MIG mode"]), 0, "GPU 0: enable MIG mode"),
        (
            change.Outcome("pending", pending=[{"needs": "reboot", "reason": "GPU 0 waits"}]),
            3,
            "pending: GPU 0 waits",
        ),
        (change.Outcome(), 0, "unchanged"),
    ],
)
def test_apply_says_what_was_done_and_its_status_tells_pending(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: change.Outcome,
    status: int,
    words: str,
) -> None:
    monkeypatch.setattr(mig_run.core, "apply", lambda _options: outcome)
    assert cli.main(["mig", "apply", "all-1g.5gb"]) == status
    assert words in capsys.readouterr().out


def test_a_refusal_is_told_and_counts_as_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_options: change.Options) -> change.Outcome:
        raise MigError("GPU 0 is in use")

    monkeypatch.setattr(mig_run.core, "apply", refuse)
    assert cli.main(["mig", "undo"]) == 1
    assert "GPU 0 is in use" in capsys.readouterr().err


def test_options_reach_the_core(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[change.Options] = []
    monkeypatch.setattr(
        mig_run.core, "foresee", lambda options: asked.append(options) or change.Outcome()
    )
    layout = '{"0": {"3g.20gb": 2}}'
    arguments = ["--stop", "dcgm.service", "--stop", "container:x", "--no-persist"]
    assert cli.main(["mig", "plan", layout, *arguments]) == 0
    assert "nothing would change" in capsys.readouterr().out
    assert asked[0].layout == {"0": {"3g.20gb": 2}}
    assert list(asked[0].stop) == ["dcgm.service", "container:x"]
    assert not asked[0].persist


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["mig", "plan"], 2),
        (["mig", "apply"], 2),
        (["mig", "apply", "all-1g.5gb", "--boot"], 2),
        (["mig", "plan", "{broken"], 1),
    ],
)
def test_what_is_not_understood_is_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int
) -> None:
    assert cli.main(arguments) == status
    assert "steadygpu" in capsys.readouterr().err
