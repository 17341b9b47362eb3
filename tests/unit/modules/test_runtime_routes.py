# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules of runtimes and routes, with files of their own and an engine that answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.modules import (
    oci_runtimes_info,
    runtime_routes,
    runtime_routes_info,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)

ROUTES = [{"name": "sandbox", "match": {"label": {"tier": "untrusted"}}, "runtime": "runsc"}]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineServer]:
    """Docker with the runtimes runc, runsc and old, and one container with the last."""
    with EngineServer(str(tmp_path / "sock")) as server:
        info = {
            "Runtimes": {"runc": {}, "runsc": {}, "old": {}},
            "DefaultRuntime": "runc",
            "DockerRootDir": str(tmp_path / "data"),
        }
        server.routes["GET /v1.51/info"] = lambda _body: (200, info)
        listed = [
            {
                "Id": "c1",
                "Names": ["/train"],
                "Image": "x",
                "State": "running",
                "Labels": {"tier": "untrusted"},
            }
        ]
        server.routes["GET /v1.51/containers/json"] = lambda _body: (200, listed)
        answer = {"HostConfig": {"Runtime": "old"}, "Config": {"User": "7", "Image": "x"}}
        server.routes["GET /v1.51/containers/c1/json"] = lambda _body: (200, answer)
        yield server


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings of the module."""
    warnings: list[str] = []
    monkeypatch.setattr(
        runtime_routes.AnsibleModule, "warn", lambda module, text: warnings.append(text)
    )
    return warnings


def run(module: Any, capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    """The result of a module."""
    with patch_module_args(options), pytest.raises(SystemExit):
        module.main()
    return dict(json.loads(capsys.readouterr().out))


def test_a_policy_is_written_once_and_taken_away(
    engine: EngineServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "etc/routes.json"
    options = {"routes": ROUTES, "default": "runc", "path": str(path), "socket": engine.path}
    foreseen = run(runtime_routes, capsys, **options, _ansible_check_mode=True)
    assert (foreseen["changed"], path.exists()) == (True, False)
    assert foreseen["actions"] == [f"write {path}: 1 route, runc for the rest"]
    assert '"runsc"' in foreseen["diff"]["after"]

    done = run(runtime_routes, capsys, **options)
    assert (done["changed"], done["actions"]) == (True, foreseen["actions"])
    assert done["runtimes_judged"]
    assert path.read_text() == foreseen["diff"]["after"]
    assert json.loads(path.read_text()) == done["policy"]

    again = run(runtime_routes, capsys, **options)
    assert (again["changed"], again["actions"]) == (False, [])

    gone = run(runtime_routes, capsys, state="absent", path=str(path))
    assert (gone["changed"], path.exists()) == (True, False)
    assert not run(runtime_routes, capsys, state="absent", path=str(path))["changed"]


def test_a_policy_that_cannot_be_is_refused_with_all_its_faults(
    engine: EngineServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "routes.json"
    routes = [
        {"match": {"image": "a/*"}, "runtime": "runcs"},
        {"match": {"image": "a/b"}, "runtime": "old"},
    ]
    result = run(runtime_routes, capsys, routes=routes, path=str(path), socket=engine.path)
    assert result["failed"]
    assert "nothing was changed: routes[0].runtime: no runtime 'runcs'" in result["msg"]
    assert "is it runsc?" in result["msg"] or "is it runc?" in result["msg"]
    assert "routes[1]: no container gets here" in result["msg"]
    assert not path.exists()
    wrong = run(runtime_routes, capsys, routes=[{"runtime": 3}], path=str(path))
    assert "routes[0].match" in wrong["msg"]


def test_without_an_engine_the_policy_is_taken_and_its_runtimes_are_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(
        runtime_routes,
        capsys,
        routes=[{"match": {"name": "a"}, "runtime": "kata"}],
        path=str(tmp_path / "routes.json"),
        socket=str(tmp_path / "none"),
    )
    assert (result["changed"], result["runtimes_judged"]) == (True, False)


def test_runtimes_that_will_be_defined_count(
    engine: EngineServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(
        runtime_routes,
        capsys,
        routes=[{"match": {"name": "a"}, "runtime": "kata"}],
        path=str(tmp_path / "routes.json"),
        socket=engine.path,
        expected_runtimes=["kata"],
    )
    assert result["changed"]


def test_somebody_elses_file_stays(
    engine: EngineServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], warned: list[str]
) -> None:
    path = tmp_path / "routes.json"
    path.write_text('{"hosts": []}')
    for options in ({"routes": ROUTES}, {"state": "absent"}):
        result = run(runtime_routes, capsys, path=str(path), socket=engine.path, **options)
        assert "no routing policy. It was left as it is" in result["msg"]
    assert path.read_text() == '{"hosts": []}'
    # One that was edited and broken is a policy all the same.
    path.write_text('{"routes": [')
    overlapping = [*ROUTES, {"match": {"label": {"tier": "un*", "a": "b"}}, "runtime": "old"}]
    result = run(runtime_routes, capsys, path=str(path), socket=engine.path, routes=overlapping)
    assert result["changed"]
    assert "both match label:tier untrusted" in warned[0]


def test_the_audit_says_who_is_off(
    engine: EngineServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "routes.json"
    options = {"path": str(path), "socket": engine.path}
    nothing = run(runtime_routes_info, capsys, **options)
    assert "no policy says" in nothing["problem"]
    assert (nothing["off_policy"], nothing["policy"]) == ([], None)

    run(runtime_routes, capsys, routes=ROUTES, **options)
    found = run(runtime_routes_info, capsys, **options)
    assert (found["changed"], found["problem"], found["lost"]) == (False, "", [])
    off = found["off_policy"][0]
    assert (off["name"], off["runtime"], off["wanted"]) == ("train", "old", "runsc")
    assert found["told"] == ["train: it has the runtime old, routes[0] (sandbox) wants runsc"]

    away = run(runtime_routes_info, capsys, path=str(path), socket=str(tmp_path / "none"))
    assert "no such socket" in away["problem"]
    assert away["default_runtime"] is None


def program(path: Path, version: str) -> str:
    path.write_text(f"#!/bin/sh\necho 'runc version {version}'\n")
    path.chmod(0o755)
    return str(path)


def test_runtimes_are_judged_before_anything_is_written(
    engine: EngineServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runtimes = {
        "good": {"path": program(tmp_path / "good", "1.3.6")},
        "bad": {"path": program(tmp_path / "bad", "1.1.12")},
        "none": {"path": "/nowhere/kata"},
    }
    options: dict[str, Any] = {"runtimes": runtimes, "default": "good", "socket": engine.path}
    result = run(oci_runtimes_info, capsys, **options, absent=["old", "runsc"])
    refused = "\n".join(result["refusals"])
    assert "runtime bad: " in refused
    assert "CVE-2025-31133" in refused
    assert "runtimes_unsafe_allowed: [bad]" in refused
    assert "runtime none: /nowhere/kata: there is no such program" in refused
    assert "runtime old stays: 1 container(s) carry its name" in refused
    assert "train" in refused
    assert "runsc" not in refused
    assert result["carried"] == {"old": ["train"]}
    assert result["absent"] == {"runtimes": {"old": {}, "runsc": {}}}

    allowed = run(
        oci_runtimes_info, capsys, **options, unsafe_allowed=["bad"], _ansible_check_mode=True
    )
    assert allowed["refusals"] == []
    assert allowed["present"] == {
        "runtimes": {"good": runtimes["good"], "bad": runtimes["bad"]},
        "default-runtime": "good",
    }
    assert any("/nowhere/kata" in one for one in allowed["warnings_found"])


def test_the_default_must_be_there_and_must_stay(
    engine: EngineServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = run(oci_runtimes_info, capsys, default="kata", socket=engine.path)
    assert "nobody defines it; known are old, runc, runsc" in unknown["refusals"][0]
    both = run(oci_runtimes_info, capsys, default="runsc", absent=["runsc"], socket=engine.path)
    assert len(both["refusals"]) == 2
    assert run(oci_runtimes_info, capsys, default="runsc", socket=engine.path)["present"] == {
        "default-runtime": "runsc"
    }
    routed = run(oci_runtimes_info, capsys, absent=["runsc"], routed=["runsc"], socket=engine.path)
    assert "the routing policy names it" in routed["refusals"][0]
    nothing = run(oci_runtimes_info, capsys, socket=str(tmp_path / "none"))
    assert (nothing["present"], nothing["refusals"], nothing["defined"]) == ({}, [], None)


def test_what_the_policy_of_the_host_names_stays(
    engine: EngineServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "routes.json"
    asked = {"absent": ["runsc"], "socket": engine.path}
    named = {**asked, "routes_path": str(path)}
    assert run(oci_runtimes_info, capsys, **named)["refusals"] == []
    run(runtime_routes, capsys, routes=ROUTES, path=str(path), socket=engine.path)
    assert "the routing policy names it" in run(oci_runtimes_info, capsys, **named)["refusals"][0]
    # A play that brings a policy of its own replaces this one.
    assert run(oci_runtimes_info, capsys, **asked, routes_path="")["refusals"] == []
    path.write_text('{"routes": [')
    unread = run(oci_runtimes_info, capsys, **named)
    assert unread["refusals"] == []
    assert "which runtimes it names is not known" in unread["warnings_found"][0]
