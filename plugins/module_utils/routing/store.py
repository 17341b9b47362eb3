# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of a host's routing policy: what it holds, and what it is to hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import vouched
from ..atomic import read_text
from . import read
from .model import Fault, Policy


class RefusedError(Exception):
    """Nothing was changed, and the message says why and what to do."""


@dataclass(frozen=True)
class Plan:
    """``path`` holds ``before`` and is to hold ``after``; None: there is no file."""

    path: str
    before: str | None
    after: str | None
    actions: tuple[str, ...]


def policy_text(policy: Policy) -> str:
    """The text that the file of this policy holds."""
    return json.dumps(policy.as_dict(), indent=2) + "\n"


def load(path: str) -> tuple[Policy | None, list[Fault]] | None:
    """The policy in a file and its faults; None where there is no file. Raises OSError."""
    text = read_text(path)
    return None if text is None else read.from_text(text)


def plan(policy: Policy | None, path: str) -> Plan:
    """What is to be done so that ``path`` holds the policy (None: no policy, no file).

    Raises RefusedError for a file that is no policy, and OSError.
    """
    before = read_text(path)
    if before is not None and not _is_policy(before):
        raise RefusedError(
            f"{path} holds something that is no routing policy. It was left as it is; move it "
            "away, or name another path"
        )
    after = None if policy is None else policy_text(policy)
    if after == before:
        return Plan(path, before, after, ())
    if policy is None:
        return Plan(path, before, after, (f"remove {path}",))
    count = len(policy.routes)
    routes = "1 route" if count == 1 else f"{count} routes"
    verb = "write" if before is None else "change"
    says = f"{verb} {path}: {routes}, {policy.default or 'any runtime'} for the rest"
    return Plan(path, before, after, (says,))


def carry_out(plan: Plan) -> None:
    """Write or remove the file. Raises OSError and leaves the old one."""
    if plan.after is None:
        vouched.remove(plan.path)
    elif plan.after != plan.before:
        vouched.write(plan.path, plan.after, mode=0o644)


def _is_policy(text: str) -> bool:
    """May be a broken one: whoever edited it meant it for this."""
    try:
        value: Any = json.loads(text or "{}")
    except ValueError:
        return '"routes"' in text
    return isinstance(value, Mapping) and (not value or "routes" in value)
