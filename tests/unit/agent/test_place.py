# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu place``: what it prints and how it ends."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.tests.unit.module_utils.topology import recorded
from steadygpu_agent import place

REFUSED, MALFORMED = 255, 2


def _links() -> list[list[str]]:
    return [
        ["X" if i == j else "SYS" if 2 in (i, j) else "NV18" for j in range(8)] for i in range(8)
    ]


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    gpu = {
        "devices": [
            {
                "index": i,
                "uuid": f"GPU-{i}",
                "name": "NVIDIA B200",
                "numa_node": i // 4,
                "memory_mib": {"total": 183359, "used": 4, "free": 182755, "reserved": 600},
                "holders": [],
                "mig": {"supported": True, "current": False, "pending": False, "devices": []},
            }
            for i in range(8)
        ],
        "links": _links(),
    }
    path = tmp_path / "host.json"
    path.write_text(json.dumps({"ansible_facts": {"gpu_host": {"gpu": gpu}}}))
    return path


def _run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    place.register(parser.add_subparsers())
    given = parser.parse_args(["place", *words])
    status: int = given.run(given)
    return status


def test_it_answers_and_explains(facts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--facts", str(facts), "--claim", "count=4", "--explain") == 0
    said = capsys.readouterr().out
    assert said.startswith("Take GPU4 (GPU-4), GPU5 (GPU-5), GPU6 (GPU-6) and GPU7 (GPU-7).")
    assert "left out: GPU2 has no NVLink where the others have 18" in said
    assert "Best of 70 sets" in said


def test_without_explain_it_is_short(facts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--facts", str(facts), "--claim", "count=1") == 0
    assert "Best of" not in capsys.readouterr().out


def test_json_has_every_candidate(facts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--facts", str(facts), "--claim", "count=4", "--explain", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["chosen"]] == ["GPU4", "GPU5", "GPU6", "GPU7"]
    assert len(found["candidates"]) == 70
    assert all(one["lost"] for one in found["candidates"][1:])


def test_a_refusal_says_why(facts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--facts", str(facts), "--busy", "0,1", "--claim")
    assert _run(*words, "count=7") == REFUSED
    assert "GPU0, GPU1: is given away (--busy)" in capsys.readouterr().out
    assert _run(*words, "count=6+link=nvlink+policy=strict") == REFUSED
    assert "have SYS between the farthest two" in capsys.readouterr().out


def test_a_pasted_matrix_will_do_for_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = recorded.by_name("all SYS")
    path = tmp_path / "ticket.txt"
    path.write_text("\n".join(recorded.table(machine)) + "\n")
    assert _run("--facts", str(path), "--claim", "count=4", "--busy", "1") == 0
    assert capsys.readouterr().out.startswith("Take GPU4, GPU5, GPU6 and GPU7.")


def _changed(facts: Path, change: Any) -> None:
    document = json.loads(facts.read_text())
    change(document["ansible_facts"]["gpu_host"]["gpu"])
    facts.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda gpu: gpu["links"][0].__setitem__(1, "NV4"), "not symmetric"),
        (lambda gpu: gpu["devices"][1].update(uuid="GPU-0"), "2 devices have the UUID GPU-0"),
        (lambda gpu: gpu["devices"].__setitem__(0, {"mig": 7}), "not of the shape of facts"),
        (lambda gpu: gpu.pop("devices"), "holds no gpu.devices"),
    ],
)
def test_facts_that_cannot_be_are_refused(
    facts: Path, capsys: pytest.CaptureFixture[str], change: Any, said: str
) -> None:
    _changed(facts, change)
    assert _run("--facts", str(facts), "--claim", "count=2") == MALFORMED
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--claim", "count=0"), "count is '0'"),
        (("--claim", "mig=off+device=0:1"), "mig"),
        (("--claim", "count=1", "--busy", "9"), "--busy names GPU 9"),
        (("--claim", "count=1", "--weights", "1,1"), "--weights is '1,1'"),
        (("--claim", "count=1", "--weights", "1,1,1"), "sum to 1"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    facts: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert _run("--facts", str(facts), *words) == MALFORMED
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--facts", "/nonexistent", "--claim", "count=1") == MALFORMED
    assert "/nonexistent" in capsys.readouterr().err
