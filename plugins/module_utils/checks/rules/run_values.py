# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the rules on containers share: sizes, images, capabilities, and the user's own words.
Holds no rule. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Given, Hit, Position, Severity

# docker/go-units RAMInBytes: a number, one binary unit letter, and "i" and "b" that change nothing.
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?) ?([kmgtp])?i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}

# What Docker's flag is called in a Compose file.
_COMPOSE_KEYS = {
    "memory": "mem_limit",
    "memory-swap": "memswap_limit",
    "memory-reservation": "mem_reservation",
    "memory-swappiness": "mem_swappiness",
    "shm-size": "shm_size",
    "cpuset-cpus": "cpuset",
    "cpu-period": "cpu_period",
    "cpu-quota": "cpu_quota",
    "cap-add": "cap_add",
    "ulimit": "ulimits",
    "group-add": "group_add",
    "device": "devices",
    "security-opt": "security_opt",
    "network": "network_mode",
    "env": "environment",
    "cgroup-parent": "cgroup_parent",
    "oom-kill-disable": "oom_kill_disable",
    "oom-score-adj": "oom_score_adj",
    "blkio-weight": "blkio_config.weight",
    "publish": "ports",
    "volume": "volumes",
}


def unsettled(value: str) -> bool:
    """Is it a text whose value only a shell or Compose knows?"""
    marks = ("$", "{{", "`", "...", "…")
    if any(mark in value for mark in marks) or ("<" in value and ">" in value):
        return True
    return re.match(r"(your|my)[_-]", value, re.IGNORECASE) is not None


def size(given: Given | None) -> int | None:
    """A size in bytes as Docker reads it, -1 for ``-1``; None when it is not there or unclear."""
    if given is None:
        return None
    text = given.value.strip()
    if text == "-1":
        return -1
    match = _SIZE.fullmatch(text)
    return int(float(match.group(1)) * _UNITS[(match.group(2) or "").lower()]) if match else None


def number(given: Given | None) -> float | None:
    """A decimal number; None when it is not there or is not one."""
    if given is None or not re.fullmatch(
        r"[+-]?(\d{1,18}(\.\d{0,18})?|\.\d{1,18})", given.value.strip()
    ):
        return None
    return float(given.value)


def shown(given: Given, flag: str = "") -> str:
    """What somebody wrote, as it is written there: ``--memory 8g`` or ``mem_limit: 8g``."""
    spelled = given.spelled or (f"--{flag}" if flag else "")
    if not spelled:
        return given.value
    if not spelled.startswith("-"):
        return f"{spelled}: {given.value}"
    return spelled if given.value == "true" else f"{spelled} {given.value}"


def write(spec: ContainerSpec, flag: str, value: str) -> str:
    """How ``--flag value`` is written where this container is asked for."""
    if spec.how in ("run", "create"):
        return f"--{flag}" if value == "true" else f"--{flag} {value}"
    if spec.how == "ansible":
        return f"{flag.replace('-', '_')}: {value}"
    return f"{_COMPOSE_KEYS.get(flag, flag.replace('-', '_'))}: {value}"


def image(spec: ContainerSpec) -> tuple[str, str]:
    """Name and tag of the image in lower case, without digest; ("", "") when it is not known."""
    if spec.image is None:
        return "", ""
    text = spec.image.value.strip().partition("@")[0].lower()
    head, slash, last = text.rpartition("/")
    name, _colon, tag = last.partition(":")
    return head + slash + name, tag


def command_text(spec: ContainerSpec) -> str:
    """The command's words, joined by blanks."""
    return " ".join(word.value for word in spec.command)


def capabilities(spec: ContainerSpec) -> dict[str, Given]:
    """The capabilities added: upper case without ``CAP_`` to where it is written."""
    return {
        part.strip().upper().removeprefix("CAP_"): given
        for given in spec.all("cap-add")
        for part in given.value.split(",")
    }


def security_options(spec: ContainerSpec) -> Iterator[tuple[str, str, Given]]:
    """Key, value and place of each security option; both ``a=b`` and the old ``a:b`` count."""
    for given in spec.all("security-opt"):
        match = re.match(r"([a-z-]+)[=:](.*)", given.value.strip())
        if match:
            yield match.group(1), match.group(2), given


def ulimit(spec: ContainerSpec, name: str) -> Given | None:
    """The ulimit of that name; its value is ``name=soft:hard``."""
    found = [g for g in spec.all("ulimit") if g.value.partition("=")[0].strip() == name]
    return found[-1] if found else None


def devices(spec: ContainerSpec) -> Iterator[tuple[str, Given]]:
    """The host's path of each device that is a path."""
    for given in spec.all("device"):
        path = given.value.partition(":")[0]
        if path.startswith("/"):
            yield path.rstrip("/") or "/", given


def mounts(spec: ContainerSpec) -> Iterator[tuple[str, str, Given]]:
    """Source, target and place of each volume and mount; the source of a tmpfs is "tmpfs"."""
    for given in spec.all("volume"):
        source, colon, rest = given.value.partition(":")
        target = rest.partition(":")[0] if colon else source
        yield source if colon else "", target, given
    for given in spec.all("mount"):
        parts = dict(p.partition("=")[::2] for p in given.value.split(","))
        target = next((parts[k] for k in ("target", "dst", "destination") if k in parts), "")
        source = parts.get("source", parts.get("src", ""))
        yield "tmpfs" if parts.get("type") == "tmpfs" else source, target, given
    for given in spec.all("tmpfs"):
        yield "tmpfs", given.value.partition(":")[0], given


def starts_as_root(spec: ContainerSpec) -> bool:
    """Does nothing say that the container runs as another user than root?"""
    user = spec.last("user")
    return user is None or user.value.partition(":")[0] in ("", "0", "root")


def swarm_key(spec: ContainerSpec) -> str:
    """A key of a Compose service that only Swarm reads; "" where it has none."""
    if spec.how != "compose":
        return ""
    keys = ("deploy.placement", "deploy.update_config", "deploy.rollback_config")
    return next((key for key in keys if spec.all(key)), "")


def for_swarm(spec: ContainerSpec) -> bool:
    """Is the service written for ``docker stack deploy``, by its keys or the name of the file?"""
    named = spec.how == "compose" and re.search(r"(stack|swarm)[^/]*$", spec.at.file)
    return bool(named or swarm_key(spec))


def place(spec: ContainerSpec) -> str:
    """How to name the container in a sentence."""
    return f"service {spec.name}" if spec.how == "compose" and spec.name else "the container"


def subject(spec: ContainerSpec) -> str:
    """The same at the beginning of a sentence."""
    name = place(spec)
    return name[0].upper() + name[1:]


def needs_host(
    at: Position, known: bool, seen: str, wants: str, severity: Severity, fix: str = ""
) -> Hit:
    """A hit that is exact where the host is known, else an info that says what it must have."""
    if known:
        return Hit(at, seen, fix=fix, severity=severity)
    return Hit(at, wants, fix=fix, severity=Severity.INFO, assumed=("the host is not known",))


def gpu_count(host: HostView) -> int | None:
    """How many GPUs the host has; None when that is not known."""
    return None if host.gpus is None else len(host.gpus)
