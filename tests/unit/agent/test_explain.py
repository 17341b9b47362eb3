# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu explain``: causes with their proofs, what the host rules out, versions in a text."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from steadygpu_agent import check_run, cli

UNKNOWN_ERROR = "Failed to initialize NVML: Unknown Error"


def explain(capsys, *arguments):
    status = cli.main(["explain", *arguments])
    return status, capsys.readouterr().out


def test_a_message_with_many_causes_gets_one_command_that_tells_them_apart(capsys):
    status, out = explain(capsys, UNKNOWN_ERROR)
    assert status == 0
    assert "to tell the causes apart:" in out
    assert out.count(". possible:") >= 6
    for word in ("why:", "proof:", "shows:", "fix:"):
        assert out.count(word) >= 6


def test_json_has_every_cause_with_its_standing(capsys):
    status, out = explain(capsys, "--json", UNKNOWN_ERROR)
    (found,) = json.loads(out)["explanations"]
    assert status == 0
    assert found["tell_apart"]
    assert {cause["standing"] for cause in found["causes"]} == {"possible"}
    assert all(cause["proof"] and cause["fix"] for cause in found["causes"])


def test_what_is_known_of_a_host_rules_causes_out(capsys):
    out = explain(capsys, "--assume", "runc=1.2.8", "--json", UNKNOWN_ERROR)[1]
    standing = {c["id"]: c["standing"] for c in json.loads(out)["explanations"][0]["causes"]}
    assert set(standing.values()) == {"possible", "ruled out"}
    text = explain(capsys, "--assume", "runc=1.2.8", UNKNOWN_ERROR)[1]
    assert "ruled out:" in text


def test_the_live_host_is_asked_only_when_wanted(capsys, monkeypatch):
    view = replace(HostView(), live=True, versions={"runc": "1.2.8"})
    monkeypatch.setattr(check_run, "live_host", lambda deadline: check_run.Gathered(view))
    out = explain(capsys, "--host", "--json", UNKNOWN_ERROR)[1]
    standing = {c["id"]: c["standing"] for c in json.loads(out)["explanations"][0]["causes"]}
    assert "ruled out" in standing.values()


def test_a_file_and_standard_input(capsys, monkeypatch, tmp_path):
    log = tmp_path / "job.log"
    log.write_text(f"starting\n{UNKNOWN_ERROR}\n")
    assert explain(capsys, str(log))[0] == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log.read_bytes())))
    assert explain(capsys, "-")[0] == 0


def test_a_version_with_a_known_hole_is_named(capsys):
    status, out = explain(capsys, "runc version 1.1.5")
    assert status == 0
    assert "[runc-vulnerable]" in out


def test_a_command_in_the_text_is_judged(capsys):
    out = explain(capsys, "docker run --cpus=2 --cpu-quota=200000 ubuntu true")[1]
    assert "[cpus-conflict]" in out


def test_what_is_not_known_is_1_and_asks_for_more(capsys):
    status, out = explain(capsys, "the coffee machine is empty")
    assert status == 1
    assert "Give more of it" in out


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_2(capsys, text):
    assert cli.main(["explain", text]) == 2


def test_a_binary_file_is_2(capsys, tmp_path):
    file = Path(tmp_path, "core")
    file.write_bytes(b"\x7fELF\0")
    assert cli.main(["explain", str(file)]) == 2
    assert "a binary file" in capsys.readouterr().err


def test_no_secret_of_the_text_is_repeated(capsys):
    text = f"{UNKNOWN_ERROR}\ndocker run -e HF_TOKEN=hf_abcdefghijklmnop123456 --privileged ubuntu"
    for arguments in ([], ["--json"]):
        assert "abcdefghijklmnop" not in explain(capsys, *arguments, text)[1]


def test_a_log_line_is_explained_once_and_nobody_is_sent_here_again(capsys, tmp_path):
    log = tmp_path / "kern.log"
    log.write_text(
        "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6\n"
    )
    status, out = explain(capsys, str(log))
    assert status == 0
    assert out.count("[xid-79-off-bus]") == 1
    assert "[known-message]" not in out


def test_a_version_that_proves_a_cause_stays(capsys):
    out = explain(capsys, f"{UNKNOWN_ERROR}\nrunc version 1.2.2")[1]
    assert out.count("[runc-device-rules-late]") == 2


def test_a_message_without_quotes_is_one_message(capsys):
    assert explain(capsys, *UNKNOWN_ERROR.split()) == explain(capsys, UNKNOWN_ERROR)


def test_a_file_that_is_not_there_is_told(capsys, tmp_path):
    assert cli.main(["explain", str(tmp_path / "no.log")]) == 1
    assert "there is no file" in capsys.readouterr().err
    assert cli.main(["explain", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
    (tmp_path / "a.log").write_text("x")
    assert cli.main(["explain", str(tmp_path / "a.log"), "and", "more"]) == 2
    assert "one file" in capsys.readouterr().err
