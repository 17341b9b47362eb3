"""The engine of this host still answers as the checks take for granted."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

DATA = Path(__file__).parents[3] / "tests" / "data"
ENGINES = ("26.1.5", "28.5.2")
# Four at a time: one by one the lines take two minutes in emulation.
ASK = """
import concurrent.futures, json, subprocess, sys

def ask(line):
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    return [done.returncode, done.stdout + done.stderr]

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(json.dumps(list(pool.map(ask, json.loads(sys.argv[1])))))
"""


def recorded(name):
    """What is asked: where the engines differ, and an eighth of the rest; all with the variable."""
    answers = json.loads((DATA / name).read_text(encoding="utf-8"))
    if os.environ.get("STEADYGPU_ALL_ANSWERS"):
        return answers
    one, other = ENGINES
    return [a for at, a in enumerate(answers) if a[one][0] != a[other][0] or at % 8 == 0]


def version(host):
    return host.check_output("docker version --format '{{.Server.Version}}'").partition("+")[0]


def ask(host, lines):
    """Status and output of each line."""
    asked = f"python3 -c {shlex.quote(ASK)} {shlex.quote(json.dumps(lines))}"
    return json.loads(host.check_output(asked))


def test_docker_answers_every_line_of_the_table_as_recorded(host):
    engine = version(host)
    answers = recorded("docker_answers.json")
    assert answers[0].get(engine), f"no answers of Docker {engine} are recorded"
    host.check_output("tar -cT /dev/null | docker import - answers")
    got = ask(host, [f"docker create {answer['flags']} answers true" for answer in answers])
    host.check_output(
        "docker ps -aq --filter ancestor=answers | xargs docker rm >/dev/null; docker rmi answers"
    )
    wrong = []
    for answer, (status, said) in zip(answers, got):
        wanted, words = answer[engine]
        text = " ".join(said.split())
        if status != wanted or words[:60] not in text:
            wrong.append(f"{answer['flags']}: wanted {wanted} {words!r}, got {status} {text!r}")
    assert not wrong, "\n".join(wrong)


def test_dockerd_refuses_every_daemon_json_of_the_table_as_recorded(host):
    engine = version(host)
    answers = recorded("dockerd_answers.json")
    lines = [
        f"f=$(mktemp) && printf %s {shlex.quote(answer['text'])} >$f && "
        "dockerd --validate --config-file $f; s=$?; rm -f $f; exit $s"
        for answer in answers
    ]
    got = ask(host, lines)
    wrong = [
        f"{answer['text']!r}: wanted {answer[engine]}, got {status} {said.strip()[-200:]!r}"
        for answer, (status, said) in zip(answers, got)
        if (status != 0) != (answer[engine][0] != 0)
    ]
    assert not wrong, "\n".join(wrong)
