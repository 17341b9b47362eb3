# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu facts``: what this host is."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from steadygpu_agent import arguments as words


def register(commands: Any) -> None:
    """Add ``facts`` to the sub-parsers of the command."""
    facts = commands.add_parser(
        "facts",
        help="show what this host is: driver, GPUs, topology, container engine",
        description="Show what this host is. Changes nothing and does not need root; what only "
        "root may see is shown as unknown.",
    )
    facts.add_argument(
        "--json", action="store_true", help="print ansible_facts['gpu_host'] as JSON"
    )
    facts.add_argument(
        "--section",
        action="append",
        metavar="NAME",
        help="only this section (gpu, os, kernel, docker, cdi, ...); may be repeated",
    )
    words.add_deadline(facts)
    facts.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the facts: 0, 2 for a section there is not."""
    from steadygpu_agent import facts, show

    try:
        found = facts.collect(arguments.section, arguments.deadline)
    except facts.UnknownSectionError as error:
        print(f"steadygpu: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found, indent=2) if arguments.json else show.text(found), flush=True)
    return 0
