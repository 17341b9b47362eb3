# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words of the hardening: what is asked, what was seen. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OWNER = "hardening"
REPORT, REFUSE = "report", "refuse"


class HardeningError(Exception):
    """What was asked would cost somebody a GPU, or is not so. The message says what to do."""


@dataclass(frozen=True)
class Wish:
    """What is asked. None leaves a setting as it is.

    ``audit`` is ``report`` or ``refuse``. ``accepted`` are names or patterns of containers that may
    do what is found of them. ``env_injection`` False switches GPUs by environment variable off for
    unprivileged containers; ``losers_accepted`` does so although containers lose their GPU at their
    next start. ``no_new_privileges`` is Docker's default for all containers. ``selinux_type`` is
    the type that containers are to be given, "" for none.
    """

    audit: str = REPORT
    accepted: tuple[str, ...] = ()
    keep_seccomp: bool = True
    env_injection: bool | None = None
    losers_accepted: bool = False
    no_new_privileges: bool | None = None
    selinux_type: str = ""


@dataclass(frozen=True)
class Bundle:
    """A running container that has a GPU, by its OCI specification."""

    id: str
    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class Host:
    """What was read. ``security_options`` are Docker's own words, None while it does not answer.

    ``docker`` is its status in the facts, ``reason`` why it does not run. ``asking`` maps the name
    of each container that gets its GPU by the environment variable to whether it runs: those of
    Docker, and what runs of other engines. ``selinux`` is ``enforcing``, ``permissive`` or
    ``disabled``; ``selinux_modules`` is None where they cannot be listed. ``envvar_off`` says
    that the toolkit's file refuses the variable already.
    """

    bundles: tuple[Bundle, ...] = ()
    docker: str = "absent"
    reason: str = ""
    security_options: tuple[str, ...] | None = None
    asking: Mapping[str, bool] = field(default_factory=dict)
    envvar_off: bool = False
    selinux: str = "disabled"
    selinux_modules: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Finding:
    """What one container may do. ``rule`` is the name of the check that says so."""

    container: str
    rule: str
    seen: str
    fix: str
    accepted: bool = False

    def as_dict(self) -> dict[str, Any]:
        """What the module returns in ``findings``."""
        return dict(vars(self))


def allows_everything(spec: Mapping[str, Any]) -> bool:
    """Does an OCI specification allow every device, as ``--privileged`` does?"""
    resources = mapping(mapping(spec.get("linux")).get("resources"))
    return any(
        rule.get("allow")
        and rule.get("major") in (None, -1)
        and rule.get("type") in (None, "", "a")
        and {"r", "w"} <= set(rule.get("access") or "rwm")
        for rule in map(mapping, resources.get("devices") or [])
    )


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, or nothing of one that is no object."""
    return value if isinstance(value, dict) else {}
