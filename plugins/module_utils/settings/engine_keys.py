# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys of Docker and the toolkit that roles of settings asked for, compared with the files.

``docker_daemon`` and ``toolkit_config`` write them and remember the values; who asked is in the
owner's record: ``daemon_keys`` (names with dots), or ``daemon`` and ``toolkit`` (keys and values).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ..atomic import read_text
from .model import DIFFERS, EFFECTIVE, PENDING, Setting

_OWNED = "/var/lib/steadygpu/owned"


@dataclass(frozen=True)
class _Program:
    """Whose configuration: the title of its keys, its file, and our record of it."""

    title: str
    path: str
    record: str


_DOCKER = _Program("Docker", "/etc/docker/daemon.json", f"{_OWNED}/docker_daemon.json")
_TOOLKIT = _Program(
    "toolkit", "/etc/nvidia-container-runtime/config.toml", f"{_OWNED}/toolkit_config.json"
)


def read(extra: Mapping[str, Any], root: str = "/") -> list[Setting]:
    """One setting for each key that the owner of ``extra`` asked for. Never raises."""
    names = [name for name in extra.get("daemon_keys") or () if isinstance(name, str)]
    names += _names(extra.get("daemon"))
    found = list(_compared(_DOCKER, names, json.loads, root)) if names else []
    names = _names(extra.get("toolkit"))
    if names:
        # Seldom needed, and Ansible compiles what is imported at each run.
        from ..trees import toml_edit

        found += _compared(_TOOLKIT, names, toml_edit.parse, root)
    return found


def _names(asked: Any, above: str = "") -> list[str]:
    """The dotted names of all values of a nested dictionary."""
    if not isinstance(asked, dict):
        return []
    found = []
    for key, value in asked.items():
        name = f"{above}{key}"
        found += _names(value, f"{name}.") if isinstance(value, dict) and value else [name]
    return found


def _compared(
    program: _Program, names: list[str], parse: Callable[[str], Any], root: str
) -> Iterator[Setting]:
    try:
        said = json.loads(read_text(_below(root, program.record)) or "{}")
        owned = {".".join(map(str, one["key"])): one["value"] for one in said.get("owned", ())}
        waiting = set(said.get("pending", ()))
        text = read_text(_below(root, program.path))
        config = parse(text) if text and text.strip() else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        for name in names:
            why = f"{program.path} or {program.record} cannot be read: {error}"
            yield Setting(f"{program.title} {name}", "set", None, DIFFERS, why, program.path)
        return
    for name in names:
        wanted = {key: value for key, value in owned.items() if _within(key, name)}
        title = f"{program.title} {name}"
        if not wanted:
            # The same value was there before us: it is the administrator's, and as it is to be.
            theirs = _value(config, name)
            shown = None if theirs is _MISSING else _text(theirs)
            why = "" if shown else f"{program.path} does not have it; run the role again"
            verdict = EFFECTIVE if shown else DIFFERS
            yield Setting(title, shown or "set", shown, verdict, why, program.path)
        for key, value in wanted.items():
            seen = _value(config, key)
            shown = None if seen is _MISSING else _text(seen)
            where = f"{program.title} {key}"
            if seen != value:
                why = f"{program.path} was changed by somebody; run the role again"
                yield Setting(where, _text(value), shown, DIFFERS, why, program.path)
            elif key.split(".")[0] in waiting:
                why = "the running daemon has not taken it yet: it does at its next restart"
                yield Setting(where, _text(value), shown, PENDING, why, program.path)
            else:
                yield Setting(where, _text(value), shown, EFFECTIVE, "", program.path)


_MISSING = object()


def _value(config: Any, key: str) -> Any:
    """The value of a dotted name; a name may have dots of its own."""
    if not isinstance(config, dict):
        return _MISSING
    if key in config:
        return config[key]
    for name, value in config.items():
        if key.startswith(f"{name}."):
            found = _value(value, key[len(name) + 1 :])
            if found is not _MISSING:
                return found
    return _MISSING


def _within(key: str, name: str) -> bool:
    return key == name or key.startswith(f"{name}.")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
