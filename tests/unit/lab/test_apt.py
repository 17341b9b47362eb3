# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine's own apt configuration, read the way apt means it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.tests.lab import apt

DEB822 = """\
# written by the installer
Types: deb deb-src
URIs: http://mirror.example.org/debian/
Suites: trixie trixie-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://security.example.org/debian-security
Suites: trixie-security
Components: main
Signed-By:
 /usr/share/keyrings/debian-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://disabled.example.org/debian
Suites: trixie
Components: main
"""

ONE_LINE = """\
# deb http://commented.example.org/debian bookworm main
deb-src http://source.example.org/debian bookworm main
deb [arch=amd64 signed-by=/keyrings/vendor.gpg] https://vendor.example.com/apt bookworm main
deb http://mirror.example.org/debian bookworm main non-free-firmware # the real one
"""


def test_deb822_gives_one_source_for_each_suite_and_skips_what_is_disabled() -> None:
    sources = apt.parse_deb822(DEB822)
    assert [(s.uri, s.suite) for s in sources] == [
        ("http://mirror.example.org/debian/", "trixie"),
        ("http://mirror.example.org/debian/", "trixie-updates"),
        ("http://security.example.org/debian-security", "trixie-security"),
    ]
    assert sources[0].components == ("main", "contrib")
    assert sources[2].signed_by == "/usr/share/keyrings/debian-archive-keyring.gpg"


def test_one_line_format_keeps_binary_sources_and_their_options() -> None:
    sources = apt.parse_one_line(ONE_LINE)
    assert [s.uri for s in sources] == [
        "https://vendor.example.com/apt",
        "http://mirror.example.org/debian",
    ]
    assert sources[0].signed_by == "/keyrings/vendor.gpg"
    assert sources[1].components == ("main", "non-free-firmware")


@pytest.mark.parametrize("text", [DEB822, ONE_LINE])
def test_the_mirror_is_debians_own_archive_not_a_vendors(text: str) -> None:
    parse = apt.parse_deb822 if text is DEB822 else apt.parse_one_line
    assert apt.debian_mirror(parse(text)) == "http://mirror.example.org/debian"


@pytest.mark.parametrize(
    "line",
    [
        "deb http://archive.example.org/ubuntu noble main",
        "deb https://download.example.com/linux/debian bookworm stable",
        "deb http://mirror.example.org/debian bookworm-backports main",
        "deb cdrom:[Debian]/debian bookworm main",
    ],
)
def test_without_a_debian_archive_the_builder_decides(line: str) -> None:
    assert apt.debian_mirror(apt.parse_one_line(line)) is None


def test_sources_are_read_from_both_formats_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text("deb http://one.example.org/debian trixie main\n")
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (parts / "a.sources").write_text(DEB822)
    (parts / "b.list").write_text("deb http://two.example.org/debian sid main\n")
    (parts / "c.list.disabled").write_text("deb http://off.example.org/debian sid main\n")
    uris = [s.uri for s in apt.read_sources(str(tmp_path))]
    assert uris[0] == "http://one.example.org/debian"
    assert uris[-1] == "http://two.example.org/debian"
    assert not any("off" in uri for uri in uris)


def test_the_environment_names_another_mirror() -> None:
    setup = apt.read_setup({apt.MIRROR_VARIABLE: "http://mine.example.org/debian"})
    assert setup.mirror == "http://mine.example.org/debian"


DUMP = """\
Acquire::Languages "none";
Acquire::http::Proxy "http://user:word@localhost:3142/";
Acquire::https::mirror.example.org::CaInfo "/etc/ssl/private-ca.pem";
Acquire::https::Proxy "";
Acquire::Retries "3";
"""


def test_proxy_and_authorities_reach_the_guest_in_its_own_view() -> None:
    options = apt.parse_transport_options(DUMP)
    assert [name for name, _value in options] == [
        "Acquire::http::Proxy",
        "Acquire::https::mirror.example.org::CaInfo",
    ]
    text = apt.guest_configuration(apt.AptSetup("http://m.example.org/debian", tuple(options), ()))
    assert 'Acquire::http::Proxy "http://user:word@10.0.2.2:3142/";' in text
    # A path of this machine means nothing there; the authority itself is copied instead.
    assert "CaInfo" not in text


def test_a_mirror_on_another_machine_keeps_its_name() -> None:
    assert apt.seen_from_guest("http://m.example.org/debian") == "http://m.example.org/debian"
    assert apt.seen_from_guest("http://localhost/debian") == "http://10.0.2.2/debian"


def test_a_silent_mirror_is_not_reachable() -> None:
    setup = apt.AptSetup("http://127.0.0.1:9/debian", (), ())
    assert not apt.reachable(setup, "trixie")


@given(st.text())
def test_no_file_content_breaks_the_parsers(text: str) -> None:
    for source in apt.parse_deb822(text) + apt.parse_one_line(text):
        assert source.uri
        assert source.suite
