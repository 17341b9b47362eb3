# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.upgrade import offers, wanted
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.wanted import (
    Offer,
    Offers,
    WantedError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.upgrade.upgrade_hosts import (
    FORKY,
    MADISON,
    TRIXIE,
)

BOTH = Offers(offers.parse_madison(MADISON))
DOCKERS = Offers(
    tuple(
        Offer(name, version, "https://packages.example.com/debian trixie/stable amd64 Packages")
        for name, versions in {
            "docker-ce": ("5:28.5.2-1~debian.13~trixie", "5:27.5.1-1~debian.13~trixie"),
            "docker-ce-cli": ("5:28.5.2-1~debian.13~trixie", "5:27.5.1-1~debian.13~trixie"),
            "containerd.io": ("2.1.5-1~debian.13~trixie", "1.7.27-1"),
        }.items()
        for version in versions
    )
)


def test_the_whole_set_comes_from_the_suite_of_the_daemon_up_and_down() -> None:
    assert wanted.choose("28.5.2", TRIXIE, BOTH, {}) == FORKY
    assert wanted.choose("28.5", TRIXIE, BOTH, {}) == FORKY
    assert wanted.choose("28.5.2+dfsg4-5", TRIXIE, BOTH, {}) == FORKY
    assert wanted.choose("26.1.5", FORKY, BOTH, {}) == TRIXIE
    assert wanted.choose("26.*", FORKY, BOTH, {}) == TRIXIE


def test_complaint_36_a_newer_package_in_the_repository_changes_nothing_on_the_second_run() -> None:
    newer = {**FORKY, "docker.io": "28.5.2+dfsg4-6", "containerd": "2.1.9+ds1-6"}
    text = MADISON
    for name, version in newer.items():
        text = text.replace(FORKY[name] + " |", version + " |")
    moved_on = Offers(offers.parse_madison(text))
    assert wanted.choose("28.5.2", FORKY, moved_on, {}) == FORKY


def test_what_a_killed_run_left_of_another_branch_is_finished() -> None:
    half = {**FORKY, "containerd": TRIXIE["containerd"], "runc": TRIXIE["runc"]}
    assert wanted.choose("28.5.2", half, BOTH, {}) == FORKY


def test_a_package_that_was_cut_while_it_came_for_the_first_time_gets_a_version() -> None:
    cut = {**TRIXIE, "docker-cli": ""}
    assert wanted.choose("26.1.5", cut, BOTH, {}) == TRIXIE
    assert wanted.choose("28.5.2", {"docker.io": "", "runc": ""}, BOTH, {}) == {
        name: FORKY[name] for name in ("docker.io", "runc")
    }
    with pytest.raises(WantedError, match=r"no package source has docker\.io"):
        wanted.choose("candidate", {"docker.io": ""}, Offers(), {})


def test_security_and_updates_belong_to_their_suite() -> None:
    fixed = "1.1.15+ds1-2+deb13u1"
    line = f"runc | {fixed} | http://mirror.example.com/s trixie-security/main amd64 Packages"
    there = Offers(offers.parse_madison(MADISON + "\n" + line))
    assert wanted.choose("26.1.5", FORKY, there, {})["runc"] == fixed
    assert wanted.suite_of("http://m.example.com/d trixie-backports/main amd64 Packages") == (
        "trixie-backports"
    )


def test_dockers_own_containerd_stays_unless_it_is_named() -> None:
    now = {
        "docker-ce": "5:27.5.1-1~debian.13~trixie",
        "docker-ce-cli": "5:27.5.1-1~debian.13~trixie",
        "containerd.io": "1.7.27-1",
    }
    chosen = wanted.choose("28.5.2", now, DOCKERS, {})
    assert chosen == {
        "docker-ce": "5:28.5.2-1~debian.13~trixie",
        "docker-ce-cli": "5:28.5.2-1~debian.13~trixie",
    }
    given = {"containerd.io": "2.1.5-1~debian.13~trixie"}
    assert wanted.choose("28.5.2", now, DOCKERS, given) == {**chosen, **given}


def test_the_candidate_is_what_the_package_manager_would_take() -> None:
    policy = "docker.io:\n  Installed: 1\n  Candidate: 28.5.2+dfsg4-5\n  Version table:\n"
    there = Offers(BOTH.listed, offers.parse_policy(policy + "runc:\n  Candidate: (none)\n"))
    chosen = wanted.choose("candidate", TRIXIE, there, {})
    assert chosen == {**TRIXIE, "docker.io": FORKY["docker.io"]}


@pytest.mark.parametrize(
    ("version", "installed", "words"),
    [
        ("27.0", TRIXIE, ("docker.io 27.0", "28.5.2+dfsg4-5, 26.1.5", "Add a source")),
        ("28.5.2", {"containerd": "1"}, ("no package of Docker", "role engine")),
    ],
)
def test_what_cannot_be_had_says_what_there_is(
    version: str, installed: dict[str, str], words: tuple[str, ...]
) -> None:
    with pytest.raises(WantedError) as refused:
        wanted.choose(version, installed, BOTH, {})
    for word in words:
        assert word in str(refused.value)


def test_dnf_offers() -> None:
    text = "docker-ce\t3\t28.5.2-1.el9\tdocker-ce-stable\nrunc\t0\t1.3.6-1.el9\tbaseos\nbroken\n"
    assert offers.parse_repoquery(text) == (
        Offer("docker-ce", "3:28.5.2-1.el9", "docker-ce-stable"),
        Offer("runc", "1.3.6-1.el9", "baseos"),
    )
