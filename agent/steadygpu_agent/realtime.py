# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu realtime apply``: what the boot unit runs to set fair servers and the partition."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def register(commands: Any) -> None:
    """Add ``realtime`` to the sub-parsers of the command."""
    realtime = commands.add_parser(
        "realtime",
        help="set again what the module rt_scheduling keeps and only the running kernel holds",
        description="Fair servers of the CPUs and the partition of real-time work do not outlive a "
        "boot. steadygpu-realtime.service sets them again with this command. Exit status: 0 all is "
        "as wanted, 1 the kernel refused something or holds something else, 2 not understood.",
    )
    verbs = realtime.add_subparsers(dest="verb", required=True)
    apply = verbs.add_parser("apply", help="set what is kept and differs; needs root")
    apply.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Set and print; the work is in ``module_utils/realtime/apply.py``."""
    from ansible_collections.steadygpu.host.plugins.module_utils.realtime import apply
    from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
        DIFFERS,
        SettingsError,
    )

    try:
        done = apply.apply()
    except (SettingsError, OSError) as error:
        print(f"steadygpu realtime: {error}", file=sys.stderr)
        return 1
    for line in done.actions:
        print(line)
    for line in done.faults:
        print(f"steadygpu realtime: {line}", file=sys.stderr)
    wrong = [one for one in done.settings if one.verdict == DIFFERS]
    for one in wrong:
        print(f"{one.name}: {one.effective}, wanted {one.wanted}: {one.reason}", file=sys.stderr)
    return 1 if wrong or done.faults else 0
