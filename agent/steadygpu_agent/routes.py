# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu routes``: is a routing policy right, and which containers are off it?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from steadygpu_agent import arguments as words

# Exit statuses.
FINE = 0
OFF = 1
UNUSABLE = 2

_LONGEST_FILE = 2 * 1024 * 1024
_POLICY = "/etc/steadygpu/routes.json"
_SOCKET = "/var/run/docker.sock"


def register(commands: Any) -> None:
    """Add ``routes`` with its verbs to the command's sub-parsers."""
    routes = commands.add_parser(
        "routes",
        help="check a routing policy: which container is to have which runtime",
        description="A routing policy says which OCI runtime a container is to have "
        "(docs/runtimes.md). Docker itself cannot route; nothing here changes a container.",
    )
    verbs = routes.add_subparsers(metavar="VERB", required=True)
    check = verbs.add_parser(
        "check",
        help="is a policy right?",
        description="Exit status: 0 it can be used, 2 it cannot. Changes nothing.",
    )
    check.add_argument("file", metavar="FILE", help="a policy in YAML or JSON, or - for one")
    check.add_argument(
        "--runtime",
        metavar="NAME",
        action="append",
        help="a runtime that there is; several times for several. Without it none is judged",
    )
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=run_check)
    audit = verbs.add_parser(
        "audit",
        help="which containers have another runtime than they should?",
        description="Exit status: 0 none, 1 some, 2 the policy or the engine cannot be read. "
        "Changes nothing, and waits for no container.",
    )
    audit.add_argument(
        "--policy", metavar="FILE", default=_POLICY, help=f"the policy (default: {_POLICY})"
    )
    audit.add_argument(
        "--socket", metavar="PATH", default=_SOCKET, help=f"Docker's socket (default: {_SOCKET})"
    )
    audit.add_argument("--all", action="store_true", help="show those on their route as well")
    audit.add_argument("--json", action="store_true", help="print JSON")
    words.add_deadline(audit, "Docker")
    audit.set_defaults(run=run_audit)


def run_check(arguments: argparse.Namespace) -> int:
    """Judge a file, print, and return the exit status."""
    from ansible_collections.steadygpu.host.plugins.module_utils.routing import read
    from ansible_collections.steadygpu.host.plugins.module_utils.routing.judge import judge
    from ansible_collections.steadygpu.host.plugins.module_utils.routing.model import Level

    try:
        name, text = text_of(arguments.file)
    except (OSError, ValueError) as error:
        print(f"steadygpu routes: {error}", file=sys.stderr)
        return UNUSABLE
    policy, faults = read.from_text(text)
    if policy is not None:
        faults = faults + judge(policy, arguments.runtime)
    wrong = any(one.level is Level.ERROR for one in faults)
    if arguments.json:
        answer = {
            "usable": not wrong,
            "faults": [one.as_dict() for one in faults],
            "policy": None if policy is None else policy.as_dict(),
        }
        print(json.dumps(answer, indent=2))
        return UNUSABLE if wrong else FINE
    for one in sorted(faults, key=lambda one: (one.line, one.column)):
        place = f":{one.line}:{one.column}" if one.line else ""
        print(_printable(f"{name}{place}: {one.level.label}: {one}"))
    if policy is not None and not wrong:
        count = len(policy.routes)
        rest = policy.default or "any runtime"
        print(f"{name}: {count} {'route' if count == 1 else 'routes'}, {rest} for the rest")
    return UNUSABLE if wrong else FINE


def run_audit(arguments: argparse.Namespace) -> int:
    """Hold this host's containers against the policy, print, and return the exit status."""
    from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
        DockerClient,
    )
    from ansible_collections.steadygpu.host.plugins.module_utils.routing import view

    client = DockerClient(arguments.socket, arguments.deadline)
    try:
        found = view.audited(arguments.policy, client, arguments.deadline)
    except OSError as error:
        print(f"steadygpu routes: {error}", file=sys.stderr)
        return UNUSABLE
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        print(page(found, arguments.all))
    if found["policy"] is None or (found["problem"] and not found["containers"]):
        return UNUSABLE
    return OFF if found["off_policy"] else FINE


def page(found: Mapping[str, Any], everything: bool = False) -> str:
    """What a person reads of an audit. Pure."""
    from steadygpu_agent.table import table

    lines = [f"steadygpu routes: {found['problem']}"] if found["problem"] else []
    errors = [one for one in found["faults"] if one["level"] != "note" and found["policy"]]
    lines += [f"policy: {one['level']}: {one['path']}: {one['said']}" for one in errors]
    shown = [one for one in found["containers"] if everything or one["standing"] != "on"]
    if found["policy"] and shown:
        rows = [["CONTAINER", "STATE", "RUNTIME", "WANTED", "STANDING", "WHY"]]
        rows += [_row(one) for one in shown]
        lines.append(table(rows))
    for one in found["lost"]:
        known = ", ".join(found["runtimes"])
        lines.append(
            f"{one['name']}: Docker has no runtime {one['runtime']} (it has {known}): it cannot "
            "start again"
        )
    if found["policy"] and found["containers"]:
        total, off = len(found["containers"]), len(found["off_policy"])
        lines.append(f"{off} of {total} containers have another runtime than they should")
        if off:
            lines.append(
                "A container keeps its runtime for life: recreate it with --runtime to change it."
            )
    elif found["policy"] and not found["problem"]:
        lines.append("there are no containers")
    return _printable("\n".join(lines))


def _row(one: Mapping[str, Any]) -> list[str]:
    return [
        one["name"],
        "running" if one["running"] else "stopped",
        "?" if one["runtime"] is None else one["runtime"] or "default",
        one["wanted"] or ("any" if one["standing"] == "on" else "?"),
        one["standing"],
        one["why"] or one["route"],
    ]


def text_of(given: str) -> tuple[str, str]:
    """The name of a file and its text, ``-`` for standard input. Raises OSError, ValueError."""
    if given == "-":
        name, data = "standard input", sys.stdin.buffer.read(_LONGEST_FILE + 1)
    else:
        with open(given, "rb") as handle:
            name, data = given, handle.read(_LONGEST_FILE + 1)
    if len(data) > _LONGEST_FILE:
        raise ValueError(f"{name} is longer than {_LONGEST_FILE} bytes")
    try:
        return name, data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not text in UTF-8: {error.reason}") from error


def _printable(text: str) -> str:
    """Names may hold characters that a terminal would act on."""
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
