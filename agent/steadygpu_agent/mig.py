# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu mig``: look at MIG layouts, plan them, apply them, and go back."""

from __future__ import annotations

import argparse
from typing import Any

from steadygpu_agent.arguments import seconds


def register(commands: Any) -> None:
    """Add ``mig`` with its verbs to the command's sub-parsers."""
    mig = commands.add_parser(
        "mig",
        help="show, plan, apply and undo MIG layouts",
        description="MIG layouts of this host's GPUs. Needs root. Changes are refused while a GPU "
        "is in use, and are undone when a step fails.",
    )
    verbs = mig.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser("show", help="layouts, what each GPU offers, and who holds it")
    show.add_argument("--json", action="store_true", help="print JSON")
    _deadline(show)
    show.set_defaults(run=_show)
    plan = verbs.add_parser("plan", help="what apply would do; changes nothing")
    _layout(plan)
    _options(plan)
    plan.set_defaults(run=_plan)
    apply = verbs.add_parser("apply", help="bring the GPUs to a layout")
    _layout(apply)
    apply.add_argument(
        "--boot",
        action="store_true",
        help="the layout kept for boot (steadygpu-mig.service calls this)",
    )
    _options(apply)
    apply.set_defaults(run=_apply)
    undo = verbs.add_parser("undo", help="go back to the layout before the last change")
    _options(undo)
    undo.set_defaults(run=_undo, layout=None, boot=False)
    resume = verbs.add_parser(
        "resume", help="start what a change that was killed left stopped; nothing else"
    )
    _deadline(resume)
    resume.set_defaults(run=_resume)


def _layout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "layout",
        nargs="?",
        metavar="LAYOUT",
        help="all-disabled, all-enabled, all-balanced, all-PROFILE, or JSON as the module "
        "steadygpu.host.mig_layout takes it",
    )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="NAME",
        help="a unit, container:NAME or module:nvidia_drm that may be stopped for the change and "
        "is started again; may be repeated, the order counts",
    )
    parser.add_argument(
        "--no-persist",
        action="store_true",
        help="no layout comes back at boot any more",
    )
    _deadline(parser)


def _deadline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--deadline",
        type=seconds,
        default=120.0,
        metavar="SECONDS",
        help="how long to wait for the GPU driver at each step (default: 120)",
    )


def _show(arguments: argparse.Namespace) -> int:
    from steadygpu_agent import mig_run

    return mig_run.show(arguments.deadline, arguments.json)


def _plan(arguments: argparse.Namespace) -> int:
    from steadygpu_agent import mig_run

    return mig_run.plan(arguments)


def _apply(arguments: argparse.Namespace) -> int:
    from steadygpu_agent import mig_run

    return mig_run.apply(arguments)


def _undo(arguments: argparse.Namespace) -> int:
    from steadygpu_agent import mig_run

    return mig_run.apply(arguments, previous=True)


def _resume(arguments: argparse.Namespace) -> int:
    from steadygpu_agent import mig_run

    return mig_run.resume(arguments.deadline)
