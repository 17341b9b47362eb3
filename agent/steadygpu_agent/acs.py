# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu acs``: switch off again, at boot, what the module pcie_acs keeps off."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def register(commands: Any) -> None:
    """Add ``acs`` with its verb to the command's sub-parsers."""
    acs = commands.add_parser(
        "acs",
        help="switch PCI Access Control Services off on the bridges that are kept so",
        description="Which bridges these are, the module steadygpu.host.pcie_acs decides.",
    )
    verbs = acs.add_subparsers(metavar="VERB", required=True)
    apply = verbs.add_parser(
        "apply",
        help="switch it off where it came back, as at every boot",
        description="Exit status: 0 done or nothing to do, 1 a bridge could not be changed or is "
        "another one than it was, or this is a virtual machine. steadygpu-acs.service calls this.",
    )
    apply.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Apply what is recorded; what went wrong is printed."""
    from ansible_collections.steadygpu.host.plugins.module_utils.acs import manage
    from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
        SettingsError,
    )

    try:
        faults = manage.apply_kept()
    except SettingsError as error:
        faults = [str(error)]
    for fault in faults:
        print(f"steadygpu acs: {fault}", file=sys.stderr)
    return 1 if faults else 0
