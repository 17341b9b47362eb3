# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on clients that are pinned to a version of Docker's API. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...engine.daemon_keys import api_range
from ...versions import at_least
from ..documents.commands import Variable
from ..documents.container import ContainerSpec
from ..documents.units import UnitFile
from ..host import HostView
from ..model import Hit, Position, Severity
from ..registry import rule

_REASON = (
    "A daemon refuses clients below its lowest API version: client version is too old. Docker "
    "29.0 to 29.2 want 1.44 at least, from 29.3 on 1.40."
)
_FIX = (
    "Remove the variable: clients agree with the daemon on a version themselves. For a client "
    "that cannot, set min-api-version in daemon.json."
)
_SOURCES = ("moby api/common.go and daemon/config/config.go of each release",)
_VERSION = re.compile(r"v?(1\.\d+)$")
# What the strictest release wants.
_STRICTEST = "1.44"


def _pinned(value: str, at: Position, host: HostView) -> Iterator[Hit]:
    found = _VERSION.match(value.strip())
    if found is None:
        return
    docker, version = host.version("docker"), found.group(1)
    spoken = api_range(docker) if docker is not None else None
    if spoken is not None:
        lowest, highest = spoken
        if not at_least(version, lowest):
            yield Hit(at, f"The API is pinned to {version}; Docker {docker} wants {lowest}.")
        elif not at_least(highest, version):
            seen = f"The API is pinned to {version}; Docker {docker} has {highest} at most."
            yield Hit(at, seen)
    elif docker is None and not at_least(version, _STRICTEST):
        seen = f"The API is pinned to {version}."
        yield Hit(at, seen, severity=Severity.INFO, assumed=("docker >=29.0.0",))


@rule(
    "docker-api-version-pinned",
    "A container pinned to an API version",
    Severity.ERROR,
    reads=ContainerSpec,
    reason=_REASON,
    fix=_FIX,
    sources=_SOURCES,
    row="P4",
)
def docker_api_version_pinned(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """In a container that talks to the engine."""
    given = spec.env.get("DOCKER_API_VERSION")
    if given is not None:
        yield from _pinned(given.value, given.at, host)


@rule(
    "docker-api-version-exported",
    "A script pinned to an API version",
    Severity.ERROR,
    reads=Variable,
    reason=_REASON,
    fix=_FIX,
    sources=_SOURCES,
    row="P4",
)
def docker_api_version_exported(variable: Variable, host: HostView) -> Iterator[Hit]:
    """In a script."""
    if variable.name == "DOCKER_API_VERSION":
        yield from _pinned(variable.value, variable.at, host)


@rule(
    "docker-api-version-in-unit",
    "A unit pinned to an API version",
    Severity.ERROR,
    reads=UnitFile,
    reason=_REASON,
    fix=_FIX,
    sources=_SOURCES,
    row="P4",
)
def docker_api_version_in_unit(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """In a unit's Environment=."""
    for setting in unit.all("Service", "Environment"):
        found = re.search(r"\bDOCKER_API_VERSION=[\"']?(v?1\.\d+)\b", setting.value)
        if found:
            yield from _pinned(found.group(1), setting.at, host)
