# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDI specs: making one for the GPUs of this machine, and listing what specs offer."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .nvml import LIBRARY, Device, Machine, NvmlError

CDI_VERSION = "0.7.0"
SPEC_DIRS = ("/etc/cdi", "/var/run/cdi")
#: Where the simulated driver keeps its state: a container's NVML must be able to read it.
STATE_DIR = "/var/lib/simgpu"

_LIBRARY_DIR = Path("/usr/lib/x86_64-linux-gnu")
_CONTROL_NODES = (
    "/dev/nvidia-modeset",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidiactl",
)
#: Where the simulation's unit tests keep /proc and /dev; the real tool has --driver-root and alike.
_ROOT = Path(os.environ.get("SIMGPU_ROOT", "/"))
_MIG_MINORS = "proc/driver/nvidia-caps/mig-minors"
_NAMERS: dict[str, Callable[[Device], str]] = {
    "index": lambda device: device.index,
    "uuid": lambda device: device.uuid,
    "type-index": lambda device: f"{'gpu' if device.instance is None else 'mig'}{device.index}",
}
STRATEGIES = tuple(_NAMERS)


def spec(machine: Machine, strategies: list[str], kind: str) -> dict[str, Any]:
    """The spec of all devices: one entry per device and naming strategy, and `all`.

    NvmlError where MIG is on and no instance makes a device of it.
    """
    devices, driver_version = machine.devices, machine.driver_version
    if machine.mig_gpus and not devices:
        raise NvmlError(f"no usable device: {machine.mig_gpus} GPUs in MIG mode without instances")
    entries = [
        {"name": _NAMERS[strategy](device), "containerEdits": _edits([device])}
        for strategy in strategies
        for device in devices
    ]
    if devices:
        entries.append({"name": "all", "containerEdits": _edits(devices)})
    return {
        "cdiVersion": CDI_VERSION,
        "kind": kind,
        "devices": entries,
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": path} for path in _CONTROL_NODES if Path(path).exists()],
            "mounts": [
                _mount(f"{_LIBRARY_DIR}/libnvidia-ml.so.{driver_version}", f"{_LIBRARY_DIR}/{name}")
                for name in (f"libnvidia-ml.so.{driver_version}", LIBRARY)
            ]
            + [_mount(STATE_DIR, STATE_DIR)],
            "hooks": [
                _hook("create-symlinks", "--link", f"{LIBRARY}::{_LIBRARY_DIR}/libnvidia-ml.so"),
                _hook("update-ldcache", "--folder", str(_LIBRARY_DIR)),
            ],
        },
    }


def _edits(devices: list[Device]) -> dict[str, Any]:
    """The nodes of some devices, each once."""
    paths = dict.fromkeys(path for device in devices for path in _nodes(device))
    return {"deviceNodes": [{"path": path} for path in paths]}


def _nodes(device: Device) -> list[str]:
    """A capability node that is missing is left out without a word, as the real tool does it."""
    nodes = [f"/dev/nvidia{device.minor}"]
    if device.instance is not None:
        minors = _mig_minors()
        gpu, (instance, part) = device.minor, device.instance
        for name in (f"gpu{gpu}/gi{instance}/access", f"gpu{gpu}/gi{instance}/ci{part}/access"):
            path = f"dev/nvidia-caps/nvidia-cap{minors[name]}"
            if (_ROOT / path).exists():
                nodes.append(f"/{path}")
    return nodes


@functools.lru_cache(maxsize=1)
def _mig_minors() -> dict[str, str]:
    lines = (_ROOT / _MIG_MINORS).read_text(encoding="ascii").splitlines()
    return dict(line.split() for line in lines)


def _mount(host: str, container: str) -> dict[str, Any]:
    options = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
    return {"hostPath": host, "containerPath": container, "options": options}


def _hook(verb: str, *arguments: str) -> dict[str, Any]:
    path = "/usr/bin/nvidia-cdi-hook"
    return {
        "hookName": "createContainer",
        "path": path,
        "args": ["nvidia-cdi-hook", verb, *arguments],
    }


def list_devices(directories: list[str]) -> tuple[list[str], list[str]]:
    """Qualified device names of all specs, and warnings.

    A later directory wins over an earlier one. The same name twice in one directory is a
    conflict, and a conflicting device is not offered at all (as the CDI cache does it).
    """
    owners: dict[str, Path] = {}
    conflicts: set[str] = set()
    warnings = []
    for directory in directories:
        here: dict[str, Path] = {}
        for path in sorted(Path(directory).glob("*")):
            if path.suffix not in (".yaml", ".json"):
                continue
            try:
                names = _names(path)
            except (ValueError, KeyError, OSError) as error:
                warnings.append(f"{path}: not a CDI specification ({error})")
                continue
            for name in names:
                if name in here:
                    warnings.append(f"conflicting device {name!r} (specs {here[name]}, {path})")
                    conflicts.add(name)
                here[name] = path
        owners.update(here)
    return sorted(set(owners) - conflicts), warnings


def _names(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        document = json.loads(text)
        return [f"{document['kind']}={device['name']}" for device in document["devices"]]
    kind = re.search(r"^kind:\s*(\S+)", text, re.MULTILINE)
    devices = re.search(r"^devices:\n((?:[ -].*\n?)*)", text, re.MULTILINE)
    if kind is None or devices is None:
        raise ValueError("no kind or no devices")
    names = re.findall(r"^\s*(?:- )?name:\s*(\S+)", devices.group(1), re.MULTILINE)
    return ["{}={}".format(kind.group(1).strip("\"'"), name.strip("\"'")) for name in names]
