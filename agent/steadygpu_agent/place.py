# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu place``: which devices a claim would get, on this host or on recorded facts."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steadygpu_agent import arguments as words

if TYPE_CHECKING:
    from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import (
        Host,
        Request,
        Weights,
    )

# Exit statuses, as ``steadygpu claim check`` has them.
PLACED = 0
MALFORMED = 2
REFUSED = 255

# The facts of eight GPUs with all their processes have less than one.
_MOST_MIB = 20
_POLICIES = ("pack", "spread", "numa")


def register(commands: Any) -> None:
    """Add ``place`` to the command's sub-parsers."""
    place = commands.add_parser(
        "place",
        help="say which devices a claim would get",
        description="Asks the placement library and changes nothing (docs/placement.md). Exit "
        "status: 0 there are such devices, 2 the claim or the facts cannot be read, 255 there are "
        "none now.",
    )
    place.add_argument(
        "--claim", required=True, metavar="CLAIM", help="for example count=2+link=nvlink"
    )
    place.add_argument(
        "--facts",
        metavar="FILE",
        help="judge by the facts in FILE (steadygpu facts --json), or by another text that "
        "steadygpu topo reads, instead of this host; - is standard input",
    )
    place.add_argument(
        "--explain", action="store_true", help="show every candidate and why it was not taken"
    )
    place.add_argument("--json", action="store_true", help="print JSON")
    place.add_argument(
        "--policy",
        choices=_POLICIES,
        default="pack",
        help="among equal links keep GPUs together (pack, the default) or apart (spread), or ask "
        "for the fewest NUMA nodes before the links (numa)",
    )
    place.add_argument(
        "--busy", metavar="GPUS", default="", help="take these GPUs as given away: 0,3"
    )
    place.add_argument(
        "--cpu-node", type=int, metavar="NODE", help="the container's CPUs are on this NUMA node"
    )
    place.add_argument(
        "--weights",
        metavar="M,C,N",
        help="of memory, compute and NUMA in the score; they sum to 1 (default: 0.65,0.25,0.10)",
    )
    words.add_deadline(place)
    place.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Decide and print."""
    from ansible_collections.steadygpu.host.plugins.module_utils.placement import explain
    from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import (
        TopologyError,
    )

    try:
        request = _request(arguments)
        host = _busy(_host(arguments.facts, arguments.deadline), arguments.busy)
        told = explain.explain(host, request)
    except (OSError, ValueError, TopologyError) as error:
        print(f"steadygpu place: {error}", file=sys.stderr)
        return MALFORMED
    if arguments.json:
        found = told.as_dict()
        if not arguments.explain:
            found = {key: found[key] for key in found if key not in ("candidates", "unseen")}
        print(json.dumps({"claim": arguments.claim, **found}, indent=2))
    else:
        print(explain.text(told) if arguments.explain else explain.answer(told), end="")
    return PLACED if told.decision.chosen or told.decision.reshapes else REFUSED


def _request(arguments: argparse.Namespace) -> Request:
    """Raises ValueError for a claim that is none, or that contradicts itself."""
    from ansible_collections.steadygpu.host.plugins.module_utils.claims import grammar
    from ansible_collections.steadygpu.host.plugins.module_utils.claims.contradictions import (
        contradictions,
    )
    from ansible_collections.steadygpu.host.plugins.module_utils.placement import request

    claim = grammar.parse(arguments.claim)
    against = contradictions(claim)
    if against:
        raise ValueError("; ".join(str(one) for one in against))
    return request.of_claim(
        claim, arguments.policy, _weights(arguments.weights), cpu_node=arguments.cpu_node
    )


def _weights(text: str | None) -> Weights | None:
    from ansible_collections.steadygpu.host.plugins.module_utils.placement.model import Weights

    if text is None:
        return None
    try:
        memory, compute, numa = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"--weights is {text!r}; wanted are three numbers such as 0.65,0.25,0.10"
        ) from None
    return Weights(memory, compute, numa)


def _host(source: str | None, deadline_s: float) -> Host:
    """Raises OSError, ValueError, TopologyError."""
    from ansible_collections.steadygpu.host.plugins.module_utils.placement import inventory

    if source is None:
        from steadygpu_agent import facts

        return inventory.host(facts.collect([facts.GPU], deadline_s)[facts.GPU])
    from steadygpu_agent import topo_read

    text = _read(source)
    if topo_read.kind(text) != topo_read.FACTS:
        seen = topo_read.parse(text, source)
        return inventory.of_machine(seen.machine, seen.sick)
    gpu = _gpu_section(text, source)
    try:
        return inventory.host(gpu)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{source} is not of the shape of facts ({type(error).__name__}: {error}); steadygpu "
            "facts --json writes them"
        ) from error


def _read(source: str) -> str:
    """The text of a file, or of standard input for ``-``. Raises OSError, ValueError."""
    limit = _MOST_MIB * 1024 * 1024
    if source == "-":
        data = sys.stdin.buffer.read(limit + 1)
    else:
        with open(source, "rb") as handle:
            data = handle.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"{source} is longer than {_MOST_MIB} MiB")
    return data.decode("utf-8-sig", errors="replace")


def _gpu_section(text: str, source: str) -> Mapping[str, Any]:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{source} is JSON that cannot be read: {error}") from None
    for key in ("ansible_facts", "gpu_host", "gpu"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict) or not isinstance(found.get("devices"), list):
        raise ValueError(f"{source} holds no gpu.devices; steadygpu facts --json writes them")
    return found


def _busy(host: Host, given: str) -> Host:
    """The same host with some GPUs given away. Raises ValueError for one that it has not."""
    from dataclasses import replace

    names = [name.strip() for name in given.split(",") if name.strip()]
    known = {str(gpu.index) for gpu in host.gpus}
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(
            f"--busy names GPU {', '.join(missing)}; this host has {', '.join(sorted(known))}"
        )
    said = "is given away (--busy)"
    return replace(
        host,
        gpus=tuple(
            replace(
                gpu,
                device=replace(gpu.device, foreign=said),
                parts=tuple(replace(part, foreign=said) for part in gpu.parts),
            )
            if str(gpu.index) in names
            else gpu
            for gpu in host.gpus
        ),
    )
