# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host cannot come up without, whatever bus or layer it is on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.boot import needed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A disk behind virtio_scsi, a bond, an IPoIB interface, an array, and a mount of NFS."""
    scsi = tmp_path / "sys/devices/pci0000:00/0000:00:05.0/virtio2"
    (scsi / "host0/target0:0:0/0:0:0:0").mkdir(parents=True)
    driven(tmp_path, scsi, "virtio_scsi")
    driven(tmp_path, scsi.parent, "virtio_pci")
    driven(tmp_path, scsi / "host0/target0:0:0/0:0:0:0", "sd_mod")
    (tmp_path / "sys/block/sda").mkdir(parents=True)
    (tmp_path / "sys/block/sda/device").symlink_to(scsi / "host0/target0:0:0/0:0:0:0")
    interface(tmp_path, "bond0", "DEVTYPE=bond\nINTERFACE=bond0\n", "1")
    interface(tmp_path, "ib0", "INTERFACE=ib0\n", "32")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/modules").write_text(
        "raid1 65536 1 - Live 0x0\ndm_mod 262144 2 dm_crypt,dm_mirror, Live 0x0\n"
        "nouveau 4096 3 - Live 0x0\npcspkr 16384 0 - Live 0x0\n"
    )
    (tmp_path / "proc/mounts").write_text("filer:/home /home nfs4 rw 0 0\ntank /tank zfs rw 0 0\n")
    return tmp_path


def driven(root: Path, device: Path, module: str) -> None:
    """A device that a module drives."""
    (root / "sys/module" / module).mkdir(parents=True)
    (device / "driver").mkdir()
    (device / "driver/module").symlink_to(root / "sys/module" / module)


def interface(root: Path, name: str, uevent: str, kind: str) -> None:
    """An interface without a device of its own."""
    place = root / "sys/class/net" / name
    place.mkdir(parents=True)
    (place / "uevent").write_text(uevent)
    (place / "type").write_text(kind + "\n")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("virtio_scsi", "drives the disk sda"),
        ("virtio-pci", "drives the disk sda"),
        ("sd_mod", "drives the disk sda"),
        ("bonding", "makes the network interface bond0"),
        ("ib_ipoib", "makes the network interface ib0"),
        ("raid1", "is in use now"),
        ("dm_mod", "is in use by dm_crypt, dm_mirror now"),
        ("nfsv4", "is the file system of /home"),
        ("zfs", "is the file system of /tank"),
        ("nvidia_uvm", "there is no GPU"),
    ],
)
def test_it_is_named_with_what_would_be_lacking(root: Path, module: str, said: str) -> None:
    found = list(needed.why(module, str(root)))
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize("module", ["nouveau", "pcspkr", "floppy"])
def test_what_nothing_needs_may_be_kept_away(root: Path, module: str) -> None:
    assert list(needed.why(module, str(root))) == []


def test_every_word_of_a_list_on_the_command_line_counts() -> None:
    given = ["quiet", "module_blacklist=nvme,floppy", "rd.driver.blacklist=mlx5_core"]
    assert [name for name, _word in needed.kept_away(given)] == ["nvme", "floppy", "mlx5_core"]
