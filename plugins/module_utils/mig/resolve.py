# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From what a user asks for to what each GPU is to have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from . import config, selectors, tables
from .config import Entry
from .model import ConfigError, GpuLayout, Wanted

_NO_MIG = "there is no MIG on"
_ENTRY_MARKS = ("devices", "device-filter", "mig-enabled", "mig-devices")


@dataclass(frozen=True)
class Resolution:
    """``wanted`` by GPU UUID; a GPU that is not in it is left alone. ``notes`` say why, one line
    for each reason.
    """

    wanted: Mapping[str, Wanted]
    notes: tuple[str, ...] = ()


def resolve(
    layout: object, configs: Mapping[str, Sequence[Entry]], gpus: Sequence[GpuLayout]
) -> Resolution:
    """What each GPU is to have.

    ``layout`` is one of

    - a name: of one of ``configs``, else of a layout that ``config.builtin`` makes,
    - a list of mig-parted entries, or one entry,
    - a whole mig-parted document with one layout in it,
    - a mapping from a selector to a name, to counts by profile, or to true or false for the
      mode alone. Of several selectors that name a GPU the narrowest decides: one GPU before a
      model before ``all``.

    Of several entries for one GPU the last one decides, as in mig-parted, which carries them out
    in order; one entry that switches MIG on and one that switches it off are refused, as there.

    Raises ConfigError, naming the place and what there is instead.
    """
    if isinstance(layout, str):
        return _by_name(layout, configs, gpus, "layout")
    if isinstance(layout, Mapping):
        if "version" in layout or "mig-configs" in layout:
            return _only_layout(layout, gpus)
        if any(key in _ENTRY_MARKS for key in layout):
            return _by_entries(config.parse_entries([layout], "layout"), gpus, "layout")
        return _by_selector(layout, configs, gpus)
    return _by_entries(config.parse_entries(layout, "layout"), gpus, "layout")


def _by_name(
    name: str, configs: Mapping[str, Sequence[Entry]], gpus: Sequence[GpuLayout], where: str
) -> Resolution:
    """A layout by its name; that of a file comes before one of the same name that we make."""
    if name in configs:
        return _by_entries(configs[name], gpus, name)
    capable = [gpu for gpu in gpus if gpu.supported]
    made = {gpu.uuid: config.builtin(name, tables.geometry_of(gpu)) for gpu in capable}
    wanted = {uuid: one for uuid, one in made.items() if one is not None}
    # The names that every GPU has must not fail where no GPU can have MIG.
    if not wanted and config.builtin(name, None) is None:
        raise ConfigError(f"{where}: there is no layout {name!r}; {_known(configs, capable)}")
    alone = _Alone()
    for gpu in gpus:
        if not gpu.supported and name != "all-disabled":
            alone.add(gpu, _NO_MIG)
        elif gpu.supported and gpu.uuid not in wanted:
            alone.add(gpu, _no_layout(name))
    return Resolution(wanted, alone.notes())


def _only_layout(document: Mapping[object, object], gpus: Sequence[GpuLayout]) -> Resolution:
    configs = config.parse(document)
    if len(configs) > 1:
        listed = ", ".join(sorted(configs))
        raise ConfigError(f"the document has several layouts ({listed}): say which one is wanted")
    name, entries = next(iter(configs.items()))
    return _by_entries(entries, gpus, name)


def _by_entries(entries: Sequence[Entry], gpus: Sequence[GpuLayout], where: str) -> Resolution:
    decided: dict[str, Entry] = {}
    alone = _Alone()
    for entry in entries:
        for gpu, explicit in _named(entry, gpus):
            if not selectors.passes(gpu, entry.filters, entry.where):
                continue
            if not gpu.supported:
                _incapable(gpu, entry.wanted, explicit, entry.where, alone)
                continue
            former = decided.get(gpu.uuid)
            if former and former.wanted.enabled != entry.wanted.enabled:
                raise ConfigError(
                    f"{former.where} and {entry.where} both name GPU {gpu.index}, and one switches"
                    " MIG on, the other off; mig-parted refuses this as well"
                )
            decided[gpu.uuid] = entry
    for gpu in gpus:
        if gpu.supported and gpu.uuid not in decided:
            alone.add(gpu, f"no entry of {where} is for")
    if not decided and any(gpu.supported for gpu in gpus):
        raise ConfigError(
            f"{where}: no entry is for any GPU of this host; {selectors.there_are(gpus)}"
        )
    wanted = {gpu.uuid: decided[gpu.uuid].wanted for gpu in gpus if gpu.uuid in decided}
    return Resolution(wanted, alone.notes())


def _by_selector(
    layout: Mapping[object, object],
    configs: Mapping[str, Sequence[Entry]],
    gpus: Sequence[GpuLayout],
) -> Resolution:
    if not layout:
        raise ConfigError("layout is empty; name a layout, or map GPUs to layouts")
    decided: dict[str, tuple[int, object, Wanted]] = {}
    alone = _Alone()
    for selector, value in layout.items():
        where = f"layout.{selector}"
        narrow = selectors.precision(selector)
        named = selectors.select(selector, gpus, where)
        given = _value(value, configs, gpus, where)
        capable = [gpu for gpu in named if gpu.supported]
        if capable and not any(gpu.uuid in given for gpu in capable):
            raise ConfigError(
                f"{where}: {value!r} has nothing for {capable[0].name}; {_known(configs, capable)}"
            )
        for gpu in named:
            wanted = given.get(gpu.uuid)
            if wanted is None:
                alone.add(gpu, _no_layout(value))
                continue
            if not gpu.supported:
                _incapable(gpu, wanted, selector != selectors.ALL, where, alone)
                continue
            former = decided.get(gpu.uuid)
            if former and former[0] == narrow and former[2] != wanted:
                raise ConfigError(
                    f"layout: {former[1]!r} and {selector!r} both name GPU {gpu.index} ({gpu.name})"
                    " and want different things; make one of them narrower"
                )
            if former is None or narrow >= former[0]:
                decided[gpu.uuid] = (narrow, selector, wanted)
    wanted_by_uuid = {gpu.uuid: decided[gpu.uuid][2] for gpu in gpus if gpu.uuid in decided}
    return Resolution(wanted_by_uuid, alone.notes(decided))


def _value(
    value: object,
    configs: Mapping[str, Sequence[Entry]],
    gpus: Sequence[GpuLayout],
    where: str,
) -> Mapping[str, Wanted]:
    """What a selector maps to, for every GPU that it is for, whoever is selected."""
    if isinstance(value, bool):
        return {gpu.uuid: Wanted(enabled=value) for gpu in gpus}
    if isinstance(value, Mapping):
        wanted = Wanted(enabled=True, devices=config.counts(value, where))
        return {gpu.uuid: wanted for gpu in gpus}
    if not isinstance(value, str):
        raise ConfigError(
            f"{where} is {value!r}; it must be the name of a layout, counts by profile, or true or"
            " false for the mode alone"
        )
    # A GPU without MIG can have none of it but "off", which is all that matters of it.
    off = Wanted(enabled=value != "all-disabled")
    incapable = {gpu.uuid: off for gpu in gpus if not gpu.supported}
    return {**_by_name(value, configs, gpus, where).wanted, **incapable}


def _named(entry: Entry, gpus: Sequence[GpuLayout]) -> list[tuple[GpuLayout, bool]]:
    """The GPUs an entry names, once each, and whether by more than ``all``."""
    explicit: dict[str, bool] = {}
    for selector in entry.selectors:
        for gpu in selectors.select(selector, gpus, f"{entry.where}.devices"):
            explicit[gpu.uuid] = explicit.get(gpu.uuid, False) or selector != selectors.ALL
    return [(gpu, explicit[gpu.uuid]) for gpu in gpus if gpu.uuid in explicit]


def _incapable(gpu: GpuLayout, wanted: Wanted, explicit: bool, where: str, alone: _Alone) -> None:
    """A GPU without MIG: passed over under ``all``, as mig-parted does; refused when named."""
    if wanted.enabled and explicit:
        raise ConfigError(f"{where}: GPU {gpu.index} ({gpu.name}) has no MIG to switch on")
    if wanted.enabled:
        alone.add(gpu, _NO_MIG)


def _no_layout(name: object) -> str:
    return f"there is no layout {name} for"


class _Alone:
    """The GPUs that are left alone, by reason."""

    def __init__(self) -> None:
        self._by_reason: dict[str, list[GpuLayout]] = {}

    def add(self, gpu: GpuLayout, reason: str) -> None:
        """``reason`` goes before the GPU: ``there is no MIG on``."""
        self._by_reason.setdefault(reason, []).append(gpu)

    def notes(self, decided: Collection[str] = ()) -> tuple[str, ...]:
        """One line for each reason: ``there is no MIG on GPU 3, 4 (Tesla T4): left alone``.

        ``decided`` are the UUIDs of those that something else was for.
        """
        reasons = {
            reason: {gpu.index: gpu.name for gpu in gpus if gpu.uuid not in decided}
            for reason, gpus in self._by_reason.items()
        }
        return tuple(
            "{} GPU {} ({}): left alone".format(
                reason,
                ", ".join(map(str, sorted(gpus))),
                ", ".join(dict.fromkeys(gpus[index] for index in sorted(gpus))),
            )
            for reason, gpus in reasons.items()
            if gpus
        )


def _known(configs: Mapping[str, Sequence[Entry]], gpus: Sequence[GpuLayout]) -> str:
    made = [name for gpu in gpus for name in config.builtin_names(tables.geometry_of(gpu))]
    unknown = [gpu.name for gpu in gpus if tables.geometry_of(gpu) is None]
    text = "there are " + ", ".join(dict.fromkeys([*configs, *made, *config.builtin_names(None)]))
    if unknown:
        text += f"; what a {unknown[0]} offers is known once MIG is on (all-enabled)"
    return text
