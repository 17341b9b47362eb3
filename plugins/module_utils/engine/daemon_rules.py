# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What dockerd does with its configuration: what it takes on reload, what shows that it took a
key, and which keys its unit sets by flags. Pure.

What it wrongly accepts is in :mod:`.daemon_judge`.

Sources: moby ``daemon/reload.go`` and ``reload_unix.go`` for the hot keys; the rest was
tried on Docker 26.1.5 and 28.5.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

from ..versions import at_least
from .daemon_json import NEUTRAL

_HOT = frozenset(
    (
        "runtimes",
        "default-runtime",
        "default-shm-size",
        "default-ipc-mode",
        "default-cgroupns-mode",
        "debug",
        "max-concurrent-downloads",
        "max-concurrent-uploads",
        "max-download-attempts",
        "shutdown-timeout",
        "labels",
        "allow-nondistributable-artifacts",
        "insecure-registries",
        "registry-mirrors",
        "live-restore",
        "network-diagnostic-port",
    )
)

# The features map is reloaded, but most of what it switches is decided at start: the CDI
# driver is registered only then, and so is the image store chosen.
_HOT_FEATURES = frozenset(("buildkit",))

# What live-restore does not carry containers over: it needs the same bridge, storage and
# containerd on both sides (docs.docker.com, "Live restore", "Impact of live restore upon
# restart"). Of two more keys only one part each counts, see ``_unprotected``.
_UNPROTECTED = frozenset(
    (
        "data-root",
        "exec-root",
        "graph",
        "storage-driver",
        "storage-opts",
        "userns-remap",
        "containerd",
        "containerd-namespace",
        "containerd-plugins-namespace",
        "bip",
        "bip6",
        "bridge",
        "default-address-pools",
        "fixed-cidr",
        "fixed-cidr-v6",
    )
)


@dataclass(frozen=True)
class Change:
    """What differs between two configurations.

    ``hot`` and ``cold`` are top-level keys; a cold one needs a restart. ``neutral`` are
    values to reload with first, because an absent key keeps its old value on reload.
    ``unprotected`` are those cold keys, as ``features.containerd-snapshotter`` where only a
    part counts, for which live-restore does not keep running containers.
    """

    hot: tuple[str, ...]
    cold: tuple[str, ...]
    neutral: Mapping[str, Any]
    unprotected: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All top-level keys that differ."""
        return self.hot + self.cold


def classify(before: Mapping[str, Any], after: Mapping[str, Any], version: str) -> Change:
    """Sort what differs into reloadable and not, for a daemon of this version."""
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    hot = [key for key in keys if _is_hot(key, before, after, version)]
    cold = [key for key in keys if key not in hot]
    return Change(
        hot=tuple(hot),
        cold=tuple(cold),
        neutral={key: NEUTRAL[key] for key in hot if key not in after},
        unprotected=tuple(name for key in cold for name in _unprotected(key, before, after)),
    )


def _unprotected(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The part of a cold key, by name, whose change live-restore does not cover; [] for none."""
    if key == "features":
        name = "containerd-snapshotter"
        differs = _object(before, key).get(name) != _object(after, key).get(name)
        return [f"{key}.{name}"] if differs else []
    if key == "exec-opts":
        differs = cgroup_driver(before) != cgroup_driver(after)
        return [f"{key} native.cgroupdriver"] if differs else []
    return [key] if key in _UNPROTECTED else []


def _is_hot(key: str, before: Mapping[str, Any], after: Mapping[str, Any], version: str) -> bool:
    if key == "features":
        old, new = before.get(key) or {}, after.get(key) or {}
        differing = {name for name in {**old, **new} if old.get(name) != new.get(name)}
        return key in after and differing <= _HOT_FEATURES and differing <= set(new)
    if key == "nri-opts":
        return key in after and at_least(version, "29.2.0")
    return key in _HOT and (key in after or key in NEUTRAL)


def by_name(keys: Sequence[str], after: Mapping[str, Any], version: str) -> Change:
    """As :func:`classify` for keys that were never taken, whatever the daemon has for them.

    One that is no longer in the file was to be forgotten: where no neutral value says so, only a
    restart does that.
    """
    there = classify({}, {key: after[key] for key in keys if key in after}, version)
    gone = [key for key in keys if key not in after]
    by_reload = tuple(key for key in gone if key in _HOT and key in NEUTRAL)
    by_restart = tuple(key for key in gone if key not in by_reload)
    return replace(
        there,
        hot=there.hot + by_reload,
        cold=there.cold + by_restart,
        neutral={**there.neutral, **{key: NEUTRAL[key] for key in by_reload}},
        unprotected=there.unprotected + tuple(key for key in by_restart if key in _UNPROTECTED),
    )


# -- what the daemon says of itself ------------------------------------------------------


def not_taken(
    keys: Sequence[str],
    after: Mapping[str, Any],
    info: Mapping[str, Any],
    gone_runtimes: Sequence[str] = (),
) -> list[str]:
    """For each of ``keys`` that ``GET /info`` shows: how the daemon differs from the file.

    A key that the daemon does not show is taken on trust. ``gone_runtimes`` are runtimes
    that must not be there any more.
    """
    told = []
    for key in keys:
        if key in _SHOWN:
            told.extend(_SHOWN[key](after, info))
    if "runtimes" in keys:
        left = [name for name in gone_runtimes if name in (info.get("Runtimes") or {})]
        told.extend(f"runtime {name} is still there" for name in left)
    return told


def _differs(name: str, seen: Any, wanted: Any) -> list[str]:
    if seen == wanted:
        return []
    return [f"{name} is {json.dumps(seen)}, wanted {json.dumps(wanted)}"]


def _runtimes(after: Mapping[str, Any], info: Mapping[str, Any]) -> list[str]:
    there = info.get("Runtimes") or {}
    told = []
    for name, runtime in (after.get("runtimes") or {}).items():
        if name not in there:
            told.append(f"runtime {name} is missing")
        elif isinstance(runtime, dict) and "path" in runtime:
            seen = there[name].get("path")
            told.extend(_differs(f"runtime {name}'s path", seen, runtime["path"]))
    return told


def _cdi(after: Mapping[str, Any], info: Mapping[str, Any]) -> list[str]:
    wanted = (after.get("features") or {}).get("cdi")
    if wanted is None or "CDISpecDirs" not in info:
        return []
    return _differs("CDI", bool(info.get("CDISpecDirs")), bool(wanted))


def _spec_dirs(after: Mapping[str, Any], info: Mapping[str, Any]) -> list[str]:
    seen = info.get("CDISpecDirs")
    wanted = after.get("cdi-spec-dirs")
    return _differs("cdi-spec-dirs", seen, wanted) if seen and wanted else []


def _cgroup_driver(after: Mapping[str, Any], info: Mapping[str, Any]) -> list[str]:
    wanted = cgroup_driver(after)
    return _differs("cgroup driver", info.get("CgroupDriver"), wanted) if wanted else []


def cgroup_driver(config: Mapping[str, Any]) -> str | None:
    """The driver that ``exec-opts`` asks for."""
    for word in config.get("exec-opts") or []:
        name, _equals, value = str(word).partition("=")
        if name == "native.cgroupdriver":
            return value
    return None


def driver_of_flags(flags: Mapping[str, str]) -> str | None:
    """The driver that the flags of the daemon's unit ask for."""
    return cgroup_driver({"exec-opts": flags.get("--exec-opt", "").split(",")})


_Shown = Callable[[Mapping[str, Any], Mapping[str, Any]], list[str]]

_SHOWN: dict[str, _Shown] = {
    "runtimes": _runtimes,
    "default-runtime": lambda after, info: _differs(
        "default-runtime", info.get("DefaultRuntime"), after.get("default-runtime") or "runc"
    ),
    "live-restore": lambda after, info: _differs(
        "live-restore", info.get("LiveRestoreEnabled"), bool(after.get("live-restore"))
    ),
    "labels": lambda after, info: _differs(
        "labels", sorted(info.get("Labels") or []), sorted(after.get("labels") or [])
    ),
    "debug": lambda after, info: _differs("debug", info.get("Debug"), bool(after.get("debug"))),
    "features": _cdi,
    "cdi-spec-dirs": _spec_dirs,
    "exec-opts": _cgroup_driver,
    "log-driver": lambda after, info: _differs(
        "log-driver", info.get("LoggingDriver"), after.get("log-driver") or "json-file"
    ),
}

# Keys whose value ``GET /info`` shows.
SHOWN = tuple(_SHOWN)


# -- keys that are flags too -----------------------------------------------------------


def flag_conflicts(keys: Sequence[str], flags: Mapping[str, str]) -> list[str]:
    """Keys that the unit sets as flags too: dockerd refuses to start with both.

    A repeatable flag is the singular of its key (``--label`` and ``labels``). Runtimes are
    the one exception that dockerd merges.
    """
    told = []
    for key in keys:
        for flag in _flag_spellings(key):
            if key != "runtimes" and flag in flags:
                # Only a conflict needs it, and Ansible compiles what is imported at each run.
                from ..secrets import by_key

                shown = json.loads(by_key.show((flag,), flags[flag]))
                told.append(f"{key} is a flag of docker.service ({flag}={shown})")
    return told


def _flag_spellings(key: str) -> list[str]:
    spellings = ["--" + key]
    if key.endswith("ies"):
        spellings.append("--" + key[:-3] + "y")
    elif key.endswith("s"):
        spellings.append("--" + key[:-1])
    return spellings


def _object(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}
