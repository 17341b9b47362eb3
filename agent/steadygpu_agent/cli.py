# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command ``steadygpu``. Each command registers itself and imports the rest when it runs."""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
from collections.abc import Sequence

from steadygpu_agent import (
    acs,
    burst,
    check,
    checkpoint,
    claim,
    cpuset,
    explain,
    facts_command,
    heal,
    io_control,
    mig,
    nccl,
    place,
    realtime,
    routes,
    rules_command,
    settings,
    slo,
    topo,
    verify_files,
)

# In the order of the help text.
_COMMANDS = (
    check,
    explain,
    rules_command,
    facts_command,
    topo,
    cpuset,
    settings,
    realtime,
    burst,
    io_control,
    acs,
    mig,
    nccl,
    checkpoint,
    claim,
    place,
    routes,
    slo,
    heal,
    verify_files,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit status, 2 for one that cannot be understood."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # A reader such as head went away. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, as a shell reports it
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT
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
    for command in _COMMANDS:
        command.register(commands)
    return parser
