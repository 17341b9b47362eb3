# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu burst apply``: what the unit runs at boot and whenever a slice's quota changes."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def register(commands: Any) -> None:
    """Add ``burst`` to the sub-parsers of the command."""
    burst = commands.add_parser(
        "burst",
        help="set the CPU burst of slices to what their quota allows",
        description="The kernel refuses a CPU quota below the burst, and systemd only logs that. "
        "steadygpu-burst.service runs this command at boot and after each change of a quota: the "
        "quota that systemd was told comes first, the burst follows it. Exit status: 0 all is as "
        "wanted, 1 the kernel refused something or a burst does not fit its quota, 2 not "
        "understood.",
    )
    verbs = burst.add_subparsers(dest="verb", required=True)
    apply = verbs.add_parser("apply", help="set what the module cpu_burst keeps; needs root")
    apply.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Set and print; the work is in ``module_utils/burst/apply.py``."""
    from ansible_collections.steadygpu.host.plugins.module_utils.burst import apply
    from ansible_collections.steadygpu.host.plugins.module_utils.burst.model import BurstError
    from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
        DIFFERS,
        SettingsError,
    )

    try:
        done = apply.apply()
    except (BurstError, SettingsError, OSError) as error:
        print(f"steadygpu burst: {error}", file=sys.stderr)
        return 1
    for line in done.actions:
        print(line)
    for line in done.faults:
        print(f"steadygpu burst: {line}", file=sys.stderr)
    wrong = [one for one in done.settings if one.verdict == DIFFERS]
    for one in wrong:
        print(f"{one.name}: {one.effective}, wanted {one.wanted}: {one.reason}", file=sys.stderr)
    return 1 if wrong or done.faults else 0
