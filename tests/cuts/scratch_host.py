# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host below a directory: real files, the rest recorded in JSON files that actors change.

Its files are read and put back by the code that hosts run. What would ask systemd, the kernel or
Docker reads and writes ``/recorded/*.json`` instead, each of them replaced in one step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
from ansible_collections.steadygpu.host.plugins.module_utils.rollback import codec, scope
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Done,
    Host,
    Moment,
    PackageState,
    State,
    Step,
    UnitState,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import files
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import (
    actors_api,
    put_back,
)

RECORDED = "/recorded"


class ScratchHost:
    """Implements :class:`actors_api.RestoreHost`."""

    def __init__(self, root: str) -> None:
        self._root = root

    @property
    def root(self) -> str:
        """Where its tree lies."""
        return self._root

    def observe(self, sink: Any, declared: Sequence[str]) -> State:
        """Its files as they are, the rest as recorded."""
        return State(
            files=files.read(scope.areas(declared), sink, self._root),
            units={name: UnitState(**one) for name, one in self.recorded("units").items()},
            sysctls=self.recorded("sysctls"),
            packages={name: PackageState(**one) for name, one in self.recorded("packages").items()},
            mig=self.recorded("mig").get("gpus"),
        )

    def machine(self) -> Host:
        """Always the same one."""
        return Host("0123456789abcdef0123456789abcdef", "scratch")

    def moment(self) -> Moment:
        """Time stands still."""
        return Moment(1_800_000_000.0, 1000.0, "one-boot")

    def actors(self) -> Mapping[str, actors_api.Actor]:
        """One for every kind of step."""
        return {
            actors_api.FILE: _file,
            actors_api.SLICE: _slice,
            actors_api.DOCKER: _docker,
            actors_api.SYSTEMD_RELOAD: _reload,
            actors_api.CONTAINERD: _nothing,
            actors_api.UNIT: _unit,
            actors_api.SYSCTL: _sysctl,
            actors_api.MIG: _mig,
            actors_api.PACKAGE_INSTALL: _packages,
            actors_api.PACKAGE_REMOVE: _packages,
            actors_api.HOLD: _nothing,
        }

    def recorded(self, name: str) -> dict[str, Any]:
        """What is recorded under a name; empty when nothing is."""
        return _recorded(self._root, name)

    def record(self, name: str, value: Mapping[str, Any]) -> bool:
        """Record it anew; whether that changed anything."""
        return _record(self._root, name, value)


def _recorded(root: str, name: str) -> dict[str, Any]:
    path = Path(f"{root}{RECORDED}/{name}.json")
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _record(root: str, name: str, value: Mapping[str, Any]) -> bool:
    if _recorded(root, name) == value:
        return False
    write_atomic(f"{root}{RECORDED}/{name}.json", json.dumps(value, sort_keys=True))
    return True


def _file(step: Step, context: actors_api.Context) -> Done:
    entry = codec.entry_from_json(step.details["entry"])
    return Done(put_back.put_back(step.subject, entry, context.content, context.root))


def _slice(step: Step, context: actors_api.Context) -> Done:
    """The file, and the limits that count, which are not read from it by themselves."""
    done = _file(step, context)
    limits = _recorded(context.root, "limits")
    limits[step.subject] = step.details["entry"].get("digest")
    return Done(_record(context.root, "limits", limits) or done.changed)


def _docker(step: Step, context: actors_api.Context) -> Done:
    """The daemon first, as with a key that only an explicit value takes back; then its file."""
    told = _record(context.root, "docker", {"config": step.details["entry"].get("digest")})
    return Done(_file(step, context).changed or told)


def _reload(_step: Step, context: actors_api.Context) -> Done:
    """Systemd knows the unit files that are there now."""
    directory = Path(context.root + "/etc/systemd/system")
    known = {str(path.relative_to(directory)): os.stat(path).st_size for path in _units(directory)}
    return Done(_record(context.root, "loaded", known))


def _units(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and path.name[0] != "."]


def _unit(step: Step, context: actors_api.Context) -> Done:
    units = _recorded(context.root, "units")
    units[step.subject].update(step.details)
    return Done(_record(context.root, "units", units))


def _sysctl(step: Step, context: actors_api.Context) -> Done:
    sysctls = _recorded(context.root, "sysctls")
    sysctls[step.subject] = step.details["value"]
    return Done(_record(context.root, "sysctls", sysctls))


def _mig(step: Step, context: actors_api.Context) -> Done:
    return Done(_record(context.root, "mig", {"gpus": step.details["gpus"]}))


def _packages(step: Step, context: actors_api.Context) -> Done:
    packages = _recorded(context.root, "packages")
    for name in step.details["packages"]:
        packages.pop(name, None)
    if step.kind == actors_api.PACKAGE_INSTALL:
        for name, version in step.details["packages"].items():
            packages[name] = {"version": version, "held": False}
    return Done(_record(context.root, "packages", packages))


def _nothing(_step: Step, _context: actors_api.Context) -> Done:
    return Done()
