# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``dockerd --validate`` lets pass and what then breaks the daemon, or does nothing. Pure.

Seen on 26.1.5 and 28.5.2, and read in moby ``daemon/config`` and ``daemon/daemon_unix.go``
(verifyPlatformSettings runs at the start only). On a host without dockerd this is all there is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ..versions import at_least
from .daemon_keys import (
    COMMON_LOG_OPTS,
    FEATURES,
    KEYS,
    LOG_DRIVERS,
    LOG_OPTS,
    NEWEST,
    type_fault,
)
from .daemon_rules import cgroup_driver

_RUNTIME_KEYS = ("path", "runtimeArgs", "runtimeType", "options")
_ULIMIT_KEYS = ("name", "hard", "soft")
_IGNORED = "dockerd would take it and do nothing"


@dataclass(frozen=True)
class Judgement:
    """``errors`` forbid writing the file, ``warnings`` are told and written all the same."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Daemon:
    """What judging has to know of the daemon; ``version`` None and empty lists: not known."""

    version: str | None
    log_drivers: Sequence[str]
    cgroup_driver: str | None
    is_program: Callable[[str], bool]

    def has(self, release: str) -> bool:
        """Is the release at least this one, as far as is known?"""
        return self.version is None or at_least(self.version, release)

    @property
    def is_newer_than_known(self) -> bool:
        """May it have what our tables lack?"""
        return at_least(self.version, NEWEST) and not at_least(NEWEST, self.version or "")


def judge(
    before: Mapping[str, Any], after: Mapping[str, Any], touched: Sequence[str], daemon: Daemon
) -> Judgement:
    """Everything at once. Only ``touched`` top-level keys can be errors, and below ``features``
    and ``runtimes`` only what differs: what stood in the file before us and works is not ours to
    refuse.
    """
    errors: list[str] = []
    warnings: list[str] = []
    for key in touched:
        if key in after:
            _sort(_key(key, after[key], daemon), errors, warnings, daemon)
    for name, feature in _object(after, "features").items():
        new = "features" in touched and _object(before, "features").get(name) != feature
        _sort(_feature(name, feature, daemon), errors if new else warnings, warnings, daemon)
    for name, runtime in _object(after, "runtimes").items():
        new = "runtimes" in touched and _object(before, "runtimes").get(name) != runtime
        (errors if new else warnings).extend(_runtime(name, runtime, daemon))
    for keys, rule in _RULES:
        told = list(rule(after, daemon))
        if set(keys) & set(touched):
            errors.extend(told)
        elif rule is _default_runtime:
            warnings.extend(told)
    return Judgement(tuple(errors), tuple(warnings))


# Told with whether our tables alone say so, which a newer release may know better.
_Told = tuple[str, bool]


def _sort(
    told: Iterator[_Told],
    errors: list[str],
    warnings: list[str],
    daemon: Daemon,
) -> None:
    for text, by_table in told:
        (warnings if by_table and daemon.is_newer_than_known else errors).append(text)


def _key(key: str, value: Any, daemon: Daemon) -> Iterator[_Told]:
    known = KEYS.get(key)
    if known is None:
        meant = _near(key, KEYS)
        yield f"{key}: dockerd has no such key{meant}", True
        return
    if daemon.version is not None and not known.in_release(daemon.version):
        if known.gone and at_least(daemon.version, known.gone):
            yield f"{key} is gone since Docker {known.gone}, this is {daemon.version}", True
        else:
            yield f"{key} needs Docker {known.since} or newer, this is {daemon.version}", True
    fault = type_fault(known.kind, value)
    if fault is not None:
        inside, wanted = fault
        yield "{} must be {}".format(".".join((key, *inside)), wanted), False


def _feature(name: str, value: Any, daemon: Daemon) -> Iterator[_Told]:
    since = FEATURES.get(name)
    if since is None:
        yield f"features.{name}: no Docker release has it{_near(name, FEATURES)}; {_IGNORED}", True
    elif value and since and not daemon.has(since):
        yield f"features.{name} needs Docker {since} or newer, this is {daemon.version}", False


def _runtime(name: str, runtime: Any, daemon: Daemon) -> Iterator[str]:
    if name == "runc":
        yield "runtimes.runc: the name runc is reserved by Docker, choose another"
        return
    if not isinstance(runtime, dict):
        return  # Its type is told with the key's.
    for word in runtime:
        if word not in _RUNTIME_KEYS:
            meant = _near(word, _RUNTIME_KEYS)
            yield f"runtimes.{name}.{word}: a runtime has no such key{meant}; {_IGNORED}"
    path, kind = runtime.get("path"), runtime.get("runtimeType")
    if not path and not kind:
        yield f"runtimes.{name} has neither path nor runtimeType: no container could start with it"
    elif path and kind:
        yield f"runtimes.{name} has both path and runtimeType: dockerd takes only one"
    elif kind and runtime.get("runtimeArgs"):
        yield f"runtimes.{name}: runtimeArgs go with path, a runtimeType has options"
    elif path and runtime.get("options"):
        yield f"runtimes.{name}: options go with runtimeType, a path has runtimeArgs"
    if path and not daemon.is_program(str(path)):
        yield f"runtimes.{name}.path is {path}: no such program; install it first"
    words = runtime.get("runtimeArgs")
    if words is not None and not _is_texts(words):
        yield f"runtimes.{name}.runtimeArgs must be a list of texts"


def _default_runtime(after: Mapping[str, Any], _daemon: Daemon) -> Iterator[str]:
    name = after.get("default-runtime")
    if not isinstance(name, str) or name == "runc" or name.startswith("io.containerd."):
        return
    if name not in _object(after, "runtimes"):
        yield f"default-runtime is {name}, which runtimes does not define; no container could start"


def _exec_opts(after: Mapping[str, Any], _daemon: Daemon) -> Iterator[str]:
    driver = cgroup_driver(after)
    if driver not in (None, "systemd", "cgroupfs"):
        yield f"native.cgroupdriver is {driver}, wanted systemd or cgroupfs"
    for word in after.get("exec-opts") or []:
        if not str(word).startswith("native.cgroupdriver="):
            yield f"exec-opts {word}: the only one is native.cgroupdriver; {_IGNORED}"


def _log_driver(after: Mapping[str, Any], daemon: Daemon) -> Iterator[str]:
    wanted = after.get("log-driver")
    there = daemon.log_drivers or (() if daemon.version else LOG_DRIVERS)
    plugin = isinstance(wanted, str) and ("/" in wanted or ":" in wanted)
    if wanted and there and wanted not in (*there, "none") and not (plugin and not daemon.version):
        yield "log-driver is {}; this daemon has {}".format(wanted, ", ".join(sorted(there)))


def _log_opts(after: Mapping[str, Any], _daemon: Daemon) -> Iterator[str]:
    driver = str(after.get("log-driver") or "json-file")
    known = LOG_OPTS.get(driver)
    for name in _object(after, "log-opts") if known is not None else ():
        if name not in (known or ()) and name not in COMMON_LOG_OPTS:
            meant = _near(name, [*(known or ()), *COMMON_LOG_OPTS])
            yield f"log-opts.{name}: the log driver {driver} has no such option{meant}"


def _cgroup_parent(after: Mapping[str, Any], daemon: Daemon) -> Iterator[str]:
    parent = after.get("cgroup-parent")
    # What a dockerd that nobody can ask takes on a host with systemd and cgroup v2.
    driver = cgroup_driver(after) or daemon.cgroup_driver or "systemd"
    if isinstance(parent, str) and parent and driver == "systemd" and parent[-6:] != ".slice":
        yield f"cgroup-parent is {parent}: with the systemd cgroup driver it must end in .slice"


def _bridge(after: Mapping[str, Any], _daemon: Daemon) -> Iterator[str]:
    if after.get("bridge") and after.get("bip"):
        yield "bridge and bip exclude each other: dockerd would not start"
    if after.get("iptables") is False and after.get("icc") is False:
        yield "icc: false needs iptables: dockerd would not start"


def _ulimits(after: Mapping[str, Any], _daemon: Daemon) -> Iterator[str]:
    for name, limit in _object(after, "default-ulimits").items():
        if not isinstance(limit, dict):
            continue
        for word in limit:
            if str(word).lower() not in _ULIMIT_KEYS:
                yield f"default-ulimits.{name}.{word}: a limit has Name, Hard and Soft; {_IGNORED}"
        hard, soft = limit.get("Hard"), limit.get("Soft")
        if not isinstance(hard, int) or not isinstance(soft, int) or hard == -1:
            continue
        if soft > hard or soft == -1:
            yield f"default-ulimits.{name}: Soft {soft} is above Hard {hard}; nothing could start"


_Rule = Callable[[Mapping[str, Any], Daemon], Iterator[str]]

_RULES: tuple[tuple[tuple[str, ...], _Rule], ...] = (
    (("default-runtime", "runtimes"), _default_runtime),
    (("exec-opts",), _exec_opts),
    (("log-driver",), _log_driver),
    (("log-opts", "log-driver"), _log_opts),
    (("cgroup-parent", "exec-opts"), _cgroup_parent),
    (("bridge", "bip", "iptables", "icc"), _bridge),
    (("default-ulimits",), _ulimits),
)


def _near(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    found = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _object(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}
