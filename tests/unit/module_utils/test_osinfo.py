# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.osinfo import (
    family_of,
    parse_os_release,
    read_kernel,
    read_os,
)

UBUNTU = """PRETTY_NAME="Ubuntu 24.04.1 LTS"
VERSION_ID="24.04"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
# a comment
BROKEN='unclosed
"""


def test_ubuntu_is_of_debians_family(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/os-release").write_text(UBUNTU)
    found = read_os(str(tmp_path))
    assert (found.id, found.version_id, found.codename) == ("ubuntu", "24.04", "noble")
    assert (found.family, found.name) == ("debian", "Ubuntu 24.04.1 LTS")


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ('ID="rocky"\nID_LIKE="rhel centos fedora"', "rhel"),
        ("ID=fedora", "rhel"),
        ("ID=debian", "debian"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"', "suse"),
        ("ID=arch", "arch"),
        ("", None),
    ],
)
def test_families(text: str, family: str | None) -> None:
    assert family_of(parse_os_release(text)) == family


def test_nothing_there_is_an_answer(tmp_path: Path) -> None:
    assert read_os(str(tmp_path)).id is None
    assert read_kernel(str(tmp_path)).release is None


def test_an_image_of_the_vendor(tmp_path: Path) -> None:
    assert read_os(str(tmp_path)).vendor_image is None
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/dgx-release").write_text(
        'DGX_NAME="DGX Server"\nDGX_PRETTY_NAME="NVIDIA DGX Server"\nDGX_SWBUILD_VERSION="6.3.2"\n'
    )
    assert read_os(str(tmp_path)).vendor_image == "NVIDIA DGX Server 6.3.2"
    (tmp_path / "etc/dgx-release").write_text("")
    assert read_os(str(tmp_path)).vendor_image == "DGX OS"
