# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on values that the docker command or the engine refuses by their name or range. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule
from .run_values import number, shown, unsettled

_SEEN = "seen on Docker 26.1.5 and 28.5.2"

_ULIMITS = frozenset(
    (
        *("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile"),
        *("nproc", "rss", "rtprio", "rttime", "sigpending", "stack"),
    )
)
# What says that the engine is one of Windows.
_WINDOWS = re.compile(
    r"windows|nanoserver|servercore|microsoft/|powershell|pwsh|\.exe\b|Container(Admin|User)|\bcmd\b",
    re.IGNORECASE,
)
# capabilities(7) of Linux 6.
_CAPABILITIES = frozenset(
    (
        *("ALL", "AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHOWN"),
        *("CHECKPOINT_RESTORE", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK"),
        *("IPC_OWNER", "KILL", "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD"),
        *("NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_RAW", "PERFMON", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_CHROOT"),
        *("SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE"),
        *("SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM"),
    )
)


@rule(
    "capability-unknown",
    "A capability that Linux does not have",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The engine refuses a name that is not in capabilities(7). Docker takes one name for "
    "each flag; a comma is part of the name.",
    fix="Take the name from capabilities(7), with or without CAP_, one for each flag.",
    sources=("moby oci/caps/utils.go", "capabilities(7)", f"{_SEEN}: unknown capability"),
)
def capability_unknown(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A typing error, or a list where one name is wanted."""
    for flag in ("cap-add", "cap-drop"):
        for given in spec.all(flag):
            listed = [given.value] if spec.engine == "docker" else given.value.split(",")
            names = [name.strip().upper().removeprefix("CAP_") for name in listed]
            wrong = [name for name in names if name not in _CAPABILITIES]
            if wrong and not unsettled(given.value):
                yield Hit(given.at, f"{shown(given)}: there is no capability {', '.join(wrong)}.")


@rule(
    "ulimit-refused",
    "A ulimit that is refused",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The name must be one of setrlimit(2)'s, and the soft limit at most the hard one; -1 "
    "means unlimited.",
    fix="Write name=soft:hard, such as memlock=-1 or nofile=65536:65536.",
    sources=("docker/go-units ulimit.go", f"{_SEEN}: invalid ulimit type"),
)
def ulimit_refused(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The command's own grammar."""
    for given in spec.all("ulimit"):
        name, equals, limits = given.value.strip().partition("=")
        if unsettled(given.value) or not equals:
            continue
        if name not in _ULIMITS:
            yield Hit(given.at, f"{shown(given)}: there is no limit {name}.")
            continue
        typed = spec.engine == "docker" and spec.how in ("run", "create")
        if typed and not re.fullmatch(r"[-+]?\d+(:[-+]?\d+)?", limits):
            yield Hit(given.at, f"{shown(given)}: a limit is a number, -1 for unlimited.")
            continue
        match = re.fullmatch(r"(-?\d{1,18}):(-?\d{1,18})", limits)
        soft, hard = (int(match.group(1)), int(match.group(2))) if match else (0, -1)
        if hard != -1 and (soft == -1 or soft > hard):
            yield Hit(given.at, f"{shown(given)}: the soft limit is above the hard one.")


@rule(
    "isolation-windows",
    "Isolation is for Windows",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="On Linux the only isolation is default; the engine refuses the others.",
    fix="Leave it out; another runtime is chosen with runtime.",
    sources=("docs.docker.com docker run --isolation", _SEEN),
)
def isolation_windows(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A Windows value on Linux."""
    given = spec.last("isolation")
    places = (spec.image, spec.last("user"), *spec.command)
    if _WINDOWS.search(" ".join(place.value for place in places if place)):
        return
    if given and given.value.lower() in ("hyperv", "process"):
        yield Hit(given.at, f"{shown(given)} is not for Linux.")


@rule(
    "memory-swappiness-range",
    "memory-swappiness out of range",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The value is from 0 to 100, or -1 for unset; the docker command refuses others.",
    fix="Drop it: on cgroup v2 it has no effect anyway.",
    sources=("docker/cli cli/command/container/opts.go", _SEEN),
)
def memory_swappiness_range(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Refused by the command before the engine drops it."""
    given = spec.last("memory-swappiness")
    value = number(given)
    if given and value is not None and not -1 <= value <= 100:
        yield Hit(given.at, f"{shown(given)} is not between 0 and 100.")


@rule(
    "memory-negative",
    "A negative size",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Only memory-swap takes -1 for unlimited; for the other sizes the command answers "
    "'invalid size'.",
    fix="Leave the flag out for no limit.",
    sources=("docker/cli opts/opts.go MemBytes", f"{_SEEN}: invalid size: '-1'"),
)
def memory_negative(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """The docker command's flags; Compose has a grammar of its own."""
    if spec.how not in ("run", "create") or spec.engine != "docker":
        return
    for flag in ("memory", "memory-reservation", "kernel-memory", "shm-size"):
        given = spec.last(flag)
        if given and re.match(r"-\d", given.value.strip()):
            yield Hit(given.at, f"{shown(given)} is negative.")


@rule(
    "port-out-of-range",
    "A port that there is not",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Ports end at 65535; docker and Compose refuse a higher number.",
    fix="Write a port from 1 to 65535; between the host's and the container's stands a colon.",
    sources=("docker/go-connections nat/parse.go", "seen on Compose 2.40.3"),
)
def port_out_of_range(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A published port above 65535."""
    for given in spec.all("publish"):
        if unsettled(given.value) or given.value.startswith("["):
            continue
        ports = re.findall(r"(?:^|[:-])(\d+)(?=$|[:/-])", given.value)
        if any(int(port) > 65535 for port in ports if len(port) < 20):
            yield Hit(given.at, f"{shown(given)} goes beyond port 65535.")
