# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names, versions, kernels and keys as distributions really have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.driver_set import (
    kernels,
    look,
    names,
    tables,
)

RELEASE = "550.163.01"


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("550.163.01-2", "550.163.01"),
        ("580.95.05-0ubuntu0.24.04.2", "580.95.05"),
        ("1:595.45.04-1", "595.45.04"),
        ("3:610.43.02-1.el9", "610.43.02"),
        ("590.44.01", "590.44.01"),
        ("535.54-1", "535.54"),
        ("6.8.0-1064.67+1", None),
        ("20240109+1", None),
        ("2.14.0-1", None),
        ("1.20.0-1", None),
        ("550", None),
    ],
)
def test_the_release_in_a_version(version: str, release: str | None) -> None:
    assert names.release_of(version) == release


@pytest.mark.parametrize(
    ("name", "in_step"),
    [
        ("nvidia-smi", True),
        ("nvidia-dkms-580-open", True),
        ("libnvidia-compute-580", True),
        ("nvidia-fabricmanager-580", True),
        ("nvidia-imex", True),
        ("cuda-drivers", True),
        ("kmod-nvidia-open-dkms", True),
        ("nvidia-persistenced", False),
        ("nvidia-modprobe", False),
        ("linux-modules-nvidia-580-open-generic", False),
        ("nvidia-container-toolkit", False),
        ("libnvidia-container1", False),
        ("nvidia-docker2", False),
        ("docker.io", False),
    ],
)
def test_what_must_be_of_one_release(name: str, in_step: bool) -> None:
    assert names.is_in_step(name) is in_step


def test_the_module_counts_more_than_what_lies_around_it() -> None:
    versions = {"libcuda1": "580.95.05-1", "nvidia-smi": "580.95.05-1"}
    assert names.release_installed(versions) == "580.95.05"
    versions["nvidia-kernel-dkms"] = f"{RELEASE}-2"
    assert names.release_installed(versions) == RELEASE
    assert names.release_installed({}) is None


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("updates/dkms/nvidia.ko.xz: a\nupdates/dkms/nvidia-uvm.ko.xz:", "nvidia.ko.xz"),
        ("updates/dkms/nvidia-current.ko:\nupdates/dkms/nvidia-current-uvm.ko:", "current.ko"),
        ("extra/nvidia-tesla-535.ko:\n", "tesla-535.ko"),
        ("kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko.zst:\n", None),
        ("updates/nvidia-drm.ko:\nupdates/nvidia-modeset.ko:\nupdates/nvidia-peermem.ko:", None),
        ("kernel/drivers/gpu/drm/nouveau/nouveau.ko:", None),
    ],
)
def test_the_file_of_the_module(lines: str, found: str | None) -> None:
    module, uvm = kernels.parse_modules(lines)
    assert (module is None) is (found is None)
    if found is not None:
        assert module is not None
        assert module.endswith(found)
    assert (uvm is not None) is ("uvm" in lines)


def test_dkms_is_read_from_its_tree(tmp_path: Path) -> None:
    tree = tmp_path / "var/lib/dkms/nvidia"
    for version in (RELEASE, "580.95.05", "590.44.01"):
        (tree / version / "source").mkdir(parents=True)
    for version, kernel in ((RELEASE, "6.12.9-amd64"), ("580.95.05", "6.12.9-amd64")):
        (tree / version / kernel / "x86_64/module").mkdir(parents=True)
    link = tree / "kernel-6.12.9-amd64-x86_64"
    link.symlink_to("580.95.05/6.12.9-amd64/x86_64")
    (tmp_path / "var/lib/dkms/zfs/2.3/source").mkdir(parents=True)
    found = {(one.version, one.kernel): one.state for one in kernels.read_builds(str(tmp_path))}
    assert found == {
        (RELEASE, "6.12.9-amd64"): "built",
        ("580.95.05", "6.12.9-amd64"): "installed",
        ("590.44.01", None): "added",
    }
    assert kernels.read_builds("/nowhere") == ()


def test_complaint_30_the_key_is_looked_for_in_what_the_firmware_knows(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert look.key_enrolled(root) is None
    enrolled = tmp_path / "sys/firmware/efi/mok-variables/MokListRT"
    enrolled.parent.mkdir(parents=True)
    enrolled.write_bytes(b"header another-certificate")
    assert look.key_enrolled(root) is False
    key = tmp_path / "var/lib/dkms/mok.pub"
    key.parent.mkdir(parents=True)
    key.write_bytes(b"our-certificate")
    assert look.key_enrolled(root) is False
    enrolled.write_bytes(b"header another-certificate our-certificate")
    assert look.key_enrolled(root) is True


@pytest.mark.parametrize(
    ("device", "generation", "flavour"),
    [
        (0x1DB5, tables.PRE_TURING, tables.PROPRIETARY),
        (0x1EB8, tables.TURING, tables.OPEN),
        (0x20B0, tables.TURING, tables.OPEN),
        (0x2330, tables.TURING, tables.OPEN),
        (0x2342, tables.OPEN_ONLY, tables.OPEN),
        (0x26B9, tables.TURING, tables.OPEN),
        (0x2901, tables.OPEN_ONLY, tables.OPEN),
        (0x3182, tables.OPEN_ONLY, tables.OPEN),
    ],
    ids=["V100", "T4", "A100", "H100", "GH200", "L40S", "B200", "B300"],
)
def test_the_modules_for_a_gpu(device: int, generation: str, flavour: str) -> None:
    card = tables.Card("0000:01:00.0", device)
    assert card.generation == generation
    assert tables.flavour_for([card]) == flavour
    assert tables.misfits([card], flavour, 580) == []
