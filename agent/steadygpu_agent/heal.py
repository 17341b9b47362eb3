# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu heal``: repair what is known to be safe to repair, after showing it."""

from __future__ import annotations

import argparse
from typing import Any

from steadygpu_agent import arguments as words


def register(commands: Any) -> None:
    """Add ``heal`` to the sub-parsers of the command."""
    heal = commands.add_parser(
        "heal",
        help="repair this host where that is safe; shows only, without --apply",
        description="Repairs that cost nobody a running job: containers that lost their GPU get it "
        "back, stale CDI specifications are made anew, nvidia_uvm is loaded, the CDI refresh is "
        "enabled and ordered. Without --apply nothing is changed. Exit status: 0 nothing to heal, "
        "or all was healed; 1 a step failed, or something is left for a person; 2 not understood; "
        "3 there is something to heal with --apply.",
    )
    heal.add_argument("--apply", action="store_true", help="carry the steps out; needs root")
    heal.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="only this step, or this kind of steps (uvm, cdi-spec, cdi-refresh, cdi-order, "
        "gpu-access); may be repeated",
    )
    heal.add_argument("--json", action="store_true", help="print JSON")
    words.add_deadline(heal, "each answer of the driver, systemd and Docker")
    heal.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show or heal; the work is in ``heal_run``."""
    from steadygpu_agent import heal_run

    return heal_run.run(arguments)
