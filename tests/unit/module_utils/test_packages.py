# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.packages import (
    Package,
    parse_dpkg,
    parse_rpm,
    parse_unfinished,
    parse_versionlock,
    pins,
    read_installed,
)

DPKG = (
    "ii \tdocker.io\t26.1.5+dfsg1-9+b9\n"
    "hi \tnvidia-container-toolkit\t1.19.1-1\n"
    "rc \told-thing\t1.0\n"
    "iF \thalf-thing\t2.0\n"
    "un \tnever-there\t\n"
    "ii \tlibc6\t2:2.41-12\n"
)


def test_dpkg_tells_installed_from_leftover_and_held_from_free() -> None:
    assert parse_dpkg(DPKG) == {
        "docker.io": Package("26.1.5+dfsg1-9+b9", held=False),
        "nvidia-container-toolkit": Package("1.19.1-1", held=True),
        "libc6": Package("2:2.41-12", held=False),
    }


RPM = (
    "runc\t4\t1.1.12-2.el9\tx86_64\n"
    "nvidia-container-toolkit\t0\t1.19.1-1\tx86_64\n"
    "gpg-pubkey\t0\td42d0685-62589a51\t(none)\n"
)


@pytest.mark.parametrize(
    "lock",
    [
        "nvidia-container-toolkit-0:1.19.1-1.*",
        "nvidia-container-toolkit-1.19.1-1.x86_64",
        "nvidia-container-*",
        "nvidia-container-toolkit",
    ],
)
def test_rpm_versionlock_patterns_hold(lock: str) -> None:
    found = parse_rpm(RPM, parse_versionlock("# locks\n" + lock + "\n!runc-*\n"))
    assert found == {
        "runc": Package("4:1.1.12-2.el9", held=False),
        "nvidia-container-toolkit": Package("1.19.1-1", held=True),
    }


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs dpkg")
def test_reads_a_dpkg_database_under_a_root(tmp_path: Path) -> None:
    admin = tmp_path / "var/lib/dpkg"
    (admin / "info").mkdir(parents=True)
    (admin / "updates").mkdir()
    (admin / "status").write_text(
        "Package: runc\nStatus: hold ok installed\nVersion: 1.1.15+ds1-2\n"
        "Architecture: all\nMaintainer: x\nDescription: x\n"
    )
    installed = read_installed(str(tmp_path))
    assert installed.manager == "dpkg"
    assert installed.packages == {"runc": Package("1.1.15+ds1-2", held=True)}


def test_pins_of_the_engine_or_the_toolkit_are_found(tmp_path: Path) -> None:
    directory = tmp_path / "etc/apt/preferences.d"
    directory.mkdir(parents=True)
    (directory / "vendor").write_text(
        "# the image\nPackage: *\nPin: origin packages.example.com\nPin-Priority: 600\n"
    )
    (directory / "two.pref").write_text(
        "Package: cowsay\nPin: version 1\nPin-Priority: 900\n\n"
        "Package: cowsay\n docker-* runc\nPin: version 1\nPin-Priority: 1001\n"
    )
    (directory / "low").write_text("Package: *\nPin: release a=x\nPin-Priority: 100\n")
    (directory / "never").write_text("Package: docker.io\nPin: release a=x\nPin-Priority: -1\n")
    (directory / "a.save").write_text("Package: *\nPin: release a=x\nPin-Priority: 999\n")
    assert pins(str(tmp_path)) == [
        "/etc/apt/preferences.d/two.pref",
        "/etc/apt/preferences.d/vendor",
    ]
    assert pins(str(tmp_path / "none")) == []


def test_what_a_killed_dpkg_left() -> None:
    text = (
        "ii \ta\t1\nhi \tb\t1\nrc \tc\t1\niU \td\t1\niHR\te\t1\niF \tf\t1\niW \tg\t1\nit \th\t1\n"
    )
    left = parse_unfinished(text + "iHR\tfresh\t\n")
    assert left == {**dict.fromkeys("defgh", "1"), "fresh": ""}
    assert set(parse_dpkg(text)) == {"a", "b"}
