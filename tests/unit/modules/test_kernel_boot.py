# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules ``kernel_boot``, ``pcie_acs`` and ``reboot_needed``: options in, results out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.acs.scene import Bridge, Scene
from ansible_collections.steadygpu.host.plugins.module_utils.boot import at_risk, reboot
from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import (
    BootError,
    Outcome,
    Softdep,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import Setting
from ansible_collections.steadygpu.host.plugins.modules import kernel_boot, pcie_acs, reboot_needed


def run(module: Any, capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    """What a task with these options returns."""
    with patch_module_args(options), pytest.raises(SystemExit):
        module.main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_options_become_a_wish(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def pretend(wish: Wish, check_mode: bool) -> Outcome:
        seen.append((wish, check_mode))
        waiting = Setting("boot parameter iommu=pt", "iommu=pt", "not given", "pending", "later")
        return Outcome("grub", ["run update-grub"], settings=[waiting])

    monkeypatch.setattr(kernel_boot, "ensure", pretend)
    answer = run(
        kernel_boot,
        capsys,
        parameters=["iommu=pt", "iommu=pt"],
        module_options={"nvidia": {"NVreg_X": 1, "NVreg_Y": True, "z": None}},
        softdeps={"nvidia": {"post": ["nvidia-uvm"], "pre": "a b"}},
        _ansible_check_mode=True,
    )
    assert seen == [
        (
            Wish(
                parameters=("iommu=pt",),
                options={"nvidia": (("NVreg_X", "1"), ("NVreg_Y", "1"), ("z", ""))},
                softdeps={"nvidia": Softdep(("a", "b"), ("nvidia-uvm",))},
            ),
            True,
        )
    ]
    assert (answer["changed"], answer["loader"], answer["reboot_needed"]) == (True, "grub", True)
    assert answer["settings"][0]["verdict"] == "pending"


def test_absent_wishes_for_nothing_whatever_else_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wishes = []

    def pretend(wish: Wish, _check_mode: bool) -> Outcome:
        wishes.append(wish)
        return Outcome()

    monkeypatch.setattr(kernel_boot, "ensure", pretend)
    answer = run(kernel_boot, capsys, state="absent", parameters=["pci=nomsi"])
    assert wishes == [Wish()]
    assert (answer["changed"], answer["reboot_needed"]) == (False, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"module_options": {"nvidia": ["a=1"]}}, "module_options of nvidia: wanted a dictionary"),
        ({"softdeps": {"nvidia": {"before": "x"}}}, "softdeps of nvidia: wanted a dictionary"),
        ({"parameters": ["pci=nomsi"]}, "pci=nomsi is refused"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(
    capsys: pytest.CaptureFixture[str], options: dict[str, Any], said: str
) -> None:
    answer = run(kernel_boot, capsys, **options)
    assert answer["failed"]
    assert said in answer["msg"]


def test_p29_the_module_refuses_in_a_virtual_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = Bridge("0000:3a:00.0", "1000", "c030", 0x1D)
    scene = Scene({bridge.address: bridge}, (bridge.address,), virtual="kvm")
    real = pcie_acs.keep_off
    monkeypatch.setattr(pcie_acs, "keep_off", lambda asked, check: real(asked, check, scene=scene))
    answer = run(pcie_acs, capsys, bridges=["gpus"])
    assert answer["failed"]
    assert "runs in kvm" in answer["msg"]


@pytest.mark.parametrize("state", ["look", "begin"])
def test_complaint_28_the_memory_is_written_only_before_a_reboot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    verdict = reboot.Verdict("boot-1", ("iommu=pt waits",), ("numa waits",), ("libc6",))
    written: list[str] = []
    monkeypatch.setattr(reboot, "look", lambda told: verdict)
    monkeypatch.setattr(reboot, "begin", lambda _verdict: written.append("begin"))
    monkeypatch.setattr(reboot, "forget_cured", lambda _verdict: written.append("forget"))
    monkeypatch.setattr(at_risk, "find", lambda socket: ["container train (restart policy no)"])
    checked = run(reboot_needed, capsys, state=state, _ansible_check_mode=True)
    assert written == []
    done = run(reboot_needed, capsys, state=state)
    assert written == ["begin" if state == "begin" else "forget"]
    assert checked["changed"] is done["changed"] is (state == "begin")
    assert (done["needed"], done["reasons"], done["in_vain"]) == (
        True,
        ["iommu=pt waits"],
        ["numa waits"],
    )
    assert done["lost"] == ["container train (restart policy no)"]


def test_complaint_27_nobody_is_asked_for_where_nothing_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reboot, "look", lambda told: reboot.Verdict("boot-1"))
    monkeypatch.setattr(reboot, "forget_cured", lambda _verdict: None)

    def never(socket: str) -> list[str]:
        raise BootError(socket)

    monkeypatch.setattr(at_risk, "find", never)
    answer = run(reboot_needed, capsys, state="begin")
    assert (answer["changed"], answer["needed"], answer["lost"]) == (False, False, [])
