# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checkpoints, windows and restore journals as JSON, and back. Pure.

What comes back is checked: a document that is not ours raises RollbackError with a reason that
names the place in the document, and no path; whoever read the file adds which it was.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from .model import (
    Checkpoint,
    Entry,
    Host,
    Left,
    Moment,
    PackageState,
    Plan,
    Reason,
    RestoreJournal,
    RestoreOptions,
    State,
    Step,
    UnitState,
    Window,
)
from .storage import json_fields as read

DIGEST = re.compile(r"[0-9a-f]{64}")
ID = re.compile(r"([0-9]{1,9})-[0-9a-f]{8}")

_KINDS = frozenset({"file", "link", "directory", "absent", "other"})


# -- a state ----------------------------------------------------------------------------


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """One path's entry; the mode in octal, as people read it, and xattrs in base64."""
    document: dict[str, Any] = {"kind": entry.kind}
    if entry.there:
        document.update(mode=f"{entry.mode:04o}", uid=entry.uid, gid=entry.gid)
    if entry.xattrs:
        document["xattrs"] = {
            name: base64.b64encode(entry.xattrs[name]).decode("ascii")
            for name in sorted(entry.xattrs)
        }
    if entry.digest is not None:
        document["digest"] = entry.digest
    if entry.size:
        document["size"] = entry.size
    if entry.target is not None:
        document["target"] = entry.target
    return document


def entry_from_json(document: object, place: str = "entry") -> Entry:
    """The entry that :func:`entry_to_json` wrote. ``place`` names it in the RollbackError."""
    fields = read.mapping(document, place)
    kind = read.text(fields, "kind", place)
    if kind not in _KINDS:
        raise read.foreign(place, f"a path cannot be {kind!r}")
    digest = None if fields.get("digest") is None else read.text(fields, "digest", place)
    if digest is not None and not DIGEST.fullmatch(digest):
        raise read.foreign(place, f"{digest!r} is no SHA-256")
    if kind == "file" and digest is None:
        raise read.foreign(place, "a file without a digest")
    if kind == "link" and fields.get("target") is None:
        raise read.foreign(place, "a link without a target")
    return Entry(
        kind=kind,
        mode=_octal(fields, place) if kind != "absent" else 0,
        uid=read.whole(fields, "uid", place, 0),
        gid=read.whole(fields, "gid", place, 0),
        xattrs={
            name: _base64(value, f"{place}, xattr {name}")
            for name, value in read.mapping(fields.get("xattrs", {}), place).items()
        },
        digest=digest,
        size=read.whole(fields, "size", place, 0),
        target=None if fields.get("target") is None else read.text(fields, "target", place),
    )


def state_to_json(state: State) -> dict[str, Any]:
    """A whole state, names in sorted order."""
    return {
        "files": {path: entry_to_json(state.files[path]) for path in sorted(state.files)},
        "units": {
            name: {
                "load": unit.load,
                "active": unit.active,
                "enabled": unit.enabled,
                "drop_ins": list(unit.drop_ins),
            }
            for name, unit in sorted(state.units.items())
        },
        "sysctls": dict(sorted(state.sysctls.items())),
        "packages": {
            name: {"version": package.version, "held": package.held}
            for name, package in sorted(state.packages.items())
        },
        "mig": None if state.mig is None else [dict(gpu) for gpu in state.mig],
        "kernel_cmdline": state.kernel_cmdline,
        "runtime": dict(state.runtime),
        "unknown": dict(sorted(state.unknown.items())),
    }


def state_from_json(document: object, place: str = "state") -> State:
    """The state that :func:`state_to_json` wrote. Raises RollbackError."""
    fields = read.mapping(document, place)
    mig = read.get(fields, "mig", place)
    return State(
        files={
            path: entry_from_json(entry, path)
            for path, entry in read.part(fields, "files", place).items()
        },
        units={
            name: UnitState(
                load=read.text(unit, "load", name),
                active=read.text(unit, "active", name),
                enabled=read.text(unit, "enabled", name),
                drop_ins=read.texts(unit, "drop_ins", name),
            )
            for name, unit in read.mappings(fields, "units", place)
        },
        sysctls=read.text_mapping(fields, "sysctls", place),
        packages={
            name: PackageState(read.text(one, "version", name), read.truth(one, "held", name))
            for name, one in read.mappings(fields, "packages", place)
        },
        mig=None
        if mig is None
        else [dict(read.mapping(gpu, "mig")) for gpu in read.sequence(mig, "mig")],
        kernel_cmdline=read.text(fields, "kernel_cmdline", place),
        runtime=dict(read.part(fields, "runtime", place)),
        unknown=read.text_mapping(fields, "unknown", place),
    )


def document_digest(state: Mapping[str, Any]) -> str:
    """:func:`state_digest` of what :func:`state_to_json` returned."""
    return hashlib.sha256(canonical({**state, "runtime": _steady(state["runtime"])})).hexdigest()


def state_digest(state: State) -> str:
    """SHA-256 of what counts in a state: two looks at an unchanged host give the same.

    The GPU memory that containers hold comes and goes by itself and is left out.
    """
    return document_digest(state_to_json(state))


def canonical(document: object) -> bytes:
    """The one way to write a JSON value as bytes. Paths that are not UTF-8 survive it."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def _steady(runtime: Mapping[str, Any]) -> dict[str, Any]:
    containers = runtime.get("containers")
    if not isinstance(containers, Mapping):
        return dict(runtime)
    steady = {
        name: {key: value for key, value in one.items() if key != "gpu_memory_mib"}
        if isinstance(one, Mapping)
        else one
        for name, one in containers.items()
    }
    return {**runtime, "containers": steady}


# -- a checkpoint -----------------------------------------------------------------------


def checkpoint_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint without its files' contents, which are objects of the store."""
    return {
        "id": checkpoint.id,
        "sequence": checkpoint.sequence,
        "taken_at": checkpoint.taken_at,
        "host": {"machine": checkpoint.host.machine, "hostname": checkpoint.host.hostname},
        "reason": reason_to_json(checkpoint.reason),
        "declared": list(checkpoint.declared),
        "looked": list(checkpoint.looked),
        "state": state_to_json(checkpoint.state),
    }


def checkpoint_from_json(document: object) -> Checkpoint:
    """The checkpoint that :func:`checkpoint_to_json` wrote. Raises RollbackError."""
    place = "checkpoint"
    fields = read.mapping(document, place)
    name, sequence = read.text(fields, "id", place), read.whole(fields, "sequence", place)
    form = ID.fullmatch(name)
    if form is None or int(form.group(1)) != sequence:
        raise read.foreign(place, f"{name!r} is no id of sequence {sequence}")
    host = read.mapping(read.get(fields, "host", place), "host")
    return Checkpoint(
        id=name,
        sequence=sequence,
        taken_at=read.number(fields, "taken_at", place),
        host=Host(read.text(host, "machine", "host"), read.text(host, "hostname", "host")),
        reason=reason_from_json(read.get(fields, "reason", place)),
        state=state_from_json(read.get(fields, "state", place)),
        declared=read.texts(fields, "declared", place),
        looked=read.texts(fields, "looked", place),
    )


def reason_to_json(reason: Reason) -> dict[str, str]:
    """Why, as JSON."""
    return {
        "who": reason.who,
        "why": reason.why,
        "ticket": reason.ticket,
        "window": reason.window,
        "what": reason.what,
    }


def reason_from_json(document: object) -> Reason:
    """The reason that :func:`reason_to_json` wrote. Raises RollbackError."""
    fields = read.mapping(document, "reason")
    names = ("who", "why", "ticket", "window", "what")
    return Reason(**{name: read.text(fields, name, "reason") for name in names})


# -- what is under way ------------------------------------------------------------------


def window_to_json(window: Window) -> dict[str, Any]:
    """An open window."""
    return {
        "id": window.id,
        "run": window.run,
        "base": window.base,
        "opened": {
            "wall": window.opened.wall,
            "uptime": window.opened.uptime,
            "boot": window.opened.boot,
        },
        "confirm_within_s": window.confirm_within_s,
        "reason": reason_to_json(window.reason),
        "joined": list(window.joined),
    }


def window_from_json(document: object) -> Window:
    """The window that :func:`window_to_json` wrote. Raises RollbackError."""
    place = "window"
    fields = read.mapping(document, place)
    opened = read.mapping(read.get(fields, "opened", place), "opened")
    return Window(
        id=read.text(fields, "id", place),
        run=read.text(fields, "run", place),
        base=read.text(fields, "base", place),
        opened=Moment(
            wall=read.number(opened, "wall", "opened"),
            uptime=read.number(opened, "uptime", "opened"),
            boot=read.text(opened, "boot", "opened"),
        ),
        confirm_within_s=read.number(fields, "confirm_within_s", place),
        reason=reason_from_json(read.get(fields, "reason", place)),
        joined=read.texts(fields, "joined", place),
    )


def left_to_json(left: Left) -> dict[str, Any]:
    """What stays as it is, and why."""
    return {"subject": left.subject, "reason": left.reason, "pending": left.pending}


def left_from_json(document: object) -> Left:
    """What :func:`left_to_json` wrote. Raises RollbackError."""
    fields = read.mapping(document, "left")
    return Left(
        read.text(fields, "subject", "left"),
        read.text(fields, "reason", "left"),
        read.truth(fields, "pending", "left"),
    )


def restore_to_json(journal: RestoreJournal) -> dict[str, Any]:
    """A restore that has begun."""
    return {
        "target": journal.target,
        "replaced": journal.replaced,
        "window": journal.window,
        "options": {
            "packages": journal.options.packages,
            "other_host": journal.options.other_host,
            "deadline_s": journal.options.deadline_s,
            "reason": reason_to_json(journal.options.reason),
        },
        "steps": [
            {
                "kind": step.kind,
                "subject": step.subject,
                "text": step.text,
                "details": dict(step.details),
            }
            for step in journal.plan.steps
        ],
        "conflicts": list(journal.plan.conflicts),
        "left": [left_to_json(one) for one in journal.plan.left],
    }


def restore_from_json(document: object) -> RestoreJournal:
    """The journal that :func:`restore_to_json` wrote. Raises RollbackError."""
    place = "restore"
    fields = read.mapping(document, place)
    options = read.mapping(read.get(fields, "options", place), "options")
    steps = [
        read.mapping(one, "step")
        for one in read.sequence(read.get(fields, "steps", place), "steps")
    ]
    return RestoreJournal(
        target=read.text(fields, "target", place),
        replaced=read.text(fields, "replaced", place),
        window=read.text(fields, "window", place),
        options=RestoreOptions(
            packages=read.truth(options, "packages", "options"),
            other_host=read.truth(options, "other_host", "options"),
            deadline_s=read.number(options, "deadline_s", "options"),
            reason=reason_from_json(read.get(options, "reason", "options")),
        ),
        plan=Plan(
            steps=tuple(
                Step(
                    kind=read.text(one, "kind", "step"),
                    subject=read.text(one, "subject", "step"),
                    text=read.text(one, "text", "step"),
                    details=dict(read.part(one, "details", "step")),
                )
                for one in steps
            ),
            conflicts=read.texts(fields, "conflicts", place),
            left=tuple(
                left_from_json(one)
                for one in read.sequence(read.get(fields, "left", place), "left")
            ),
        ),
    )


def _octal(fields: Mapping[str, Any], place: str) -> int:
    text = read.text(fields, "mode", place)
    if not re.fullmatch(r"[0-7]{4,5}", text):
        raise read.foreign(place, f"mode {text!r} is not octal")
    return int(text, 8)


def _base64(value: object, place: str) -> bytes:
    if not isinstance(value, str):
        raise read.foreign(place, "not a text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise read.foreign(place, f"not base64 ({error})") from error
