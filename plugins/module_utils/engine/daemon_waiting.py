# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a restart of dockerd would bring besides, whoever wrote it, and live-restore does not cover.

Pure but for links, which are followed as the daemon does. Sources: moby ``daemon/daemon.go``,
``daemon/daemon_unix.go`` and ``daemon/image_store_choice.go``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ..versions import at_least
from .daemon_rules import cgroup_driver, classify, driver_of_flags
from .runtime_users import DEFAULT_DATA_ROOT

_STORE = "containerd-snapshotter"
_ROOT_KEYS = ("data-root", "graph")
_FEATURE, _CGROUP_DRIVER = f"features.{_STORE}", "exec-opts native.cgroupdriver"
# The unprotected keys that ``GET /info`` shows.
_SHOWN = frozenset((*_ROOT_KEYS, "storage-driver", "userns-remap", _FEATURE, _CGROUP_DRIVER))
# The directory in its data root where a daemon that remaps user ids keeps all.
_REMAPPED = re.compile(r"\d+\.\d+")
# As Go's strconv.ParseBool has it.
_ON = ("1", "t", "true")


def in_waiting(
    config: Mapping[str, Any],
    info: Mapping[str, Any],
    flags: Mapping[str, str],
    flags_known: bool = True,
    resolve: Callable[[str], str] = os.path.realpath,
) -> list[str]:
    """The keys that a restart would change, named as the unprotected ones of a ``Change``.

    Somebody wrote them, or took them out, and the daemon was not restarted since. Only what it
    shows of itself is told. ``flags_known`` says that what neither the file nor ``flags`` set has
    its default.
    """
    told = []
    key, root = _chosen(_ROOT_KEYS, config, flags)
    if not key and flags_known:
        key, root = _ROOT_KEYS[0], DEFAULT_DATA_ROOT
    seen = str(info.get("DockerRootDir") or "")
    if seen and os.path.isabs(root) and not _is_root(seen, root, resolve):
        told.append(key)
    key, driver = _chosen(("storage-driver",), config, flags)
    if driver and driver != (info.get("Driver") or driver):
        told.append(key)
    key, remap = _chosen(("userns-remap",), config, flags)
    options = info.get("SecurityOptions")
    if options is not None and (key or flags_known):
        wanted = remap.partition(":")[0] not in ("", "0", "root")
        if wanted != any(str(option).startswith("name=userns") for option in options):
            told.append("userns-remap")
    if "Driver" in info and _other_store(config, info, flags, flags_known):
        told.append(_FEATURE)
    driver = cgroup_driver(config) or driver_of_flags(flags) or ""
    if not driver and flags_known and str(info.get("CgroupVersion")) == "2":
        driver = "systemd"
    if driver and driver != (info.get("CgroupDriver") or driver):
        told.append(_CGROUP_DRIVER)
    return told


def untold(config: Mapping[str, Any], version: str) -> list[str]:
    """The keys in ``config`` that live-restore does not cover and the daemon does not show."""
    there = classify({}, config, version).unprotected
    return [name for name in there if name not in _SHOWN]


def is_on(flags: Mapping[str, str], flag: str) -> bool:
    """Does the unit switch this on? ``--live-restore=false`` switches off."""
    return flags.get(flag, "").rpartition(",")[2].lower() in _ON


def _chosen(
    keys: Sequence[str], config: Mapping[str, Any], flags: Mapping[str, str]
) -> tuple[str, str]:
    """The first of ``keys`` that the unit or the file sets, and to what; "" and "" for none."""
    for key in keys:
        if f"--{key}" in flags:
            return key, flags[f"--{key}"]
        if config.get(key):
            return key, str(config[key])
    return "", ""


def _is_root(seen: str, wanted: str, resolve: Callable[[str], str]) -> bool:
    """Is the directory that a daemon shows the wanted one, or that of its remapped users in it?

    A daemon shows where links lead to, unless it has made the directory since it started.
    """
    above, name = os.path.split(seen.rstrip("/"))
    places = (seen, above) if _REMAPPED.fullmatch(name) else (seen,)
    return resolve(wanted) in [resolve(place) for place in places]


def _other_store(
    config: Mapping[str, Any],
    info: Mapping[str, Any],
    flags: Mapping[str, str],
    flags_known: bool,
) -> bool:
    """Would containers be looked for in another store: Docker's own, or that in containerd?

    From 29.0 on a daemon that is not told stays with what it has.
    """
    version = info.get("ServerVersion")
    if not at_least(version, "24.0.0"):
        return False
    features = config.get("features")
    wanted = features.get(_STORE) if isinstance(features, dict) else None
    for word in flags.get("--feature", "").split(","):
        name, equals, value = word.partition("=")
        if name == _STORE:
            wanted = value.lower() in _ON if equals else True
    if wanted is None and flags_known and not at_least(version, "29.0.0"):
        wanted = False
    rows = info.get("DriverStatus") or []
    has = any("io.containerd.snapshotter" in str(row) for row in rows)
    return isinstance(wanted, bool) and wanted != has
