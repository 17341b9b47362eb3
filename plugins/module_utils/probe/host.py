# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a probe must know of the host around it. Every reader takes the root of the tree."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Mapping
from typing import Any

from ..atomic import read_text

CGROUP_ROOT = "sys/fs/cgroup"

# Cgroups of containers that other engines made: Kubernetes (containerd, CRI-O), Podman.
_OTHER_ENGINES = re.compile(r"/(?:cri-containerd-|crio-|libpod-|nerdctl-|kubepods)")
_NO_GPU = ("", "void", "none")


def gpu_nodes(root: str = "/") -> dict[str, str]:
    """``/dev/nvidiaN`` → ``MAJOR:MINOR`` of each whole-GPU node of the host."""
    found = {}
    for path in glob.glob(os.path.join(root, "dev/nvidia[0-9]*")):
        status = os.stat(path)
        if stat.S_ISCHR(status.st_mode) and path.rsplit("nvidia", 1)[1].isdigit():
            number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
            found["/" + os.path.relpath(path, root)] = number
    return dict(sorted(found.items()))


def has_merged_usr(root: str = "/") -> bool:
    """Do /bin and /lib lie in /usr, so that mounting /usr alone gives a working shell?"""
    return all(os.path.islink(os.path.join(root, name)) for name in ("bin", "lib"))


def cgroup_of(pid: int, root: str = "/") -> str:
    """The cgroup v2 path of a process, or "" when it is gone."""
    for line in (read_text(os.path.join(root, "proc", str(pid), "cgroup")) or "").splitlines():
        if line.startswith("0::"):
            return line[len("0::") :]
    return ""


def cgroup_file(control_group: str, name: str, root: str = "/") -> str | None:
    """The stripped text of one cgroup file, or None."""
    text = read_text(os.path.join(root, CGROUP_ROOT, control_group.lstrip("/"), name))
    return text.strip() if text is not None else None


def limit_texts(shown: Mapping[str, str], page_bytes: int) -> dict[str, str]:
    """The limits of a slice as systemd holds them, by the cgroup file they belong in. Pure.

    ``shown`` is ``systemctl show`` of MemoryMax, TasksMax and CPUQuotaPerSecUSec; only
    limits that are set appear. Memory is rounded to pages, as the kernel does; the CPU
    quota is in the words of :func:`cpu_quota`.
    """
    texts = {}
    if shown.get("MemoryMax", "").isdigit():
        texts["memory.max"] = str(int(shown["MemoryMax"]) // page_bytes * page_bytes)
    if shown.get("TasksMax", "").isdigit():
        texts["pids.max"] = shown["TasksMax"]
    quota_us = span_us(shown.get("CPUQuotaPerSecUSec", ""))
    if quota_us is not None:
        texts["cpu.max"] = f"{round(quota_us / 10000, 1):g}% of a CPU"
    return texts


def limit_in_force(control_group: str, name: str, root: str = "/") -> str:
    """What the kernel holds, in the words of :func:`limit_texts`."""
    text = cgroup_file(control_group, name, root) if control_group else None
    if text is None:
        return "no such file"
    return cpu_quota(text) if name == "cpu.max" else text


def cpu_quota(cpu_max: str) -> str:
    """``300000 100000`` as ``300% of a CPU``; ``max`` when there is no quota. Pure."""
    quota, _space, period = cpu_max.partition(" ")
    if not quota.isdigit():
        return "max"
    return f"{round(int(quota) * 100 / int(period), 1):g}% of a CPU"


_SPAN_UNITS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6}


def span_us(text: str) -> int | None:
    """A time span as systemctl prints it (``3s``, ``1min 500ms``) in microseconds. Pure."""
    parts = [re.fullmatch(r"([0-9.]+)(us|ms|s|min|h)", word) for word in text.split()]
    if not parts or None in parts:
        return None
    return round(sum(float(m.group(1)) * _SPAN_UNITS[m.group(2)] for m in parts if m))


def uses_legacy_hook(inspected: Mapping[str, Any], default_runtime: str) -> bool:
    """May this container's GPU have come from the legacy NVIDIA hook? Pure.

    ``inspected`` is ``GET /containers/{id}/json``. Such a GPU is lost at a daemon-reload, so
    a doubt counts as yes.
    """
    host = inspected.get("HostConfig") or {}
    for request in host.get("DeviceRequests") or []:
        wants_gpu = any("gpu" in group for group in request.get("Capabilities") or [])
        if request.get("Driver") in ("", "nvidia", None) and wants_gpu:
            return True
    environment = (inspected.get("Config") or {}).get("Env") or []
    values = [e.split("=", 1)[1] for e in environment if e.startswith("NVIDIA_VISIBLE_DEVICES=")]
    asks = bool(values) and values[-1] not in _NO_GPU
    return asks and "nvidia" in (host.get("Runtime") or default_runtime)


def other_engines_with_gpus(root: str = "/") -> list[str]:
    """Cgroups of other engines' containers in which a process holds a GPU node open."""
    found = set()
    for directory in glob.glob(os.path.join(root, "proc/[0-9]*")):
        pid = int(os.path.basename(directory))
        control_group = cgroup_of(pid, root)
        if _OTHER_ENGINES.search(control_group) and _holds_gpu(directory):
            found.add(control_group)
    return sorted(found)


def _holds_gpu(process_directory: str) -> bool:
    for link in glob.glob(os.path.join(process_directory, "fd", "*")):
        try:
            if os.readlink(link).startswith("/dev/nvidia"):
                return True
        except OSError:
            continue
    return False
