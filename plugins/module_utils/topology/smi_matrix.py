# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``nvidia-smi topo -m`` as it comes out of a ticket: one picture from the text. Pure.

Read are the tables of every driver that printed one: tabs or spaces, an underlined header,
NICs by name (``mlx5_0``) or by number with a legend, with and without the columns CPU Affinity,
NUMA Affinity and GPU NUMA ID, and the old words SOC and PSB. So is what copying does to them:
indentation, quotes, Markdown, lines wrapped by a terminal, words run together (``NODENODE``).
A table that is not whole is refused: half a matrix is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import lists
from .levels import is_level
from .model import Gpu, Machine, Nic, Node
from .remarks import remarked
from .smi_table import AFFINITY, Line, Row, Table, clean, gpu_rows, read

SOURCE = "nvidia-smi topo -m"

# SOC was split into NODE and SYS after R375; PSB is the switch of one board (Tesla K80).
_OLD_WORDS = {"SOC": "SYS", "PSB": "INTERNAL"}
_EDGE = r"(?=\s|$|NV\d|NODE|SYS|SOC|PHB|PXB|PIX|PSB|N/A|X\b)"
_WORD = re.compile(
    rf"NV\d{{1,3}}{_EDGE}|X(?=\s|$)|(?:INTERNAL|NODE|SYS|SOC|PHB|PXB|PIX|PSB)(?:{_EDGE}|(?=\d))|N/A"
)
_LEGEND = re.compile(r"\s*(NIC\d+)\s*:\s*(\S+)\s*$")
_LISTED = re.compile(r"\s*GPU (\d+): (.+?) \(UUID: (GPU-[0-9a-f-]+)\)")
_LISTED_MIG = re.compile(r"\s*MIG (\S+)\s+Device\s+\d+: \(UUID: MIG-")


@dataclass(frozen=True)
class _Affinity:
    """What stands behind a row: a CPU list, NUMA nodes, the node of the GPU's own memory."""

    cpus: str | None = None
    nodes: tuple[int, ...] = ()
    memory: tuple[int, ...] = ()


def parse(text: str) -> Machine:
    """The picture in the first topology table of a text. Raises TopologyError.

    ``nvidia-smi -L`` in the same text names the models, UUIDs and MIG devices.
    """
    lines = clean(text)
    table = read(lines, _WORD, SOURCE)
    size = len(table.gpus)
    words = {name: [_level(word) for word in row.words] for name, row in table.rows.items()}
    beside = _without_memory([_affinity(row, table.columns) for row in gpu_rows(table)])
    picture = Machine(
        source=SOURCE,
        gpus=tuple(
            Gpu(name, numa_nodes=near.nodes, cpus=near.cpus)
            for name, near in zip(table.gpus, beside)
        ),
        levels=tuple(tuple(words[name][:size]) for name in table.gpus),
        nics=_nics(table, lines),
        nic_levels=tuple(
            tuple(words[name][column] for name in table.gpus)
            for column in range(size, len(table.labels))
        ),
        nodes=_nodes(beside),
    )
    picture = replace(picture, gpus=_listed(lines, picture.gpus))
    return remarked(replace(picture, remarks=tuple(_one_sided(picture))))


def _level(word: str) -> str | None:
    known = _OLD_WORDS.get(word, word)
    return known if is_level(known) else None


def _affinity(row: Row, columns: Sequence[str]) -> _Affinity:
    cells = _cells(row, columns)
    cpus, nodes, memory = (cells.get(name) for name in ("cpus", "numa", "gpu_numa"))
    return _Affinity(
        cpus=cpus if cpus and lists.numbers(cpus) else None,
        nodes=lists.numbers(nodes or "") or (),
        memory=lists.numbers(memory or "") or (),
    )


def _cells(row: Row, columns: Sequence[str]) -> dict[str, str]:
    """The affinity columns by name; a blank one leaves fewer cells than columns.

    A driver that knows no affinity prints blanks (WSL), and an extra tab stands before the last
    column, so that neither a count nor a place tells alone which one is missing.
    """
    tokens = _affinity_tokens(row.rest)
    if len(tokens) >= len(columns):
        return dict(zip(columns, tokens))
    if not tokens:
        return {}
    cells = [cell.strip() for cell in row.rest.split("\t")]
    if row.wrapped or len(cells) <= len(columns):
        # Spaces show no blank. N/A at the end is the last column, which is never blank.
        if tokens[-1] == "N/A":
            return {**dict(zip(columns, tokens[:-1])), columns[-1]: tokens[-1]}
        return dict(zip(columns, tokens))
    named = {columns[0]: tokens[0]} if cells[1] else {}
    more = tokens[1:] if cells[1] else tokens
    if len(more) == len(columns) - 1:
        named.update(zip(columns[1:], more))
    elif more:
        last = max(place for place, cell in enumerate(cells) if cell)
        named[columns[-1] if last >= len(columns) else columns[1]] = more[-1]
    return named


def _affinity_tokens(rest: str) -> list[str]:
    """Cells of the affinity columns, with a list that was broken at a comma joined again."""
    found: list[str] = []
    for token in rest.split():
        if not AFFINITY.fullmatch(token):
            break
        if found and (found[-1].endswith(",") or token.startswith(",")):
            found[-1] += token
        else:
            found.append(token)
    return found


def _without_memory(found: Sequence[_Affinity]) -> list[_Affinity]:
    """Affinities that count only nodes with CPUs.

    On Grace hosts a GPU's memory is a NUMA node, or eight for MIG, and the list of near nodes
    holds them too (``0,2-17``). The kernel numbers them after the nodes that have CPUs.
    """
    memory = [number for one in found for number in one.memory]
    first = min(memory, default=None)
    if first is None:
        return list(found)
    return [replace(one, nodes=tuple(n for n in one.nodes if n < first)) for one in found]


def _nics(table: Table, lines: Sequence[Line]) -> tuple[Nic, ...]:
    matches = (_LEGEND.match(text) for _number, text in lines)
    legend = {match.group(1): match.group(2) for match in matches if match}
    names = table.labels[len(table.gpus) :]
    return tuple(
        Nic(name, rdma=() if device is None else (device,))
        for name, device in ((one, _rdma(one, legend)) for one in names)
    )


def _rdma(name: str, legend: dict[str, str]) -> str | None:
    return legend.get(name) if name.startswith("NIC") else name


def _nodes(found: Sequence[_Affinity]) -> tuple[Node, ...]:
    """The NUMA nodes the GPUs are on. A GPU on several does not say whose its CPUs are."""
    cpus: dict[int, set[int]] = {}
    for one in found:
        for number in one.nodes:
            near = lists.numbers(one.cpus) if one.cpus and len(one.nodes) == 1 else None
            cpus.setdefault(number, set()).update(near or ())
    return tuple(Node(number, lists.text_of(cpus[number])) for number in sorted(cpus))


def _listed(lines: Sequence[Line], gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """The GPUs with what ``nvidia-smi -L`` says of them, where the text has that too."""
    named = {gpu.name: gpu for gpu in gpus}
    current = None
    for _number, text in lines:
        match = _LISTED.match(text)
        mig = _LISTED_MIG.match(text)
        if match is not None:
            current = named.get("GPU" + match.group(1))
            if current is not None:
                current = replace(current, model=match.group(2), uuid=match.group(3))
        elif mig is not None and current is not None:
            current = replace(current, mig=(*current.mig, mig.group(1)))
        if current is not None:
            named[current.name] = current
    return tuple(named[gpu.name] for gpu in gpus)


def _one_sided(picture: Machine) -> list[str]:
    """Pairs that the two rows describe differently, which nvidia-smi never prints."""
    return [
        f"{picture.gpus[j].name} to {picture.gpus[i].name} is {picture.levels[j][i]} and back "
        f"{row[j]}: the text was changed after nvidia-smi printed it"
        for i, row in enumerate(picture.levels)
        for j in range(i)
        if row[j] != picture.levels[j][i]
    ]
