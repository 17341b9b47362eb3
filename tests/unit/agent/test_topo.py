# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu topo``: what it takes, what it prints, and how it fails."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import (
    bandwidth_file,
    links,
    sources,
)
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Device
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Machine,
    TopologyError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.topology.remarks import remarked
from ansible_collections.steadygpu.host.tests.unit.agent import machines
from steadygpu_agent import cli, topo_read, topo_text
from steadygpu_agent.draw import svg

TESTS = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parent / "data"
RECORDED = TESTS / "data" / "topologies"

FACTS = {
    "driver": {"status": "loaded", "reason": None},
    "devices": [
        {"index": 0, "name": "Tesla T4", "pci_address": "0000:00:1e.0", "numa_node": 0},
        {"index": 1, "name": "Tesla T4", "pci_address": "0000:00:1f.0", "numa_node": 0},
    ],
    "links": [["X", "PHB"], ["PHB", "X"]],
    "numa_nodes": [{"node": 0, "cpus": "0-7", "memory_mib": 4096}],
}

NVBANDWIDTH = """\
nvbandwidth Version: v0.5
Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A     12.00
 1     24.00       N/A

SUM device_to_device_memcpy_read_ce 36.00
"""

_KEYS = st.sampled_from(
    (
        *("index", "name", "uuid", "pci_address", "pci_path", "numa_node", "cpus", "memory_mib"),
        *("total", "mig", "devices", "profile", "error", "links", "nics", "levels", "rdma"),
        *("numa_nodes", "node", "topology", "sysfs", "disagreements", "driver", "reason"),
        *("remarks", "affinity"),
    )
)


def run(*arguments: str) -> int:
    return cli.main(["topo", *arguments])


@pytest.fixture
def facts(tmp_path: Path) -> str:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"schema": 1, "gpu": FACTS}))
    return str(path)


# --- detection


@pytest.mark.parametrize(
    ("path", "kind", "gpus"),
    [
        (DATA / "dgx-a100.txt", topo_read.MATRIX, 8),
        (RECORDED / "hwloc_xml/nvidiaDGX2.xml", topo_read.HWLOC, 16),
        (RECORDED / "hwloc_xml/nvidiagpunumanodes.console", topo_read.HWLOC, 6),
        (RECORDED / "nccl_xml/aws-p4d-24xl-topo.xml", topo_read.NCCL, 8),
        (RECORDED / "nvidia_smi_xml/telegraf-tesla-t4.xml", topo_read.SMI, 1),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_a_file_is_known_by_its_content(path, kind, gpus):
    text = path.read_text()
    assert topo_read.kind(text) == kind
    assert len(topo_read.parse(text).machine.gpus) == gpus


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"schema": 1, "gpu": FACTS}),
        json.dumps({"ansible_facts": {"gpu_host": {"gpu": FACTS}}}, indent=2),
        "\n" + json.dumps(FACTS),
    ],
    ids=["steadygpu-facts", "ansible", "section"],
)
def test_saved_facts_are_known_however_they_were_saved(text):
    machine = topo_read.parse(text).machine
    assert [gpu.model for gpu in machine.gpus] == ["Tesla T4", "Tesla T4"]
    assert machine.levels[0][1] == "PHB"


def test_a_ticket_with_a_matrix_and_a_log_is_read_for_its_matrix():
    log = (RECORDED / "nvidia_smi_xml/telegraf-tesla-t4.xml").read_text()
    both = log + "\n$ nvidia-smi topo -m\n" + (DATA / "mixed-workstation.txt").read_text()
    assert topo_read.kind(both) == topo_read.MATRIX
    assert len(topo_read.parse(both).machine.gpus) == 5


def test_a_file_of_powershell_is_utf_16(tmp_path, capsys):
    path = tmp_path / "topo.txt"
    path.write_text((DATA / "mixed-workstation.txt").read_text(), encoding="utf-16")
    assert run("--from", str(path)) == 0
    assert "2 × RTX 4090" in capsys.readouterr().out


# --- what is printed


def test_the_page_of_a_ticket(capsys):
    assert run("--from", str(DATA / "mixed-workstation.txt")) == 0
    assert capsys.readouterr().out == (
        "2 × RTX 4090, 2 × RTX 3090, 1 × Tesla T4\n"
        "5 GPUs · 2 NUMA nodes · from nvidia-smi topo -m\n"
        "\n"
        "GPU   MODEL                    NUMA  CPU AFFINITY\n"
        "GPU0  Tesla T4                 1     8-15,24-31\n"
        "GPU1  NVIDIA GeForce RTX 4090  0     0-7,16-23\n"
        "GPU2  NVIDIA GeForce RTX 4090  0     0-7,16-23\n"
        "GPU3  NVIDIA GeForce RTX 3090  0     0-7,16-23\n"
        "GPU4  NVIDIA GeForce RTX 3090  0     0-7,16-23\n"
        "\n"
        "      GPU0  GPU1  GPU2  GPU3  GPU4\n"
        "GPU0  X     SYS   SYS   SYS   SYS\n"
        "GPU1  SYS   X     PHB   NODE  NODE\n"
        "GPU2  SYS   PHB   X     NODE  NODE\n"
        "GPU3  SYS   NODE  NODE  X     PHB\n"
        "GPU4  SYS   NODE  NODE  PHB   X\n"
        "\n"
        "X     the device itself\n"
        "PHB   over one PCIe host bridge, through the CPU\n"
        "NODE  over the host bridges of one NUMA node\n"
        "SYS   from one NUMA node to another, over the link between the CPUs\n"
        "\n"
        "affinity  derived from the levels: "
        "an order of nearness, not a bandwidth (see --affinity)\n"
    )


def test_network_adapters_stand_below_the_gpus_with_the_name_programs_use(capsys):
    assert run("--from", str(DATA / "dgx-a100.txt")) == 0
    shown = capsys.readouterr().out
    assert "\nNIC2 (mlx5_2)  SYS   SYS   PXB   PXB   SYS   SYS   SYS   SYS\n" in shown
    assert "\nNV12  12 NVLinks\n" in shown
    assert "PIX" not in shown  # the legend has only the words that occur


def test_what_is_unknown_is_not_a_level():
    machine = topo_read.parse(json.dumps(dict(FACTS, links=[]))).machine
    page = topo_text.page(machine, topo_read.affinity(machine, None))
    assert "\nGPU1  -     X\n" in page
    assert "\n-  unknown" in page


def test_remarks_say_what_is_wrong_with_a_machine():
    machine = machines.b200_with_a_lost_gpu()
    page = topo_text.page(machine, topo_read.affinity(machine, None))
    assert "\nremark    GPU2 has at most 12 NVLinks" in page
    assert "\nremark    GPU5 has no NVLink" in page


def test_mig_devices_are_counted():
    machine = machines.with_mig()
    page = topo_text.page(machine, topo_read.affinity(machine, None))
    assert "7× 1g.5gb" in page
    assert "3g.20gb, 2g.10gb, 1c.2g.10gb" in page


def test_the_affinity_is_a_matrix_of_numbers(facts, capsys):
    assert run("--from", facts, "--affinity") == 0
    shown = capsys.readouterr().out
    assert "      GPU0  GPU1\nGPU0  1.00  0.40\nGPU1  0.40  1.00\n" in shown
    assert "affinity  derived from the levels" in shown


def test_nvbandwidth_makes_the_affinity_measured(facts, tmp_path, capsys):
    measured = tmp_path / "nvbandwidth.txt"
    measured.write_text(NVBANDWIDTH)
    assert run("--from", facts, "--affinity", "--bandwidth", str(measured)) == 0
    shown = capsys.readouterr().out
    assert "affinity  measured by device_to_device_memcpy_read_ce" in shown


def test_json_has_the_machine_and_the_kind_of_its_affinity(facts, capsys):
    assert run("--from", facts, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [gpu["name"] for gpu in found["gpus"]] == ["GPU0", "GPU1"]
    assert found["levels"] == [["X", "PHB"], ["PHB", "X"]]
    assert found["affinity"] == [[1.0, 0.4], [0.4, 1.0]]
    assert found["affinity_basis"] == "derived"


def test_this_host_is_read_when_no_text_is_given(capsys):
    assert run("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"] == "this host"
    assert len(found["levels"]) == len(found["gpus"])


def test_a_driver_that_does_not_answer_is_the_first_remark(monkeypatch, capsys):
    silent = dict(FACTS, driver={"status": "unresponsive", "reason": "no answer in 20 seconds"})
    monkeypatch.setattr("steadygpu_agent.facts.collect", lambda *_arguments: {"gpu": silent})
    assert run() == 0
    assert "\nremark    no answer in 20 seconds\n" in capsys.readouterr().out


def test_a_sick_gpu_is_a_remark_and_red_in_the_picture(tmp_path, capsys):
    sick, well = FACTS["devices"]
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(dict(FACTS, devices=[well, dict(sick, error="GPU is lost")])))
    assert run("--from", str(path)) == 0
    assert "\nremark    GPU0: GPU is lost\n" in capsys.readouterr().out
    assert run("--from", str(path), "--svg", "-") == 0
    assert capsys.readouterr().out.count('class="sickcard"') == 1


# --- what is remembered


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A host with the two GPUs of FACTS in slots of one host bridge; where it remembers."""
    path = tmp_path / "lib" / "bandwidth.json"
    monkeypatch.setattr(bandwidth_file, "PATH", str(path))

    def collect(_sections, _deadline_s):
        gpus = [
            Device(index, uuid=f"GPU-{index}", pci_path=[f"0000:00:1{index}.0"], numa_node=0)
            for index in (0, 1)
        ]
        joined = links.matrix(gpus)
        found = sources.topology(gpus, joined, [], None, bandwidth_file.read())
        devices = [dict(one, uuid=gpu.uuid) for one, gpu in zip(FACTS["devices"], gpus)]
        return {"gpu": dict(FACTS, devices=devices, links=joined, topology=vars(found))}

    monkeypatch.setattr("steadygpu_agent.facts.collect", collect)
    return path


@pytest.fixture
def nvbandwidth(tmp_path: Path) -> str:
    path = tmp_path / "nvbandwidth.txt"
    path.write_text(NVBANDWIDTH)
    return str(path)


def test_what_is_remembered_is_measured_from_then_on(home, nvbandwidth, capsys):
    assert run("--affinity", "--bandwidth", nvbandwidth, "--remember") == 0
    assert "affinity  measured by device_to_device_memcpy_read_ce" in capsys.readouterr().out
    assert run("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["affinity"] == [[1.0, 1.0], [1.0, 1.0]]
    assert found["affinity_basis"] == "measured"
    assert found["affinity_tool"] == "device_to_device_memcpy_read_ce"


def test_what_is_forgotten_is_derived_again(home, nvbandwidth, capsys):
    assert run("--bandwidth", nvbandwidth, "--remember") == 0
    capsys.readouterr()
    assert run("--forget") == 0
    assert capsys.readouterr() == ("", "")
    assert not home.exists()
    assert run("--affinity") == 0
    assert "affinity  derived" in capsys.readouterr().out
    assert run("--forget") == 0


def test_a_stale_or_garbled_memory_is_a_remark_until_it_is_replaced(home, nvbandwidth, capsys):
    assert run("--bandwidth", nvbandwidth, "--remember") == 0
    home.write_text(home.read_text().replace("PHB", "NV4"))
    capsys.readouterr()
    assert run() == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("measured on other links (GPU0 and GPU1: NV4 then, PHB now)") == 1
    assert "affinity derived" in shown
    home.write_text("{")
    assert run() == 0
    assert "bandwidth.json is not used: no JSON" in " ".join(capsys.readouterr().out.split())
    assert run("--bandwidth", nvbandwidth, "--remember") == 0
    shown = capsys.readouterr().out
    assert "affinity  measured" in shown
    assert "remark" not in shown


def test_a_matrix_of_another_size_is_not_remembered(home, tmp_path, capsys):
    path = tmp_path / "three.txt"
    path.write_text(
        "Running device_to_device_memcpy_read_ce.\n 0 1 2\n 0 N/A 1 1\n 1 1 N/A 1\n 2 1 1 N/A\n"
    )
    assert run("--bandwidth", str(path), "--remember") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"steadygpu: {path}: the matrix is of 3 GPUs and this host has 2: run ")
    assert not home.exists()


@pytest.mark.parametrize("option", ["--remember", "--forget"])
def test_who_may_not_write_is_told_to_be_root(home, nvbandwidth, option, capsys, monkeypatch):
    assert run("--bandwidth", nvbandwidth, "--remember") == 0
    former = home.read_text()
    capsys.readouterr()

    def denied(*_arguments, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", denied)
    monkeypatch.setattr("os.unlink", denied)
    arguments = [option] if option == "--forget" else ["--bandwidth", nvbandwidth, option]
    assert run(*arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert str(home) in err
    assert "Permission denied; run it as root" in err
    assert home.read_text() == former


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--remember"], "--remember keeps what --bandwidth FILE says"),
        (["--remember", "--bandwidth", "b", "--from", "t"], "--remember is about this host"),
        (["--forget", "--bandwidth", "b"], "--forget only removes"),
        (["--forget", "--from", "t"], "--forget only removes"),
    ],
    ids=["alone", "of-a-text", "forget-new", "forget-of-a-text"],
)
def test_options_that_contradict_are_refused(home, arguments, said, capsys):
    assert run(*arguments) == 2
    assert said in capsys.readouterr().err
    assert not home.exists()


def test_saved_facts_keep_what_was_measured(tmp_path, capsys):
    path = tmp_path / "facts.json"
    known = {"affinity": [[1, 0.5], [0.5, 1]], "affinity_basis": "measured", "affinity_tool": "ce"}
    path.write_text(json.dumps(dict(FACTS, topology=known)))
    assert run("--from", str(path), "--affinity") == 0
    shown = capsys.readouterr().out
    assert "GPU0  1.00  0.50" in shown
    assert "measured by ce" in shown


@pytest.mark.parametrize(
    "wrong",
    [
        {"affinity": [[1, 0.5]]},
        {"affinity": [[1, 2], [2, 1]]},
        {"affinity": [[1, "near"], [0.5, 1]]},
        {"affinity": None},
        {"affinity": [1, 2]},
        {"affinity_tool": "\x1b[2J"},
        {"affinity_tool": None},
    ],
    ids=["cut", "above-1", "text", "none", "flat", "escape", "no-tool"],
)
def test_saved_facts_with_another_affinity_are_refused(wrong, tmp_path, capsys):
    path = tmp_path / "facts.json"
    known = {"affinity": [[1, 0.5], [0.5, 1]], "affinity_basis": "measured", "affinity_tool": "ce"}
    path.write_text(json.dumps(dict(FACTS, topology={**known, **wrong})))
    assert run("--from", str(path)) == 2
    assert "not of the shape of facts" in capsys.readouterr().err


# --- the picture


def test_a_picture_is_written_whole_or_not_at_all(facts, tmp_path, capsys, monkeypatch):
    path = tmp_path / "machine.svg"
    path.write_text("the old one")

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        assert run("--from", facts, "--svg", str(path)) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert path.read_text() == "the old one"
    assert [one.name for one in tmp_path.glob("*svg*")] == ["machine.svg"]
    assert run("--from", facts, "--svg", str(path)) == 0
    assert capsys.readouterr().out == ""
    ElementTree.parse(path)


def test_a_picture_on_standard_output_is_the_same(facts, tmp_path, capsys):
    path = tmp_path / "machine.svg"
    assert run("--from", facts, "--svg", str(path), "--title", "Ours") == 0
    assert run("--from", facts, "--svg", "-", "--title", "Ours") == 0
    assert capsys.readouterr().out == path.read_text()
    assert ">Ours<" in path.read_text()


def test_a_device_or_pipe_is_written_to_and_not_replaced(facts, tmp_path):
    """``--svg /dev/null`` as root must leave the device there."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("--from", facts, "--svg", str(pipe)) == 0
        assert pipe.is_fifo()
        assert os.read(reading, 4) == b"<svg"
    finally:
        os.close(reading)


def test_a_text_comes_from_standard_input_too(monkeypatch, capsys):
    data = (DATA / "mixed-workstation.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert run("--from", "-") == 0
    assert capsys.readouterr().out.startswith("2 × RTX 4090")


# --- what cannot be understood


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the text is empty; wanted is the output of nvidia-smi topo -m"),
        ("total 12\n", "begins with 'total 12', which no topology does; wanted is"),
        ("{", "JSON that cannot be read"),
        ('{"gpu": {}}', "JSON without gpu.devices; wanted is"),
        ('{"gpu": {"devices": 3}}', "JSON without gpu.devices"),
        ('{"devices": [{"name": 7}]}', "not of the shape of facts"),
        ('{"devices": [{"name": "\\u001b[2J"}]}', "not of the shape of facts"),
        ("<topology><object", "line 1"),
        ("<graphs version='1'/>", "Wanted is a topology file (<system>)"),
        ("GPU0 GPU1\nGPU0 X\n", "GPU0"),
    ],
    ids=[
        "empty",
        "other",
        "cut-json",
        "no-devices",
        "no-list",
        "no-text",
        "escape",
        "cut-xml",
        "graphs",
        "half",
    ],
)
def test_a_text_that_is_no_topology_is_2_and_says_why(text, said, tmp_path, capsys):
    path = tmp_path / "ticket.txt"
    path.write_text(text)
    assert run("--from", str(path)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"steadygpu: {path}: ")
    assert said in err


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(_KEYS, _JSON, max_size=6), st.dictionaries(_KEYS, _JSON, max_size=8))
def test_facts_that_somebody_edited_are_read_or_refused(section, device):
    text = json.dumps({**FACTS, **section, "devices": [device, FACTS["devices"][0]]})
    try:
        reading = topo_read.parse(text)
    except TopologyError:
        return
    near = topo_read.affinity(reading.machine, None)
    assert topo_text.page(reading.machine, near)
    ElementTree.fromstring(svg.render(reading.machine, reading.sick))


def test_a_file_that_is_not_there_is_2(tmp_path, capsys):
    assert run("--from", str(tmp_path / "nowhere")) == 2
    assert "nowhere: No such file or directory" in capsys.readouterr().err


def test_a_file_larger_than_any_ticket_is_2(tmp_path, capsys):
    path = tmp_path / "disk.img"
    with path.open("wb") as handle:
        handle.truncate(1 << 40)
    assert run("--from", str(path)) == 2
    assert "more than 20 MiB" in capsys.readouterr().err


def test_a_measurement_of_another_machine_is_2(tmp_path, capsys):
    measured = tmp_path / "nvbandwidth.txt"
    measured.write_text(NVBANDWIDTH)
    ticket = str(DATA / "mixed-workstation.txt")
    assert run("--from", ticket, "--bandwidth", str(measured)) == 2
    assert "5 GPUs and a bandwidth matrix of 2 rows" in capsys.readouterr().err
    assert run("--from", ticket, "--bandwidth", ticket) == 2
    assert "no matrix of copies" in capsys.readouterr().err


def test_two_shapes_at_once_are_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        run("--json", "--affinity")
    assert stopped.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


def test_a_machine_without_gpus_has_a_page():
    machine = remarked(Machine("this host", (), (), remarks=("no NVIDIA GPU on the PCI bus",)))
    assert topo_text.page(machine, topo_read.affinity(machine, None)) == (
        "No GPU\n0 GPUs · NUMA nodes unknown · from this host\n\n"
        "remark    no NVIDIA GPU on the PCI bus"
    )
