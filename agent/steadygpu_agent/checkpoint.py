# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu checkpoint``: what the host was, what differs, and the way back."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from steadygpu_agent import arguments

_SELECTOR = (
    "an id, the unique beginning of one, a label, or @TIME such as @2026-12-01T03:00 for the "
    "newest one taken by then"
)
# Whom a look at the host asks.
_ASKED = "each answer of the driver, systemd, Docker and the package manager"


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
    show = _verb(verbs, "show", "what a checkpoint holds", "Secrets are never shown.")
    show.add_argument("checkpoint", metavar="ID", help=_SELECTOR)
    show.add_argument("--json", action="store_true", help="print JSON")
    _restore(verbs)
    resume = _verb(verbs, "resume", "end a restore that was interrupted; else nothing")
    arguments.add_deadline(resume, _ASKED)
    label = _verb(
        verbs,
        "label",
        "put a label on a checkpoint; a labelled one is never pruned",
        "It moves there from another one. stable, before-change and before-restore are set by "
        "confirm and restore, and move with the next.",
    )
    label.add_argument("name", metavar="NAME")
    label.add_argument("checkpoint", metavar="ID", help=_SELECTOR)
    unlabel = _verb(verbs, "unlabel", "take a label away")
    unlabel.add_argument("name", metavar="NAME")
    remove = _verb(verbs, "remove", "remove one checkpoint, unless it is labelled or needed")
    remove.add_argument("checkpoint", metavar="ID", help="its whole id")
    confirm = _verb(verbs, "confirm", "keep the open change, whoever began it")
    _retention(confirm)
    arguments.add_deadline(confirm, _ASKED)
    export = _verb(verbs, "export", "write a checkpoint to a file, to look at it elsewhere")
    export.add_argument("checkpoint", metavar="ID", help=_SELECTOR)
    export.add_argument("file", metavar="FILE")
    export.add_argument(
        "--without-secrets", action="store_true", help="leave out files that may hold secrets"
    )
    imported = _verb(
        verbs,
        "import",
        "take in an exported checkpoint",
        "To look at, or to restore: who restores from a file trusts whoever made it.",
    )
    imported.add_argument("file", metavar="FILE")
    _retention(_verb(verbs, "prune", "remove old checkpoints, never labelled or needed ones"))
    migrate = _verb(verbs, "migrate", "rewrite the store for an older or newer steadygpu")
    migrate.add_argument("--to", type=int, required=True, metavar="N", help="schema number")


def _take(verbs: Any) -> None:
    take = _verb(
        verbs,
        "take",
        "save what the host is now",
        "When nothing differs from the newest checkpoint, that one is named instead.",
    )
    _reason(take)
    take.add_argument(
        "--label", action="append", default=[], metavar="NAME", help="may be repeated"
    )
    take.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="PATH",
        help="a further file or directory, put back whoever changes it; may be repeated",
    )
    arguments.add_deadline(take, _ASKED)


def _reason(verb: argparse.ArgumentParser) -> None:
    for name, text in (
        ("who", "who changes the host (default: you)"),
        ("why", "why"),
        ("ticket", "the ticket of the change"),
        ("window", "the maintenance window, as text"),
    ):
        verb.add_argument(f"--{name}", default="", metavar="TEXT", help=text)


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
    arguments.add_deadline(diff, _ASKED)


def _restore(verbs: Any) -> None:
    restore = _verb(verbs, "restore", "bring the host back to a checkpoint")
    restore.add_argument(
        "checkpoint",
        nargs="?",
        default="",
        metavar="ID",
        help=f"{_SELECTOR} (default: the state before the open change)",
    )
    _reason(restore)
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
        help="even while another run has a change open",
    )
    restore.add_argument(
        "--restart-timeout",
        type=arguments.seconds,
        default=120.0,
        metavar="SECONDS",
        help="how long each reload or restart may take (default: 120)",
    )
    arguments.add_deadline(restore, _ASKED)


def _retention(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep",
        type=int,
        default=20,
        metavar="N",
        help="how many of the newest stay; labelled ones stay in any case (default: 20)",
    )
    parser.add_argument(
        "--max-age-days",
        type=float,
        default=90.0,
        metavar="DAYS",
        help="older ones go, but for the three newest; 0: never (default: 90)",
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
    def run(asked: argparse.Namespace) -> int:
        from steadygpu_agent import checkpoint_run

        return checkpoint_run.run(name, asked)

    return run
