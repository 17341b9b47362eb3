# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The keys of the NVIDIA Container Toolkit's config.toml: since when, and what they may hold. Pure.

Sources: NVIDIA/nvidia-container-toolkit ``api/config/v1`` (before 1.19: ``internal/config``) of
each release from 1.12.0 to 1.20.0, ``internal/info/auto.go`` for the modes,
``internal/runtime/logger.go`` and logrus for the log levels.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..versions import at_least

# The newest release whose keys are below.
NEWEST = "1.20.0"

SWITCH, TEXT, LIST = "switch", "text", "list"


@dataclass(frozen=True)
class Key:
    """``since`` and ``until`` are the first release with the key and the first without it again.

    ``choices`` are the words that it takes, each with the first release that takes it; for a list
    those of its elements. ``wanted`` says in words what ``pattern`` checks.
    """

    kind: str
    since: str = ""
    until: str = ""
    choices: Mapping[str, str] | None = None
    pattern: str = ""
    wanted: str = ""


def _words(*words: str) -> Mapping[str, str]:
    return MappingProxyType(dict.fromkeys(words, ""))


_SWITCH, _TEXT, _LIST = Key(SWITCH), Key(TEXT), Key(LIST)
_FILE = Key(TEXT, pattern="/.*", wanted="an absolute path")
_PROGRAM = Key(TEXT, pattern="/.*|[^/ ]+", wanted="the name of a program or an absolute path")

MODES = MappingProxyType({**_words("auto", "legacy", "csv"), "cdi": "1.11.0", "jit-cdi": "1.18.0"})
CAPABILITIES = ("compat32", "compute", "display", "graphics", "ngx", "utility", "video")
_CAPABILITY = "(?:{})".format("|".join(CAPABILITIES))

_CLI = "nvidia-container-cli"
_RUNTIME = "nvidia-container-runtime"
_OLD_FEATURE = Key(SWITCH, "1.15.0", "1.17.0")

KEYS: Mapping[str, Key] = MappingProxyType(
    {
        "disable-require": _SWITCH,
        "swarm-resource": Key(
            TEXT, pattern=r"[A-Za-z0-9_-]+(?:\s*,\s*[A-Za-z0-9_-]+)*", wanted="names of variables"
        ),
        "accept-nvidia-visible-devices-envvar-when-unprivileged": _SWITCH,
        "accept-nvidia-visible-devices-as-volume-mounts": _SWITCH,
        "supported-driver-capabilities": Key(
            TEXT,
            pattern=rf"all|{_CAPABILITY}(?:\s*,\s*{_CAPABILITY})*",
            wanted="all, or {} separated by commas".format(", ".join(CAPABILITIES)),
        ),
        f"{_CLI}.root": _FILE,
        f"{_CLI}.path": _PROGRAM,
        f"{_CLI}.environment": Key(LIST, pattern="[^=]+=.*", wanted="NAME=value"),
        f"{_CLI}.debug": _FILE,
        f"{_CLI}.ldcache": _FILE,
        f"{_CLI}.load-kmods": _SWITCH,
        f"{_CLI}.no-cgroups": _SWITCH,
        f"{_CLI}.no-pivot": _SWITCH,
        f"{_CLI}.user": Key(TEXT, pattern="[^:]+:[^:]+", wanted="user:group"),
        f"{_CLI}.ldconfig": Key(TEXT, pattern="@?/.*", wanted="@ and an absolute path"),
        f"{_RUNTIME}.debug": _FILE,
        f"{_RUNTIME}.log-level": Key(
            TEXT,
            choices=_words("panic", "fatal", "error", "warn", "warning", "info", "debug", "trace"),
        ),
        f"{_RUNTIME}.runtimes": Key(LIST, pattern=_PROGRAM.pattern, wanted=_PROGRAM.wanted),
        f"{_RUNTIME}.mode": Key(TEXT, choices=MODES),
        f"{_RUNTIME}.experimental": Key(SWITCH, "", "1.10.0"),
        f"{_RUNTIME}.discover-mode": Key(TEXT, "", "1.10.0"),
        f"{_RUNTIME}.modes.csv.mount-spec-path": _FILE,
        f"{_RUNTIME}.modes.csv.compat-container-root": Key(
            TEXT, "1.19.0", pattern=_FILE.pattern, wanted=_FILE.wanted
        ),
        f"{_RUNTIME}.modes.cdi.spec-dirs": Key(
            LIST, "1.11.0", pattern=_FILE.pattern, wanted=_FILE.wanted
        ),
        f"{_RUNTIME}.modes.cdi.default-kind": Key(
            TEXT,
            "1.13.0",
            pattern=r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*",
            wanted="vendor/class, such as nvidia.com/gpu",
        ),
        f"{_RUNTIME}.modes.cdi.annotation-prefixes": Key(LIST, "1.13.0"),
        f"{_RUNTIME}.modes.legacy.cuda-compat-mode": Key(
            TEXT, "1.17.7", choices=_words("ldconfig", "hook", "mount", "disabled")
        ),
        f"{_RUNTIME}.modes.jit-cdi.nvcdi-feature-flags": Key(
            LIST,
            "1.18.1",
            choices=MappingProxyType(
                {
                    "enable-explicit-driver-libraries": "",
                    "disable-nvsandboxutils": "",
                    "enable-coherent-annotations": "",
                    "disable-multiple-csv-devices": "1.19.0",
                    "no-additional-gids-for-device-nodes": "1.19.0",
                    "disable-ipc-discoverer": "1.20.0",
                }
            ),
        ),
        f"{_RUNTIME}.modes.jit-cdi.nvcdi-disable-hooks": Key(
            LIST,
            "1.20.0",
            choices=_words(
                "all",
                "chmod",
                "create-symlinks",
                "disable-device-node-modification",
                "enable-cuda-compat",
                "update-application-profile",
                "update-ldcache",
            ),
        ),
        f"{_RUNTIME}-hook.path": Key(
            TEXT, "1.13.0", pattern=_PROGRAM.pattern, wanted=_PROGRAM.wanted
        ),
        f"{_RUNTIME}-hook.skip-mode-detection": Key(SWITCH, "1.13.0"),
        "nvidia-ctk.path": _PROGRAM,
        **dict.fromkeys(
            [f"features.{name}" for name in ("gds", "mofed", "gdrcopy", "nvswitch")], _OLD_FEATURE
        ),
        "features.allow-cuda-compat-libs-from-container": Key(SWITCH, "1.17.4"),
        "features.allow-ldconfig-from-container": Key(SWITCH, "1.17.3"),
        "features.allow-unknown-oci-spec-fields": Key(SWITCH, "1.19.0"),
        "features.disable-cuda-compat-lib-hook": Key(SWITCH, "1.17.5"),
        "features.disable-imex-channel-creation": Key(SWITCH, "1.17.0"),
        "features.ignore-imex-channel-requests": Key(SWITCH, "1.17.5"),
        "features.no-additional-gids-for-device-nodes": Key(SWITCH, "1.19.0"),
    }
)


# What `nvidia-ctk config` of 1.14.0 to 1.20.0 writes where there was no file.
_SHIPPED: Mapping[str, tuple[Any, ...]] = {
    "disable-require": (False,),
    "supported-driver-capabilities": (
        "compat32,compute,display,graphics,ngx,utility,video",
        "compute,compat32,graphics,utility,video,display,ngx",
    ),
    f"{_CLI}.environment": ([],),
    f"{_CLI}.load-kmods": (True,),
    f"{_CLI}.ldconfig": ("@/sbin/ldconfig", "@/sbin/ldconfig.real"),
    f"{_CLI}.user": ("root:video",),
    f"{_RUNTIME}.log-level": ("info",),
    f"{_RUNTIME}.runtimes": (
        ["runc", "crun"],
        ["docker-runc", "runc"],
        ["docker-runc", "runc", "crun"],
    ),
    f"{_RUNTIME}.mode": ("auto",),
    f"{_RUNTIME}.modes.csv.mount-spec-path": (
        "/etc/nvidia-container-runtime/host-files-for-container.d",
    ),
    f"{_RUNTIME}.modes.cdi.spec-dirs": (["/etc/cdi", "/var/run/cdi"],),
    f"{_RUNTIME}.modes.cdi.default-kind": ("nvidia.com/gpu",),
    f"{_RUNTIME}.modes.cdi.annotation-prefixes": (["cdi.k8s.io/"],),
    f"{_RUNTIME}.modes.legacy.cuda-compat-mode": ("ldconfig",),
    f"{_RUNTIME}-hook.path": ("nvidia-container-runtime-hook",),
    f"{_RUNTIME}-hook.skip-mode-detection": (False,),
    "nvidia-ctk.path": ("nvidia-ctk",),
}

MODE = (_RUNTIME, "mode")


def nobodys(path: Sequence[str], value: Any) -> bool:
    """Is it what the packages write into a new file, so that nobody chose it?"""
    return any(value == one for one in _SHIPPED.get(".".join(path), ()))


def fault(name: str, value: Any, toolkit: str | None) -> str | None:
    """What is wrong with a key and its value for a release (None: not known); None for nothing."""
    key = KEYS.get(name)
    if key is None:
        return _unknown(name, toolkit)
    if key.since and toolkit is not None and not at_least(toolkit, key.since):
        return f"{name} came with {key.since}; this host has {toolkit}: upgrade, or leave it out"
    if key.until and (toolkit is None or at_least(toolkit, key.until)):
        return f"{name} is not read any more since {key.until}: leave it out"
    if key.kind == SWITCH:
        return None if isinstance(value, bool) else _wanted(name, value, "true or false")
    if key.kind == TEXT:
        return _word_fault(name, key, value, toolkit)
    if not isinstance(value, list):
        return _wanted(name, value, "a list")
    faults = (_word_fault(name, key, word, toolkit) for word in value)
    return next((said for said in faults if said is not None), None)


def _unknown(name: str, toolkit: str | None) -> str:
    near = difflib.get_close_matches(name, KEYS, 1, 0.6) or [
        known for known in KEYS if known.rpartition(".")[2] == name.rpartition(".")[2]
    ]
    said = f"{name} is no key of the toolkit"
    if near:
        said += f"; did you mean {near[0]}?"
    elif toolkit is not None and at_least(toolkit, NEWEST) and toolkit != NEWEST:
        said += f" up to {NEWEST}; if {toolkit} has it, say validate: false"
    return said


def _word_fault(name: str, key: Key, word: Any, toolkit: str | None) -> str | None:
    if not isinstance(word, str):
        return _wanted(name, word, "text" if key.kind == TEXT else "a list of texts")
    if key.choices is not None:
        since = key.choices.get(word)
        if since is None:
            near = difflib.get_close_matches(word, key.choices, 1, 0.6)
            hint = f"; did you mean {near[0]}?" if near else ""
            return _wanted(name, word, "one of {}{}".format(", ".join(key.choices), hint))
        if since and toolkit is not None and not at_least(toolkit, since):
            return f"{name} = {word} came with {since}; this host has {toolkit}"
    if key.pattern and word and not re.fullmatch(key.pattern, word):
        return _wanted(name, word, key.wanted)
    return None


def _wanted(name: str, seen: Any, wanted: str) -> str:
    return f"{name} is {seen!r}, wanted {wanted}"
