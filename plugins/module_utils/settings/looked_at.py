# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that are only looked at: what the kernel was started with, modules, bridges, programs.

They act at a boot, when a module is loaded, or when a program starts.
"""

from __future__ import annotations

import os
import shlex

from ..atomic import read_text
from .model import (
    ACS,
    BOOT_PARAMETER,
    BOOT_PARAMETER_ABSENT,
    DIFFERS,
    EFFECTIVE,
    ENVIRONMENT,
    INERT,
    MODULE_LOADED,
    MODULE_PARAMETER,
    PENDING,
    UNSUPPORTED,
    Setting,
    Target,
)

CMDLINE = "/proc/cmdline"


def read(target: Target, root: str = "/") -> Setting:
    """The setting as the machine has it. Never raises."""
    if target.kind in (BOOT_PARAMETER, BOOT_PARAMETER_ABSENT):
        return _boot_parameter(target, root)
    if target.kind == MODULE_PARAMETER:
        return _module_parameter(target, root)
    if target.kind == ACS:
        return _acs(target, root)
    if target.kind == ENVIRONMENT:
        return _environment(target, root)
    return _module(target, root)


def below(root: str, path: str) -> str:
    """``path`` in the tree of ``root``."""
    return os.path.join(root, path.lstrip("/"))


def _words(text: str) -> list[str]:
    """The words of a command line, where quotes keep blanks together, without the quotes."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _boot_parameter(target: Target, root: str) -> Setting:
    try:
        text = read_text(below(root, CMDLINE))
    except OSError as error:
        text = None
        why = f"{CMDLINE} cannot be read: {error.strerror}"
    else:
        why = f"there is no {CMDLINE}"
    if text is None:
        return Setting(target.name, target.wanted, None, DIFFERS, why, CMDLINE)
    words = _words(text)
    key = target.wanted.partition("=")[0]
    seen = " ".join(word for word in words if word.partition("=")[0] == key) or "not given"
    if target.kind == BOOT_PARAMETER:
        if target.wanted in words:
            return Setting(target.name, target.wanted, target.wanted, EFFECTIVE, "", CMDLINE)
        why = target.note or "the running kernel was started without it: it acts after a reboot"
        return Setting(target.name, target.wanted, seen, PENDING, why, CMDLINE)
    wanted = f"no {target.wanted}"
    given = target.wanted in words if "=" in target.wanted else seen != "not given"
    if not given:
        return Setting(target.name, wanted, seen, EFFECTIVE, "", CMDLINE)
    why = target.note or "the running kernel was started with it: it goes with a reboot"
    return Setting(target.name, wanted, seen, PENDING, why, CMDLINE)


def _module(target: Target, root: str) -> Setting:
    from ..boot import parameters

    name = target.path.replace("-", "_")
    directory = f"/sys/module/{name}"
    try:
        listed = read_text(below(root, "/proc/modules")) or ""
    except OSError:
        listed = ""
    seen = "absent"
    if any(line.split(" ")[0] == name for line in listed.splitlines()):
        seen = "loaded"
    elif os.path.isdir(below(root, directory)):
        # Without an initstate it is no module but a part of the kernel.
        is_module = os.path.exists(below(root, f"{directory}/initstate"))
        seen = "loaded" if is_module else "built in"
    elif parameters.is_builtin(name, root):
        seen = "built in"
    if target.kind == MODULE_LOADED:
        wanted = target.wanted or "loaded"
        if seen != "absent":
            return Setting(target.name, wanted, seen, EFFECTIVE, "", directory)
        why = target.note or f"the module {target.path} is not loaded: modprobe {target.path}"
        return Setting(target.name, wanted, seen, DIFFERS, why, directory)
    wanted = target.wanted or "absent"
    if seen == "absent":
        return Setting(target.name, wanted, seen, EFFECTIVE, "", directory)
    if seen == "built in":
        why = f"{target.path} is built into this kernel and cannot be kept away"
        return Setting(target.name, wanted, seen, UNSUPPORTED, why, directory)
    why = target.note or f"{target.path} is loaded: it stays away from the next boot on"
    return Setting(target.name, wanted, seen, PENDING, why, directory)


def _module_parameter(target: Target, root: str) -> Setting:
    from ..boot import parameters

    module, _slash, name = target.path.partition("/")
    source = f"/sys/module/{module.replace('-', '_')}/parameters/{name}"
    try:
        seen = parameters.loaded_value(module, name, root)
    except OSError as error:
        why = f"{source} cannot be read: {error.strerror}"
        return Setting(target.name, target.wanted, None, DIFFERS, why, source)
    if seen is not None and parameters.same(seen, target.wanted):
        return Setting(target.name, target.wanted, seen, EFFECTIVE, "", source)
    loaded = os.path.isdir(below(root, os.path.dirname(os.path.dirname(source))))
    if seen is None and loaded:
        why = target.note or f"the module {module} shows no parameter {name}"
        return Setting(target.name, target.wanted, None, UNSUPPORTED, why, source)
    why = target.note or "the module takes it when it is loaded anew, as by a reboot"
    return Setting(target.name, target.wanted, seen, PENDING, why, source)


def _acs(target: Target, root: str) -> Setting:
    from ..acs import registers

    source = f"/sys/bus/pci/devices/{target.path}/config"
    try:
        seen = registers.read_control(target.path, root)
    except OSError as error:
        why = f"{source} cannot be read: {error.strerror}"
        return Setting(target.name, target.wanted, None, DIFFERS, why, source)
    if seen is None:
        why = target.note or f"the bridge {target.path} has no ACS that can be read"
        return Setting(target.name, target.wanted, None, UNSUPPORTED, why, source)
    shown = f"{seen:04x}"
    if shown == target.wanted.lower():
        return Setting(target.name, target.wanted, shown, EFFECTIVE, "", source)
    why = target.note or f"the ACS control register of {target.path} holds another value"
    return Setting(target.name, target.wanted, shown, DIFFERS, why, source)


def _environment(target: Target, root: str) -> Setting:
    proc = below(root, "/proc")
    key = target.wanted.partition("=")[0] + "="
    seen, source = None, "/proc/*/environ"
    for pid in sorted(filter(str.isdigit, _entries(proc)), key=int):
        try:
            if (read_text(f"{proc}/{pid}/comm") or "").strip() != target.path[:15]:
                continue
            text = read_text(f"{proc}/{pid}/environ") or ""
        except OSError:
            continue
        source = f"/proc/{pid}/environ"
        words = [word for word in text.split("\0") if word.startswith(key)]
        seen = words[0] if words else f"no {key[:-1]}"
        if seen != target.wanted:
            why = target.note or f"{target.path} was started with another value: restart it"
            return Setting(target.name, target.wanted, seen, DIFFERS, why, source)
    if seen is None:
        why = f"{target.path} does not run; it takes the value when it starts"
        return Setting(target.name, target.wanted, "not running", INERT, why, source)
    return Setting(target.name, target.wanted, seen, EFFECTIVE, "", source)


def _entries(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
