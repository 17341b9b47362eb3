# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu settings``: what is kept on this host, and what the kernel holds of it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import Found

# Exit status when a setting is not what it is to be.
_DIFFERS = 1


def register(commands: Any) -> None:
    """Add ``settings`` to the sub-parsers of the command."""
    settings = commands.add_parser(
        "settings",
        help="compare the settings of this host with what the kernel holds",
        description="Read back every setting that is kept on this host: slices, real time, NUMA, "
        "IO, kernel. Exit status: 0 all are as wanted, or cannot act here and say why; 1 one "
        "differs. Changes nothing.",
    )
    settings.add_argument("--json", action="store_true", help="print JSON")
    settings.set_defaults(run=show)


def show(arguments: argparse.Namespace) -> int:
    """Print all settings; 1 when one differs."""
    from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import DIFFERS
    from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import survey
    from steadygpu_agent.check_run import printable_output

    printable_output()
    found = survey()
    if arguments.json:
        print(json.dumps([one.as_dict() for one in found], indent=2))
    else:
        print(page(found))
    return _DIFFERS if any(one.setting.verdict == DIFFERS for one in found) else 0


def page(found: Sequence[Found]) -> str:
    """The settings for a person. Pure."""
    from steadygpu_agent.table import table

    if not found:
        return "no settings are kept on this host"
    # One for each CPU, say: equal rows are told once.
    rows = {("ROLE", "SETTING", "WANTED", "EFFECTIVE", "VERDICT"): None}
    for one in found:
        said = one.setting
        effective = "-" if said.effective is None else said.effective
        rows[one.owner, said.name, said.wanted, effective, said.verdict] = None
    reasons = {
        f"{one.setting.name}: {one.setting.reason}": None for one in found if one.setting.reason
    }
    return "\n".join([table(list(rows)), *([""] if reasons else []), *reasons])
