# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu checkpoint``: what the host was, what differs, and the way back."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from steadygpu_agent.arguments import add_deadline, seconds

_SELECTOR = (
    "an id, the unique beginning of one, a label, or @TIME such as @2026-12-01T03:00 for the "
    "newest one taken by then"
)


def register(commands: Any) -> None:
    """Add ``checkpoint`` with its verbs to the command's sub-parsers."""
    checkpoint = commands.add_parser(
        "checkpoint",
        help="save what the host is, compare, and go back",
        description="Checkpoints of this host: files, units, settings, packages and MIG layouts. "
        "Needs root. A restore never ends a running container; what waits for one is told and is "
        "done by restoring again later. Statuses: 0 done, 1 refused or failed, 2 not understood, "
        "3 something is left for later.",
    )
    verbs = checkpoint.add_subparsers(metavar="VERB", required=True)
    listing = _verb(verbs, "list", "checkpoints, labels, and what is under way")
    listing.add_argument("--json", action="store_true", help="print JSON")
    _take(verbs)
    _diff(verbs)
    show = _verb(verbs, "show", "what a checkpoint holds")
    show.add_argument("checkpoint", metavar="ID", help=_SELECTOR)
    show.add_argument("--json", action="store_true", help="print JSON")
    _restore(verbs)
    resume = _verb(verbs, "resume", "end a restore that was interrupted; else nothing")
    add_deadline(resume)
    label = _verb(verbs, "label", "put a label on a checkpoint; a labelled one is never pruned")
    label.add_argument("name", metavar="NAME")
    label.add_argument("checkpoint", metavar="ID", help=_SELECTOR)
    unlabel = _verb(verbs, "unlabel", "take a label away")
    unlabel.add_argument("name", metavar="NAME")
    confirm = _verb(verbs, "confirm", "keep the open change, whoever began it")
    _retention(confirm)
    add_deadline(confirm)
    export = _verb(verbs, "export", "write a checkpoint to a file, to look at it elsewhere")
    export.add_argument("checkpoint", metavar="ID", help=_SELECTOR)
    export.add_argument("file", metavar="FILE")
    export.add_argument(
        "--without-secrets", action="store_true", help="leave out files that may hold secrets"
    )
    _verb(verbs, "import", "take in an exported checkpoint").add_argument("file", metavar="FILE")
    _retention(_verb(verbs, "prune", "remove old checkpoints, never labelled or needed ones"))
    migrate = _verb(verbs, "migrate", "rewrite the store for an older or newer steadygpu")
    migrate.add_argument("--to", type=int, required=True, metavar="N", help="schema number")


def _take(verbs: Any) -> None:
    take = _verb(verbs, "take", "save what the host is now")
    for name, text in (
        ("who", "who changes the host (default: you)"),
        ("why", "why"),
        ("ticket", "the ticket of the change"),
        ("window", "the maintenance window, as text"),
    ):
        take.add_argument(f"--{name}", default="", metavar="TEXT", help=text)
    take.add_argument(
        "--label", action="append", default=[], metavar="NAME", help="may be repeated"
    )
    take.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="PATH",
        help="a further file or directory to keep; may be repeated",
    )
    add_deadline(take)


def _diff(verbs: Any) -> None:
    diff = _verb(
        verbs,
        "diff",
        "what differs between two checkpoints, or one and now",
        "Secrets are never shown. Status 0: the same, 1: they differ, 2: trouble.",
    )
    diff.add_argument(
        "before", nargs="?", default="before-change", metavar="A", help=f"{_SELECTOR}; or now"
    )
    diff.add_argument("after", nargs="?", default="now", metavar="B", help="like A (default: now)")
    form = diff.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--html", metavar="FILE", help="write one page that needs nothing else")
    add_deadline(diff)


def _restore(verbs: Any) -> None:
    restore = _verb(verbs, "restore", "bring the host back to a checkpoint")
    restore.add_argument(
        "checkpoint",
        nargs="?",
        default="",
        metavar="SELECTOR",
        help=f"{_SELECTOR} (default: the state before the open change)",
    )
    restore.add_argument(
        "--dry-run", action="store_true", help="only show what would be done and what would differ"
    )
    restore.add_argument(
        "--packages",
        action="store_true",
        help="packages too, to versions that can be had; never drivers and kernels",
    )
    restore.add_argument(
        "--other-host",
        action="store_true",
        help="another machine's checkpoint: its files and settings",
    )
    restore.add_argument(
        "--takeover",
        action="store_true",
        help="even if somebody has a change open that began elsewhere",
    )
    restore.add_argument(
        "--restart-timeout",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="how long each reload or restart may take (default: 120)",
    )
    add_deadline(restore)


def _retention(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep",
        type=int,
        default=20,
        metavar="N",
        help="how many stay beside labelled ones (default: 20)",
    )
    parser.add_argument(
        "--max-age-days",
        type=float,
        default=90.0,
        metavar="DAYS",
        help="older ones go; 0: never (default: 90)",
    )


def _verb(verbs: Any, name: str, text: str, more: str = "") -> argparse.ArgumentParser:
    description = f"{text[0].upper()}{text[1:]}."
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=text, description=f"{description} {more}".rstrip()
    )
    parser.add_argument(
        "--store",
        metavar="DIRECTORY",
        help="where the checkpoints lie (default: /var/lib/steadygpu/rollback)",
    )
    parser.set_defaults(run=_runner(name))
    return parser


def _runner(name: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        from steadygpu_agent import checkpoint_run

        return checkpoint_run.run(name, arguments)

    return run
