# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a setting of containerd is called in which version of its configuration. Pure.

Everything is asked for in the names of version 3 and kept in them; version 4 has the same for all
that is set here. Names of version 2 are understood too. Sources: containerd
``internal/cri/config`` and the ``ConfigMigration`` of its plugins at 2.0.0, and what ``containerd
config dump`` of 2.1.9 makes of a file of version 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..trees.leaves import Path, flatten
from .config import CRI_IMAGES_V3, CRI_V2, CRI_V3, REMOVED_SHIMS, RUNC_SHIM

NRI = "io.containerd.nri.v1.nri"

Leaves = dict[Path, Any]

# Keys of the table for Kubernetes in version 2 that went to the images in version 3.
_TO_IMAGES: Mapping[Path, Path] = {
    ("containerd", "snapshotter"): ("snapshotter",),
    ("containerd", "disable_snapshot_annotations"): ("disable_snapshot_annotations",),
    ("containerd", "discard_unpacked_layers"): ("discard_unpacked_layers",),
    ("sandbox_image",): ("pinned_images", "sandbox"),
    ("registry",): ("registry",),
    ("image_decryption",): ("image_decryption",),
    ("max_concurrent_downloads",): ("max_concurrent_downloads",),
    ("image_pull_progress_timeout",): ("image_pull_progress_timeout",),
    ("image_pull_with_sync_fs",): ("image_pull_with_sync_fs",),
    ("stats_collect_period",): ("stats_collect_period",),
}
_FROM_IMAGES = {new: old for old, new in _TO_IMAGES.items()}

# What stayed in the table when the rest moved.
STAYED = frozenset(
    (
        "disable_tcp_service",
        "stream_server_address",
        "stream_server_port",
        "stream_idle_timeout",
        "enable_tls_streaming",
        "x509_key_pair_streaming",
    )
)

# Plugins that version 3 calls by another name.
_RENAMED = {
    "io.containerd.internal.v1.restart": "io.containerd.monitor.container.v1.restart",
    "io.containerd.monitor.v1.cgroups": "io.containerd.monitor.task.v1.cgroups",
}
_FORMER = {new: old for old, new in _RENAMED.items()}

# Lists that containerd adds up over its files instead of taking the last one.
ADDED_UP: frozenset[Path] = frozenset((("disabled_plugins",), ("required_plugins",)))

# What says which file is read how: it is ours to decide, not a setting.
_NOT_SETTINGS = ("version", "imports")


def to_v3(path: Path) -> Path:
    """A path in the names of version 2 or 3, in those of version 3."""
    if len(path) < 3 or path[0] != "plugins":
        return path
    plugin, inside = _RENAMED.get(path[1], path[1]), path[2:]
    if plugin != CRI_V2 or inside[0] in STAYED:
        return ("plugins", plugin, *inside)
    moved = _moved(inside, _TO_IMAGES)
    if moved is not None:
        return ("plugins", CRI_IMAGES_V3, *moved)
    return ("plugins", CRI_V3, *_renamed_last(inside, "sandbox_mode", "sandboxer"))


def to_v2(path: Path) -> Path:
    """A path in the names of version 3, in those of version 2."""
    if len(path) < 3 or path[0] != "plugins":
        return path
    plugin, inside = path[1], path[2:]
    if plugin == CRI_IMAGES_V3:
        return ("plugins", CRI_V2, *(_moved(inside, _FROM_IMAGES) or inside))
    if plugin == CRI_V3:
        return ("plugins", CRI_V2, *_renamed_last(inside, "sandboxer", "sandbox_mode"))
    return ("plugins", _FORMER.get(plugin, plugin), *inside)


def named(path: Path, version: int) -> Path:
    """A path in the names of version 3, in those of a file of ``version``."""
    return to_v2(path) if version < 3 else path


def _moved(inside: Path, table: Mapping[Path, Path]) -> Path | None:
    for old, new in table.items():
        if inside[: len(old)] == old:
            return (*new, *inside[len(old) :])
    return None


def _renamed_last(inside: Path, old: str, new: str) -> Path:
    """The kind of sandbox is a key of each runtime."""
    if len(inside) == 4 and inside[:2] == ("containerd", "runtimes") and inside[3] == old:
        return (*inside[:3], new)
    return inside


def is_cri(path: Path) -> bool:
    """Is a path (names of any version) a setting for Kubernetes?"""
    return path[0] == "plugins" and len(path) > 1 and path[1] in (CRI_V2, CRI_V3, CRI_IMAGES_V3)


_RUNTIME_KEYS = ("path", "systemd_cgroup", "type")


# -- what is asked ---------------------------------------------------------------------------


class SettingsError(ValueError):
    """What was asked cannot be a configuration; the message has everything that is wrong."""


@dataclass(frozen=True)
class Asked:
    """What a user asks, as he wrote it. ``runtimes`` by name; None stands for "not asked"."""

    config: Mapping[str, Any] = field(default_factory=dict)
    cdi: bool | None = None
    nri: bool | None = None
    runtimes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    default_runtime: str | None = None


def settings(asked: Asked, present: bool = True) -> Leaves:
    """What is asked as leaves in the names of version 3. Raises SettingsError.

    What is to be taken back (``present`` False) is named only: values do not matter.
    """
    wrong: list[str] = []
    found: Leaves = {}
    for path, value in flatten(dict(asked.config)):
        if path and not (isinstance(value, dict) and not value):
            wrong.extend(_misplaced(path, value if present else ""))
            _add(found, to_v3(path), value, wrong)
    if asked.cdi is not None:
        _add(found, ("plugins", CRI_V3, "enable_cdi"), asked.cdi, wrong)
    if asked.nri is not None:
        _add(found, ("plugins", NRI, "disable"), not asked.nri, wrong)
    for name, runtime in asked.runtimes.items():
        wrong.extend(_no_runtime(name, runtime))
        for inside, value in _runtime(runtime if isinstance(runtime, dict) else {}).items():
            path = ("plugins", CRI_V3, "containerd", "runtimes", name, *inside)
            _add(found, path, value, wrong)
    if asked.default_runtime is not None:
        path = ("plugins", CRI_V3, "containerd", "default_runtime_name")
        _add(found, path, asked.default_runtime, wrong)
    if present:
        wrong.extend(_shims(found))
    if wrong:
        raise SettingsError("; ".join(wrong))
    return found


def _no_runtime(name: str, runtime: Any) -> list[str]:
    """What is wrong with one of the option ``runtimes``."""
    if not isinstance(runtime, dict):
        return [f"runtimes.{name} is {runtime!r}, wanted a table such as {{path: /usr/bin/crun}}"]
    wrong = [
        f"runtimes.{name}.{key} is not known; there are {', '.join(_RUNTIME_KEYS)}"
        for key in runtime
        if key not in _RUNTIME_KEYS
    ]
    driver = runtime.get("systemd_cgroup")
    if driver is not None and not isinstance(driver, bool):
        wrong.append(f"runtimes.{name}.systemd_cgroup is {driver!r}, wanted true or false")
    return wrong


def _runtime(runtime: Mapping[str, Any]) -> Leaves:
    """One runtime of the option ``runtimes`` as leaves below its table."""
    found: Leaves = {("runtime_type",): runtime.get("type") or RUNC_SHIM}
    if runtime.get("path"):
        found[("options", "BinaryName")] = runtime["path"]
    if runtime.get("systemd_cgroup") is not None:
        found[("options", "SystemdCgroup")] = runtime["systemd_cgroup"]
    return found


def _add(found: Leaves, path: Path, value: Any, wrong: list[str]) -> None:
    if path in found and found[path] != value:
        wrong.append(f"{show_path(path)} is asked for twice, with different values")
    found[path] = value


def _misplaced(path: Path, value: Any) -> list[str]:
    if path[0] in _NOT_SETTINGS:
        return [f"{path[0]} cannot be set: the module decides it by the first file of the host"]
    if value is None:
        return [f"{show_path(path)} has no value; TOML knows no null"]
    if path[0] == "plugins" and len(path) > 1 and "." not in path[1]:
        text = (
            "{0} is a name of version 1; write the whole name, such as plugins.'{1}'. "
            "In Ansible that is a key of its own below plugins"
        )
        return [text.format(show_path(path[:2]), CRI_V3)]
    if path[0] == "plugins" and len(path) < 3:
        return [f"{show_path(path)} is {value!r}, wanted a table of settings"]
    return []


def _shims(found: Leaves) -> list[str]:
    return [
        f"{show_path(path)} is {value}, a shim of the first generation, which containerd 2.0 "
        f"removed: write {RUNC_SHIM}"
        for path, value in found.items()
        if path[-1] == "runtime_type" and value in REMOVED_SHIMS
    ]


def show_path(path: Path) -> str:
    """``plugins.'io.containerd.cri.v1.runtime'.enable_cdi``, as a person would write it."""
    return ".".join(f"'{part}'" if "." in part else part for part in path)


def nested(leaves: Mapping[Path, Any]) -> dict[str, Any]:
    """Leaves as the tables that they stand in."""
    tree: dict[str, Any] = {}
    for path, value in leaves.items():
        place = tree
        for part in path[:-1]:
            place = place.setdefault(part, {})
        place[path[-1]] = value
    return tree
