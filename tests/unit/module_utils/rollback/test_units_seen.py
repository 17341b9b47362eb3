# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    RollbackError,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import units_seen
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.recorded_bundles import (
    program,
)

# Debian 13's systemd 257, shortened to two of the units.
ANSWER = """\
LoadState=loaded
ActiveState=active
DropInPaths=/etc/systemd/system/docker.service.d/a.conf /run/systemd/system/docker.service.d/b.conf
UnitFileState=enabled

LoadState=not-found
ActiveState=inactive
DropInPaths=
UnitFileState=
"""


def test_all_units_in_one_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "systemctl", f"echo \"$@\" >> {tmp_path}/asked\ncat <<'END'\n{ANSWER}END\n")
    monkeypatch.setattr(process, "_SEARCH_PATH", f"{tmp_path}:/usr/bin:/bin")
    found = units_seen.read(["docker.service", "gone.service"], 5)
    assert found == {
        "docker.service": UnitState(
            "loaded",
            "active",
            "enabled",
            (
                "/etc/systemd/system/docker.service.d/a.conf",
                "/run/systemd/system/docker.service.d/b.conf",
            ),
        ),
        "gone.service": UnitState("not-found", "inactive", ""),
    }
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


@pytest.mark.parametrize("links", ["enabled", "disabled"])
def test_a_link_made_without_a_daemon_reload_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: str
) -> None:
    told = ANSWER.replace("UnitFileState=enabled", "UnitFileState=disabled")
    script = f'[ "$*" != "is-enabled docker.service" ] || exec echo {links}\n'
    program(tmp_path, "systemctl", f"{script}cat <<'END'\n{told}END\n")
    monkeypatch.setattr(process, "_SEARCH_PATH", f"{tmp_path}:/usr/bin:/bin")
    found = units_seen.read(["docker.service", "gone.service"], 5)
    assert (found["docker.service"].enabled, found["gone.service"].enabled) == (links, "")


@pytest.mark.parametrize(
    "script",
    [
        "echo 'System has not been booted with systemd as init system' >&2; exit 1",
        f"cat <<'END'\n{ANSWER.split(chr(10) * 2, maxsplit=1)[0]}\nEND\n",
    ],
)
def test_half_an_answer_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    program(tmp_path, "systemctl", script)
    monkeypatch.setattr(process, "_SEARCH_PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(RollbackError, match="instead of 2"):
        units_seen.read(["docker.service", "gone.service"], 5)


def test_a_slice_comes_and_goes_with_those_in_it() -> None:
    told = {"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "static"}
    assert units_seen.state("ai.slice", told) == UnitState("loaded", "", "static")
    assert units_seen.state("ai.slice", {**told, "ActiveState": "inactive"}) == UnitState(
        "loaded", "", "static"
    )


def test_a_service_that_reloads_serves() -> None:
    assert units_seen.state("docker.service", {"ActiveState": "reloading"}).active == "active"
    assert units_seen.state("docker.service", {"ActiveState": "failed"}).active == "failed"


def test_ours_and_the_host_s_slices_are_looked_at(tmp_path: Path) -> None:
    directory = tmp_path / "etc/systemd/system"
    directory.mkdir(parents=True)
    for name in (
        "steadygpu-mig.service",
        "steadygpu-mig.path",
        "steadygpu-at@.service",
        "ai.slice",
        "ai-workload.slice",
        "ssh.service",
        "steadygpu-notes.txt",
    ):
        (directory / name).touch()
    names = units_seen.names(str(tmp_path))
    assert "docker.service" in names
    assert sorted(set(names) - set(units_seen.FOREIGN)) == [
        "ai-workload.slice",
        "ai.slice",
        "steadygpu-mig.path",
        "steadygpu-mig.service",
    ]
