# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between two states beside their files: units, settings, GPUs, containers. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...mig import render, targets
from ...mig.model import MigError
from ...secrets import redact
from ..model import Change, PackageState, State, UnitState

ADDED, REMOVED, CHANGED = "added", "removed", "changed"

T = TypeVar("T")


def differences(before: State, after: State) -> Iterator[tuple[str, list[Change]]]:
    """What differs, by the name that the part has in ``State.unknown``."""
    yield "units", _texts("unit", before.units, after.units, _unit)
    yield "sysctls", _named("sysctl", before.sysctls, after.sysctls)
    yield "packages", _texts("package", before.packages, after.packages, _package)
    yield "mig", list(_mig(before.mig, after.mig))
    yield "kernel_cmdline", list(_kernel(before.kernel_cmdline, after.kernel_cmdline))
    was, now = before.runtime, after.runtime
    yield "driver", list(_driver(was.get("driver") or {}, now.get("driver") or {}))
    for part, name in (("devices", "device"), ("toolkit", "toolkit")):
        yield part, _texts(name, was.get(part) or {}, now.get(part) or {}, _plain)
    yield "containers", list(_containers(was.get("containers") or {}, now.get("containers") or {}))


def kind_of(before: object, after: object) -> str:
    """``added``, ``removed`` or ``changed``; None is what is not there."""
    return ADDED if before is None else REMOVED if after is None else CHANGED


def _texts(
    part: str, before: Mapping[str, T], after: Mapping[str, T], text: Callable[[T], str]
) -> list[Change]:
    found = []
    for subject in sorted({*before, *after}):
        old, new = before.get(subject), after.get(subject)
        if old != new:
            was, now = ("" if one is None else text(one) for one in (old, new))
            found.append(Change(part, redact.phrase(subject), kind_of(old, new), was, now))
    return found


def _named(part: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    """Like :func:`_texts`, for values that are secret if their name says so."""
    found = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            was, now = ("" if one is None else redact.value(name, one) for one in (old, new))
            if was == now == redact.HIDDEN:
                now = redact.CHANGED
            found.append(Change(part, name, kind_of(old, new), was, now))
    return found


def _plain(value: object) -> str:
    return redact.phrase(str(value))


def _unit(unit: UnitState) -> str:
    words = [unit.load] if unit.load not in ("", "loaded") else []
    words += [word for word in (unit.enabled, unit.active) if word]
    if unit.drop_ins:
        words.append(f"drop-ins {' '.join(unit.drop_ins)}")
    return redact.phrase(", ".join(words) or "loaded")


def _package(package: PackageState) -> str:
    if not package.version:
        return "half done by an interrupted package manager"
    return f"{package.version}, held" if package.held else package.version


# -- MIG --------------------------------------------------------------------------------


def _mig(
    before: Sequence[Mapping[str, Any]] | None, after: Sequence[Mapping[str, Any]] | None
) -> Iterator[Change]:
    was, now = ({str(one.get("uuid")): one for one in side or ()} for side in (before, after))
    for uuid in sorted({*was, *now}):
        old, new = was.get(uuid), now.get(uuid)
        if old == new:
            continue
        old_lines, new_lines = _layout(old), _layout(new)
        if old_lines == new_lines:
            old_lines = [*old_lines, "made in another order"]
        yield Change(
            part="mig",
            subject=uuid,
            kind=kind_of(old, new),
            before=", ".join(old_lines),
            after=", ".join(new_lines),
            lines=_lines(old_lines, new_lines) if old and new else (),
        )


def _layout(gpu: Mapping[str, Any] | None) -> list[str]:
    """``MIG on``, then one line for each GPU instance."""
    if gpu is None:
        return []
    try:
        (target,) = targets.from_json("the checkpoint", [gpu])
    except MigError as error:
        return [redact.phrase(str(error))]
    lines = ["MIG on" if target.wanted.enabled else "MIG off"]
    if target.instances is not None:
        lines += [render.instance_text(one) for one in render.in_order(target.instances)]
    elif target.wanted.devices:
        lines += [f"{count} × {name}" for name, count in sorted(target.wanted.devices.items())]
    return lines


# -- the kernel's command line ----------------------------------------------------------


def _kernel(before: str, after: str) -> Iterator[Change]:
    """By word; what is given several times, such as ``console``, is one subject."""
    was, now = _words(before), _words(after)
    found = _named_lists(was, now)
    yield from found
    if not found and before.split() != after.split():
        yield Change(
            "kernel", "order of the words", CHANGED, redact.phrase(before), redact.phrase(after)
        )


def _named_lists(
    was: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]
) -> list[Change]:
    found = []
    for name in sorted({*was, *now}):
        old, new = was.get(name), now.get(name)
        if old == new:
            continue
        texts = [" ".join(_word(name, one) for one in side or ()) for side in (old, new)]
        if old and new and texts[0] == texts[1]:
            texts[1] += ", changed"
        elif [name] in (old, new) and not (old and new):
            texts = ["", ""]  # The subject says it all.
        found.append(Change("kernel", redact.phrase(name), kind_of(old, new), texts[0], texts[1]))
    return found


def _words(line: str) -> dict[str, list[str]]:
    """Name -> its words' values, as they stand there. A quoted value may hold spaces."""
    found: dict[str, list[str]] = {}
    word, quoted, secret = "", False, False
    for char in line + " ":
        quoted ^= char == '"'
        if quoted or not char.isspace():
            word += char
        elif word:
            name, _equals, _value = word.partition("=")
            # The value of --token stands in a word of its own.
            found.setdefault("--token" if secret else name.strip('"'), []).append(word)
            secret = name.startswith("-") and redact.value(name, "x" * 8) == redact.HIDDEN
            secret = secret and "=" not in word
            word = ""
    return found


def _word(name: str, word: str) -> str:
    key, equals, value = word.partition("=")
    if not equals:
        hidden = name != key.strip('"') and redact.value(name, word) == redact.HIDDEN
        return redact.HIDDEN if hidden else redact.phrase(word)
    return f"{key}={redact.value(key, value)}"


# -- what is running --------------------------------------------------------------------


def _driver(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    old, new = before.get("version"), after.get("version")
    if old != new:
        was, now = ("" if one is None else _plain(one) for one in (old, new))
        yield Change("driver", "NVIDIA driver", kind_of(old, new), was, now)
    gpus, others = before.get("gpus") or {}, after.get("gpus") or {}
    for address in sorted({*gpus, *others}):
        one, other = gpus.get(address), others.get(address)
        if one is None or other is None:
            model = str((one or other or {}).get("Model", "")) or "a GPU"
            was, now = ("" if side is None else _plain(model) for side in (one, other))
            yield Change("driver", f"GPU {address}", kind_of(one, other), was, now)
            continue
        for key in sorted({*one, *other}):
            if one.get(key) == other.get(key):
                continue
            yield Change(
                part="driver",
                subject=f"GPU {address}, {redact.phrase(key)}",
                kind=CHANGED,
                before=redact.value(key, str(one.get(key, "not known"))),
                after=redact.value(key, str(other.get(key, "not known"))),
                # The driver does not know everything before a GPU is first opened.
                counts=key in one and key in other,
            )


def _containers(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for key in sorted({*before, *after}):
        was, now = before.get(key), after.get(key)
        if was == now:
            continue
        name = redact.phrase(str((now or was or {}).get("name") or "")) or "a container"
        subject = f"{name} ({key[:12]})"
        if was is None or now is None:
            words = [f"runtime {one.get('runtime')}" if one else "" for one in (was, now)]
            yield Change("container", subject, kind_of(was, now), words[0], words[1], counts=False)
            continue
        yield from _container(subject, was, now)


def _container(subject: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    for key in ("name", "namespace", "runtime"):
        if was.get(key) != now.get(key):
            texts = [_plain(one.get(key)) for one in (was, now)]
            yield Change("container", f"{subject} {key}", CHANGED, texts[0], texts[1])
    for key, what, counts in (
        ("device_rules", "device rules", True),
        ("changed_files", "changed files", False),
    ):
        old, new = ([redact.phrase(str(one)) for one in side.get(key) or ()] for side in (was, now))
        if old != new:
            count = [str(len(old)), str(len(new))]
            lines = _lines(old, new)
            yield Change(
                "container", f"{subject} {what}", CHANGED, count[0], count[1], lines, counts
            )
    old_memory, new_memory = was.get("gpu_memory_mib"), now.get("gpu_memory_mib")
    if old_memory != new_memory:
        words = ["not known" if one is None else f"{one} MiB" for one in (old_memory, new_memory)]
        yield Change(
            "container", f"{subject} GPU memory", CHANGED, words[0], words[1], counts=False
        )


def _lines(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    return tuple(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
