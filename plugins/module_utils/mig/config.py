# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""mig-parted's configuration format, read strictly, and layouts that need no file.

A document has ``version: v1`` and ``mig-configs``, a list of entries for each name::

    all-balanced:
      - device-filter: ["0x20B010DE"]
        devices: all
        mig-enabled: true
        mig-devices: {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}

Every file that mig-parted accepts is accepted, except where it would do nothing by mistake.
Beyond it, ``devices`` takes what ``selectors`` knows, and ``mig-devices`` may be left out beside
``mig-enabled: true``: the mode is set then and the instances are left as they are. The format
is that of github.com/NVIDIA/mig-parted, ``api/spec/v1``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import fitting, names
from .model import ConfigError, Geometry, Profile, Wanted

_ENTRY_KEYS = ("device-filter", "devices", "mig-enabled", "mig-devices")
_FILTER = re.compile(r"0[xX][0-9a-fA-F]{1,8}(:0[xX][0-9a-fA-F]{1,8})?")


@dataclass(frozen=True)
class Entry:
    """One entry of a layout: which GPUs, and what they are to have.

    ``selectors`` are as written; ``filters`` are ``0x20B010DE`` or, with the board,
    ``0x20B010DE:0x134F10DE``; () lets every GPU through. ``where`` is its place in the document.
    """

    selectors: tuple[object, ...]
    filters: tuple[str, ...]
    wanted: Wanted
    where: str


def parse(document: object) -> dict[str, list[Entry]]:
    """The layouts of a whole document by name. Raises ConfigError with the place in it."""
    if not isinstance(document, Mapping):
        raise ConfigError(
            f"a MIG configuration is a mapping with version and mig-configs, not {_kind(document)}"
        )
    unknown = [str(key) for key in document if key not in ("version", "mig-configs")]
    if unknown:
        raise ConfigError(
            f"unknown key {unknown[0]!r} beside version and mig-configs: a MIG configuration"
            " has these two only"
        )
    if document.get("version") != "v1":
        raise ConfigError(
            f"version is {document.get('version')!r}; this reads mig-parted's version 'v1'"
        )
    layouts = document.get("mig-configs")
    if not isinstance(layouts, Mapping) or not layouts:
        raise ConfigError(f"mig-configs must name at least one layout, it is {_kind(layouts)}")
    found = {}
    for name, entries in layouts.items():
        if not isinstance(name, str):
            raise ConfigError(f"mig-configs: the name {name!r} must be text, it is {_kind(name)}")
        found[name] = parse_entries(entries, f"mig-configs.{name}")
    return found


def parse_entries(entries: object, where: str) -> list[Entry]:
    """The entries of one layout; ``where`` is named in errors."""
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise ConfigError(f"{where} must be a list of entries, it is {_kind(entries)}")
    if not entries:
        raise ConfigError(f"{where} has no entry; at least one is needed")
    return [_entry(entry, f"{where}[{number}]") for number, entry in enumerate(entries)]


def counts(value: object, where: str) -> dict[str, int]:
    """``mig-devices``: how many MIG devices of each profile. Zeros are dropped."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} must map profiles to counts, it is {_kind(value)}")
    found = {}
    for name, count in value.items():
        try:
            names.split(str(name))
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ConfigError(f"{where}.{name} is {count!r}; it must be a number from 0 up")
        if count:
            found[str(name)] = count
    return found


def builtin(name: str, geometry: Geometry | None) -> Wanted | None:
    """A layout made from what one GPU offers; None when this GPU has no such layout.

    The names and their meaning are those of mig-parted's own file: ``all-disabled``,
    ``all-enabled`` (MIG on, no instances), ``all-<profile>`` with as many as fit, where a ``+``
    may be a ``.`` (``all-1g.5gb.me``), and ``all-balanced``: two 1g, a 2g and, of seven slices,
    a 3g. The latter two need the ``geometry``.
    """
    if name == "all-disabled":
        return Wanted(enabled=False)
    if name == "all-enabled":
        return Wanted(enabled=True, devices={})
    if geometry is None:
        return None
    if name == "all-balanced":
        return _balanced(geometry)
    for profile in geometry.profiles:
        if name in (f"all-{profile.name}", f"all-{profile.name.replace('+', '.')}"):
            return Wanted(True, {profile.name: fitting.most_alone(geometry, profile)})
    return None


def builtin_names(geometry: Geometry | None) -> list[str]:
    """The names that ``builtin`` knows for such a GPU, in a good order to read."""
    found = ["all-disabled", "all-enabled"]
    if geometry is not None:
        if _balanced(geometry):
            found.append("all-balanced")
        found += [f"all-{profile.name.replace('+', '.')}" for profile in geometry.profiles]
    return found


def _entry(entry: object, where: str) -> Entry:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be a mapping, it is {_kind(entry)}")
    for key in entry:
        if key not in _ENTRY_KEYS:
            known = ", ".join(_ENTRY_KEYS)
            raise ConfigError(f"{where}: unknown key {key!r}; an entry has {known}")
    for key in ("devices", "mig-enabled"):
        if key not in entry:
            raise ConfigError(f"{where}: {key} is missing")
    enabled = entry["mig-enabled"]
    if not isinstance(enabled, bool):
        raise ConfigError(f"{where}.mig-enabled must be true or false, it is {enabled!r}")
    devices = entry.get("mig-devices")
    wanted = Wanted(enabled, None if devices is None else counts(devices, f"{where}.mig-devices"))
    if not enabled:
        if wanted.devices:
            raise ConfigError(f"{where}: mig-devices are listed although mig-enabled is false")
        wanted = Wanted(enabled=False)
    return Entry(
        _selectors(entry["devices"], f"{where}.devices"),
        _filters(entry.get("device-filter"), f"{where}.device-filter"),
        wanted,
        where,
    )


def _selectors(devices: object, where: str) -> tuple[object, ...]:
    """``all`` or a list; a single index, UUID, address or model is taken as a list of one."""
    listed = devices if isinstance(devices, (list, tuple)) else (devices,)
    if not listed:
        raise ConfigError(f"{where} names no GPU; write 'all' or list some")
    for one in listed:
        # A float is an address that YAML misread; ``selectors`` says so.
        if isinstance(one, bool) or not isinstance(one, (int, float, str)):
            raise ConfigError(
                f"{where}: {one!r} names no GPU; write 'all', an index, a UUID (GPU-…), a PCI"
                " address or a model"
            )
    return tuple(listed)


def _filters(value: object, where: str) -> tuple[str, ...]:
    """mig-parted's ``device-filter``: one PCI device number with vendor, or several."""
    if value is None or value == "":
        return ()
    listed = value if isinstance(value, (list, tuple)) else (value,)
    for one in listed:
        if not isinstance(one, str) or not _FILTER.fullmatch(one):
            raise ConfigError(
                f"{where}: {one!r} is no PCI device number; they are written '0x20B010DE'"
            )
    return tuple(listed)


def _balanced(geometry: Geometry) -> Wanted | None:
    """mig-parted's mixture; None where there is none: only 7 and 4 slices have one."""
    mixture = {7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}.get(geometry.compute_slices)
    if mixture is None:
        return None
    devices = {}
    for slices, count in mixture.items():
        profile = _plain(geometry, slices)
        if profile is None:
            return None
        devices[profile.name] = count
    return Wanted(enabled=True, devices=devices)


def _plain(geometry: Geometry, slices: int) -> Profile | None:
    """The profile of so many slices without +me and the like, the one that fits most often."""
    plain = [
        profile
        for profile in geometry.profiles
        if profile.slices == slices and not re.search(r"[+-]", profile.name)
    ]
    return max(plain, key=lambda profile: profile.most, default=None)


def _kind(value: object) -> str:
    """What a value is, in the words of YAML."""
    if value is None:
        return "empty"
    kinds = {bool: "true or false", int: "a number", str: "text", list: "a list", dict: "a mapping"}
    return kinds.get(type(value), type(value).__name__)
