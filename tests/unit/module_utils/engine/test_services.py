# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import (
    exec_argv,
    parse_environment_file,
    parse_flags,
    parse_show,
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
