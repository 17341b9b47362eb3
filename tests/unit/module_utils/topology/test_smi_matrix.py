# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``nvidia-smi topo -m`` of every recorded machine, in every form it reaches us in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.topology import lists, smi_matrix
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
    Machine,
    Nic,
    TopologyError,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.topology.recorded import (
    IDS,
    MACHINES,
    STYLES,
    Recorded,
    by_name,
    table,
)


def levels(machine: Machine) -> list[list[str | None]]:
    return [list(row) for row in machine.levels]


def numa(machine: Recorded) -> list[tuple[int, ...]]:
    return [lists.numbers(text or "") or () for text in machine.numa]


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
@pytest.mark.parametrize("style", STYLES)
def test_the_levels_are_the_recorded_ones_in_every_style(style: str, machine: Recorded) -> None:
    parsed = smi_matrix.parse(STYLES[style](table(machine)))
    assert levels(parsed) == machine.matrix
    assert [gpu.name for gpu in parsed.gpus] == [f"GPU{i}" for i in range(machine.size)]
    assert [gpu.cpus for gpu in parsed.gpus] == machine.cpus
    assert [gpu.numa_nodes for gpu in parsed.gpus] == numa(machine)
    assert {nic.name: list(parsed.nic_levels[k]) for k, nic in enumerate(parsed.nics)} == (
        machine.nics
    )


@given(
    machine=st.sampled_from(MACHINES),
    style=st.sampled_from(sorted(STYLES)),
    columns=st.integers(0, 3),
    with_nics=st.booleans(),
)
def test_any_driver_age_in_any_style(
    machine: Recorded, style: str, columns: int, with_nics: bool
) -> None:
    parsed = smi_matrix.parse(STYLES[style](table(machine, columns, with_nics)))
    assert levels(parsed) == machine.matrix
    assert [gpu.cpus for gpu in parsed.gpus] == (machine.cpus if columns else [None] * machine.size)
    assert [gpu.numa_nodes for gpu in parsed.gpus] == (
        numa(machine) if columns > 1 else [()] * machine.size
    )
    assert len(parsed.nics) == (len(machine.nics) if with_nics else 0)


@given(machine=st.sampled_from(MACHINES), at=st.floats(0, 1), style=st.sampled_from(sorted(STYLES)))
def test_a_paste_that_ends_too_early_is_refused_or_whole(
    machine: Recorded, at: float, style: str
) -> None:
    text = STYLES[style](table(machine))
    try:
        parsed = smi_matrix.parse(text[: int(len(text) * at)])
    except TopologyError:
        return
    assert levels(parsed) == machine.matrix


@given(st.data())
def test_a_lost_cell_never_shifts_a_row(data: st.DataObject) -> None:
    machine = data.draw(
        st.sampled_from([one for one in MACHINES if one.size > 1 and None not in one.cpus])
    )
    lines = table(machine)
    row = data.draw(st.integers(1, machine.size))
    cells = lines[row].split("\t")
    del cells[data.draw(st.integers(1, machine.size + len(machine.nics)))]
    lines[row] = "\t".join(cells)
    with pytest.raises(TopologyError, match=rf"line {row + 1}: .*GPU{row - 1}"):
        smi_matrix.parse("\n".join(lines))


@given(
    machine=st.sampled_from(MACHINES),
    style=st.sampled_from(sorted(STYLES)),
    edits=st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from(["", "\n", "\t", " ", "X", "GPU1", "N/A", "9"])),
        min_size=1,
        max_size=6,
    ),
)
def test_mangled_text_is_a_machine_or_an_error_for_a_person(
    machine: Recorded, style: str, edits: list[tuple[float, str]]
) -> None:
    text = STYLES[style](table(machine))
    for at, insert in edits:
        place = int(len(text) * at)
        text = text[:place] + insert + text[place + 1 :]
    try:
        parsed = smi_matrix.parse(text)
    except TopologyError:
        return
    assert all(len(row) == len(parsed.gpus) for row in parsed.levels)
    assert all(parsed.levels[i][i] == "X" for i in range(len(parsed.gpus)))


@given(st.text(alphabet="GPU01X NVPIB\t\n-,/ASYDE", max_size=300))
def test_noise_never_breaks_the_parser(text: str) -> None:
    try:
        smi_matrix.parse(text)
    except TopologyError:
        return


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no table of nvidia-smi topo -m"),
        ("bash: nvidia-smi: command not found", "no table of nvidia-smi topo -m"),
        (
            "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPHB\tSYS\nGPU1\tPHB\t X \tSYS\n",
            "line 1: the header has 3 GPUs and there is no row for GPU2",
        ),
        (
            "\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\n",
            "line 3: row GPU1 has 1 of 2 columns",
        ),
        (
            "\tGPU0\tGPU1\nGPU0\t X \tFAST\nGPU1\tFAST\t X \n",
            "line 2: 'FAST' in row GPU0, column 2 of 2, is not a word",
        ),
        (
            "\tGPU0\tGPU1\nGPU0\tPHB\t X \nGPU1\tPHB\t X \n",
            "line 2: row GPU0 has 'PHB' under GPU0; X belongs under its own label",
        ),
    ],
    ids=["empty", "no-driver", "lost-row", "lost-cell", "unknown-word", "moved"],
)
def test_what_is_not_a_whole_table_is_refused_by_its_line(text: str, said: str) -> None:
    with pytest.raises(TopologyError) as raised:
        smi_matrix.parse(text)
    assert said in str(raised.value)


def test_an_old_driver_says_soc_and_psb() -> None:
    """Drivers before R384 had one word across sockets; a Tesla K80 is two GPUs of one board."""
    parsed = smi_matrix.parse(
        "\tGPU0\tGPU1\tGPU2\tmlx5_0\tCPU Affinity\n"
        "GPU0\t X \tPSB\tSOC\tPHB\t0-11,24-35\n"
        "GPU1\tPSB\t X \tSOC\tPHB\t0-11,24-35\n"
        "GPU2\tSOC\tSOC\t X \tSOC\t12-23,36-47\n"
        "mlx5_0\tPHB\tPHB\tSOC\t X \t\n"
    )
    assert levels(parsed) == [
        ["X", "INTERNAL", "SYS"],
        ["INTERNAL", "X", "SYS"],
        ["SYS", "SYS", "X"],
    ]
    assert parsed.nics == (Nic("mlx5_0", rdma=("mlx5_0",)),)
    assert parsed.nic_levels == (("PHB", "PHB", "SYS"),)


def test_a_nic_legend_names_the_adapters() -> None:
    parsed = smi_matrix.parse(
        "        GPU0    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
        "GPU0     X      PHB     0-251   0               N/A\n"
        "NIC0    PHB      X \n\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
    )
    assert parsed.nics == (Nic("NIC0", rdma=("mlx5_0",)),)
    assert parsed.gpus[0].cpus == "0-251"
    assert parsed.gpus[0].numa_nodes == (0,)


def test_words_that_a_wrap_ran_together_are_parted() -> None:
    """A terminal of 200 columns loses the spaces at its edge: ``NODENODE``."""
    parsed = smi_matrix.parse(
        "        GPU0    GPU1    NIC0       NIC1NIC2   CPU Affinity    NUMA Affinity\n"
        "GPU0     X      NV18    NODENODE    SYS     0-55,112-167    0\n"
        "GPU1    NV18NODENODE    NODE    SYS0-55,112-167    0\n".replace(
            "NV18NODE", "NV18     X  NODE", 1
        ).replace("NODENODE    NODE    SYS0", "NODENODE    SYS0")
    )
    assert levels(parsed) == [["X", "NV18"], ["NV18", "X"]]
    assert parsed.nic_levels == (("NODE", "NODE"), ("NODE", "NODE"), ("SYS", "SYS"))
    assert [gpu.cpus for gpu in parsed.gpus] == ["0-55,112-167"] * 2


def test_a_gpu_that_owns_numa_nodes_is_on_the_one_that_has_cpus() -> None:
    """GB200: memory nodes follow the CPU nodes, and NUMA Affinity lists both kinds."""
    parsed = smi_matrix.parse(
        "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNV18\tNV18\tNV18\t0-71\t0,2-17\t\t2\n"
        "GPU1\tNV18\t X \tNV18\tNV18\t0-71\t0,2-17\t\t10\n"
        "GPU2\tNV18\tNV18\t X \tNV18\t72-143\t1,18-33\t\t18\n"
        "GPU3\tNV18\tNV18\tNV18\t X \t72-143\t1,18-33\t\t26\n"
    )
    assert [gpu.numa_nodes for gpu in parsed.gpus] == [(0,), (0,), (1,), (1,)]
    assert [(node.number, node.cpus) for node in parsed.nodes] == [(0, "0-71"), (1, "72-143")]


@pytest.mark.parametrize(
    ("rest", "cpus", "nodes"),
    [
        ("0-7\t\tN/A\t\tN/A", "0-7", ()),
        ("0-7\t\t\tN/A", "0-7", ()),
        ("\t\t\tN/A", None, ()),
        ("0-7\t0\t\tN/A", "0-7", (0,)),
        ("\t0\t\tN/A", None, (0,)),
        ("0-7,\t16-23\t0\t\tN/A", "0-7,16-23", (0,)),
        ("  0-7   0      N/A", "0-7", (0,)),
        ("                N/A", None, ()),
    ],
)
def test_blank_affinity_columns(rest: str, cpus: str | None, nodes: tuple[int, ...]) -> None:
    """WSL and some containers know no affinity; the tabs tell which column is blank."""
    parsed = smi_matrix.parse(
        f"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t{rest}\n"
    )
    assert parsed.gpus[0].cpus == cpus
    assert parsed.gpus[0].numa_nodes == nodes


def test_nvidia_smi_l_in_the_same_text_names_the_gpus() -> None:
    parsed = smi_matrix.parse(
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n"
        "  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\n"
        "  MIG 1g.5gb      Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)\n"
        "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-68f20a5b-ba3c-41f5-a3e5-6e5d7a2f1d40)\n\n"
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-63\nGPU1\tNV12\t X \t0-63\n"
    )
    assert [gpu.model for gpu in parsed.gpus] == ["NVIDIA A100-SXM4-40GB"] * 2
    assert parsed.gpus[0].mig == ("3g.20gb", "1g.5gb")
    assert parsed.gpus[1].uuid == "GPU-68f20a5b-ba3c-41f5-a3e5-6e5d7a2f1d40"


def test_a_pair_that_differs_by_direction_is_told() -> None:
    parsed = smi_matrix.parse("\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV4\t X \n")
    assert parsed.remarks == (
        "GPU0 to GPU1 is NV2 and back NV4: the text was changed after nvidia-smi printed it",
    )


def test_a_report_that_quotes_the_header_first() -> None:
    """Hardware reports print the first line as a title, and the table in a fence below it."""
    lines = table(by_name("5 GPUs mixed"))
    text = "- **topology:** " + lines[0] + "\n\n```\n" + "\n".join(lines) + "\n```\n"
    assert levels(smi_matrix.parse(text)) == by_name("5 GPUs mixed").matrix


def test_the_second_table_of_a_text_is_left_alone() -> None:
    one, other = table(by_name("dual 3090")), table(by_name("4xA100 PCIe"))
    parsed = smi_matrix.parse("\n".join([*one, "", "$ ssh other nvidia-smi topo -m", *other]))
    assert levels(parsed) == by_name("dual 3090").matrix


def test_a_table_of_topo_p2p_before_it_is_passed_by() -> None:
    text = (
        " \tGPU0\tGPU1\tGPU2\t\n GPU0\tX\tOK\tCNS\t\n GPU1\tOK\tX\tGNS\t\n GPU2\tCNS\tGNS\tX\t\n\n"
        "Legend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"
    )
    matrix = "\n".join(table(by_name("5 GPUs mixed")))
    assert levels(smi_matrix.parse(text + matrix)) == by_name("5 GPUs mixed").matrix


@pytest.mark.parametrize("line", ["GPU0 GPU1\nGPU0 X\n", "GPU0 " + "a" * 200 + "\n", "GPU0\n\n\n"])
def test_a_hostile_text_costs_no_time(line: str) -> None:
    """Every line looks like a header, and no table follows."""
    with pytest.raises(TopologyError):
        smi_matrix.parse(line * 20_000)
    with pytest.raises(TopologyError, match="more than the 2000000 that are read"):
        smi_matrix.parse(line * 500_000)


def test_numbers_that_no_machine_has_are_refused() -> None:
    row = "9" * 5000
    parsed = smi_matrix.parse(f"\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t{row}\t0-{row}\n")
    assert (parsed.gpus[0].cpus, parsed.gpus[0].numa_nodes) == (None, ())
    with pytest.raises(TopologyError, match="is not a word of this table"):
        smi_matrix.parse(f"\tGPU0\tGPU1\nGPU0\t X \tNV{row}\nGPU1\tNV{row}\t X \n")


@pytest.mark.parametrize("columns", [48, 60, 72, 80, 93, 100, 114, 120])
def test_a_terminal_that_breaks_words_at_its_edge_changes_nothing(columns: int) -> None:
    """``0-55,11`` at the end of a line and ``2-167`` below it are one CPU list."""
    header = [*(f"GPU{i}" for i in range(8)), "NIC0", "CPU Affinity", "NUMA Affinity"]
    cpus = ["0-55,112-167\t0", "56-111,168-223\t1"]
    lines = ["\t" + "\t".join([*header, "GPU NUMA ID"])]
    for i in range(8):
        words = [" X " if i == j else "NV18" for j in range(8)]
        lines.append("\t".join([f"GPU{i}", *words, "NODE", cpus[i // 4], "", "N/A"]))
    lines.append("\t".join(["NIC0", *["NODE"] * 8, " X "]))
    whole = [line.expandtabs(8) for line in [*lines, "", "Legend:", "", "  X    = Self"]]
    broken = [line[at : at + columns] for line in whole for at in range(0, len(line) or 1, columns)]
    found = smi_matrix.parse("\n".join(broken))
    assert found == smi_matrix.parse("\n".join(whole))
    assert [(node.number, node.cpus) for node in found.nodes] == [
        (0, "0-55,112-167"),
        (1, "56-111,168-223"),
    ]
