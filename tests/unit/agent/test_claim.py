# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu claim check``: what a person sees, and the exit status a script relies on."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import pytest

from steadygpu_agent import claim

FACTS: dict[str, Any] = {
    "gpu": {
        "source": "nvml",
        "driver": {"status": "loaded", "version": "550.163.01"},
        "devices": [
            {
                "index": index,
                "uuid": f"GPU-{index}",
                "name": "NVIDIA A100-SXM4-40GB",
                "memory_mib": {"total": 40960, "used": 0, "free": 40960},
                "numa_node": 0,
                "mig": {"supported": True, "current": False, "pending": False, "devices": []},
            }
            for index in range(2)
        ],
        "links": [["X", "NV12"], ["NV12", "X"]],
    },
    "cdi": {"specs": [{"status": "valid", "kind": "nvidia.com/gpu", "devices": ["0", "1"]}]},
}


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    claim.register(parser.add_subparsers())
    arguments = parser.parse_args(["claim", "check", *words])
    status: int = arguments.run(arguments)
    return status


@pytest.fixture
def facts(tmp_path: Path) -> str:
    """A file of facts of a host with two GPUs."""
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(FACTS))
    return str(path)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("count=2+memory=20g+link=nvlink+policy=strict", 0),
        ("device=GPU-0+memory=8g+compute=on", 0),
        ("count=3", 255),
        ("device=GPU-9", 255),
        ("device=0,1+count=3", 255),
        ("cuont=2", 2),
    ],
)
def test_the_exit_status_tells_what_is_wrong(facts: str, text: str, status: int) -> None:
    assert _run(text, "--facts", facts) == status


def test_a_host_without_a_driver_lacks_a_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"gpu": {"source": "none", "driver": {"status": "absent"}}}))
    assert _run("count=1", "--facts", str(path)) == 127
    assert "driver does not answer" in capsys.readouterr().out


def test_what_contradicts_itself_needs_no_tool(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"gpu": {"driver": {"status": "absent"}}}))
    assert _run("device=0,1+count=3", "--facts", str(path)) == 255


def test_a_mark_stands_under_each_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("count=2+memory=20", "--no-host") == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].index("20") == lines[2].index("^")
    assert "write 20g for GiB" in lines[2]


def test_json_has_what_was_asked_and_how_it_is_held(
    facts: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("count=1+memory=8g+share=mps", "--facts", facts, "--json") == 0
    (verdict,) = json.loads(capsys.readouterr().out)
    assert verdict["asks"] == {"count": 1, "memory_mib": 8192, "share": "mps"}
    assert (verdict["status"], verdict["level"]) == (0, "soft-mps")


def test_a_file_of_claims_is_judged_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "claims"
    path.write_text("# ours\ncount=2\n\nmemory=8\n")
    assert _run(str(path), "--no-host") == 2
    out = capsys.readouterr().out
    assert f"{path}:2: valid" in out
    assert f"{path}:4: malformed" in out


def test_claims_come_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"count=1\n")))
    assert _run("-", "--no-host") == 0
    assert "standard input:1: valid" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff\xfe\x00", b"a" * (3 << 20)])
def test_a_file_that_is_no_list_of_claims_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "claims"
    path.write_bytes(content)
    assert _run(str(path), "--no-host") == 2
    assert str(path) in capsys.readouterr().err


def test_a_word_that_is_neither_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("two", "--no-host") == 2
    assert "neither a claim nor a file" in capsys.readouterr().err


def test_facts_that_are_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "facts.json"
    path.write_text("[]")
    assert _run("count=1", "--facts", str(path)) == 2
    assert "steadygpu facts --json" in capsys.readouterr().err


def test_characters_that_a_terminal_acts_on_are_not_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run("count=2\x1b[2J+x=1", "--no-host") == 2
    assert "\x1b" not in capsys.readouterr().out


def test_a_zero_that_was_asked_is_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    _run("--no-host", "--json", "priority=0")
    assert json.loads(capsys.readouterr().out)[0]["asks"] == {"priority": 0}


def test_nothing_of_a_claim_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marked = tmp_path / "marked"
    for value in (f"$(touch {marked})", f"`touch {marked}`", f"1;touch {marked}"):
        assert _run("--no-host", f"device={value}+count={value}") == 2
    assert not marked.exists()
