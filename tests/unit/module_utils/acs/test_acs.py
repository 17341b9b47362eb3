# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ACS switched off on bridges that are files: chosen, refused, kept at boot, put back."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.acs import (
    decide,
    go_back,
    manage,
    registers,
)
from ansible_collections.steadygpu.host.plugins.module_utils.acs.decide import AcsError
from ansible_collections.steadygpu.host.plugins.module_utils.acs.scene import Scene, look
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record

PORT, SWITCH, PLAIN, GPU = "0000:39:01.0", "0000:3a:00.0", "0000:3a:01.0", "0000:3b:00.0"
# SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+, as in the report of TP-001.
ON = 0b0011101


def config_space(control: int | None) -> bytes:
    """A configuration space, with ACS behind another capability, or without."""
    space = bytearray(4096)
    following = 0x140 if control is not None else 0
    struct.pack_into("<I", space, 0x100, 0x0001 | 1 << 16 | following << 20)
    if control is not None:
        struct.pack_into("<IHH", space, 0x140, 0x000D | 1 << 16, 0x7F, control)
    return bytes(space)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A port and a switch with ACS, a bridge without, and a GPU behind the first two."""
    chain = tmp_path / "sys/devices/pci0000:38"
    place(chain / PORT, "0x060400", "0x8086", "0x352a", ON)
    place(chain / PORT / SWITCH, "0x060400", "0x1000", "0xc030", ON)
    place(chain / PORT / SWITCH / GPU, "0x030200", "0x10de", "0x20b0", None)
    place(chain / PLAIN, "0x060400", "0x8086", "0x244e", None)
    names = tmp_path / "sys/bus/pci/devices"
    names.mkdir(parents=True)
    for directory in chain.rglob("0000:*"):
        (names / directory.name).symlink_to(directory)
    command = tmp_path / "usr/local/bin/steadygpu"
    command.parent.mkdir(parents=True)
    command.write_text("")
    return tmp_path


def place(path: Path, kind: str, vendor: str, device: str, control: int | None) -> None:
    path.mkdir(parents=True)
    for name, text in (("class", kind), ("vendor", vendor), ("device", device)):
        (path / name).write_text(text + "\n")
    (path / "config").write_bytes(config_space(control))


def control(root: Path, address: str) -> int | None:
    return registers.read_control(address, str(root))


def test_p29_off_on_the_bridges_above_gpus_and_back_as_it_was(root: Path) -> None:
    would = manage.keep_off(["gpus"], check_mode=True, root=str(root))
    assert control(root, PORT) == ON
    done = manage.keep_off(["gpus"], root=str(root))
    assert (
        would.actions
        == done.actions
        == [
            "write /etc/systemd/system/steadygpu-acs.service",
            "enable steadygpu-acs.service",
            f"switch ACS off on {PORT} (control 001d becomes 0000)",
            f"switch ACS off on {SWITCH} (control 001d becomes 0000)",
        ]
    )
    assert [one.verdict for one in done.settings] == ["effective", "effective"]
    assert (control(root, PORT), control(root, SWITCH)) == (0, 0)
    assert manage.keep_off(["gpus"], root=str(root)).actions == []

    back = manage.put_back(root=str(root))
    assert (control(root, PORT), control(root, SWITCH)) == (ON, ON)
    assert len(back.actions) == 4
    assert record.owners(str(root)) == []
    assert not (root / "etc/systemd/system/steadygpu-acs.service").exists()
    assert manage.put_back(root=str(root)).actions == []


def test_a_bridge_that_is_no_longer_named_gets_its_state_back(root: Path) -> None:
    manage.keep_off([PORT, SWITCH], root=str(root))
    done = manage.keep_off([SWITCH], root=str(root))
    assert done.actions == [f"give ACS its former state back on {PORT} (control 0000 becomes 001d)"]
    assert (control(root, PORT), control(root, SWITCH)) == (ON, 0)
    assert [one.name for one in done.settings] == [f"ACS control of {SWITCH}"]
    assert manage.keep_off([SWITCH], root=str(root)).actions == []


def test_what_somebody_switched_on_since_is_not_put_back_over_it(root: Path) -> None:
    manage.keep_off([PORT], root=str(root))
    registers.write_control(PORT, 0x0001, str(root))
    manage.put_back(root=str(root))
    assert control(root, PORT) == 1


def test_at_boot_it_is_off_again_but_not_on_another_card(root: Path) -> None:
    manage.keep_off([PORT, SWITCH], root=str(root))
    for address in (PORT, SWITCH):
        registers.write_control(address, ON, str(root))
    (root / "sys/bus/pci/devices" / SWITCH / "device").write_text("0x8749\n")
    faults = manage.apply_kept(str(root), virtual_host="")
    assert (control(root, PORT), control(root, SWITCH)) == (0, ON)
    assert faults == [f"{SWITCH} is not the bridge that it was (1000:c030 below {PORT})"]


def test_at_boot_buses_that_were_numbered_anew_are_left_alone(root: Path) -> None:
    manage.keep_off([SWITCH], root=str(root))
    registers.write_control(SWITCH, ON, str(root))
    other = "0000:3c:00.0"
    names = root / "sys/bus/pci/devices"
    moved = names.joinpath(SWITCH).resolve() / other
    (names / GPU).resolve().rename(moved)
    (names / GPU).unlink()
    (names / other).symlink_to(moved)
    (fault,) = manage.apply_kept(str(root), virtual_host="")
    assert f"{SWITCH} has other GPUs below it than it had: {other}" in fault
    assert control(root, SWITCH) == ON


PROMISES = {
    "proc/cmdline": "quiet vfio-pci.ids=10de:20b0\n",
    "etc/modprobe.d/vfio.conf": "# own\noptions vfio-pci disable_vga=1 ids=10de:20b0\n",
    f"sys/bus/pci/devices/{GPU}/driver_override": "vfio-pci\n",
    "etc/libvirt/qemu/guest.xml": "<hostdev mode='subsystem' type='pci' managed='yes'>\n",
}


@pytest.mark.parametrize("path", sorted(PROMISES))
def test_at_boot_a_host_that_got_virtual_machines_keeps_its_isolation(
    root: Path, path: str
) -> None:
    manage.keep_off([PORT], root=str(root))
    registers.write_control(PORT, ON, str(root))
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(PROMISES[path])
    (fault,) = manage.apply_kept(str(root), virtual_host="")
    assert "ACS stays on" in fault
    assert control(root, PORT) == ON
    with pytest.raises(AcsError, match="will give devices to virtual machines"):
        manage.keep_off([PORT], root=str(root))


def test_at_boot_a_device_that_vfio_has_keeps_acs_on(root: Path) -> None:
    manage.keep_off([PORT], root=str(root))
    registers.write_control(PORT, ON, str(root))
    taken = root / "sys/bus/pci/drivers/vfio-pci"
    taken.mkdir(parents=True)
    (taken / "0000:81:00.0").symlink_to(root)
    (fault,) = manage.apply_kept(str(root), virtual_host="")
    assert "vfio-pci has 0000:81:00.0" in fault
    assert control(root, PORT) == ON


def locked(root: Path) -> None:
    place = root / "sys/kernel/security/lockdown"
    place.parent.mkdir(parents=True)
    place.write_text("none [integrity] confidentiality\n")


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_kernel_that_is_locked_down_is_said_before_anything_is_written(
    root: Path, check_mode: bool
) -> None:
    locked(root)
    with pytest.raises(AcsError, match=r"locked down \(integrity"):
        manage.keep_off([PORT], check_mode=check_mode, root=str(root))
    assert record.owners(str(root)) == []
    assert not (root / "etc/systemd/system/steadygpu-acs.service").exists()


def test_a_register_that_cannot_be_written_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(registers.os, "pwrite", refuse)
    with pytest.raises(AcsError, match=f"{PORT}/config: Operation not permitted"):
        manage.keep_off([PORT], root=str(root))


def test_a_way_back_that_fails_keeps_the_unit_and_the_record(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manage.keep_off([PORT], root=str(root))
    kept = record.load("acs", str(root))

    def refuse(*_args: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(registers.os, "pwrite", refuse)
    with pytest.raises(AcsError, match="as they were before"):
        manage.put_back(root=str(root))
    assert record.load("acs", str(root)) == kept
    unit = root / "etc/systemd/system"
    assert (unit / "steadygpu-acs.service").exists()
    assert (unit / "multi-user.target.wants/steadygpu-acs.service").is_symlink()


def test_an_undone_change_gives_the_registers_back(root: Path) -> None:
    manage.keep_off([PORT], root=str(root))
    then = record.load("acs", str(root))
    manage.keep_off([PORT, SWITCH], root=str(root))
    now = record.load("acs", str(root))
    done, left = go_back.go_back(now, then, str(root))
    assert (len(done), left) == (1, [])
    assert (control(root, PORT), control(root, SWITCH)) == (0, ON)
    assert go_back.go_back(now, then, str(root)) == ([], [])
    assert go_back.go_back(now, None, str(root))[0] == [f"set the ACS control of {PORT} to 001d"]
    assert control(root, PORT) == ON
    assert go_back.go_back(None, then, str(root))[0] == [f"set the ACS control of {PORT} to 0000"]


def test_an_undone_change_moves_nobodys_traffic_and_is_told(root: Path) -> None:
    manage.keep_off([PORT], root=str(root))
    now = record.load("acs", str(root))
    busy = Scene(**{**vars(look(str(root))), "holders": ("python (process 7) on GPU 0",)})
    done, (left,) = go_back.go_back(now, None, str(root), busy)
    assert done == []
    assert "python (process 7)" in left
    assert control(root, PORT) == 0


def test_at_boot_in_a_virtual_machine_nothing_is_switched_off(root: Path) -> None:
    manage.keep_off([PORT], root=str(root))
    registers.write_control(PORT, ON, str(root))
    assert manage.apply_kept(str(root), virtual_host="kvm") == [
        "this host runs in kvm, where ACS must stay on"
    ]
    assert control(root, PORT) == ON


def test_p29_in_a_virtual_machine_acs_stays(root: Path) -> None:
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text("flags\t\t: fpu vme hypervisor lahf_lm\n")
    with pytest.raises(AcsError, match=r"runs in a virtual machine.*ATS"):
        manage.keep_off(["gpus"], root=str(root))
    assert control(root, PORT) == ON
    assert record.owners(str(root)) == []


def test_a_host_that_gives_devices_to_machines_keeps_its_isolation(root: Path) -> None:
    taken = root / "sys/bus/pci/drivers/vfio-pci"
    taken.mkdir(parents=True)
    (taken / "0000:81:00.0").symlink_to(root)
    (taken / "new_id").write_text("")
    with pytest.raises(AcsError, match=r"vfio-pci has 0000:81:00.0, so"):
        manage.keep_off(["gpus"], root=str(root))


def test_nobody_who_works_on_a_gpu_has_its_traffic_moved(root: Path) -> None:
    scene = look(str(root))
    busy = Scene(**{**vars(scene), "holders": ("python (process 7) on GPU 0",)})
    with pytest.raises(AcsError, match=r"python \(process 7\) on GPU 0"):
        manage.keep_off(["gpus"], root=str(root), scene=busy)
    assert control(root, PORT) == ON
    manage.keep_off(["gpus"], root=str(root))
    # What is so already disturbs nobody.
    again = Scene(**{**vars(look(str(root))), "holders": busy.holders})
    assert manage.keep_off(["gpus"], root=str(root), scene=again).actions == []
    with pytest.raises(AcsError, match="GPUs are in use"):
        manage.put_back(root=str(root), scene=again)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("0000:ff:00.0", "no PCI bridge"),
        (GPU, "no PCI bridge"),
        (PLAIN, "has no ACS"),
    ],
)
def test_what_has_no_acs_is_told(root: Path, asked: str, said: str) -> None:
    with pytest.raises(AcsError, match=said):
        manage.keep_off([PORT, asked], root=str(root))
    assert control(root, PORT) == ON


def test_gpus_without_acs_above_them_are_told(root: Path) -> None:
    with pytest.raises(AcsError, match="nothing to switch off"):
        decide.choose(["gpus"], Scene())


def test_the_isolation_that_it_costs_is_said(root: Path) -> None:
    group = root / "sys/kernel/iommu_groups/4"
    (group / "devices").mkdir(parents=True)
    for address in (GPU, "0000:3c:00.0"):
        (group / "devices" / address).symlink_to(root)
    (root / "sys/bus/pci/devices" / GPU / "iommu_group").symlink_to(group)
    done = manage.keep_off([PORT], root=str(root))
    assert f"4: {GPU} 0000:3c:00.0" in done.warnings[0]
    assert manage.keep_off([PORT], root=str(root)).warnings == []


def test_without_the_agent_nothing_could_switch_it_off_at_boot(root: Path) -> None:
    (root / "usr/local/bin/steadygpu").unlink()
    with pytest.raises(AcsError, match="apply the role agent first"):
        manage.keep_off([PORT], root=str(root))
    assert control(root, PORT) == ON


def test_a_register_that_does_not_take_the_value_puts_all_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = registers.write_control

    def stubborn(address: str, value: int, below: str) -> None:
        if address == SWITCH and value == 0:
            raise OSError(0, "0000 was written, and 001d is there", address)
        real(address, value, below)

    monkeypatch.setattr(registers, "write_control", stubborn)
    with pytest.raises(AcsError, match=r"001d is there\n.*as they were before"):
        manage.keep_off(["gpus"], root=str(root))
    assert control(root, PORT) == ON
    assert record.owners(str(root)) == []
    assert not (root / "etc/systemd/system/steadygpu-acs.service").exists()


def test_a_run_that_was_killed_after_the_record_is_completed(root: Path) -> None:
    manage.keep_off([PORT], root=str(root))
    registers.write_control(PORT, ON, str(root))
    (root / "etc/systemd/system/steadygpu-acs.service").unlink()
    done = manage.keep_off([PORT], root=str(root))
    assert len(done.actions) == 2
    assert control(root, PORT) == 0
    manage.put_back(root=str(root))
    assert control(root, PORT) == ON
