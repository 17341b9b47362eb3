# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole audit of a host as JSON types, for the module and the command."""

from __future__ import annotations

from typing import Any

from ..engine.docker_api import DockerClient, EngineError, EngineUnreachableError
from . import containers, store
from .audit import Audit, Standing, audit
from .judge import judge
from .model import Fault, Policy


def audited(path: str, client: DockerClient, deadline_s: float) -> dict[str, Any]:
    """Policy, faults and containers; ``problem`` says why there is nothing. Raises OSError."""
    loaded = store.load(path)
    policy, faults = loaded if loaded is not None else (None, [])
    problem = ""
    if loaded is None:
        problem = f"there is no {path}: no policy says which runtime a container should have"
    elif policy is None:
        problem = f"{path} cannot be used: {'; '.join(str(one) for one in faults)}"
    try:
        seen = containers.read(client, deadline_s)
    except (EngineError, EngineUnreachableError) as error:
        said = f"{problem}; {error}" if problem else str(error)
        return _result(policy, faults, None, None, said)
    if policy is not None:
        faults = faults + judge(policy, seen.runtimes)
    # Without a policy every container is where it should be; what is lost is told all the same.
    found = audit(policy or Policy(), seen.containers, seen.default_runtime, seen.runtimes)
    return _result(policy, faults, seen, found, problem or seen.unread)


def _result(
    policy: Policy | None,
    faults: list[Fault],
    seen: containers.Seen | None,
    found: Audit | None,
    problem: str,
) -> dict[str, Any]:
    return {
        "policy": None if policy is None else policy.as_dict(),
        "faults": [one.as_dict() for one in faults],
        "containers": [one.as_dict() for one in found.containers] if found else [],
        "off_policy": [one.as_dict() for one in found.those(Standing.OFF)] if found else [],
        "lost": [one.as_dict() for one in found.lost] if found else [],
        "runtimes": sorted(seen.runtimes) if seen else [],
        "default_runtime": seen.default_runtime if seen else None,
        "told": _told(found) if found else [],
        "problem": problem,
    }


def _told(found: Audit) -> list[str]:
    """What is not as it should be, a line for each container."""
    told = [
        f"{one.container.name}: {one.why}"
        for one in found.containers
        if one.standing is not Standing.ON
    ]
    return told + [
        f"{one.container.name}: Docker has no runtime {one.container.runtime}, so it cannot start "
        "again"
        for one in found.lost
    ]
