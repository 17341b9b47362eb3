# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our verdict against what Docker 26.1.5 and 28.5.2 answered to the very same input.

``tests/data/docker_answers.json`` has the answers of ``docker create FLAGS IMAGE COMMAND`` on hosts
of two CPUs, ``dockerd_answers.json`` those of ``dockerd --validate`` to the examples of our rules
on daemon.json. Molecule asks the real engines again on every run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks import assume, inspection
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Severity

ENGINES = ("26.1.5", "28.5.2")
HOST = (
    "cgroup=2,cgroup_driver=systemd,cpus=2,numa=0:0;1:1,"
    "runtimes=runc+io.containerd.runc.v2,cdi=true"
)
DATA = Path(__file__).parents[3] / "data"
ANSWERS: list[dict[str, Any]] = json.loads((DATA / "docker_answers.json").read_text("utf-8"))
VALIDATED: list[dict[str, Any]] = json.loads((DATA / "dockerd_answers.json").read_text("utf-8"))
# Where there is a note, the answer to `create` is not the engine's last word.
ASKED = [(engine, answer) for answer in ANSWERS for engine in ENGINES if "note" not in answer]
REFUSED = [(e, answer) for answer in VALIDATED for e in ENGINES if answer[e][0] != 0]


@pytest.mark.parametrize(("engine", "answer"), ASKED, ids=lambda v: v if isinstance(v, str) else "")
def test_what_the_engine_refuses_is_an_error_and_what_it_takes_is_none(engine, answer):
    status, said = answer[engine]
    line = f"docker create {answer['flags']} image command\n"
    host = assume.apply(HostView(), assume.parse(f"docker={engine},{HOST}"))
    findings = inspection.inspect(line, "run.sh", host, "shell").findings
    worst = max((finding.severity for finding in findings), default=Severity.INFO)
    told = [(finding.severity.label, finding.rule) for finding in findings]
    if status != 0:
        assert worst >= Severity.ERROR, f"refused with {said!r}; we say {told}"
    elif said:
        assert worst == Severity.WARNING, f"the engine warns {said!r}; we say {told}"
    else:
        assert worst < Severity.ERROR, f"the engine takes it; we say {told}"


def test_a_limit_that_the_cli_drops_is_an_error_for_that_cli_alone():
    line = "docker create --device-read-bps=/dev/vda:1mb image command\n"
    rules = {}
    for engine in ENGINES:
        host = assume.apply(HostView(), assume.parse(f"docker={engine},{HOST}"))
        found = inspection.inspect(line, "run.sh", host, "shell").findings
        rules[engine] = {f.rule for f in found if f.severity >= Severity.ERROR}
    assert rules == {"26.1.5": {"device-throttle-dropped"}, "28.5.2": set()}


@pytest.mark.parametrize(
    ("engine", "answer"), REFUSED, ids=lambda v: v if isinstance(v, str) else v["text"][:40]
)
def test_a_daemon_json_that_the_engine_refuses_is_fatal(engine, answer):
    said = answer[engine][1]
    host = assume.apply(HostView(), assume.parse(f"docker={engine},{HOST}"))
    found = inspection.inspect(answer["text"], "daemon.json", host, "daemon_json").findings
    worst = max((finding.severity for finding in found), default=Severity.INFO)
    told = [(finding.severity.label, finding.rule) for finding in found]
    assert worst == Severity.FATAL, f"refused with {said!r}; we say {told}"
