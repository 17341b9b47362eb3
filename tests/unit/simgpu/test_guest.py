# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guest command's parts that need no machine: state, tree, nodes, refusals, procfs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simgpu_guest import lab, nodes, procfs, profiles, state, tree

PROFILES = [
    "a100-pcie-bridge",
    "dgx-a100",
    "dgx1-v100",
    "hgx-h100",
    "mixed-workstation",
    "t4",
]


def built(sources: Path, name: str) -> state.State:
    loaded = profiles.load(sources / "profiles", name)
    return profiles.build_state(loaded, tree.model_slots(), check_nodes=True, uvm_major=511)


@pytest.mark.parametrize("name", PROFILES)
def test_state_survives_writing_and_reading(sources: Path, tmp_path: Path, name: str) -> None:
    wanted = built(sources, name)
    state.write(tmp_path / "lib" / "state", wanted)
    assert state.read(tmp_path / "lib" / "state") == wanted
    assert [path.name for path in (tmp_path / "lib").iterdir()] == ["state"]


def test_all_profiles_are_tested(sources: Path) -> None:
    assert profiles.names(sources / "profiles") == PROFILES


def test_unknown_profile_lists_the_known_ones(sources: Path) -> None:
    with pytest.raises(profiles.ProfileError, match=r"'dgx-b200'; known: a100-pcie-bridge, .*t4"):
        profiles.load(sources / "profiles", "dgx-b200")


def test_too_few_slots_are_refused(sources: Path) -> None:
    loaded = profiles.load(sources / "profiles", "dgx-a100")
    with pytest.raises(profiles.ProfileError, match="slot 7 wanted, this machine has 4"):
        profiles.build_state(loaded, tree.model_slots()[:4], check_nodes=True, uvm_major=511)


def test_every_profile_is_for_the_one_library(sources: Path) -> None:
    from simgpu_image.library import DRIVER_VERSION

    for name in PROFILES:
        assert built(sources, name).settings["module"] == DRIVER_VERSION


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("gpu.9.lost", "1", "no such GPU"),
        ("gpu.0.uuid", "1", "cannot be set; known keys: memory_reserved"),
        ("gpu.0.memory_used", "1G", "'1G' seen, a whole number wanted"),
        ("link.0.0", "sideways", "up or down wanted"),
        ("link.0.17", "up", "no such GPU or link"),
        ("colour", "blue", "want gpu.N.KEY"),
        ("gpu.0.mig_reset", "maybe", "'maybe' seen, one of none, reset, reboot wanted"),
    ],
)
def test_what_cannot_be_set_is_refused(sources: Path, key: str, value: str, reason: str) -> None:
    loaded = built(sources, "dgx-a100")
    before = state.render(loaded)
    with pytest.raises(state.StateError, match=reason):
        state.set_value(loaded, key, value)
    assert state.render(loaded) == before


def test_a_link_goes_down_at_both_ends_of_a_mesh(sources: Path) -> None:
    loaded = built(sources, "dgx1-v100")
    addresses = loaded.addresses()
    second = [n for n, link in loaded.gpus[0].links.items() if link.remote == addresses[7]][1]
    state.set_value(loaded, f"link.0.{second}", "down")
    ends = [link.up for link in loaded.gpus[7].links.values() if link.remote == addresses[0]]
    assert ends == [True, False]
    assert sum(not link.up for gpu in loaded.gpus for link in gpu.links.values()) == 2


def test_a_gpu_without_mig_has_no_mig_reset(sources: Path) -> None:
    with pytest.raises(state.StateError, match="this GPU has no MIG"):
        state.set_value(built(sources, "t4"), "gpu.0.mig_reset", "reboot")


def test_holders_survive_writing_and_reading(sources: Path, tmp_path: Path) -> None:
    wanted = built(sources, "dgx-a100")
    wanted.holders = ["0 1 nvidia-persistenced", "0/1/0 1 python3"]
    state.write(tmp_path / "state", wanted)
    assert state.read(tmp_path / "state") == wanted


def test_forgetting_mig_leaves_the_state(tmp_path: Path) -> None:
    for name in ("state", "state.mig", "state.mig.lock", "state.mig.new"):
        (tmp_path / name).write_text("format 1\nmode 0 1 1\n")
    assert state.mig_lines(tmp_path / "state") == ["mode 0 1 1"]
    state.forget_mig(tmp_path / "state")
    state.forget_mig(tmp_path / "state")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert state.mig_lines(tmp_path / "state") == []


@pytest.mark.parametrize(
    "text", ["", "format 2\n", "format 1\ngpu zero uuid x\n", "format 1\nlink 0 1 gpu\n"]
)
def test_a_state_file_that_makes_no_sense_is_an_error(text: str) -> None:
    with pytest.raises(state.StateError):
        state.parse(text)


@given(st.sets(st.integers(0, 1023), min_size=1))
def test_cpu_mask_words_are_the_list(cpus: set[int]) -> None:
    words = tree.mask_words(",".join(map(str, sorted(cpus)))).split()
    assert {
        64 * i + bit
        for i, word in enumerate(words)
        for bit in range(64)
        if int(word, 16) >> bit & 1
    } == cpus


def test_cpu_ranges_are_understood() -> None:
    assert tree.mask_words("0-3,8\n") == "0x10f"
    assert tree.mask_words("") == "0x0"


def test_tree_is_found_in_sysfs_even_where_ids_are_covered(tmp_path: Path) -> None:
    devices = tmp_path / "sys/bus/pci/devices"
    devices.mkdir(parents=True)
    for slot in reversed(tree.model_slots()):
        real = tmp_path.joinpath("sys/devices", *slot.path, slot.address)
        real.mkdir(parents=True)
        (real / "config").write_bytes(b"\x36\x1b\x05\x00rest")
        (real / "vendor").write_text("0x10de\n")
        (real / "numa_node").write_text(f"{slot.numa_node}\n")
        (real / "local_cpulist").write_text(f"{slot.cpus}\n")
        (devices / slot.address).symlink_to(real)
    (devices / "0000:00:00.0").mkdir()
    (devices / "0000:00:00.0" / "config").write_bytes(b"\x86\x80\xc0\x29")
    assert tree.find_slots(tmp_path) == tree.model_slots()
    assert tree.find_slots(tmp_path / "nothing") == []


def test_levels_of_the_tree() -> None:
    slots = tree.model_slots()
    assert [tree.level(slots[0], other) for other in slots[1:]] == [
        "PIX",
        "PHB",
        "PHB",
        *["SYS"] * 4,
    ]


def test_major_of_uvm_is_the_highest_free_one() -> None:
    text = (
        "Character devices:\n  1 mem\n511 hidraw\n510 rpmb\n\nBlock devices:\n509 device-mapper\n"
    )
    assert nodes.free_major(text) == 509
    assert nodes.free_major(text, taken=frozenset([509])) == 508


def test_nodes_of_a_profile(sources: Path) -> None:
    wanted = nodes.wanted(built(sources, "t4"))
    assert wanted == {
        "nvidia0": (195, 0),
        "nvidiactl": (195, 255),
        "nvidia-modeset": (195, 254),
        "nvidia-uvm": (511, 0),
        "nvidia-uvm-tools": (511, 1),
    }


def test_capability_nodes_are_those_of_config_and_monitor(sources: Path) -> None:
    loaded = built(sources, "dgx-a100")
    loaded.settings["caps_major"] = "510"
    wanted = nodes.wanted(loaded)
    assert wanted["nvidia-caps/nvidia-cap1"] == (510, 1)
    assert wanted["nvidia-caps/nvidia-cap2"] == (510, 2)


def test_nodes_are_made_and_taken_away(sources: Path, tmp_path: Path) -> None:
    loaded = built(sources, "t4")
    loaded.settings["caps_major"] = "510"
    (tmp_path / "null").touch()
    try:
        nodes.ensure(nodes.wanted(loaded), tmp_path)
    except PermissionError:
        pytest.skip("only root may make device nodes")
    for name, (major, minor) in nodes.wanted(loaded).items():
        status = (tmp_path / name).stat()
        assert status.st_rdev == os.makedev(major, minor)
    config, monitor = (tmp_path / f"nvidia-caps/nvidia-cap{minor}" for minor in (1, 2))
    assert [stat.S_IMODE(path.stat().st_mode) for path in (config, monitor)] == [0o400, 0o444]
    nodes.ensure({}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


def test_procfs_has_the_switches_that_links_end_in(sources: Path) -> None:
    files = procfs.proc_driver_files(built(sources, "dgx-a100"))
    found = [name for name in files if name.startswith("nvidia-nvswitch/devices/")]
    assert len(found) == 6
    assert "nvidia-nvswitch/devices/0000:01:00.0/information" in found
    files = procfs.proc_driver_files(built(sources, "dgx1-v100"))
    assert not [name for name in files if "nvswitch" in name]


def test_procfs_reads_like_the_drivers(sources: Path) -> None:
    files = procfs.driver_files(built(sources, "hgx-h100"))
    assert files["version"].startswith(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.163.01  "
    )
    assert "SIMULATION" in files["version"]
    assert "Device Minor: \t 3\n" in files["gpus/0000:28:00.0/information"]


def test_a_machine_that_is_no_lab_is_refused(tmp_path: Path) -> None:
    with pytest.raises(lab.NotALabError, match="no steadygpu lab machine"):
        lab.require(tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/steadygpu-lab").touch()
    with pytest.raises(lab.NotALabError, match="firmware says vendor '', 'QEMU' wanted"):
        lab.require(tmp_path)
    (tmp_path / "sys/class/dmi/id").mkdir(parents=True)
    (tmp_path / "sys/class/dmi/id/sys_vendor").write_text("QEMU\n")
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    with pytest.raises(lab.NotALabError, match="a real nvidia kernel module is loaded"):
        lab.require(tmp_path)


def test_proc_devices_shows_what_the_modules_register_and_keeps_the_rest(sources: Path) -> None:
    kernel = "Character devices:\n  1 mem\n 10 misc\n\nBlock devices:\n254 virtblk\n"
    dgx = built(sources, "dgx-a100")
    shown = procfs.proc_devices(kernel, dgx)
    characters, _separator, blocks = shown.partition("\nBlock devices:")
    assert f"{dgx.settings['uvm_major']} nvidia-uvm\n" in characters + "\n"
    assert " 10 misc" in characters
    assert blocks == "\n254 virtblk\n"
    dgx.settings["uvm"] = "missing"
    assert "nvidia-uvm" not in procfs.proc_devices(kernel, dgx)
    assert "nvidia-uvm" not in nodes.wanted(dgx)
