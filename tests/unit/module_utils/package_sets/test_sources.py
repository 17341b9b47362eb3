# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A repository has one entry and one key, and what others wrote is only switched off."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import (
    source_files,
    sources,
)
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import RefusedError
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.source_files import (
    Source,
)

URI = "https://packages.example.com/deb/$(ARCH)"
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQ\n-----END PGP PUBLIC KEY BLOCK-----"
OURS = Source("toolkit", (URI,), ("/",), key=KEY)
REPLACE = Source("toolkit", (URI,), ("/",), key=KEY, replace=True)

LINES = """\
# by hand
deb [signed-by=/usr/share/keyrings/old.gpg] https://packages.example.com/deb/amd64 /
deb http://deb.example.com/debian trixie main
"""
STANZAS = """\
# The vendor's image
Types: deb
URIs: https://packages.example.com/deb/amd64/
Suites: /
Enabled: yes
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 URIs: this is no field
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb deb-src
URIs: http://deb.example.com/debian
Suites: trixie
Components: main
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "etc/apt/sources.list.d").mkdir(parents=True)
    monkeypatch.setattr(source_files, "_architecture", lambda: "amd64")
    return tmp_path


def _put(host: Path, name: str, text: str) -> Path:
    path = host / "etc/apt/sources.list.d" / name
    path.write_text(text)
    return path


def _bring(source: Source, host: Path) -> list[str]:
    changes = source_files.plan(source, str(host))
    source_files.carry_out(changes, str(host))
    assert source_files.plan(source, str(host)) == []
    return [change.told for change in changes]


def test_complaint_31_pa_002_the_key_is_data_and_a_rotated_one_takes_its_place(host: Path) -> None:
    assert len(_bring(OURS, host)) == 2
    entry = (host / "etc/apt/sources.list.d/steadygpu-toolkit.sources").read_text()
    assert f"URIs: {URI}\n" in entry
    assert "Signed-By: /etc/apt/keyrings/steadygpu-toolkit.asc\n" in entry
    rotated = KEY.replace("mQ", "mR")
    assert _bring(Source("toolkit", (URI,), ("/",), key=rotated), host) == [
        "write the key of the repository in /etc/apt/keyrings/steadygpu-toolkit.asc"
    ]


def test_a_key_is_checked_before_anything_is_written(host: Path) -> None:
    right = hashlib.sha256(f"{KEY}\n".encode()).hexdigest()
    assert source_files.plan(Source("x", (URI,), key=KEY, key_sha256=right), str(host))
    file = host / "etc/key.gpg"
    file.write_bytes(b"\x99\x01")
    wrong = (
        (Source("x", (URI,), key=KEY, key_sha256="0" * 64), f"has the SHA-256 {right}"),
        (Source("x", (URI,), key="<html>"), "no armored public key"),
        (Source("x", (URI,)), "needs its key"),
        (Source("x", (URI,), key_file="/etc/key.gpg", key_sha256="0" * 64), "wanted 0000"),
    )
    for source, words in wrong:
        with pytest.raises(RefusedError, match=words):
            source_files.plan(source, str(host))
    # In check mode the file is not there yet.
    none = Source("x", (URI,), key_file="/etc/none.gpg", key_sha256="0" * 64)
    assert len(source_files.plan(none, str(host))) == 1


@pytest.mark.parametrize(("name", "text"), [("a.list", LINES), ("vendor.sources", STANZAS)])
def test_complaint_32_pa_001_entries_of_others_are_named_or_switched_off(
    host: Path, name: str, text: str
) -> None:
    path = _put(host, name, text)
    with pytest.raises(
        RefusedError, match=rf"{name} names the repository already \(https://packages\.example"
    ):
        source_files.plan(OURS, str(host))
    told = _bring(REPLACE, host)
    assert told[0].startswith("switch off https://packages.example.com/deb/amd64")
    assert sources.naming(path.read_text(), lambda uri: "packages" in uri) == []
    assert len(sources.naming(path.read_text(), lambda _uri: True)) == 1
    assert f"/etc/apt/sources.list.d/{name}" in vouched.since(0, str(host))
    path.write_text(path.read_text() + "\n# added by hand later\n")
    _bring(Source("toolkit", present=False), host)
    assert path.read_text() == text + "\n# added by hand later\n"
    assert [one.name for one in path.parent.iterdir()] == [name]


def test_a_stanza_with_other_addresses_is_left_to_its_owner(host: Path) -> None:
    both = STANZAS.replace("deb/amd64/", "deb/amd64/ http://other.example.com")
    path = _put(host, "both.sources", both)
    with pytest.raises(RefusedError, match=r"line 2: the stanza names other addresses"):
        source_files.plan(REPLACE, str(host))
    assert path.read_text() == both


def test_addresses_of_a_former_layout_compete(host: Path) -> None:
    _put(host, "old.list", "deb https://old.example.com/docker/debian10/amd64 /\n")
    assert len(source_files.plan(OURS, str(host))) == 2
    competing = Source("toolkit", (URI,), key=KEY, competing=("https://old.example.com/docker/*",))
    with pytest.raises(RefusedError, match=r"old\.list"):
        source_files.plan(competing, str(host))


def test_what_is_switched_off_already_is_in_nobodys_way(host: Path) -> None:
    _put(host, "a.sources", STANZAS.replace("Enabled: yes", "Enabled: no"))
    _put(host, "b.list", LINES.replace("deb [", "# deb ["))
    (host / "etc/apt/sources.list").write_text("")
    assert len(source_files.plan(OURS, str(host))) == 2
    # apt reads no other names.
    _put(host, "c.list.save", LINES)
    assert len(source_files.plan(OURS, str(host))) == 2


def test_pins_come_and_go_with_the_entry(host: Path) -> None:
    pins = {"b": "1-1", "a": "1-1", "c": "2:3~x"}
    _bring(Source("toolkit", (URI,), ("/",), key=KEY, pins=pins), host)
    path = host / "etc/apt/preferences.d/steadygpu-toolkit.pref"
    assert path.read_text().split("\n")[1:] == [
        "Package: a b",
        "Pin: version 1-1",
        "Pin-Priority: 1001",
        "",
        "Package: c",
        "Pin: version 2:3~x",
        "Pin-Priority: 1001",
        "",
    ]
    assert _bring(OURS, host) == [f"remove /etc/apt/preferences.d/{path.name}"]
