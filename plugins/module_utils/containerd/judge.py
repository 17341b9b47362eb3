# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands in containerd's files that a person should know of. Pure.

The checks of the collection say more of them; here is what bears on a change and on the way to
containerd 2.
"""

from __future__ import annotations

from ..trees.node import Node
from .config import CRI_TABLES, REMOVED_SHIMS, Config, ConfigFile
from .dump import Dump
from .names import named
from .trial import Files

_CRI_NAMES = frozenset(("cri", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"))

# Keys of the table for Kubernetes that 2.0 does not know any more (containerd RELEASES.md).
_REMOVED_KEYS = {
    ("systemd_cgroup",): "write SystemdCgroup = true into the options of each runtime",
    ("containerd", "default_runtime", "runtime_type"): "define the runtime under runtimes and "
    "name it in default_runtime_name",
    ("containerd", "untrusted_workload_runtime", "runtime_type"): "define it under runtimes",
}
_REMOVED_PLUGINS = {
    "io.containerd.runtime.v1.linux": "the shims of the first generation are gone",
    "io.containerd.snapshotter.v1.aufs": "aufs is gone; use overlayfs",
}
_NEXT = "containerd 2.0 does not have it"


def judge(files: Files) -> list[str]:
    """Warnings."""
    found = [
        f"{path} looks like a drop-in of containerd, and no import of {files.path} finds it: what "
        "stands in it has no effect"
        for path in files.stray
    ]
    config = files.config
    if config is not None:
        found.extend(_shims(config))
        for file in config.files:
            found.extend(_removed(file))
    return found


def _shims(config: Config) -> list[str]:
    return [
        f"{one.file.path}: the runtime {one.name} has runtime_type {one.kind}, {_NEXT}: write "
        "io.containerd.runc.v2, and the program as BinaryName in its options"
        for one in config.runtimes()
        if one.kind in REMOVED_SHIMS
    ]


def _removed(file: ConfigFile) -> list[str]:
    found = []
    for table in CRI_TABLES:
        for key, instead in _REMOVED_KEYS.items():
            node = file.root.get("plugins", table, *key)
            if node is not None and node.value not in (False, ""):
                found.append(f"{_where(file, node)}: {'.'.join(key)}, {_NEXT}: {instead}")
    for plugin, why in _REMOVED_PLUGINS.items():
        node = file.root.get("plugins", plugin)
        if node is not None:
            found.append(f"{_where(file, node)}: the plugin {plugin}, {_NEXT}: {why}")
    return found


def _where(file: ConfigFile, node: Node) -> str:
    return f"{file.path}:{node.line}"


def cri_off(dump: Dump) -> bool:
    """Is the plugin for Kubernetes switched off?"""
    return bool(_CRI_NAMES & dump.disabled())


def undefined_default(dump: Dump) -> str | None:
    """The default runtime for Kubernetes, where no runtime of that name is defined."""
    table = named(("plugins", "io.containerd.cri.v1.runtime", "containerd"), dump.version)
    name = dump.leaves.get((*table, "default_runtime_name"))
    if not isinstance(name, str) or not name:
        return None
    runtime = (*table, "runtimes", name)
    defined = any(path[: len(runtime)] == runtime for path in dump.leaves)
    return None if defined else name
