# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu slo``: check a policy of service level objectives, or make one of older settings."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ansible_collections.steadygpu.host.plugins.module_utils.slo.model import Objective, Remark

# Exit statuses.
FINE = 0
INCOMPLETE = 1
UNUSABLE = 2


def register(commands: Any) -> None:
    """Add ``slo`` with its verbs to the command's sub-parsers."""
    slo = commands.add_parser(
        "slo",
        help="check a policy of service level objectives, or convert older settings",
        description="Service level objectives: availability, replicas, latency (docs/slo.md).",
    )
    verbs = slo.add_subparsers(metavar="VERB", required=True)
    check = verbs.add_parser(
        "check",
        help="is a policy right?",
        description="Exit status: 0 it is, 2 it is not. Changes nothing.",
    )
    check.add_argument("file", metavar="FILE", help="a policy in YAML or JSON, or - for one")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=run_check)
    convert = verbs.add_parser(
        "convert",
        help="make a policy of scheduler settings as the articles write them",
        description="The policy goes to standard output, what became of each key to standard "
        "error. Exit status: 0 converted, 1 converted and something a policy should have is "
        "named nowhere, 2 it cannot be converted.",
    )
    convert.add_argument(
        "file",
        metavar="FILE",
        help="pluginConfig, SLOPolicy or slo.… keys in YAML or JSON, several documents, or -",
    )
    convert.add_argument("--target", metavar="NAME", help="whose the settings without a target are")
    convert.add_argument(
        "--availability", metavar="RATIO", help="for targets that name none, such as 99.95%%"
    )
    convert.add_argument("--min-replicas", metavar="N", help="for targets that name none")
    convert.add_argument("--json", action="store_true", help="print policy and remarks as JSON")
    convert.set_defaults(run=run_convert)


def run_check(arguments: argparse.Namespace) -> int:
    """Judge a policy, print, and return the exit status."""
    from ansible_collections.steadygpu.host.plugins.module_utils.slo import model, read
    from steadygpu_agent.routes import text_of

    try:
        name, text = text_of(arguments.file)
    except (OSError, ValueError) as error:
        print(f"steadygpu slo: {error}", file=sys.stderr)
        return UNUSABLE
    objectives, remarks = read.from_text(text)
    if arguments.json:
        policy = None if remarks else model.document(objectives)
        print(json.dumps({"policy": policy, "remarks": [r.as_dict() for r in remarks]}, indent=2))
    elif remarks:
        print("\n".join(lines(name, remarks)))
    else:
        count = len(objectives)
        print(f"{name}: {count} {'objective' if count == 1 else 'objectives'}")
    return UNUSABLE if remarks else FINE


def run_convert(arguments: argparse.Namespace) -> int:
    """Convert, print, and return the exit status."""
    from ansible_collections.steadygpu.host.plugins.module_utils.slo import convert, model, values
    from steadygpu_agent.routes import text_of

    try:
        availability, replicas = arguments.availability, arguments.min_replicas
        given = convert.Given(
            arguments.target or "",
            values.ratio(availability) if availability else None,
            values.count(replicas) if replicas else None,
        )
        name, text = text_of(arguments.file)
    except values.ValueFaultError as error:
        print(f"steadygpu slo: {error.said}; {error.advice}", file=sys.stderr)
        return UNUSABLE
    except (OSError, ValueError) as error:
        print(f"steadygpu slo: {error}", file=sys.stderr)
        return UNUSABLE
    found = convert.convert(text, given)
    policy = model.document(found.objectives) if found.usable else None
    if arguments.json:
        remarks = [one.as_dict() for one in found.remarks]
        print(json.dumps({"policy": policy, "remarks": remarks}, indent=2))
    else:
        print("\n".join(lines(name, found.remarks)), file=sys.stderr)
        if policy is not None:
            print(as_yaml(found.objectives), end="")
    if policy is None:
        return UNUSABLE
    return INCOMPLETE if found.those("needed") else FINE


_WORDS = {
    "error": "error",
    "needed": "needed",
    "no_equal": "no equal",
    "changed": "changed",
    "kept": "kept",
}


def lines(name: str, remarks: Sequence[Remark]) -> list[str]:
    """Remarks for a person, the gravest first. Pure."""
    gravity = list(_WORDS)
    ordered = sorted(remarks, key=lambda one: (gravity.index(one.kind), one.line, one.column))
    found = []
    for one in ordered:
        place = f":{one.line}:{one.column}" if one.line else ""
        said = f"{name}{place}: {_WORDS[one.kind]}: {one}"
        found.append("".join(char if char.isprintable() else "?" for char in said))
    return found


def as_yaml(objectives: Sequence[Objective]) -> str:
    """The policy as a person would write it; texts are quoted as in JSON. Pure."""
    from ansible_collections.steadygpu.host.plugins.module_utils.slo.model import VERSION

    written = [f"version: {VERSION}", "objectives:"]
    for one in objectives:
        mark = "  - "
        for key, value in one.as_dict().items():
            text = json.dumps(value, ensure_ascii=False)
            if isinstance(value, dict):
                inside = ", ".join(f"{name}: {json.dumps(each)}" for name, each in value.items())
                text = f"{{{inside}}}"
            written.append(f"{mark}{key}: {text}")
            mark = "    "
    return "\n".join(written) + "\n"
