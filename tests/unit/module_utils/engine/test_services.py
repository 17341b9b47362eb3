# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import (
    exec_argv,
    parse_environment_file,
    parse_flags,
    parse_show,
    read_services,
)

# `systemctl show docker.service containerd.service nothing.service` on Debian 13, shortened.
SHOW = """MainPID=912
ExecStart={ path=/usr/sbin/dockerd ; argv[]=/usr/sbin/dockerd -H fd:// --containerd=/run/c.sock \
$DOCKER_OPTS ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) }
EnvironmentFiles=/etc/default/docker (ignore_errors=yes)
Id=docker.service
LoadState=loaded
ActiveState=active

MainPID=0
Id=containerd.service
LoadState=loaded
ActiveState=inactive

Id=nothing.service
LoadState=not-found
ActiveState=inactive
"""


def test_three_units_in_one_answer() -> None:
    docker, containerd, nothing = parse_show(SHOW)
    assert (docker["Id"], docker["ActiveState"]) == ("docker.service", "active")
    assert containerd["ActiveState"] == "inactive"
    assert nothing["LoadState"] == "not-found"


def test_flags_include_what_the_environment_file_adds() -> None:
    environment = parse_environment_file(
        '# old style\nDOCKER_OPTS="--default-shm-size 1G -D --label a=1 --label b=2"\n'
    )
    flags = parse_flags(exec_argv(parse_show(SHOW)[0]["ExecStart"], environment))
    assert flags == {
        "--host": "fd://",
        "--containerd": "/run/c.sock",
        "--default-shm-size": "1G",
        "--debug": "true",
        "--label": "a=1,b=2",
    }


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        ("/d ${A}x", ["/d", "1 2x"]),
        ("/d $A", ["/d", "1", "2"]),
        ("/d $NONE -D", ["/d", "-D"]),
    ],
)
def test_variables_are_put_in_as_systemd_does(words: str, argv: list[str]) -> None:
    line = "{ path=/d ; argv[]=" + words + " ; ignore_errors=no ; }"
    assert exec_argv(line, {"A": "1 2"}) == argv


def test_no_unit_has_no_flags() -> None:
    assert parse_flags(exec_argv("", {})) == {}


def test_what_systemd_takes_down_with_a_unit_and_all_that_it_starts_it_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_text('STORAGE="-s overlay2 -g /srv/docker"\n')
    (tmp_path / "two").write_text("NETWORK=-b=br0\n")
    show = (
        "Id=docker.service\n"
        "ExecStart={ path=/usr/bin/dockerd ; argv[]=/usr/bin/dockerd $STORAGE $NETWORK ; pid=0 }\n"
        f"EnvironmentFiles={tmp_path}/one (ignore_errors=yes)\n"
        f"EnvironmentFiles={tmp_path}/two (ignore_errors=no)\n"
        "RequiredBy=one.service\n"
        "RequisiteOf=two.service one.service\n"
    )
    program = tmp_path / "systemctl"
    program.write_text(f"#!/bin/sh\nprintf %s '{show}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path))
    found = read_services(["docker.service"])["docker.service"]
    assert (found.program, found.bound) == ("dockerd", ("one.service", "two.service"))
    assert found.flags == {
        "--storage-driver": "overlay2",
        "--graph": "/srv/docker",
        "--bridge": "br0",
    }
