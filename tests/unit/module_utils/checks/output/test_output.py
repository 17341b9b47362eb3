# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The formats of a report: what a person, a forge and a CI system read; and that no secret is."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks import baseline
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import (
    Finding,
    Position,
    Problem,
    Rule,
    Severity,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output import (
    as_json,
    junit,
    sarif,
    text,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output.report import Report
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import mask

ERROR = Finding(
    rule="cpus-conflict",
    title="--cpus and --cpu-quota exclude each other",
    severity=Severity.ERROR,
    at=Position("run.sh", 2, 12),
    seen="--cpus=4 stands beside --cpu-quota=200000",
    reason="The engine refuses both together.",
    fix="keep --cpus=4",
    commands=("docker run --cpus=4 ubuntu true",),
    assumed=("docker >=26",),
    sources=("moby daemon/daemon_unix.go",),
)
INFO = replace(ERROR, rule="note", severity=Severity.INFO, at=Position("run.sh", 1, 1), assumed=())
PROBLEM = Problem(Position("bad.yml", 3, 4), "this is not YAML: <mapping> wanted")
REPORT = Report(
    findings=(ERROR, INFO),
    problems=(PROBLEM,),
    files=("run.sh", "fine.sh", "bad.yml"),
    ignored=1,
    host="gpu1",
    version="1.2.3",
    kinds={"run.sh": "shell"},
    lines={"run.sh": ("#!/bin/sh", "docker run --cpus=4 --cpu-quota=200000 ubuntu true")},
)


def test_people_get_place_line_caret_reason_and_fix():
    assert text.text(REPORT).partition("\n\n")[0] == (
        "run.sh:2:12: error: --cpus and --cpu-quota exclude each other [cpus-conflict]\n"
        "    2 | docker run --cpus=4 --cpu-quota=200000 ubuntu true\n"
        "      |            ^\n"
        "  seen:   --cpus=4 stands beside --cpu-quota=200000\n"
        "  why:    The engine refuses both together.\n"
        "  fix:    keep --cpus=4\n"
        "          docker run --cpus=4 ubuntu true\n"
        "  taken for granted: docker >=26"
    )


def test_the_last_line_sums_up():
    assert text.text(REPORT).splitlines()[-1] == (
        "1 error, 1 info in 3 files; judged for gpu1; 1 ignored by comments; "
        "1 input could not be judged"
    )
    assert text.text(Report(files=("a",))) == "nothing found in 1 file\n"


def test_a_reason_is_told_once():
    twice = replace(REPORT, findings=(ERROR, replace(ERROR, at=Position("run.sh", 2, 20))))
    assert text.text(twice).count("why:") == 1
    assert text.text(twice).count("fix:") == 2


def test_colours_only_when_asked():
    assert "\033" not in text.text(REPORT)
    assert "\033[1;31merror:" in text.text(REPORT, colour=True)


def test_a_long_line_is_shown_around_its_place():
    line = "x " * 250 + "HERE" + " y" * 250
    report = replace(
        REPORT, findings=(replace(ERROR, at=Position("run.sh", 1, 501)),), lines={"run.sh": (line,)}
    )
    shown, caret = text.text(report).splitlines()[1:3]
    assert len(shown) < 130
    assert shown[caret.index("^") :].startswith("HERE")


def test_a_terminal_is_not_driven_by_what_is_in_a_file():
    report = replace(REPORT, lines={"run.sh": ("", "docker \033[2J\x07run\x9b31m \u202e")})
    assert "docker ·[2J·run·31m ·" in text.text(report)


def test_a_reason_that_many_files_share_is_said_once():
    few = tuple(Problem(Position(f"{n}.yml"), "a template") for n in range(3))
    many = tuple(Problem(Position(f"{n}.yml"), "a template") for n in range(90))
    assert "2.yml: left out: a template" in text.text(Report(notes=few))
    assert text.text(Report(notes=many)).startswith("90 files left out: a template\n")


@pytest.mark.parametrize(
    ("findings", "problems", "fail_on", "status"),
    [
        ((), (), Severity.WARNING, 0),
        ((INFO,), (), Severity.WARNING, 0),
        ((INFO,), (), Severity.INFO, 1),
        ((ERROR,), (), Severity.WARNING, 1),
        ((ERROR,), (), Severity.FATAL, 0),
        ((ERROR,), (PROBLEM,), Severity.WARNING, 2),
    ],
)
def test_exit_status(findings, problems, fail_on, status):
    assert Report(findings, problems, fail_on=fail_on).status == status


def test_json_has_every_field():
    document = json.loads(as_json.text(REPORT))
    assert document["schema"] == 1
    assert document["status"] == 2
    assert document["counts"] == {"fatal": 0, "error": 1, "warning": 0, "info": 1}
    assert document["findings"][0]["rule"] == "cpus-conflict"
    assert document["findings"][0]["line"] == 2
    assert document["problems"][0]["file"] == "bad.yml"


def test_sarif_names_rules_places_and_levels():
    rule = Rule(
        id="cpus-conflict",
        title="title",
        severity=Severity.ERROR,
        reads=HostView,
        reason="reason",
        fix="fix",
        sources=("source",),
        judge=lambda document, host: (),
    )
    log = json.loads(sarif.text(REPORT, {"cpus-conflict": rule}, "https://example.invalid/rules"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["semanticVersion"] == "1.2.3"
    assert [one["id"] for one in driver["rules"]] == ["cpus-conflict", "note"]
    assert driver["rules"][0]["helpUri"] == "https://example.invalid/rules/cpus-conflict.md"
    error, note = run["results"]
    assert (error["level"], note["level"]) == ("error", "note")
    assert driver["rules"][error["ruleIndex"]]["id"] == error["ruleId"]
    region = error["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 12}
    assert error["partialFingerprints"] != note["partialFingerprints"]
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "not YAML" in notice["message"]["text"]


def test_sarif_writes_names_as_addresses_and_whole_inputs_without_a_region():
    odd = replace(ERROR, at=Position("a b/ü#.yml"))
    log = json.loads(sarif.text(replace(REPORT, findings=(odd,)), {}))
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b/%C3%BC%23.yml"}}


def test_junit_is_a_test_for_each_finding_and_each_clean_file():
    suite = ElementTree.fromstring(junit.text(REPORT))[0]
    assert suite.attrib["tests"] == "4"
    assert suite.attrib["failures"] == "1"
    assert suite.attrib["errors"] == "1"
    error, info, problem, clean = suite
    assert error.find("failure").attrib["type"] == "error"
    assert "keep --cpus=4" in error.find("failure").text
    assert info.find("failure") is None
    assert problem.find("error").attrib["message"] == PROBLEM.said
    assert (clean.attrib["classname"], len(clean)) == ("fine.sh", 0)


@given(st.text())
def test_any_text_makes_well_formed_documents(said):
    odd = replace(ERROR, seen=said, at=Position(said or "-", 1, 1))
    report = replace(REPORT, findings=(odd,), files=(said,), lines={said: (said,)})
    ElementTree.fromstring(junit.text(report))
    json.loads(as_json.text(report))
    json.loads(sarif.text(report, {}))
    text.text(report)


SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "line",
    [
        f"docker run -e DB_PASSWORD={SECRET} ubuntu",
        f"docker run -e 'API_KEY={SECRET} and more' ubuntu",
        f"      MY_SECRET: {SECRET}",
        f'      "token": "{SECRET}",',
        f"export HF_TOKEN='{SECRET}'",
        f"docker login --password {SECRET} registry.example.invalid",
        f'{{"auths": {{"r": {{"auth":"{SECRET}"}}}}}}',
        f"Environment=HTTP_PROXY=http://user:{SECRET}@proxy.example.invalid:3128",
        f"curl -H 'Authorization: Bearer {SECRET}' https://example.invalid",
        "-e X=hf_" + SECRET,
        "X: ghp_" + SECRET,
        f'password = "{SECRET}"',
        "A" * 30 + SECRET + "B" * 20,
    ],
)
def test_a_secret_is_never_shown(line):
    report = replace(REPORT, lines={"run.sh": ("", line)}, findings=(replace(ERROR, seen="x"),))
    shown = text.text(report)
    assert "    2 | " in shown
    assert SECRET not in shown
    assert "hunter2" not in shown


def test_in_a_file_of_variables_no_value_is_shown():
    assert mask.source("export A=b c", "env_file") == "export A=***"
    assert mask.source("# A comment", "env_file") == "# A comment"


@pytest.mark.parametrize(
    "line",
    [
        "docker run --cpus=4 -e NVIDIA_VISIBLE_DEVICES=all ubuntu",
        "    image: nvidia/cuda:12.4.1-base-ubuntu22.04",
        "ExecStart=/usr/bin/dockerd --host=fd://",
    ],
)
def test_what_is_no_secret_is_shown_as_it_is(line):
    assert mask.source(line) == line


HERE = baseline.Place("/repo", "/repo")


def test_a_baseline_knows_its_findings_wherever_they_move_and_whoever_asks():
    known = baseline.read(baseline.write([ERROR, INFO], HERE))
    moved = replace(ERROR, at=Position("run.sh", 90, 1))
    assert baseline.new_ones([moved, INFO], known, HERE) == ([], 2)
    from_elsewhere = replace(ERROR, at=Position("repo/run.sh", 2, 12))
    elsewhere = baseline.Place("/repo", "/")
    assert baseline.new_ones([from_elsewhere], known, elsewhere) == ([], 1)


def test_a_second_finding_of_the_same_kind_is_new():
    known = baseline.read(baseline.write([ERROR], HERE))
    again = replace(ERROR, at=Position("run.sh", 7, 1))
    assert baseline.new_ones([ERROR, again], known, HERE) == ([again], 1)


def test_a_baseline_has_no_text_of_the_files():
    assert "200000" not in baseline.write([ERROR], HERE)


@pytest.mark.parametrize("bad", ["", "{}", "[]", "null", '{"schema": 2, "known": []}', "[" * 9999])
def test_what_is_no_baseline_is_refused(bad):
    with pytest.raises(baseline.BaselineError):
        baseline.read(bad)


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("shell", "docker run -e DB_PASSWORD=a,bHIDE img"),
        ("shell", "docker run -e DB_PASSWORD=a;HIDE img"),
        ("shell", "docker run -e 'DB_PASSWORD=a HIDE' img"),
        ("shell", 'docker run -e "DB_PASSWORD=a HIDE" img'),
        ("shell", "docker run -e DB_PASSWORD=a\\ HIDE img"),
        ("shell", "docker run -e DB_PASSWORD=a'b HIDE' img"),
        ("shell", "docker login -u me -p HIDE registry"),
        ("shell", "curl -u me:HIDE https://x"),
        ("shell", "mysql://root:p@/HIDE@db/x"),
        ("shell", "git clone https://HIDEHIDEHIDEHIDEHIDE@host/x"),
        ("compose", "  DB_PASS: HIDE"),
        ("compose", "  - DB_PASSWORD=a HIDE"),
        ("compose", '  - "DB_PASSWORD=a HIDE"'),
        ("kubernetes", "    value: HIDE"),
        ("kubernetes", "  .dockerconfigjson: HIDE"),
        ("unit", 'Environment="DB_PASSWORD=a HIDE"'),
    ],
)
def test_no_part_of_a_password_is_shown(kind: str, line: str) -> None:
    assert "HIDE" not in mask.source(line, kind)


def test_a_long_report_counts_infos_and_shows_what_is_graver() -> None:
    notes = tuple(replace(INFO, at=Position("run.sh", line, 1)) for line in range(1, 201))
    shown = text.text(replace(REPORT, findings=(ERROR, *notes)))
    assert "[cpus-conflict]" in shown
    assert "[note]" not in shown
    assert "200 not shown (--show info)" in shown
    everything = text.text(replace(REPORT, findings=(ERROR, *notes), show=Severity.INFO))
    assert everything.count("[note]") == 200


def test_what_is_below_the_wanted_severity_is_not_shown_and_counts_all_the_same() -> None:
    shown = text.text(replace(REPORT, show=Severity.ERROR))
    assert "[note]" not in shown
    assert "1 error, 1 info" in shown
