# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu io``: do IO weights act on the disks of this host, and are they kept so?"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

DONE = 0
DIFFERS = 1
FAILED = 2


def register(commands: Any) -> None:
    """Add ``io`` with its verbs to the command's sub-parsers."""
    io = commands.add_parser(
        "io",
        help="do IO weights act on the disks?",
        description="What shares out each disk by weight: bfq, iocost or nothing (docs/io.md).",
    )
    verbs = io.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser(
        "show",
        help="say for each disk whether IO weights act on it",
        description="Changes nothing. Exit status: 0.",
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(run=run_show)
    apply = verbs.add_parser(
        "apply",
        help="set scheduler and iocost again as the module io_control keeps them",
        description="What the unit steadygpu-io.service runs at boot. Exit status: 0 done, or "
        "nothing is kept; 1 something differs; 2 it failed.",
    )
    apply.add_argument("--json", action="store_true", help="print JSON")
    apply.set_defaults(run=run_apply)


def run_show(arguments: argparse.Namespace) -> int:
    """Print what weights do on each disk."""
    from ansible_collections.steadygpu.host.plugins.module_utils.io_control import plan, reader

    found = plan.weights(reader.all_disks(), reader.read_kernel())
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        for disk, said in found.items():
            print(f"{disk}: {said}")
    return DONE


def run_apply(arguments: argparse.Namespace) -> int:
    """Do what is kept once more."""
    from ansible_collections.steadygpu.host.plugins.module_utils.io_control.manage import apply_kept
    from ansible_collections.steadygpu.host.plugins.module_utils.io_control.model import IoError
    from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
        DIFFERS as VALUE_DIFFERS,
    )
    from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError

    try:
        outcome = apply_kept()
    except (IoError, SettingsError, OSError) as error:
        print(f"steadygpu io apply: {error}", file=sys.stderr)
        return FAILED
    if outcome is None:
        print("nothing is kept for disks on this host")
        return DONE
    if arguments.json:
        said = {
            "actions": outcome.actions,
            "warnings": outcome.warnings,
            "settings": [one.as_dict() for one in outcome.settings],
        }
        print(json.dumps(said, indent=2))
    else:
        for line in outcome.actions:
            print(line)
        for line in outcome.warnings:
            print(line, file=sys.stderr)
        for one in outcome.settings:
            print(f"{one.name}: {one.verdict}" + (f" ({one.reason})" if one.reason else ""))
    differs = any(one.verdict == VALUE_DIFFERS for one in outcome.settings)
    return DIFFERS if differs else DONE
