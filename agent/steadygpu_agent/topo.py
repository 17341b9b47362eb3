# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu topo``: the machine's topology as a table, a matrix of numbers, JSON or a picture."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from steadygpu_agent import arguments as words

if TYPE_CHECKING:
    from ansible_collections.steadygpu.host.plugins.module_utils.topology.remembered import Record

UNREADABLE = 2
_FAILED = 1


def register(commands: Any) -> None:
    """Add ``topo`` to the sub-parsers of the command."""
    topo = commands.add_parser(
        "topo",
        help="show how the GPUs, network adapters and NUMA nodes are connected",
        description="Show how the GPUs, network adapters and NUMA nodes of this host are "
        "connected, or those of the machine that a text is from. Changes nothing and does not "
        "need root, but for --remember and --forget.",
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
        help="take the affinity from what nvbandwidth or p2pBandwidthLatencyTest printed on this "
        "machine",
    )
    kept = topo.add_mutually_exclusive_group()
    kept.add_argument(
        "--remember",
        action="store_true",
        help="keep what --bandwidth FILE says of this host: its affinity is measured from now on, "
        "for as long as its GPUs and their links are the same",
    )
    kept.add_argument(
        "--forget",
        action="store_true",
        help="remove what --remember kept and do nothing else",
    )
    topo.add_argument(
        "--title", metavar="TEXT", help="the heading (default: the models of the GPUs)"
    )
    words.add_deadline(topo)
    topo.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what is asked for: 0, 1 where a file cannot be written, 2 for a bad input."""
    from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
        TopologyError,
    )
    from steadygpu_agent import topo_read, topo_text

    misused = _misused(arguments)
    if misused:
        print(f"steadygpu: {misused}", file=sys.stderr)
        return UNREADABLE
    if arguments.forget:
        return _forget()
    bandwidth = arguments.bandwidth
    try:
        reading = topo_read.read(arguments.source, arguments.deadline, arguments.title)
        if arguments.remember:
            if not _remember(topo_read.record(reading.machine, bandwidth)):
                return _FAILED
            # Shown is what the host says from now on.
            reading = topo_read.read(None, arguments.deadline, arguments.title)
            bandwidth = None
        machine = reading.machine
        affinity = topo_read.affinity(machine, bandwidth, reading.measured)
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


def _misused(arguments: argparse.Namespace) -> str | None:
    """What is wrong with the options together, if anything."""
    if arguments.remember and arguments.bandwidth is None:
        return "--remember keeps what --bandwidth FILE says: give that too"
    if arguments.remember and arguments.source is not None:
        return "--remember is about this host, --from about another text: give one of them"
    if arguments.forget and (arguments.bandwidth is not None or arguments.source is not None):
        return "--forget only removes what is remembered on this host: give it alone"
    return None


def _remember(record: Record) -> bool:
    from ansible_collections.steadygpu.host.plugins.module_utils.hardware import bandwidth_file

    try:
        bandwidth_file.write(record)
    except OSError as error:
        print(_failed(bandwidth_file.where(), "written", error), file=sys.stderr)
        return False
    return True


def _forget() -> int:
    from ansible_collections.steadygpu.host.plugins.module_utils.hardware import bandwidth_file

    try:
        bandwidth_file.forget()
    except OSError as error:
        print(_failed(bandwidth_file.where(), "removed", error), file=sys.stderr)
        return _FAILED
    return 0


def _failed(path: str, done: str, error: OSError) -> str:
    advice = "; run it as root" if isinstance(error, PermissionError) else ""
    return f"steadygpu: {path} was not {done}: {error.strerror}{advice}"


def _write(picture: str, path: str) -> int:
    from ansible_collections.steadygpu.host.plugins.module_utils import atomic

    if path == "-":
        sys.stdout.write(picture)
        sys.stdout.flush()
        return 0
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            # A device or a pipe is written to. Replaced, /dev/null would be a file for everybody.
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(picture)
        else:
            atomic.write_atomic(path, picture)
    except OSError as error:
        print(_failed(path, "written", error), file=sys.stderr)
        return _FAILED
    return 0
