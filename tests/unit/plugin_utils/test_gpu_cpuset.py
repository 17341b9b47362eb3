# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs beside a GPU, in the core, the filter and the command."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.steadygpu.host.plugins.filter.gpu_cpuset import gpu_cpuset
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.cpuset import beside
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.model import NumaError
from steadygpu_agent import cpuset


def gpu(index: int, node: int | None, cpus: str) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "pci_address": f"0000:{index}0:00.0",
        "numa_node": node,
        "cpus": cpus,
        "mig": {"devices": [{"uuid": f"MIG-{index}"}]},
    }


NODES = [
    {"node": 0, "cpus": "0-3,8-11", "kind": "cpu"},
    {"node": 1, "cpus": "4-7,12-15", "kind": "cpu"},
]
TWO = {"devices": [gpu(0, 0, "0-3,8-11"), gpu(1, 1, "4-7,12-15")], "numa_nodes": NODES}


@pytest.mark.parametrize(
    ("wanted", "cpus", "mems"),
    [
        (["1"], "4-7,12-15", "1"),
        (["GPU-0"], "0-3,8-11", "0"),
        (["0000:10:00.0"], "4-7,12-15", "1"),
        (["MIG-1"], "4-7,12-15", "1"),
        (["0", "1"], "0-15", "0-1"),
        (["all"], "0-15", "0-1"),
        ([], "0-15", "0-1"),
    ],
)
def test_each_name_of_a_gpu_finds_its_side(wanted: Sequence[str], cpus: str, mems: str) -> None:
    found = beside(TWO, wanted)
    assert (found.cpus, found.mems) == (cpus, mems)
    assert found.flags == f"--cpuset-cpus={cpus} --cpuset-mems={mems}"


def test_one_node_leaves_no_choice_where_the_firmware_is_silent() -> None:
    lost = {"devices": [gpu(0, None, "")], "numa_nodes": NODES[:1]}
    assert beside(lost, ["0"]).flags == "--cpuset-cpus=0-3,8-11 --cpuset-mems=0"


def test_tp_009_a_machine_that_hides_where_its_gpus_are_says_so() -> None:
    lost = {"devices": [gpu(0, None, "0-15")], "numa_nodes": NODES}
    with pytest.raises(NumaError, match=r"GPU 0: the firmware names no NUMA node.*virtual machine"):
        beside(lost, ["0"])


def test_names_that_nobody_has_are_answered_with_those_there_are() -> None:
    with pytest.raises(NumaError, match=r"no GPU is called '7'; there are 0 \(GPU-0\)"):
        beside(TWO, ["7"])
    with pytest.raises(NumaError, match="no GPU is known"):
        beside({"devices": []}, [])


def test_the_filter_speaks_of_the_facts() -> None:
    assert gpu_cpuset({"gpu": TWO}, ["1"]) == {
        "cpuset_cpus": "4-7,12-15",
        "cpuset_mems": "1",
        "nodes": [1],
        "flags": "--cpuset-cpus=4-7,12-15 --cpuset-mems=1",
    }
    assert gpu_cpuset({"gpu": TWO}, 0)["cpuset_mems"] == "0"
    with pytest.raises(AnsibleFilterError, match="no section gpu"):
        gpu_cpuset({}, ["0"])
    with pytest.raises(AnsibleFilterError, match="no GPU is called"):
        gpu_cpuset({"gpu": TWO}, ["9"])


def test_the_command_prints_what_docker_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps({"gpu": TWO}))

    def run(*words: str) -> int:
        parser = argparse.ArgumentParser()
        cpuset.register(parser.add_subparsers())
        arguments = parser.parse_args(["cpuset", "--facts", str(facts), *words])
        status: int = arguments.run(arguments)
        return status

    assert run("1") == 0
    assert capsys.readouterr().out == "--cpuset-cpus=4-7,12-15 --cpuset-mems=1\n"
    assert run("0", "--json") == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == [0]
    assert run("9") == 2
    assert "no GPU is called '9'" in capsys.readouterr().err
    facts.write_text("[]")
    assert run("0") == 2
