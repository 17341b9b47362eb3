# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command ``steadygpu``. Sub-commands import what they need when they run."""

from __future__ import annotations

import argparse
import json
import os
import pkgutil
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit status, 2 for one that cannot be understood."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except BrokenPipeError:
        # A reader such as head went away. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, as a shell reports it
    return status


def version() -> str:
    """The release this agent was built from; a checkout has none."""
    try:
        text = pkgutil.get_data("steadygpu_agent", "VERSION")
    except OSError:
        text = None
    return text.decode().strip() if text else "unreleased (checkout)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="steadygpu", description="Look at and look after a GPU container host."
    )
    parser.add_argument("--version", action="version", version=f"steadygpu {version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
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
    facts.add_argument(
        "--deadline",
        type=_seconds,
        default=20.0,
        metavar="SECONDS",
        help="how long to wait for the GPU driver (default: 20)",
    )
    facts.set_defaults(run=_facts)
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}; wanted is a number of seconds, such as 20")
    return seconds


def _facts(arguments: argparse.Namespace) -> int:
    from steadygpu_agent import facts, show

    try:
        found = facts.collect(arguments.section, arguments.deadline)
    except facts.UnknownSectionError as error:
        print(f"steadygpu: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found, indent=2) if arguments.json else show.text(found), flush=True)
    return 0
