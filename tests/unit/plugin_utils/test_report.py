# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.plugin_utils.report import HostReport, render

DEVICE = {
    "index": 0,
    "name": "NVIDIA T4",
    "pci_address": "0000:23:00.0",
    "numa_node": None,
    "cpus": "0-3",
    "memory_mib": {"total": 16384},
    "mig": {"supported": False},
    "error": None,
}
GPU = {
    "driver": {
        "status": "loaded",
        "version": "550.163.01",
        "flavour": "open",
        "cuda_version": "12.4",
    },
    "source": "nvml",
    "devices": [DEVICE, dict(DEVICE, index=1, error="GPU is lost")],
    "links": [["X", "PIX"], ["PIX", "X"]],
}


def text(**fields):
    return "\n".join(render(HostReport("gpu01", **fields)))


def test_a_gpu_line_names_address_memory_and_links():
    lines = text(facts={"gpu": GPU}).splitlines()
    line = next(line for line in lines if "NVIDIA T4" in line)
    for word in ("0000:23:00.0", "16384 MiB", "0-3", "PIX"):
        assert word in line


def test_a_level_that_nothing_tells_is_a_dash():
    hidden = dict(GPU, links=[["X", None], [None, "X"]])
    line = next(one for one in text(facts={"gpu": hidden}).splitlines() if "NVIDIA T4" in one)
    assert line.split()[-2:] == ["X", "-"]


def test_a_lost_gpu_says_so_in_its_line():
    assert "GPU is lost" in text(facts={"gpu": GPU})


@pytest.mark.parametrize(
    ("mig", "cell"),
    [
        ({"current": False, "pending": False, "devices": []}, "off"),
        ({"current": False, "pending": True, "devices": []}, "off, on pending"),
        ({"current": True, "pending": True, "devices": []}, "on"),
        (
            {
                "current": True,
                "pending": True,
                "devices": [{"profile": "1g.5gb"}, {"profile": "3g.20gb"}, {"profile": "1g.5gb"}],
            },
            "2 x 1g.5gb, 1 x 3g.20gb",
        ),
    ],
    ids=["off", "pending", "empty", "sliced"],
)
def test_a_gpu_line_shows_its_mig_devices(mig, cell):
    sliced = dict(GPU, devices=[dict(DEVICE, mig=dict(mig, supported=True))], links=[["X"]])
    line = next(one for one in text(facts={"gpu": sliced}).splitlines() if "NVIDIA T4" in one)
    assert f"MiB  {cell}" in line


def test_a_driver_that_is_not_there_says_why():
    gpu = {"driver": {"status": "absent", "reason": "no NVIDIA device"}, "devices": []}
    assert "absent: no NVIDIA device" in text(facts={"gpu": gpu})


def test_a_failed_check_shows_seen_wanted_and_advice():
    check = {"title": "one GPU", "ok": False, "seen": "2", "wanted": "1", "advice": "look"}
    assert "FAIL one GPU: seen 2; wanted 1. look" in text(checks=[check])


def test_a_skipped_check_is_not_a_proved_one():
    check = {"title": "after a reload", "ok": None, "advice": "daemon_reload is false"}
    assert "skip after a reload: daemon_reload is false" in text(checks=[check])


def test_no_change_is_said_and_changes_are_listed():
    assert "nothing" in text()
    assert "write /etc/x" in text(changes=["write /etc/x"])


def test_check_mode_speaks_of_what_it_would_do():
    lines = render(HostReport("gpu01", changes=["write /etc/x"]), check_mode=True)
    assert any(line.split()[:2] == ["would", "write"] for line in lines)


def test_long_failures_are_wrapped_not_cut():
    shown = text(failure="a " * 300)
    assert shown.count("a ") + shown.count("a\n") >= 299
    assert max(map(len, shown.splitlines())) <= 100


def test_a_run_that_changed_something_says_how_to_go_back():
    way = "undo     playbooks/rollback.yml -e rollback_to=3-8f3a09c1"
    changed = {"base": "3-8f3a09c1", "changes": ["restart docker"]}
    assert way in text(**changed)
    assert "undo" not in text(base="3-8f3a09c1")
    assert "undo" not in text(failure="it was put back", **changed)
    assert "undo" not in "\n".join(render(HostReport("gpu01", **changed), check_mode=True))


def setting(name, verdict="effective", reason="", effective="1"):
    return {
        "name": name,
        "wanted": "1",
        "effective": effective,
        "verdict": verdict,
        "reason": reason,
    }


def test_every_setting_shows_wanted_and_effective_and_the_rest_says_why():
    kept = [
        setting("kernel.numa_balancing"),
        setting("vda io.weight", "inert", "no disk has iocost", None),
        setting("vdb io.weight", "inert", "no disk has iocost", None),
        setting("iommu", "pending", "it acts after a reboot", "off"),
    ]
    shown = text(settings={one["name"]: one for one in kept}).splitlines()
    start = next(i for i, line in enumerate(shown) if "settings" in line)
    assert shown[start].split(maxsplit=1)[1] == "1 effective, 2 inert, 1 pending"
    assert [line.split() for line in shown[start + 1 : start + 4]] == [
        ["setting", "wanted", "effective"],
        ["kernel.numa_balancing", "1", "1"],
        ["vda", "io.weight", "1", "-", "inert"],
    ]
    assert shown[start + 6].strip() == "vda io.weight, vdb io.weight: no disk has iocost"
    assert shown[start + 7].strip() == "iommu: it acts after a reboot"


def test_settings_that_are_equal_are_one_line():
    kept = {str(cpu): setting("fair_server runtime") for cpu in range(256)}
    shown = text(settings=kept)
    assert shown.count("fair_server runtime") == 1
    assert "256 effective" in shown
