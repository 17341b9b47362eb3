# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu topo``: the machine's topology as a table, a matrix of numbers, JSON or a picture."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from steadygpu_agent import arguments as words

UNREADABLE = 2
_FAILED = 1


def register(commands: Any) -> None:
    """Add ``topo`` to the sub-parsers of the command."""
    topo = commands.add_parser(
        "topo",
        help="show how the GPUs, network adapters and NUMA nodes are connected",
        description="Show how the GPUs, network adapters and NUMA nodes of this host are "
        "connected, or those of the machine that a text is from. Changes nothing and does not "
        "need root.",
    )
    shape = topo.add_mutually_exclusive_group()
    shape.add_argument(
        "--affinity", action="store_true", help="print how near the GPUs are from 0 to 1"
    )
    shape.add_argument("--json", action="store_true", help="print everything as JSON")
    shape.add_argument(
        "--svg", metavar="FILE", help="draw the machine into FILE; - is standard output"
    )
    topo.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="read FILE instead of this host, - is standard input: the text of nvidia-smi topo -m "
        "or nvidia-smi -q -x, hwloc XML, an NCCL topology file, or steadygpu facts --json",
    )
    topo.add_argument(
        "--bandwidth",
        metavar="FILE",
        help="take the affinity from what nvbandwidth printed on this machine",
    )
    topo.add_argument(
        "--title", metavar="TEXT", help="the heading (default: the models of the GPUs)"
    )
    words.add_deadline(topo)
    topo.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what is asked for: 0, 1 where the picture cannot be written, 2 for a bad input."""
    from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
        TopologyError,
    )
    from steadygpu_agent import topo_read, topo_text

    try:
        reading = topo_read.read(arguments.source, arguments.deadline, arguments.title)
        machine = reading.machine
        affinity = topo_read.affinity(machine, arguments.bandwidth)
    except TopologyError as error:
        print(f"steadygpu: {error}", file=sys.stderr)
        return UNREADABLE
    if arguments.svg is not None:
        from steadygpu_agent.draw import svg

        return _write(svg.render(machine, reading.sick), arguments.svg)
    if arguments.json:
        print(json.dumps(topo_text.as_json(machine, affinity), indent=2), flush=True)
    elif arguments.affinity:
        print(topo_text.affinity_page(machine, affinity), flush=True)
    else:
        print(topo_text.page(machine, affinity), flush=True)
    return 0


def _write(picture: str, path: str) -> int:
    from ansible_collections.steadygpu.host.plugins.module_utils import atomic

    if path == "-":
        sys.stdout.write(picture)
        sys.stdout.flush()
        return 0
    try:
        atomic.write_atomic(path, picture)
    except OSError as error:
        print(f"steadygpu: {path} was not written: {error.strerror}", file=sys.stderr)
        return _FAILED
    return 0
