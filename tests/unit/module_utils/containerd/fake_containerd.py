# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A containerd in memory that reads its files as 1.7.24 and 2.1.9 were seen to.

Their built-in configurations are recorded (``containerd config default``).
"""

from __future__ import annotations

import copy
import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.containerd.apply import (
    Outcome,
    carry_out,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.names import Asked
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.plan import (
    Plan,
    Wish,
    make_plan,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.tool import (
    ContainerdState,
    DumpError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.trees.toml_tree import parse
from ansible_collections.steadygpu.host.plugins.module_utils.trees.toml_write import (
    path_text,
    value_text,
)
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError

DATA = Path(__file__).parents[3] / "data" / "containerd"
OLD, NEW = "1.7.24", "2.1.9"
CRI2 = "io.containerd.grpc.v1.cri"
CRI3 = "io.containerd.cri.v1.runtime"
IMAGES = "io.containerd.cri.v1.images"
# As Debian and Ubuntu install it.
STOCK = """\
version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
"""
CRUN = Asked(runtimes={"crun": {"path": "/usr/bin/crun", "systemd_cgroup": True}})

# Maps whose keys are names that users choose.
_MAPS = ("runtimes", "options", "mirrors", "configs", "headers", "proxy_plugins", "timeouts")
_MOVED = {
    "sandbox_image": ("pinned_images", "sandbox"),
    "registry": ("registry",),
    "max_concurrent_downloads": ("max_concurrent_downloads",),
}

Table = dict[str, Any]


def default_of(release: str) -> str:
    """Recorded."""
    return (DATA / f"default-{release}.toml").read_text()


@lru_cache
def _parsed(release: str) -> Table:
    return dict(parse(default_of(release)).plain())


def _default(release: str) -> Table:
    return copy.deepcopy(_parsed(release))


def dump_like(release: str, path: str) -> str:
    """What this containerd would dump of the file at ``path``."""
    newest = 2 if release == OLD else 3
    result: Table = _default(release)
    files = _read_all(path, newest)
    own: Table = {}
    for file in files:
        file.pop("version", None)
        plugins = file.pop("plugins", {})
        for key in ("imports", "disabled_plugins", "required_plugins"):
            own[key] = own.get(key, []) + file.pop(key, [])
        _merge(own, file)
        if release == OLD:
            own.setdefault("plugins", {}).update(plugins)
        else:
            _merge(own, {"plugins": _migrated(plugins)})
    _decode(result, own, replaces=release == OLD)
    runtimes = result["plugins"][CRI2 if release == OLD else CRI3]["containerd"]["runtimes"]
    shape = _default(release)["plugins"]
    shape = shape[CRI2 if release == OLD else CRI3]["containerd"]["runtimes"]["runc"]
    for name in runtimes:
        runtimes[name] = {**_zero(shape), **runtimes[name]}
    for name in result["disabled_plugins"]:
        result["plugins"].pop(name, None)
    return _text(result)


def _read_all(path: str, newest: int) -> list[Table]:
    waiting, files, seen = [path], [], set()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        try:
            file = parse(Path(name).read_text()).plain()
        except (OSError, ValueError) as error:
            raise DumpError(f"failed to load TOML: {name}: {error}") from error
        if file.get("version", 1) > newest:
            raise DumpError(f"expected version equal to or less than {newest}: {name}")
        if any("." not in one for one in file.get("disabled_plugins", [])):
            raise DumpError(f"invalid disabled plugin URI: {name}")
        files.append(file)
        for pattern in file.get("imports", []):
            full = os.path.join(os.path.dirname(name), pattern)
            waiting.extend(sorted(glob.glob(full)) if "*" in pattern else [full])
    return files


def _merge(into: Table, other: Table) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


def _migrated(plugins: Table) -> Table:
    found = {name: table for name, table in plugins.items() if name != CRI2}
    for key, value in plugins.get(CRI2, {}).items():
        if key in _MOVED:
            place = found.setdefault(IMAGES, {})
            for step in _MOVED[key][:-1]:
                place = place.setdefault(step, {})
            place[_MOVED[key][-1]] = value
        elif key == "disable_tcp_service":
            found.setdefault(CRI2, {})[key] = value
        else:
            _merge(found.setdefault(CRI3, {}), {key: value})
    return found


def _decode(into: Table, given: Table, replaces: bool) -> None:
    """Into the built-in values; keys that are not known are ignored."""
    for key, value in given.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            if key in _MAPS and replaces:
                into[key] = copy.deepcopy(value)
            elif key in _MAPS:
                _merge(into[key], value)
            else:
                _decode(into[key], value, replaces)
        elif key in into or key in _MAPS:
            if isinstance(value, str) and isinstance(into.get(key), bool):
                raise DumpError(f"cannot decode {value} into bool")
            into[key] = copy.deepcopy(value)


def _zero(shape: Table) -> Table:
    kinds: dict[type, Any] = {str: "", bool: False, int: 0}
    return {
        key: {}
        if isinstance(value, dict)
        else []
        if isinstance(value, list)
        else kinds[type(value)]
        for key, value in shape.items()
    }


def _text(table: Table, path: tuple[str, ...] = ()) -> str:
    lines = [f"[{path_text(path)}]"] if path else []
    below = ""
    for key, value in table.items():
        if isinstance(value, dict):
            below += _text(value, (*path, key))
        else:
            lines.append(f"{path_text((key,))} = {value_text(value)}")
    return "\n".join(lines) + "\n" + below


@dataclass
class FakeContainerd:
    """``world`` is a directory with ``etc/containerd``; ``live`` what it read at its last start."""

    world: Path
    release: str = OLD
    status: str = "running"
    has: Mapping[str, Any] = field(default_factory=dict)  # further fields of the state
    breaks: str = ""  # a word in a file with which the plugin for Kubernetes does not load
    dies: str = ""  # a word with which it does not start
    deaf: bool = False  # Docker does not find it again
    started_at: float = 0.0
    done: list[str] = field(default_factory=list)
    dumps: int = 0

    @property
    def path(self) -> str:
        """The first file."""
        return str(self.world / "etc/containerd/config.toml")

    def texts(self) -> dict[str, str]:
        """All files by name below ``etc/containerd``."""
        home = self.world / "etc/containerd"
        return {
            str(one.relative_to(home)): one.read_text()
            for one in sorted(home.rglob("*"))
            if one.is_file()
        }

    def write(self, name: str, text: str) -> None:
        """A file below ``etc/containerd``; ``@`` is the directory."""
        file = self.world / "etc/containerd" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("@", str(self.world / "etc/containerd")))

    def state(self) -> ContainerdState:
        """As the test has it."""
        if self.status == "absent":
            return ContainerdState("absent", has_unit=False, **self.has)
        fields: dict[str, Any] = {"kill_mode": "process", "config_path": self.path, **self.has}
        return ContainerdState(self.status, self.release, started_at=self.started_at, **fields)

    def config_path(self) -> str:
        """The first file."""
        return self.path

    def default(self) -> str:
        """Recorded."""
        return default_of(self.release)

    def dump(self, path: str) -> str:
        """As measured."""
        self.dumps += 1
        return dump_like(self.release, path)

    def value(self, *path: str) -> Any:
        """A value as the daemon would have it after a restart."""
        place: Any = parse(dump_like(self.release, self.path)).plain()
        for step in path:
            place = place.get(step) if isinstance(place, dict) else None
        return place

    def plugins(self) -> Mapping[str, str]:
        """All well, unless a file breaks the one for Kubernetes."""
        if self.status != "running":
            raise DumpError("connection refused")
        broken = self.breaks and any(self.breaks in text for text in self.texts().values())
        return {CRI2: "error" if broken else "ok", "io.containerd.nri.v1.nri": "ok"}

    def restart(self) -> None:
        """Come up, if it likes its files."""
        self.done.append("restart")
        self.status = "running"
        if self.dies and any(self.dies in text for text in self.texts().values()):
            self.status = "stopped"
            raise UnitError("systemctl restart containerd.service failed")
        self.started_at = 4e9

    def docker_answers(self) -> bool:
        """Always, unless deaf."""
        return not self.deaf

    def log(self) -> str:
        """Its last words."""
        return "failed to load plugin"

    def plan(self, asked: Asked, **wish: Any) -> Plan:
        """The plan for a wish."""
        return make_plan(
            Wish(asked, **wish), self, str(self.world / "record.json"), lambda _path: True
        )

    def run(self, asked: Asked, **wish: Any) -> Outcome:
        """Plan and carry out."""
        record = str(self.world / "record.json")
        return carry_out(self.plan(asked, **wish), self, 0.3, record)
