# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu routes``: what a person sees, and the exit status a script relies on."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)
from steadygpu_agent import routes

POLICY = """\
routes:
  - name: sandbox
    match: {label: {tier: untrusted}}
    runtime: runsc
default: runc
"""


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    routes.register(parser.add_subparsers())
    arguments = parser.parse_args(["routes", *words])
    status: int = arguments.run(arguments)
    return status


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """A file with a good policy."""
    path = tmp_path / "routes.yml"
    path.write_text(POLICY)
    return str(path)


def test_a_good_policy(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("check", policy) == 0
    assert capsys.readouterr().out == f"{policy}: 1 route, runc for the rest\n"
    assert _run("check", policy, "--runtime", "runsc") == 0


def test_a_runtime_that_is_not_there_is_told_with_its_line(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("check", policy, "--runtime", "runcs") == 2
    out = capsys.readouterr().out
    assert f"{policy}:2:5: error: routes[0].runtime: no runtime 'runsc' is defined" in out


def test_what_is_no_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text("routes:\n  - match: {}\n    runtime: a\n")
    assert _run("check", str(bad)) == 2
    assert f"{bad}:2:12: error: routes[0].match: match has nothing" in capsys.readouterr().out
    assert _run("check", str(tmp_path / "none")) == 2
    bad.write_bytes(b"\xff")
    assert _run("check", str(bad)) == 2
    assert "is not text in UTF-8" in capsys.readouterr().err


def test_json_is_for_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stdin:
        buffer = io.BytesIO(b'{"routes": [], "default": null}')

    monkeypatch.setattr("sys.stdin", Stdin())
    assert _run("check", "-", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "usable": True,
        "faults": [],
        "policy": {"version": 1, "routes": [], "default": None},
    }


def engine(path: str, *containers: dict[str, Any]) -> EngineServer:
    server = EngineServer(path)
    info = {"Runtimes": {"runc": {}, "runsc": {}}, "DefaultRuntime": "runc", "DockerRootDir": "/no"}
    server.routes["GET /v1.51/info"] = lambda _body: (200, info)
    listed = [
        {
            "Id": one["name"],
            "Names": ["/" + one["name"]],
            "Image": "nginx",
            "State": "running",
            "Labels": one.get("labels", {}),
        }
        for one in containers
    ]
    server.routes["GET /v1.51/containers/json"] = lambda _body: (200, listed)
    for one in containers:
        answer = {"HostConfig": {"Runtime": one["runtime"]}, "Config": {"User": ""}}
        server.routes[f"GET /v1.51/containers/{one['name']}/json"] = (
            lambda _body, answer=answer: (200, answer)  # type: ignore[misc]
        )
    return server


def test_an_audit_names_who_is_off_and_who_cannot_start(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    socket = str(tmp_path / "sock")
    untrusted = {"tier": "untrusted"}
    with engine(
        socket,
        {"name": "good", "runtime": "runsc", "labels": untrusted},
        {"name": "bad", "runtime": "runc", "labels": untrusted},
        {"name": "orphan", "runtime": "nvidia"},
    ):
        assert _run("audit", "--policy", policy, "--socket", socket) == 1
    out = capsys.readouterr().out
    assert "good" not in out
    assert "it has the runtime runc, routes[0] (sandbox) wants runsc" in out
    assert "orphan: Docker has no runtime nvidia (it has runc, runsc): it cannot start" in out
    assert "2 of 3 containers have another runtime than they should" in out


def test_an_audit_where_all_is_well(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    socket = str(tmp_path / "sock")
    with engine(socket, {"name": "web", "runtime": "runc"}):
        assert _run("audit", "--policy", policy, "--socket", socket, "--all") == 0
        assert "web" in capsys.readouterr().out
        assert _run("audit", "--policy", policy, "--socket", socket, "--json") == 0
    assert json.loads(capsys.readouterr().out)["containers"][0]["standing"] == "on"


def test_an_audit_without_a_policy_or_an_engine(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "sock")
    assert _run("audit", "--policy", str(tmp_path / "none"), "--socket", missing) == 2
    assert "no policy says which runtime a container should have" in capsys.readouterr().out
    assert _run("audit", "--policy", policy, "--socket", missing) == 2
    assert "there is no such socket" in capsys.readouterr().out
