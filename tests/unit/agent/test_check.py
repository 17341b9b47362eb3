# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu check`` and ``rules``: exit statuses, which files are read, and what is printed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks import inspection
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds
from steadygpu_agent import check_files, cli

CONFLICT = "docker run --cpus=4 --cpu-quota=200000 --rm ubuntu:24.04 true\n"
CLEAN = "docker run --rm --cpus=4 ubuntu:24.04 true\n"
PRIVILEGED = "services:\n  a:\n    image: ubuntu:24.04\n    privileged: true\n"


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def check(capsys, *arguments):
    status = cli.main(["check", *arguments])
    return status, capsys.readouterr().out


def test_a_finding_makes_the_status_1_and_shows_the_line(capsys):
    Path("run.sh").write_text("#!/bin/sh\n" + CONFLICT)
    status, out = check(capsys, "run.sh")
    assert status == 1
    assert out.startswith("run.sh:2:")
    assert "[cpus-conflict]" in out
    assert "    2 | docker run --cpus=4 --cpu-quota=200000" in out
    assert out.splitlines()[-1].startswith("1 error")


def test_nothing_found_is_0_and_says_so(capsys):
    Path("run.sh").write_text(CLEAN)
    assert check(capsys, "run.sh") == (0, "nothing found in 1 file\n")


def test_fail_on_sets_what_counts(capsys):
    Path("compose.yml").write_text(PRIVILEGED)
    assert check(capsys, "compose.yml")[0] == 1
    assert check(capsys, "--fail-on", "error", "compose.yml")[0] == 0


def test_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONFLICT.encode())))
    status, out = check(capsys, "-")
    assert status == 1
    assert out.startswith("stdin:1:")


def test_a_kind_can_be_named(capsys):
    Path("x").write_text(PRIVILEGED)
    assert check(capsys, "--kind", "compose", "x")[0] == 1
    assert cli.main(["check", "--kind", "nonsense", "x"]) == 2
    assert "there are: shell" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["--assume", "nonsense=1", "x"], ["--baseline", "no", "x"]]
)
def test_what_cannot_be_carried_out_is_2_and_says_why(arguments, capsys):
    assert cli.main(["check", *arguments]) == 2
    assert capsys.readouterr().err.startswith("steadygpu check: ")


def test_a_missing_and_an_unknown_file_are_2(capsys):
    Path("notes.txt").write_text("hello\n")
    status, out = check(capsys, "missing.yml", "notes.txt")
    assert status == 2
    assert "missing.yml: cannot be judged: there is no such file" in out
    assert "notes.txt: cannot be judged: not a kind of file" in out


def test_for_a_commit_hook_unknown_files_are_left_out(capsys):
    Path("notes.txt").write_text("hello\n")
    Path("run.sh").write_text(CLEAN)
    assert check(capsys, "--only-known", "notes.txt", "run.sh")[0] == 0


def test_one_broken_file_does_not_hide_another(capsys):
    Path("compose.yml").write_text("services: [\n")
    Path("run.sh").write_text(CONFLICT)
    status, out = check(capsys, "compose.yml", "run.sh")
    assert status == 2
    assert "compose.yml:" in out
    assert "[cpus-conflict]" in out


def test_a_directory_is_walked_for_known_names_only(capsys):
    for name in ("a/compose.yml", "node_modules/x/compose.yml", ".git/compose.yml", "a/README.md"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(PRIVILEGED if name.endswith("yml") else f"```\n{CONFLICT}```\n")
    Path("a/ci.yml").write_text("on: push\n")
    status, out = check(capsys, ".")
    assert status == 1
    assert out.count("[privileged]") == 1
    assert "a/compose.yml:4:5: warning" in out
    assert out.splitlines()[-1] == "1 warning in 1 file"


def test_links_that_go_round_end_quickly(capsys):
    Path("a/b").mkdir(parents=True)
    os.symlink("..", "a/b/up")
    os.symlink("loop", "loop")
    os.symlink("loop.yml", "loop.yml")
    Path("a/b/compose.yml").write_text(PRIVILEGED)
    assert check(capsys, "a", ".")[1].count("[privileged]") == 1


def test_a_binary_file_is_named_when_given_and_passed_by_when_found(capsys):
    Path("compose.yml").write_bytes(b"\x7fELF\0\0")
    status, out = check(capsys, "compose.yml")
    assert status == 2
    assert "a binary file" in out
    assert check(capsys, ".")[0] == 0


def test_a_file_that_is_too_large_is_named(capsys):
    Path("compose.yml").write_bytes(b"#" * (kinds.LIMIT_BYTES + 1))
    for path in ("compose.yml", "."):
        status, out = check(capsys, path)
        assert status == 2
        assert "larger than 2 MiB; such a file is not read" in out


def test_a_device_without_an_end_ends(capsys):
    assert check(capsys, "/dev/zero")[0] == 2


def test_a_template_is_left_out_where_it_is_found(capsys):
    Path("compose.yml").write_text("services:\n  {{ name }}:\n    image: {{ image }}\n")
    status, out = check(capsys, ".")
    assert status == 0
    assert "compose.yml: left out: a template" in out
    assert check(capsys, "compose.yml")[0] == 2


def test_a_template_that_is_yaml_is_left_out_too(capsys):
    Path("compose.yml").write_text("#@ load('x', 'y')\nservices:\n  a:\n    ports:\n      -\n")
    status, out = check(capsys, ".")
    assert status == 0
    assert "compose.yml: left out: a template" in out


def test_a_fault_of_ours_is_a_message_about_that_file(capsys, monkeypatch):
    def broken(*arguments):
        raise RuntimeError("secret text of the file")

    monkeypatch.setattr(inspection, "inspect", broken)
    Path("run.sh").write_text(CONFLICT)
    status, out = check(capsys, "run.sh")
    assert status == 2
    assert "by a fault of steadygpu: RuntimeError" in out
    assert "secret text" not in out


def test_a_reader_that_hangs_is_given_up(capsys, monkeypatch):
    def hangs(*arguments):
        try:
            while True:
                time.sleep(0.001)
        except Exception:  # a reader that swallows everything still ends
            return

    monkeypatch.setattr(inspection, "inspect", hangs)
    monkeypatch.setattr(check_files, "DEADLINE_S", 0.2)
    Path("run.sh").write_text(CONFLICT)
    status, out = check(capsys, "run.sh")
    assert status == 2
    assert "not judged within" in out


def test_a_fifo_nobody_writes_to_is_given_up(capsys, monkeypatch):
    monkeypatch.setattr(check_files, "DEADLINE_S", 0.2)
    os.mkfifo("pipe")
    assert check(capsys, "pipe")[0] == 2


def test_many_files_are_judged_by_workers_in_order(capsys, monkeypatch):
    monkeypatch.setattr(check_files, "_cpus", lambda: 2)
    for number in range(60):
        Path(f"{number:02}.sh").write_text(CONFLICT)
    status, out = check(capsys, "--format", "json", ".")
    document = json.loads(out)
    assert status == 1
    assert document["files"] == [f"{number:02}.sh" for number in range(60)]
    assert document["counts"]["error"] >= 60


def test_a_worker_that_is_killed_is_a_message(capsys, monkeypatch):
    monkeypatch.setattr(check_files, "_cpus", lambda: 2)
    judge, parent = inspection.inspect, os.getpid()

    def killed(text, file, *arguments):
        if file == "30.sh" and os.getpid() != parent:
            os.kill(os.getpid(), 9)
        return judge(text, file, *arguments)

    monkeypatch.setattr(inspection, "inspect", killed)
    for number in range(60):
        Path(f"{number:02}.sh").write_text(CLEAN)
    status, out = check(capsys, ".")
    assert status == 2
    assert "30.sh: cannot be judged: not judged: the worker process" in out


def test_an_interrupt_is_no_traceback(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(inspection, "inspect", interrupted)
    Path("run.sh").write_text(CLEAN)
    assert cli.main(["check", "run.sh"]) == 130


def test_a_file_that_describes_the_host_sharpens_what_is_said_of_the_others(capsys):
    Path("run.sh").write_text("docker run --rm --cgroup-parent=/jobs ubuntu:24.04 true\n")
    Path("daemon.json").write_text('{"exec-opts": ["native.cgroupdriver=cgroupfs"]}\n')
    for name in ("other", "third"):
        Path(name).mkdir()
        Path(name, "daemon.json").write_text("{}\n")

    def said(*paths):
        return "[container-cgroup-parent]" in check(capsys, "run.sh", *paths)[1]

    assert said()
    assert not said("daemon.json")
    assert said("daemon.json", "other")  # of which host is run.sh then?


def test_what_is_assumed_of_the_host_decides_and_is_said(capsys):
    Path("run.sh").write_text("docker run --rm --device-read-bps /dev/sda:1mb ubuntu:24.04 true\n")
    old = check(capsys, "--assume", "docker=26.1.5", "run.sh")
    new = check(capsys, "--assume", "docker=28.5.2", "run.sh")
    assert old[0] == 1
    assert new[0] == 0
    assert "judged for a host with docker=28.5.2" in new[1]


def test_a_comment_with_a_reason_ignores_and_is_counted(capsys):
    Path("run.sh").write_text(CONFLICT.rstrip() + "  # steadygpu: ignore[cpus-conflict] a test\n")
    assert check(capsys, "run.sh") == (0, "nothing found in 1 file; 1 ignored by comments\n")


def test_a_baseline_lets_only_new_findings_fail(capsys):
    Path("run.sh").write_text(CONFLICT)
    assert check(capsys, "--write-baseline", "known.json", "run.sh")[0] == 0
    status, out = check(capsys, "--baseline", "known.json", "run.sh")
    assert (status, "1 known from the baseline" in out) == (0, True)
    Path("run.sh").write_text("true\n" + CONFLICT + "docker run --privileged ubuntu:24.04 true\n")
    status, out = check(capsys, "--baseline", "known.json", "run.sh")
    assert status == 1
    assert "[privileged]" in out
    assert "[cpus-conflict]" not in out


@pytest.mark.parametrize("form", ["json", "sarif", "junit"])
def test_a_report_in_a_file_and_the_text_on_the_terminal(capsys, form):
    Path("run.sh").write_text(CONFLICT)
    status, out = check(capsys, "--format", form, "--output", "report", "run.sh")
    assert status == 1
    assert "[cpus-conflict]" in out
    assert "cpus-conflict" in Path("report").read_text()
    assert check(capsys, "--format", form, "--output", "/proc/no/such", "run.sh")[0] == 2


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit"])
def test_no_format_shows_a_secret(capsys, form):
    Path("compose.yml").write_text(
        PRIVILEGED + "    environment:\n      DB_PASSWORD: hunter2\n"
        "      HF_TOKEN: hf_abcdefghijklmnopqrstuvwxyz123456\n"
    )
    Path("prod.env").write_text("DB_PASSWORD=hunter2\nAWS_KEY=AKIAIOSFODNN7EXAMPLE\n")
    Path("daemon.json").write_text(
        '{"proxies": {"http-proxy": "http://u:hunter2@example.invalid"}}'
    )
    out = check(capsys, "--format", form, ".")[1]
    for secret in ("hunter2", "abcdefghijklmnop", "IOSFODNN7"):
        assert secret not in out


def test_rules_are_listed_and_one_is_shown(capsys):
    assert cli.main(["rules"]) == 0
    assert cli.main(["check", "--rules"]) == 0
    listed, again = capsys.readouterr().out.split("RULE ")[1:]
    assert listed == again
    assert cli.main(["rules", "cpus-conflict"]) == 0
    assert "why:" in capsys.readouterr().out
    assert cli.main(["rules", "cpu-conflict"]) == 2
    assert "is it cpus-conflict" in capsys.readouterr().err


def test_an_ascii_terminal_is_no_traceback():
    Path("run.sh").write_text("docker run --privileged ubuntu:24.04 true # ü\n", encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONIOENCODING": "ascii",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "steadygpu_agent", "check", "run.sh"],
        env=environment,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "\\xfc" in done.stdout


def test_a_file_that_cannot_be_judged_is_not_counted_as_judged(capsys):
    Path("broken.yml").write_text("services:\n  a: [\n")
    Path("empty").write_text("")
    status, out = check(capsys, "broken.yml", "empty", "--format", "json")
    assert status == 2
    assert json.loads(out)["files"] == []
    assert json.loads(out)["problems"][1]["said"] == "empty: there is nothing to judge"


def test_a_compose_file_of_any_name_with_windows_line_ends(capsys):
    Path("stack.yml").write_bytes(PRIVILEGED.replace("\n", "\r\n").encode())
    status, out = check(capsys, "stack.yml")
    assert status == 1
    assert out.startswith("stack.yml:4:5: warning")


def test_a_link_in_a_circle_is_told_as_such(capsys):
    os.symlink("compose.yml", "compose.yml")
    status, out = check(capsys, "compose.yml")
    assert status == 2
    assert "symbolic links" in out


def test_an_empty_assumption_is_none(capsys):
    Path("run.sh").write_text(CLEAN)
    assert check(capsys, "--assume", "", "run.sh") == (0, "nothing found in 1 file\n")


def test_a_directory_without_a_file_of_ours_does_not_look_like_a_clean_one(capsys):
    Path("notes.txt").write_text("x")
    status, out = check(capsys, ".")
    assert (status, out) == (
        0,
        "nothing found, and no file judged: none is of a kind that is known here\n",
    )


def test_sarif_has_one_name_and_one_fingerprint_for_a_file(capsys):
    Path("compose.yml").write_text(PRIVILEGED)
    results = []
    for path in ("compose.yml", "./compose.yml", "."):
        out = check(capsys, path, "--format", "sarif")[1]
        results.append(json.loads(out)["runs"][0]["results"])
    assert results[0] == results[1] == results[2]
    place = results[0][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "compose.yml"}


def test_a_file_that_is_named_twice_is_judged_once(capsys):
    Path("run.sh").write_text(CONFLICT)
    paths = (".", "run.sh", "./run.sh", str(Path("run.sh").absolute()))
    assert check(capsys, *paths)[1].splitlines()[-1] == "1 error in 1 file"
