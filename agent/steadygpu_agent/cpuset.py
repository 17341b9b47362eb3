# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu cpuset``: the CPUs and the memory node beside a GPU, for ``docker run``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from steadygpu_agent import arguments as words

UNKNOWN = 2


def register(commands: Any) -> None:
    """Add ``cpuset`` to the command's sub-parsers."""
    cpuset = commands.add_parser(
        "cpuset",
        help="print the CPUs and the memory node beside a GPU",
        description="Prints --cpuset-cpus and --cpuset-mems for containers of these GPUs: docker "
        "run $(steadygpu cpuset 0) --device nvidia.com/gpu=0 … Exit status: 0, 2 where nothing "
        "tells where a GPU is. Changes nothing.",
    )
    cpuset.add_argument(
        "gpu", nargs="*", metavar="GPU", help="index, UUID or PCI address; all GPUs without one"
    )
    cpuset.add_argument(
        "--facts",
        metavar="FILE",
        help="answer by the facts in FILE (steadygpu facts --json) instead of this host's",
    )
    cpuset.add_argument("--json", action="store_true", help="print JSON")
    words.add_deadline(cpuset)
    cpuset.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the flags: 0, or 2 with the reason."""
    from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.cpuset import beside
    from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.model import NumaError

    try:
        found = beside(_gpu(arguments), arguments.gpu)
    except (NumaError, OSError, ValueError) as error:
        print(f"steadygpu cpuset: {error}", file=sys.stderr)
        return UNKNOWN
    print(json.dumps(found.as_dict()) if arguments.json else found.flags)
    return 0


def _gpu(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """That section of the facts. Raises OSError, and ValueError for a file without it."""
    if not arguments.facts:
        from steadygpu_agent import facts

        found: Mapping[str, Any] = facts.collect(["gpu"], arguments.deadline)
        return dict(found["gpu"])
    with open(arguments.facts, encoding="utf-8") as handle:
        document = json.load(handle)
    section: Any = document
    for key in ("ansible_facts", "gpu_host"):
        if isinstance(section, dict):
            section = section.get(key, section)
    section = section.get("gpu") if isinstance(section, dict) else None
    if not isinstance(section, dict):
        raise ValueError(
            f"{arguments.facts} holds no facts of a GPU host; steadygpu facts --json writes them"
        )
    return section
