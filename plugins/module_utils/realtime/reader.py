# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the running kernel shows of real time: groups, fair servers, the sysctls."""

from __future__ import annotations

import gzip
import os
import re

from .. import cgroups
from ..hardware import files
from ..osinfo import read_kernel
from ..slices.quantities import QuantityError, parse_indices
from .model import Kernel, Machine, Server

SERVERS = "/sys/kernel/debug/sched/fair_server"
RUNTIME = "kernel.sched_rt_runtime_us"
PERIOD = "kernel.sched_rt_period_us"
_DEBUGFS = "sys/kernel/debug"


def kernel(root: str = "/") -> Kernel:
    """The kernel as it shows itself. Never raises: what cannot be seen is not known."""
    info = read_kernel(root)
    release, cmdline = info.release or "", info.cmdline or ""
    groups, told = _groups(release, cmdline, root)
    servers, why = _servers(root)
    return Kernel(
        release=release,
        groups=groups,
        groups_told=told,
        servers=servers,
        no_servers=why,
        runtime_us=_sysctl("sched_rt_runtime_us", root),
        period_us=_sysctl("sched_rt_period_us", root),
        cgroup_version=cgroups.read_cgroups(root).version,
    )


def machine(root: str = "/") -> Machine:
    """The CPUs that are online, and to which node each belongs."""
    online = _indices(files.text(os.path.join(root, "sys/devices/system/cpu/online")))
    nodes = {}
    directory = os.path.join(root, "sys/devices/system/node")
    for name in files.names(directory):
        if re.fullmatch(r"node[0-9]+", name):
            cpus = _indices(files.text(os.path.join(directory, name, "cpulist")))
            nodes[int(name[4:])] = cpus & online
    return Machine(online, nodes)


def _indices(text: str) -> frozenset[int]:
    try:
        return frozenset(parse_indices(text))
    except QuantityError:
        return frozenset()


def _sysctl(name: str, root: str) -> int | None:
    text = files.text(os.path.join(root, "proc/sys/kernel", name))
    return int(text) if re.fullmatch(r"-?[0-9]{1,12}", text) else None


def _groups(release: str, cmdline: str, root: str) -> tuple[bool | None, str]:
    """Are there real-time groups that are on? And what told so."""
    # Of version 1 they have a file of their own.
    for name in ("cpu", "cpu,cpuacct"):
        legacy = os.path.join(root, cgroups.MOUNT, name, "cpu.rt_runtime_us")
        if os.path.exists(legacy):
            return True, "cpu.rt_runtime_us of cgroup v1"
    text, where = _config(release, root)
    if not text:
        return None, ""
    if "\nCONFIG_RT_GROUP_SCHED=y" not in "\n" + text:
        return False, where
    words = cmdline.split()
    if "rt_group_sched=0" in words:
        return False, "rt_group_sched=0 on the command line"
    off = "CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y" in text
    if off and "rt_group_sched=1" not in words:
        return False, "CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED"
    return True, f"CONFIG_RT_GROUP_SCHED=y in {where}"


def _config(release: str, root: str) -> tuple[str, str]:
    packed = os.path.join(root, "proc/config.gz")
    try:
        with gzip.open(packed, "rt", encoding="utf-8", errors="replace") as handle:
            return handle.read(), "/proc/config.gz"
    except (OSError, EOFError):
        pass
    for path in (f"/boot/config-{release}", f"/lib/modules/{release}/config"):
        text = files.text(os.path.join(root, path.lstrip("/")))
        if text:
            return text, path
    return "", ""


def _servers(root: str) -> tuple[tuple[Server, ...], str]:
    """The fair servers by CPU, and why none is seen."""
    directory = os.path.join(root, SERVERS.lstrip("/"))
    found = []
    refused = ""
    for name in files.names(directory):
        if not re.fullmatch(r"cpu[0-9]+", name):
            continue
        runtime, period, why = _server(os.path.join(directory, name))
        refused = refused or why
        if runtime is not None and period is not None:
            found.append(Server(int(name[3:]), runtime, period))
    if found:
        return tuple(sorted(found, key=lambda one: one.cpu)), ""
    return (), refused or _why_not(root)


def _server(directory: str) -> tuple[int | None, int | None, str]:
    values = []
    for name in ("runtime", "period"):
        try:
            with open(os.path.join(directory, name), encoding="ascii") as handle:
                values.append(files.number(handle.read().strip()))
        except OSError as error:
            return None, None, f"{SERVERS} cannot be read: {error.strerror}{_locked(directory)}"
    return values[0], values[1], ""


def _why_not(root: str) -> str:
    debugfs = os.path.join(root, _DEBUGFS)
    if not files.names(debugfs):
        return (
            "debugfs is not mounted at /sys/kernel/debug, or is closed; to mount it: systemctl "
            "start sys-kernel-debug.mount"
        )
    return f"this kernel has no {SERVERS}"


def _locked(directory: str) -> str:
    root = directory[: directory.index(SERVERS)] or "/"
    text = files.text(os.path.join(root, "sys/kernel/security/lockdown"))
    chosen = re.search(r"\[(\w+)\]", text)
    if chosen is None or chosen.group(1) == "none":
        return ""
    return f" (kernel lockdown is {chosen.group(1)}, as with Secure Boot, and closes debugfs)"
