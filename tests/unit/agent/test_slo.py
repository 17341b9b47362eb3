# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu slo``: what a person sees, and the exit status a script relies on."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from steadygpu_agent import slo

OLD = """\
pluginConfig:
  - name: availability-enforcer
    args: {minAvailablePods: 3, maxLatencyMs: 200}
"""


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    slo.register(parser.add_subparsers())
    arguments = parser.parse_args(["slo", *words])
    status: int = arguments.run(arguments)
    return status


@pytest.fixture
def old(tmp_path: Path) -> str:
    """A file of the articles' settings."""
    path = tmp_path / "old.yml"
    path.write_text(OLD)
    return str(path)


def test_what_is_converted_can_be_checked(
    old: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["convert", old, "--target", "web", "--availability", "99.95%"]
    assert _run(*words) == 0
    captured = capsys.readouterr()
    assert captured.out == (
        "version: 1\n"
        "objectives:\n"
        '  - target: "web"\n'
        '    availability: "99.95%"\n'
        "    min_replicas: 3\n"
        '    latency: {p95: "200ms"}\n'
        '    window: "30d"\n'
    )
    assert f"{old}:3:30: changed: pluginConfig[0].args.minAvailablePods: kept" in captured.err
    assert f"{old}:2:11: no equal: pluginConfig[0].name" in captured.err
    new = tmp_path / "new.yml"
    new.write_text(captured.out)
    assert _run("check", str(new)) == 0
    assert capsys.readouterr().out == f"{new}: 1 objective\n"


def test_what_a_policy_should_have_is_asked_for(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("convert", old, "--target", "web") == 1
    captured = capsys.readouterr()
    assert "needed: pluginConfig[0]: no availability is named for web" in captured.err
    assert "availability" not in captured.out


def test_json_is_for_programs(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("convert", old, "--target", "web", "--json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["policy"]["objectives"][0]["min_replicas"] == 3
    assert {one["kind"] for one in answer["remarks"]} == {"changed", "no_equal", "needed"}


@pytest.mark.parametrize(
    "words", [[], ["--target", "a", "--availability", "99"], ["--min-replicas", "none"]]
)
def test_what_cannot_be_converted(
    old: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("convert", old, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err


def test_a_policy_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yml"
    path.write_text("version: 1\nobjectives:\n  - target: a\n    latency: {p95: 200}\n")
    assert _run("check", str(path)) == 2
    assert f"{path}:4:20: error: objectives[0].latency.p95: '200' has no unit" in (
        capsys.readouterr().out
    )
    assert _run("check", str(path), "--json") == 2
    assert json.loads(capsys.readouterr().out)["policy"] is None
    assert _run("check", str(tmp_path / "none")) == 2
