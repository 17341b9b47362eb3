# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host before a change, what roles make of it, and what others do to it afterwards.

Every kind of path is among them: a file with another owner and extended attributes, one of which
only the mode changes, one that comes, one that goes, links, directories that come and go, and files
of others that nobody of ours writes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.tests.cuts.scratch_host import ScratchHost

DAEMON_JSON = "/etc/docker/daemon.json"
SLICE = "/etc/systemd/system/ai-workload.slice"
RULES = "/etc/steadygpu/rules.json"
GONE = "/etc/steadygpu/gone.conf"
SECRET = "/etc/steadygpu/token"
LINK = "/etc/steadygpu/current"
CONFLICT = "/etc/sysctl.d/90-steadygpu.conf"
PREFERENCES = "/etc/apt/preferences.d/steadygpu-toolkit.pref"
DEEP = "/etc/steadygpu/new/deeper/layout.json"
CONTAINERD = "/etc/containerd/config.toml"
FOREIGN = "/etc/sysctl.d/50-site.conf"

OTHERS_TEXT = "kernel.sched_rt_runtime_us = 1\n# set by hand\n"
BEFORE_JSON = '{"live-restore": true}\n'
AFTER_JSON = '{"live-restore": true, "runtimes": {"nvidia": {"path": "/usr/bin/nvidia"}}}\n'


def lay_out(root: Path) -> None:
    """The host before the change."""
    _write(root, DAEMON_JSON, BEFORE_JSON)
    _write(root, RULES, '{"rules": []}\n' * 40)
    _write(root, GONE, "in use\n")
    _write(root, SECRET, "s3cret\n", mode=0o600)
    _write(root, CONFLICT, "kernel.sched_rt_runtime_us = 950000\n")
    _write(root, CONTAINERD, "version = 2\n")
    _write(root, FOREIGN, "vm.swappiness = 10\n")
    _write(root, "/etc/steadygpu/releases/1/data", "one\n")
    _write(root, "/etc/steadygpu/releases/2/data", "two\n")
    os.symlink("releases/1", _at(root, LINK))
    if os.geteuid() == 0:
        os.chown(_at(root, RULES), 1234, 2345)
    os.chmod(_at(root, RULES), 0o640)
    _tag(_at(root, RULES), b"before")
    for directory in ("/etc/systemd/system", "/etc/apt/preferences.d", "/run", "/var/lib"):
        os.makedirs(_at(root, directory), exist_ok=True)
    host = ScratchHost(str(root))
    os.makedirs(_at(root, "/recorded"))
    host.record("units", {"docker.service": _unit("active", "enabled")})
    host.record("sysctls", {"kernel.sched_rt_runtime_us": "950000"})
    host.record("packages", {"docker.io": {"version": "26.1.5", "held": False}})
    host.record("mig", {"gpus": [{"uuid": "GPU-1", "mig": False, "instances": []}]})


def change(root: Path) -> None:
    """What a run of roles makes of it; each writer vouches before it writes."""
    _ours(root, DAEMON_JSON, AFTER_JSON)
    _ours(root, SLICE, "[Slice]\nMemoryMax=4G\n")
    _ours(root, RULES, '{"rules": ["one"]}\n' * 30)
    _tag(_at(root, RULES), b"after")
    _ours(root, GONE, None)
    os.chmod(_at(root, SECRET), 0o640)
    os.unlink(_at(root, LINK))
    os.symlink("releases/2", _at(root, LINK))
    _ours(root, CONFLICT, "kernel.sched_rt_runtime_us = 980000\n")
    _ours(root, PREFERENCES, "Package: *\nPin: version 1.19*\nPin-Priority: 1000\n")
    _ours(root, DEEP, "[]\n")
    host = ScratchHost(str(root))
    host.record("units", {"docker.service": _unit("active", "disabled")})
    host.record("sysctls", {"kernel.sched_rt_runtime_us": "980000"})
    host.record("mig", {"gpus": [{"uuid": "GPU-1", "mig": True, "instances": []}]})


def meddle(root: Path) -> None:
    """What others do after the change, to our files and to theirs."""
    _write(root, CONFLICT, OTHERS_TEXT)
    _write(root, FOREIGN, "vm.swappiness = 60\n")
    _write(root, CONTAINERD, "version = 3\n")


def write_ours(root: Path) -> None:
    """One file written as every writer of ours does it, and one removed."""
    vouched.write(str(_at(root, RULES)), '{"rules": ["two"]}\n', root=str(root))
    vouched.remove(str(_at(root, GONE)), root=str(root))


def _ours(root: Path, path: str, text: str | None) -> None:
    vouched.vouch(str(_at(root, path)), text, root=str(root))
    if text is None:
        os.unlink(_at(root, path))
    else:
        _write(root, path, text)


def _write(root: Path, path: str, text: str, mode: int | None = None) -> None:
    at = _at(root, path)
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text(text)
    if mode is not None:
        at.chmod(mode)


def _at(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _tag(path: Path, value: bytes) -> None:
    """An extended attribute, where the file system has them."""
    try:
        os.setxattr(path, "user.origin", value)
    except OSError as error:
        if error.errno != 95:  # ENOTSUP
            raise


def _unit(active: str, enabled: str) -> dict[str, object]:
    return {"load": "loaded", "active": active, "enabled": enabled}


def recorded(root: Path) -> dict[str, Any]:
    """What is recorded of the rest, to be compared."""
    directory = root / "recorded"
    return {path.stem: json.loads(path.read_text()) for path in directory.glob("[a-z]*.json")}
