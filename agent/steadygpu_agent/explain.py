# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu explain``: what an error message means, how to tell, and what to do."""

from __future__ import annotations

import argparse
from typing import Any

from steadygpu_agent import arguments as words
from steadygpu_agent.check import add_assume


def register(commands: Any) -> None:
    """Add ``explain`` to the sub-parsers of the command."""
    explain = commands.add_parser(
        "explain",
        help="say what an error message or log means, and how to tell its causes apart",
        description="Say what an error message means: its possible causes, a command that proves "
        "each, and the fix. The exit status is 0 when something in the text is known, 1 when "
        "nothing is, 2 when it cannot be read.",
    )
    explain.add_argument(
        "text",
        nargs="+",
        metavar="TEXT",
        help="the message, or a file that has it, or - for standard input",
    )
    explain.add_argument(
        "--host", action="store_true", help="ask this host which causes hold and which cannot"
    )
    add_assume(explain)
    explain.add_argument("--json", action="store_true", help="print JSON")
    words.add_deadline(explain)
    explain.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain, and return the exit status."""
    from steadygpu_agent import explain_run

    return explain_run.run(arguments)
