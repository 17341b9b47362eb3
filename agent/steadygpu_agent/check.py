# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu check``: what is known to break in the files and on the host at hand."""

from __future__ import annotations

import argparse
from typing import Any

from steadygpu_agent import arguments as words

_SEVERITIES = ("info", "warning", "error", "fatal")
_FORMATS = ("text", "json", "sarif", "junit")


def register(commands: Any) -> None:
    """Add ``check`` to the sub-parsers of the command."""
    check = commands.add_parser(
        "check",
        help="say what is known to break in run lines, Compose files, daemon.json, hosts, ...",
        description="Say what is known to break, why, and what to write instead. Changes nothing. "
        "The exit status is 0 when nothing was found, 1 for findings at or above --fail-on, "
        "2 when something could not be judged.",
    )
    check.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files, directories (their files of known names), or - for standard input",
    )
    check.add_argument("--host", action="store_true", help="judge this host, and the files for it")
    check.add_argument(
        "--only-known",
        action="store_true",
        help="leave out given files of no known kind, as below a directory (for commit hooks)",
    )
    check.add_argument(
        "--kind", metavar="KIND", help="what the files are, where neither name nor text tells"
    )
    add_assume(check)
    check.add_argument(
        "--fail-on",
        choices=_SEVERITIES,
        default="warning",
        help="the least severity that makes the exit status 1 (default: warning)",
    )
    check.add_argument(
        "--show",
        choices=_SEVERITIES,
        help="the least severity that the text shows (default: info, in a long report warning)",
    )
    check.add_argument("--format", choices=_FORMATS, default="text", help="default: text")
    check.add_argument(
        "--output",
        metavar="FILE",
        help="write the report in that format to FILE, and the text for people to the terminal",
    )
    check.add_argument(
        "--baseline", metavar="FILE", help="leave out the findings that this file has as known"
    )
    check.add_argument(
        "--write-baseline",
        metavar="FILE",
        help="write every finding to this file as known, and end with 0",
    )
    check.add_argument("--rules", action="store_true", help="list the rules and end")
    words.add_deadline(check)
    check.set_defaults(run=run)


def add_assume(parser: argparse.ArgumentParser) -> None:
    """``--assume KEY=VALUE,...``: what is known of a host that is not at hand."""
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="KEY=VALUE,...",
        help="what holds for the host the files are for: docker=28.5.2,gpus=4,os=debian 13",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check, report, and return the exit status."""
    if arguments.rules:
        from steadygpu_agent import rules_command

        return rules_command.show(None)
    from steadygpu_agent import check_run

    return check_run.run(arguments)
