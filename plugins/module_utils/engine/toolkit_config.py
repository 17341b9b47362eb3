# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our keys in the NVIDIA Container Toolkit's config.toml: decide, then write.

Nothing has to be told of a change. The runtime and the hook read the file whenever a container is
started, and a container that runs keeps what it was given.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .. import vouched
from ..atomic import read_text
from ..process import CommandMissingError, run
from ..secrets import by_key
from ..trees import toml_edit
from ..trees.leaves import Path, flatten
from ..trees.toml_edit import TomlTextError
from ..versions import at_least
from . import owned_keys, toolkit_keys, toolkit_rules
from .owned_keys import ForeignOwnerError, Layout, Merge
from .owned_record import Record, RecordError, dump_record, load_record
from .toolkit import CONFIG_PATH

RECORD_PATH = "/var/lib/steadygpu/owned/toolkit_config.json"
LAYOUT = Layout(toml_edit, nobodys=toolkit_keys.nobodys)
# It remembers values as they are.
_PRIVATE = 0o600
# `nvidia-ctk config` reads a file and prints what it understood.
_ASKS_SINCE = "1.15.0"


def record_path_of(path: str) -> str:
    """Where the record of a configuration file lies: each file has its own."""
    if path == CONFIG_PATH:
        return RECORD_PATH
    return RECORD_PATH.replace(".json", path.replace("/", "-") + ".json")


class ToolkitRefusedError(Exception):
    """Nothing was changed, and the message says why and what to do."""


@dataclass(frozen=True)
class Wish:
    """What the user asks; ``config`` is nested as the file is."""

    config: Mapping[str, Any]
    present: bool = True
    takeover: bool = False
    validate: bool = True
    path: str = CONFIG_PATH

    @property
    def leaves_file(self) -> bool:
        """Is nothing asked of the file? Then it may even be broken, it is not ours."""
        return self.present and not _leaves(self.config)


@dataclass(frozen=True)
class Host:
    """``toolkit`` is its version, None where it is not installed; ``ctk`` the path of its tool."""

    toolkit: str | None = None
    ctk: str | None = None
    deadline_s: float = 30.0


@dataclass(frozen=True)
class Plan:
    """What will be done. ``before`` and ``after`` are the file's text, None for no file."""

    wish: Wish
    before: str | None
    after: str | None
    record_before: Record
    record: Record
    actions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Will the file be another one?"""
        return self.before != self.after

    @property
    def mode(self) -> str:
        """The mode that the file holds afterwards."""
        try:
            return str(_at(LAYOUT.document(self.after), toolkit_keys.MODE) or "auto")
        except TomlTextError:
            return "unknown"


def make_plan(wish: Wish, host: Host) -> Plan:
    """Decide. Raises ToolkitRefusedError with all that is wrong at once, OSError."""
    before = _read(wish.path)
    if wish.leaves_file:
        return Plan(wish, before, before, Record(), Record())
    record, merge = _merge(wish, before)
    plan = Plan(wish, before, merge.text, record, merge.record, merge.actions)
    return replace(plan, warnings=_check(plan, host)) if wish.present else plan


def carry_out(plan: Plan) -> None:
    """Write. The record claims before the file has it, and forgets after (:mod:`.owned_keys`).

    Raises OSError; what was done by then is finished by the next run.
    """
    if plan.wish.leaves_file:
        return
    path = plan.wish.path
    if plan.wish.present:
        _put_record(path, plan.record)
    if plan.changed and plan.after is None:
        vouched.remove(path)
    elif plan.changed and plan.after is not None:
        vouched.write(path, plan.after)
    _put_record(path, plan.record)


def _put_record(path: str, record: Record) -> None:
    place = record_path_of(path)
    if record == Record():
        vouched.remove(place)
    elif read_text(place) != dump_record(record):
        vouched.write(place, dump_record(record), _PRIVATE)


def _read(path: str) -> str | None:
    """The file's text with its own line ends; None for no file. Raises OSError."""
    if read_text(path) is None:
        return None
    with open(path, encoding="utf-8", newline="") as handle:
        try:
            return handle.read()
        except UnicodeDecodeError as error:
            raise OSError(
                errno.EILSEQ,
                f"it is not UTF-8 at byte {error.start}; repair it or move it away",
                path,
            ) from error


def _leaves(config: Mapping[str, Any]) -> list[tuple[Path, Any]]:
    """What is asked for; a table without a key asks for nothing."""
    return [(path, value) for path, value in flatten(dict(config)) if path]


def _merge(wish: Wish, before: str | None) -> tuple[Record, Merge]:
    place = record_path_of(wish.path)
    if wish.present:
        _refuse(wish, _null_faults(wish.config))
    try:
        record = load_record(read_text(place))
        if wish.present:
            merge = owned_keys.put(LAYOUT, before, record, wish.config, wish.takeover, by_key.show)
        else:
            merge = owned_keys.take_back(LAYOUT, before, record, wish.config or None, by_key.show)
    except TomlTextError as error:
        raise ToolkitRefusedError(
            f"{wish.path} cannot be edited: {error}. It was left as it is; repair it, or move it "
            "away (the toolkit does without it)"
        ) from error
    except ForeignOwnerError as error:
        raise ToolkitRefusedError(f"{wish.path}: {error}") from error
    except RecordError as error:
        raise ToolkitRefusedError(
            f"{place}, which remembers what in {wish.path} is ours, is damaged: {error}. "
            "Nothing was changed; move it away to start without a memory"
        ) from error
    return record, merge


def _null_faults(wanted: Mapping[str, Any]) -> list[str]:
    return [
        f"{owned_keys.show_key(path)} has no value; leave it out, or say state: absent for it"
        for path, value in flatten(dict(wanted))
        if value is None
    ]


def _check(plan: Plan, host: Host) -> tuple[str, ...]:
    """The warnings. Raises ToolkitRefusedError with everything that is wrong at once."""
    wish = plan.wish
    leaves = _leaves(wish.config)
    faults = [toolkit_keys.fault(".".join(path), value, host.toolkit) for path, value in leaves]
    errors = [said for said in faults if said is not None]
    after = LAYOUT.document(plan.after)
    judgement = toolkit_rules.judge(after, host.toolkit, _head)
    # What was wrong before and is not ours to set is no reason to change nothing.
    known = toolkit_rules.judge(LAYOUT.document(plan.before), host.toolkit, _head)
    errors.extend(said for said in judgement.errors if said not in known.errors)
    warnings = [*judgement.warnings, *(said for said in judgement.errors if said in known.errors)]
    if plan.changed and not errors:
        errors.extend(_asked(plan, leaves, host))
    if wish.validate:
        _refuse(wish, errors)
        return tuple(warnings)
    return (*warnings, *errors)


def _refuse(wish: Wish, errors: list[str]) -> None:
    if errors:
        raise ToolkitRefusedError(f"{wish.path} was left as it is: " + "; ".join(errors))


def _asked(plan: Plan, leaves: list[tuple[Path, Any]], host: Host) -> list[str]:
    """What the toolkit's own tool has against the text, or understands in another way."""
    if host.ctk is None or not at_least(host.toolkit, _ASKS_SINCE) or plan.after is None:
        return []
    argv = [host.ctk, "--quiet", "config", "--config-file", "/dev/stdin"]
    try:
        done = run(argv, host.deadline_s, stdin=plan.after)
    except CommandMissingError:
        return []
    if not done.ok:
        return [f"nvidia-ctk config: {by_key.clean(done.said, by_key.secrets_of(plan.after))}"]
    try:
        seen = toml_edit.parse(done.stdout)
    except TomlTextError as error:
        return [f"nvidia-ctk config prints what is no TOML: {error}"]
    return [
        f"nvidia-ctk reads {owned_keys.show_key(path)} as {by_key.show(path, found)}, "
        f"wanted {by_key.show(path, value)}"
        for path, value in leaves
        # Some releases print a value that is the default as a comment.
        for found in [_at(seen, path)]
        if found not in (None, value)
    ]


def _at(document: Mapping[str, Any], path: Path) -> Any:
    place: Any = document
    for name in path:
        place = place.get(name) if isinstance(place, Mapping) else None
    return place


def _head(path: str) -> bytes | None:
    """The first bytes of a program; None where there is none."""
    if not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as handle:
            return handle.read(2)
    except OSError:
        return b""
