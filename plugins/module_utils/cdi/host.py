# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a specification is compared with, read from files alone.

NVML is not opened: that would hold the GPUs, and wait where a driver hangs. What it alone knows,
such as the UUIDs of MIG devices, is left to the tool that makes the specification.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..hardware import files, guarded, library, procfs
from ..hardware.nodes import parse_majors
from ..mig import capabilities

UVM = "/dev/nvidia-uvm"
# /proc is memory: what takes longer waits for a lock that a sick driver holds.
_DEADLINE_S = 5.0
_MINOR = re.compile(r"gpu(\d+)$")
_INSTANCE = re.compile(r"(gi|ci)(\d+)$")
# Without these OpenGL and EGL draw in software. Debian has them in directories of their own.
_GRAPHICS = ("eglcore", "glcore", "glsi", "tls")
_LIBRARIES = ("usr/lib/*-linux-gnu", "usr/lib/*-linux-gnu/nvidia/current", "usr/lib64", "usr/lib")
# A specification of nvidia-ctk names about a hundred.
_MOST_FILES = 2000


@dataclass(frozen=True)
class Gpu:
    """A GPU in the order of their places on the bus. ``uuid`` None: not initialised yet.

    ``parts`` is the number of its MIG devices, which are its compute instances.
    """

    uuid: str | None
    parts: int = 0


@dataclass(frozen=True)
class Seen:
    """The host. ``reason`` says why the driver could not be asked; then nothing else counts.

    ``driver`` is the version of the loaded module, ``library`` that of the installed libraries.
    ``capabilities`` are the nodes of the MIG instances that there are, None: not known.
    ``uvm_major`` is the kernel's number for /dev/nvidia-uvm, ``uvm_node`` that of the node there.
    ``missing`` are the files that the specification names and the host does not have.
    ``left_out`` are libraries for OpenGL and EGL that the host has and it does not name.
    ``tool_is_newer``: the tool was installed after the specification was made.
    """

    driver: str | None = None
    library: str | None = None
    gpus: tuple[Gpu, ...] = ()
    capabilities: frozenset[str] | None = None
    uvm_major: int | None = None
    uvm_node: int | None = None
    missing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    tool_is_newer: bool = False
    reason: str | None = None


def read(path: str, named: Sequence[str], tool: str | None, root: str = "/") -> Seen:
    """Look at the host for the specification ``path``, which names the files ``named``."""
    proc = procfs.read(_DEADLINE_S, root)
    outcome = guarded.call(lambda: _instances(root), _DEADLINE_S)
    reason = proc.reason or outcome.reason
    if reason is not None:
        return Seen(reason=f"the driver does not answer ({reason})")
    if proc.version is None:
        return Seen(reason="the NVIDIA driver is not loaded")
    told: dict[str, Any] = outcome.value
    known = capabilities.read(root)
    nodes = None
    if told["known"]:
        there = [capabilities.Capability(*one) for one in told["instances"]]
        nodes = frozenset(capabilities.node(known[one]) for one in there if one in known)
    parts = [minor for minor, _instance, compute in told["instances"] if compute is not None]
    release = library.release(library.find(root))
    return Seen(
        driver=proc.version,
        library=release,
        gpus=tuple(
            Gpu(gpu.uuid, 0 if gpu.minor is None else parts.count(gpu.minor)) for gpu in proc.gpus
        ),
        capabilities=nodes,
        uvm_major=parse_majors(files.text(_below(root, "/proc/devices"))).get("nvidia-uvm"),
        uvm_node=_major(_below(root, UVM)),
        missing=tuple(one for one in named[:_MOST_FILES] if not os.path.lexists(_below(root, one))),
        left_out=_left_out(named, release or proc.version, root),
        tool_is_newer=tool is not None and _is_newer(tool, _below(root, path)),
    )


def _left_out(named: Sequence[str], version: str, root: str) -> tuple[str, ...]:
    names = {os.path.basename(one) for one in named}
    wanted = [f"libnvidia-{part}.so.{version}" for part in _GRAPHICS]
    base = glob.escape(root)
    return tuple(
        "/" + os.path.relpath(found[0], root)
        for name in wanted
        if name not in names
        for found in [sorted(p for d in _LIBRARIES for p in glob.glob(f"{base}/{d}/{name}"))]
        if found
    )


def _instances(root: str) -> dict[str, Any]:
    """``[minor, GPU instance, compute instance or None]`` of all MIG instances there are."""
    top = _below(root, "/proc/driver/nvidia/capabilities")
    found: list[list[int | None]] = []
    for gpu in files.names(top):
        minor = _MINOR.match(gpu)
        below = os.path.join(top, gpu, "mig")
        for one in files.names(below) if minor else ():
            instance = _INSTANCE.match(one)
            if minor is None or instance is None:
                continue
            of_gpu, number = int(minor.group(1)), int(instance.group(2))
            found.append([of_gpu, number, None])
            inner = map(_INSTANCE.match, files.names(os.path.join(below, one)))
            found += [[of_gpu, number, int(match.group(2))] for match in inner if match]
    return {"known": os.path.isdir(top), "instances": found}


def _major(path: str) -> int | None:
    try:
        return os.major(os.stat(path).st_rdev)
    except OSError:
        return None


def _is_newer(tool: str, path: str) -> bool:
    """A package sets the time of a file's content; when it was put there, its inode says."""
    try:
        return os.stat(tool).st_ctime > os.stat(path).st_mtime
    except OSError:
        return False


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
