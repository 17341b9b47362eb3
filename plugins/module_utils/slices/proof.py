# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The slices of ours on a host, each property against its control group. Changes nothing."""

from __future__ import annotations

import os

from .. import cgroups
from ..atomic import read_text
from ..settings.model import DIFFERS, INERT, UNSUPPORTED
from ..settings.model import Setting as Verdict
from . import reader
from .effective import compare
from .properties import PARSERS, Setting
from .quantities import QuantityError
from .unit_text import assignments, is_ours, overridden
from .verdicts import judge

DIRECTORY = "/etc/systemd/system"


def place(name: str) -> str:
    """Where systemd puts a slice: ``a-b.slice`` in ``/a.slice/a-b.slice`` (systemd.slice(5))."""
    words = name[: -len(".slice")].split("-")
    return "".join("/" + "-".join(words[:count]) + ".slice" for count in range(1, len(words) + 1))


def settings_in(unit_text: str) -> dict[str, Setting]:
    """The properties of a unit file of ours; what this version does not know is left out."""
    said: dict[str, list[str]] = {}
    for key, value in assignments(unit_text):
        if key in PARSERS:
            said.setdefault(key, []).append(value)
    found = {}
    for key, values in said.items():
        for raw in (values, values[-1]):
            try:
                lines, parsed = PARSERS[key](raw)
            except QuantityError:
                continue
            found[key] = Setting(key, lines, parsed)
            break
    return found


def units_of_ours(root: str = "/") -> dict[str, str]:
    """The unit files that this collection wrote: name of the slice, text."""
    directory = os.path.join(root, DIRECTORY.lstrip("/"))
    found = {}
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        path = os.path.join(directory, name)
        if name.endswith(".slice") and not os.path.islink(path):
            text = read_text(path)
            if text is not None and is_ours(text):
                found[name] = text
    return found


def prove(root: str = "/") -> list[Verdict]:
    """One verdict for each property of each slice of ours. Raises OSError."""
    found = []
    for name, text in units_of_ours(root).items():
        found += _prove(name, settings_in(text), root)
    return found


def _prove(name: str, settings: dict[str, Setting], root: str) -> list[Verdict]:
    group = place(name)
    fault = reader.cgroup_fault(root)
    if fault is None and not os.path.isdir(cgroups.directory(group, root)):
        fault = "nothing runs in the slice; systemd starts it with the first that is put into it"
        return [_unread(name, setting, INERT, fault) for setting in settings.values()]
    if fault is not None:
        return [_unread(name, setting, UNSUPPORTED, fault) for setting in settings.values()]
    try:
        machine = reader.machine(settings, root)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        return [_unread(name, setting, DIFFERS, why) for setting in settings.values()]
    outvoted = {
        key: f"{path} sets {key}={value}"
        for path, drop_in in reader.drop_ins(name, root).items()
        for key, value in overridden(drop_in, settings).items()
    }
    readings = compare(settings, reader.slice_files(group, root), machine)
    above = reader.protection_above(group, root)
    return judge(name, group, settings, readings, machine, outvoted, above)


def _unread(name: str, setting: Setting, verdict: str, reason: str) -> Verdict:
    wanted = "; ".join(setting.lines)
    return Verdict(f"{name} {setting.key}", wanted, None, verdict, reason)
