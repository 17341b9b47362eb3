# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets in daemon.json, and files that a way back has left."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_apply import (
    DaemonFailedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_plan import (
    DaemonRefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import find_program
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.fake_docker import (
    CDI,
    NVIDIA,
    Host,
)

PROXY = "http://deploy:s3cr%40t-pw@proxy.example.com:3128"
PROXIES = {"proxies": {"https-proxy": PROXY}}
PARTS = ("s3cr", "t-pw")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def shown(error: pytest.ExceptionInfo[Exception]) -> str:
    """What a person sees of an error, with what it came from."""
    return f"{error.value} {error.value.__cause__}"


def test_the_daemons_last_words_quote_no_password(host: Host) -> None:
    docker = host.docker(refuses="proxies", words=f'invalid proxy "{PROXY}"; s3cr@t-pw is wrong')
    with pytest.raises(DaemonFailedError) as caught:
        host.run(docker, PROXIES)
    assert "proxy.example.com" in shown(caught)
    assert not any(part in shown(caught) for part in PARTS)


def test_an_error_that_quotes_the_former_file_hides_it_too(host: Host) -> None:
    host.write(json.dumps(PROXIES))
    said = UnitError(f"docker.service: {json.dumps(PROXIES)}")
    with pytest.raises(DaemonFailedError) as caught:
        host.run(host.docker(raises={"restart": said}), CDI)
    assert not any(part in shown(caught) for part in PARTS)


@pytest.mark.parametrize("takeover", [False, True])
def test_somebody_elses_password_is_not_quoted(host: Host, takeover: bool) -> None:
    host.write(json.dumps(PROXIES))
    wanted = {"proxies": {"https-proxy": "http://x:other-99-pw@proxy.example.com"}}
    if takeover:
        plan = host.plan(host.docker(), wanted, takeover=True)
        told = " ".join(plan.actions)
    else:
        with pytest.raises(DaemonRefusedError) as caught:
            host.plan(host.docker(), wanted)
        told = shown(caught)
    assert "proxies.https-proxy" in told
    assert not any(part in told for part in (*PARTS, "other-99"))


def test_a_password_in_a_flag_of_the_unit_is_not_quoted(host: Host) -> None:
    flags = {"--registry-mirror": "https://ci:hunter2@mirror.example.com"}
    with pytest.raises(DaemonRefusedError) as caught:
        host.plan(host.docker(flags=flags), {"registry-mirrors": ["https://m.example.com"]})
    assert "is a flag of docker.service" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("config", "mode"), [(PROXIES, 0o600), ({"labels": ["a=1"]}, 0o644), (CDI, 0o644)]
)
def test_a_new_file_with_a_secret_is_for_root_only(
    host: Host, config: dict[str, Any], mode: int
) -> None:
    host.run(host.docker(status="stopped"), config)
    assert stat.S_IMODE(os.stat(host.path).st_mode) == mode
    assert stat.S_IMODE(os.stat(host.record).st_mode) == 0o600


# -- what a way back has left ------------------------------------------------------------


LEFT = json.dumps({"runtimes": {"nvidia": {"path": find_program("runc") or "runc"}}})


def test_a_runtime_that_a_way_back_led_to_runc_is_ours(host: Host) -> None:
    host.write(LEFT)
    host.ours = (LEFT,)
    docker = host.docker()
    host.run(docker, NVIDIA)
    assert json.loads(host.text() or "") == NVIDIA
    host.run(docker, {}, present=False)
    assert json.loads(host.text() or "{}").get("runtimes", {}) == {}


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        (LEFT, ()),
        (json.dumps({"runtimes": {"nvidia": {"path": "/opt/theirs"}}}), "itself"),
    ],
)
def test_a_runtime_of_somebody_else_is_not(host: Host, text: str, ours: Any) -> None:
    host.write(text)
    host.ours = (text,) if ours else ()
    with pytest.raises(DaemonRefusedError, match="somebody else set"):
        host.run(host.docker(), NVIDIA)
    assert host.text() == text


# -- who does not come back --------------------------------------------------------------


def test_who_does_not_come_back_after_a_restart_is_told(host: Host) -> None:
    docker = host.docker(running=("train", "web"), forgotten=("train", "idle"))
    plan = host.plan(docker, CDI, restart="always")
    (told,) = plan.warnings
    assert "moby #49989" in told
    assert "docker start train" in told
    assert "idle" not in told


def test_live_restore_loses_nobody(host: Host) -> None:
    docker = host.docker(running=("train",), forgotten=("train",))
    assert host.plan(docker, {**CDI, "live-restore": True}).warnings == ()


def test_who_does_not_come_back_at_a_start_is_told(host: Host) -> None:
    docker = host.docker(status="stopped", forgotten=("train",))
    assert "train" in host.plan(docker, CDI, start=True).warnings[0]
    assert host.plan(docker, {}, start=True).how == "start"
