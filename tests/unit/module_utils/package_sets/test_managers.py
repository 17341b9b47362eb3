# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What apt and dnf print, and what is read from it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import (
    apt,
    archives,
    dnf,
    guard,
    managers,
)
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import (
    FetchError,
    MissingError,
    PackageError,
    RefusedError,
    Solution,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.acting import (
    Programs,
    failed,
)

SIMULATED = """\
NOTE: This is only a simulation!
Remv podman-docker [5.4.2+ds1-2]
Inst libc6:i386 [2.41-12] (2.42-2 Debian:testing [i386]) []
Inst docker.io [26.1.5+dfsg1-9+b9] (28.5.2+dfsg1-1 Debian:testing [amd64])
Inst tini (0.19.0-3 Debian:13.2/stable [amd64])
Conf libc6:i386 (2.42-2 Debian:testing [i386])
Conf docker.io (28.5.2+dfsg1-1 Debian:testing [amd64])
Conf tini (0.19.0-3 Debian:13.2/stable [amd64])
Conf left-over (1.0 Debian:13.2/stable [amd64])
"""

# In the form of dnf 4 where nobody looks: 80 columns, a name that is too long alone on its line.
TABLE = """\
Last metadata expiration check: 0:12:01 ago on Tue Dec  1 09:00:00 2026.
Dependencies resolved.
================================================================================
 Package              Arch   Version                  Repository           Size
================================================================================
Installing:
 docker-ce            x86_64 3:28.5.2-1.el9           docker-ce-stable     20 M
     replacing  podman-docker.noarch 4:5.4.0-1.el9
Upgrading:
 containerd.io        x86_64 1.7.29-1.el9             docker-ce-stable     43 M
Installing dependencies:
 docker-ce-rootless-extras
                      x86_64 28.5.2-1.el9             docker-ce-stable    4.2 M
Downgrading:
 runc                 x86_64 0:1.2.5-1.el9            appstream           3.9 M
Removing dependent packages:
 buildah              x86_64 2:1.39.4-1.el9           @appstream           36 M

Transaction Summary
================================================================================
Install    2 Packages
Upgrade    1 Package
"""


def test_a_simulation_of_apt() -> None:
    solved = apt.parse_simulation(SIMULATED)
    assert solved == Solution(
        new=frozenset({"tini"}),
        changed=frozenset({"libc6", "docker.io"}),
        removed=frozenset({"podman-docker"}),
        versions={"libc6": "2.42-2", "docker.io": "28.5.2+dfsg1-1", "tini": "0.19.0-3"},
        configured=frozenset({"left-over"}),
    )


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("E: Unable to locate package docker.io", MissingError),
        ("E: Version '1' for 'runc' was not found", MissingError),
        ("E: Package 'x' has no installation candidate", MissingError),
        ("E: Unable to correct problems, you have held broken packages.", RefusedError),
    ],
)
def test_what_apt_cannot_do(monkeypatch: pytest.MonkeyPatch, said: str, kind: Any) -> None:
    unmet = "The following packages have unmet dependencies:\n docker.io : Depends: runc (>= 1.3)\n"
    answer = Completed([], 100, unmet, said)
    monkeypatch.setattr(apt, "run", Programs({"apt-get": answer}).run)
    with pytest.raises(kind) as error:
        apt.Apt().solve("install", ["docker.io"])
    assert error.type is kind
    for words in (said, "Depends: runc (>= 1.3)"):
        assert words in str(error.value)


def test_a_download_that_failed_changed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Completed | str] = {
        "apt-get": Completed([], 100, "", "E: Failed to fetch x")
    }
    monkeypatch.setattr(apt, "run", Programs(answers).run)
    with pytest.raises(FetchError):
        apt.Apt().do("install", ["x"])
    answers["apt-get"] = Completed([], 100, "", "E: Sub-process dpkg returned 1")
    with pytest.raises(PackageError, match="dpkg returned 1"):
        apt.Apt().do("install", ["x"])


def test_what_an_update_complains_of(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Completed | str] = {"apt-get": "all well"}
    monkeypatch.setattr(apt, "run", Programs(answers).run)
    assert apt.Apt().refresh() is None
    # apt ends with 0 when a source did not answer.
    answers["apt-get"] = Completed([], 0, "", "W: Failed to fetch http://a\nsomething else\n")
    assert apt.Apt().refresh() == "W: Failed to fetch http://a"


def test_a_transaction_of_dnf() -> None:
    solved = dnf.parse_transaction(TABLE)
    assert solved.new == {"docker-ce", "docker-ce-rootless-extras"}
    assert solved.changed == {"containerd.io", "runc"}
    assert solved.removed == {"podman-docker", "buildah"}
    assert solved.versions == {
        "docker-ce": "3:28.5.2-1.el9",
        "docker-ce-rootless-extras": "28.5.2-1.el9",
        "containerd.io": "1.7.29-1.el9",
        "runc": "1.2.5-1.el9",
    }


def test_dnf_is_asked_before_and_kept_from_starting_units(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs({"dnf": TABLE})
    seen: list[Any] = []

    def run(*arguments: Any, **more: Any) -> Completed:
        seen.append(more.get("env"))
        return programs.run(*arguments, **more)

    monkeypatch.setattr(dnf, "run", run)
    files = [archives.Archive("/srv/a.rpm", "a", "1-1"), archives.Archive("/srv/b.rpm", "b", "2-1")]
    manager = dnf.Dnf(archives=files, offline=True)
    assert manager.offered(["a"]) == {"a": {"1-1": "/srv/a.rpm"}}
    manager.solve("install", ["/srv/a.rpm"])
    manager.do("install", ["/srv/a.rpm"], dnf.NOTHING_RESTARTS)
    asked, done = programs.asked
    assert "--assumeno install /srv/a.rpm /srv/b.rpm" in asked
    assert " -y " not in asked
    for words in ("dnf -y -q", "--disablerepo=*", "--exclude=kernel-*", "install /srv/a.rpm"):
        assert words in done
    assert seen[-1] == {"SYSTEMD_OFFLINE": "1"}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (
            "No match for argument: docker-ce\nError: Unable to find a match: docker-ce",
            MissingError,
        ),
        ("Error: \n Problem: package requires runc >= 1.3", RefusedError),
    ],
)
def test_what_dnf_cannot_do(monkeypatch: pytest.MonkeyPatch, said: str, kind: Any) -> None:
    monkeypatch.setattr(dnf, "run", Programs({"dnf": Completed([], 1, "", said)}).run)
    with pytest.raises(kind) as error:
        dnf.Dnf().solve("install", ["docker-ce"])
    assert error.type is kind


def test_a_file_that_is_no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    path = tmp_path / "a.deb"
    path.write_text("")
    answer = failed("dpkg-deb: error: not a Debian format archive")
    monkeypatch.setattr(archives, "run", Programs({"dpkg-deb": answer}).run)
    with pytest.raises(RefusedError, match="not a Debian format archive"):
        archives.read([str(path)], "dpkg")
    with pytest.raises(RefusedError, match=r"holds no file that ends in \.rpm"):
        archives.read([str(tmp_path)], "rpm")
    monkeypatch.setattr(archives, "run", Programs({"rpm -qp": "docker-ce\t3\t28.5.2-1.el9\n"}).run)
    (found,) = archives.read([str(path)], "rpm")
    assert (found.name, found.version) == ("docker-ce", "3:28.5.2-1.el9")


@pytest.mark.parametrize(
    ("manager", "removing", "kept"),
    [
        ("dpkg", (), True),
        ("dpkg", ("tini",), True),
        ("rpm", (), True),
        # Its scripts stop what goes, and nothing else.
        ("rpm", ("tini",), False),
        # An engine that goes has to be stopped.
        ("dpkg", ("tini", "docker.io"), False),
        ("rpm", ("docker-ce",), False),
    ],
)
def test_whose_scripts_leave_engines_alone(
    tmp_path: Any, manager: str, removing: tuple[str, ...], kept: bool
) -> None:
    asked = apt.Apt(str(tmp_path)) if manager == "dpkg" else dnf.Dnf()
    told = {guard.VARIABLE: guard.UNITS} if manager == "dpkg" else dnf.NOTHING_RESTARTS
    with managers.engines_kept(asked, str(tmp_path), removing) as environment:
        assert environment == (told if kept else {})
    assert not guard.left_behind(str(tmp_path))
