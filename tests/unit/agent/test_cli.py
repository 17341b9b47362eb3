# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line: what a person sees, and what a script can rely on."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from steadygpu_agent import cli, facts, show

GPU = {
    "driver": {
        "status": "loaded",
        "version": "550.163.01",
        "flavour": "open",
        "library_version": "550.163.01",
        "cuda_version": "12.4",
        "reason": None,
    },
    "source": "nvml",
    "devices": [
        {
            "index": 0,
            "uuid": "GPU-aaaa",
            "minor": 0,
            "name": "NVIDIA A100-SXM4-40GB",
            "architecture": "ampere",
            "pci_address": "0000:23:00.0",
            "pci_path": ["0000:20:00.0", "0000:23:00.0"],
            "numa_node": 0,
            "cpus": "0-3",
            "memory_mib": {"total": 40960, "used": 5, "free": 40300, "reserved": 655},
            "mig": {"supported": True, "current": False, "pending": True},
            "nvlink": {"count": 12, "version": 3, "peers": []},
            "error": None,
        },
        {
            "index": 1,
            "uuid": None,
            "minor": None,
            "name": None,
            "architecture": None,
            "pci_address": None,
            "pci_path": [],
            "numa_node": None,
            "cpus": None,
            "memory_mib": None,
            "mig": None,
            "nvlink": None,
            "error": "GPU is lost",
        },
    ],
    "links": [["X", "SYS"], ["SYS", "X"]],
    "pci": [],
    "nodes": [{"path": "/dev/nvidia-uvm", "major": None, "minor": 0, "exists": False}],
    "numa_nodes": [{"node": 0, "cpus": "0-3", "memory_mib": 1003}],
    "modules": {"nvidia": True},
}


def test_a_page_of_gpus():
    assert show.text({"schema": 1, "gpu": GPU}) == (
        "driver      loaded, 550.163.01, open kernel modules, CUDA 12.4\n"
        "\n"
        "GPU  MODEL                  USED/TOTAL MiB  PCI           NUMA  CPUS  MIG"
        "                  NVLINK  UUID\n"
        "0    NVIDIA A100-SXM4-40GB  5/40960         0000:23:00.0  0     0-3   off, on after reset"
        "  12      GPU-aaaa\n"
        "1    -                      -               -             -     -     -"
        "                    -       GPU is lost\n"
        "\n"
        "      GPU0  GPU1\n"
        "GPU0  X     SYS\n"
        "GPU1  SYS   X\n"
        "\n"
        "NUMA  CPUS  MEMORY (MiB)\n"
        "0     0-3   1003\n"
        "\n"
        "missing device nodes: /dev/nvidia-uvm"
    )


def test_a_driver_that_is_not_loaded_shows_why_and_what_is_on_the_bus():
    gpu = dict(
        GPU,
        driver=dict.fromkeys(GPU["driver"], None)
        | {"status": "not_loaded", "reason": "modprobe it"},
        devices=[],
        links=[],
        nodes=[],
        numa_nodes=[],
        pci=[
            {
                "address": "0000:23:00.0",
                "vendor": "10de",
                "device": "20b0",
                "class": "030200",
                "driver": None,
            }
        ],
    )
    assert show.text({"gpu": gpu}) == (
        "driver      not loaded\n"
        "            modprobe it\n"
        "\n"
        "PCI           ID         KERNEL DRIVER\n"
        "0000:23:00.0  10de:20b0  -"
    )


def test_runtime_sections_are_a_line_each():
    text = show.text(
        {
            "schema": 1,
            "docker": {"status": "unreachable", "version": None, "reason": "no answer"},
            "cgroup": {"version": 2, "controllers": ["cpu", "memory"]},
            "cdi": {
                "specs": [
                    {
                        "path": "/etc/cdi/a.json",
                        "status": "valid",
                        "reason": None,
                        "kind": "nvidia.com/gpu",
                        "devices": ["0", "all"],
                    },
                    {
                        "path": "/etc/cdi/b.json",
                        "status": "invalid",
                        "reason": "not JSON",
                        "kind": None,
                        "devices": [],
                    },
                ]
            },
        }
    )
    assert text.splitlines() == [
        "cgroup      version 2, controllers cpu memory",
        "docker      unreachable, no answer",
        "cdi         /etc/cdi/a.json: nvidia.com/gpu: 0, all",
        "cdi         /etc/cdi/b.json: invalid: not JSON",
    ]


def test_a_host_without_cdi_says_so():
    assert show.text({"cdi": {"specs": []}}) == "cdi         no specs"


def test_one_section_as_json(capsys):
    assert cli.main(["facts", "--section", "gpu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"schema", "gpu"}


def test_an_unknown_section_names_those_there_are(capsys):
    assert cli.main(["facts", "--section", "gpus"]) == 2
    said = capsys.readouterr().err
    assert "no section gpus; there are: gpu, " in said
    assert "docker" in said


def test_a_deadline_that_is_no_time(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["facts", "--deadline", "-3"])
    assert stopped.value.code == 2
    assert "'-3'; wanted is a number of seconds" in capsys.readouterr().err


def test_every_section_at_once():
    found = facts.collect(None, deadline_s=20)
    assert {"schema", "gpu", "os", "kernel", "docker", "cdi"} <= set(found)
    assert show.text(found).startswith("driver")


@pytest.mark.parametrize("arguments", ["facts --section gpu", "checkpoint list --store /none"])
def test_a_reader_that_goes_away_is_no_traceback(arguments):
    program = "import sys; from steadygpu_agent.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments.split()],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141
    assert said == b""
