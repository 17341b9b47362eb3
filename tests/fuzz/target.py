# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is fuzzed, and the inputs it starts from."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import yaml

from ansible_collections.steadygpu.host.plugins.module_utils.checks import inspection
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import Gpu, HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output import (
    as_json,
    junit,
    sarif,
    text,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.output.report import Report
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds

DATA = Path(__file__).resolve().parents[1] / "data"
HOSTS = (
    HostView(),
    HostView(
        versions={"docker": "26.1.5", "docker_cli": "26.1.5", "driver": "550.54.15"},
        gpus=(Gpu(0), Gpu(1)),
        cpus="0-7",
        runtimes=frozenset({"runc", "nvidia"}),
    ),
)


class SlowError(BaseException):
    """The input took too long. Not an Exception, so that nothing that is tested swallows it."""


def judge(data: bytes, kind: str) -> None:
    """Everything that is done with a text of that kind. Raises what no user may ever see."""
    decoded = data.decode("utf-8", "replace")
    kinds.detect(decoded)
    kinds.is_template(decoded)
    lines = {"input": tuple(decoded.splitlines())}
    for host in HOSTS:
        result = inspection.inspect(decoded, "input", host, kind, lambda path: None)
        report = Report(result.findings, result.problems, files=("input",), lines=lines)
        text.text(report, colour=True)
    as_json.text(report)
    sarif.text(report, {})
    junit.text(report)


def judge_once(data: bytes, kind: str) -> None:
    """Only read and judged, for one host: what is run most often and traced."""
    decoded = data.decode("utf-8", "replace")
    kinds.detect(decoded)
    inspection.inspect(decoded, "input", HOSTS[1], kind, lambda path: None)


def seeds() -> list[tuple[str, bytes]]:
    """Kind and text of every example of a rule, of every field case, and some of our own."""
    found = [
        ("yaml", "a: &a [1]\nb: *a\nc: {<<: {d: e}}\n"),
        ("compose", "services:\n  a:\n    image: ${X:-${Y:?no}}\n    extends: {service: a}\n"),
        ("shell", "docker run -e A=\"$(cat <<'E'\n)\nE\n)\" ${B:-c} ubuntu && echo 'x\\'\n"),
        ("markdown", "```bash\n$ docker run \\\n  ubuntu\n```\n"),
        ("env_file", "A=1\nexport B='2'\n"),
    ]
    for path in sorted((DATA / "rules").glob("*.yml")):
        for example in yaml.safe_load(path.read_text()) or []:
            for word in ("bad", "good"):
                given = example[word] if isinstance(example[word], list) else [example[word]]
                found += [(example["as"], one) for one in given if isinstance(one, str)]
    cases = DATA / "field_cases.json"
    for case in _cases(json.loads(cases.read_text()) if cases.exists() else []):
        found.append((str(case.get("kind")), str(case.get("input"))))
    return [(_kind(kind), one.encode()) for kind, one in found]


def _cases(document: object) -> list[dict[str, object]]:
    listed = document.get("cases", []) if isinstance(document, dict) else document
    return [case for case in listed if isinstance(case, dict)] if isinstance(listed, list) else []


def _kind(word: str) -> str:
    try:
        return kinds.named(word)
    except kinds.UnknownKindError:
        return "compose" if word == "yaml" else "dump"


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise :class:`SlowError` inside when it takes more of the CPU: a busy machine is no fault."""

    def late(number: int, frame: FrameType | None) -> None:
        raise SlowError

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
