# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which devices may be asked at all, and why the others may not. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..claims.model import LINKS
from . import weights
from .model import WHOLE_PERCENT, Device, Request

_WORD = re.compile(r"[0-9a-z]+")


def reason_against(device: Device, request: Request) -> str | None:
    """Why this device cannot serve the request now; None when it can."""
    if device.faults:
        return device.faults[0]
    return _wrong(device, request) or _taken(device, request) or _too_small(device, request)


def together(reasons: Iterable[tuple[str, str]]) -> str:
    """Names with what is against each, those of one reason together: ``GPU0, GPU1: is lost``."""
    names: dict[str, list[str]] = {}
    for name, why in reasons:
        names.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(those)}: {why}" for why, those in names.items())


def is_named(name: str, device: Device, parent: Device | None = None) -> bool:
    """A name is an index, ``0:1``, a UUID or the beginning of one; a GPU's names its parts too."""
    if name[:1].isdigit():
        number = name if ":" in name else f"GPU{name}"
        return number == device.name or (parent is not None and number == parent.name)
    uuids = (device.uuid, parent.uuid if parent else None)
    return any(uuid is not None and uuid.startswith(name) for uuid in uuids)


def _wrong(device: Device, request: Request) -> str | None:
    if request.profile is not None and device.profile != request.profile:
        return f"is {device.profile or 'a whole GPU'}, wanted is {request.profile}"
    if request.whole and device.profile is not None:
        return f"is the MIG device {device.profile}, wanted is a whole GPU"
    if request.models and not _is_model(request.models, device.model):
        return f"is {device.model}, wanted is {' or '.join(request.models)}"
    if request.numa not in (None, "single"):
        node = int(str(request.numa))
        if device.numa_node not in (None, node):
            return f"is on NUMA node {device.numa_node}, wanted is {node}"
    if request.rdma not in (None, "off"):
        return _rdma(device, str(request.rdma))
    return None


def _rdma(device: Device, wanted: str) -> str | None:
    if device.rdma is None:
        return "has no RDMA adapter that is known"
    step = weights.step(device.rdma)
    if wanted != "on" and (step is None or step > LINKS.index(wanted)):
        return f"its nearest RDMA adapter is {device.rdma} away, wanted is {wanted.upper()}"
    return None


def _taken(device: Device, request: Request) -> str | None:
    if device.foreign is not None:
        return device.foreign
    if not device.tenants:
        return None
    names = ", ".join(one.who for one in device.tenants)
    if not request.shared:
        return f"is promised to {names}; the claim wants it alone"
    for one in device.tenants:
        if one.share is None:
            return f"is promised to {one.who} alone"
        if one.share != request.share and "any" not in (one.share, request.share):
            return f"{one.who} shares it by {one.share}, the claim by {request.share}"
    return None


def _too_small(device: Device, request: Request) -> str | None:
    wanted = request.memory_mib or 0
    if not request.shared:
        usable = device.usable_mib
        if usable is not None and wanted > usable:
            return f"has {_usable(device)}, wanted are {wanted}"
        return None
    return _crowded(device, request, wanted)


def _crowded(device: Device, request: Request, wanted: int) -> str | None:
    """What holds for shared devices only."""
    limits = request.limits
    total, usable = device.total_mib, device.usable_mib
    if total is not None and usable is not None:
        held = device.taken_mib + device.reserved_mib
        if held * 100 >= total * limits.memory_percent:
            return (
                f"{held} of {total} MiB are taken ({held * 100 / total:.0f} %); it is shared "
                f"further below {limits.memory_percent:g} %"
            )
        kept = round(total * limits.reserve_percent / 100) if request.answer_s else 0
        left = usable - device.taken_mib - kept
        if wanted > left:
            beside = f" beside {kept} kept for an inference server" if kept else ""
            return f"has {max(0, left)} MiB left{beside}, wanted are {wanted}"
    promised = sum(one.compute_percent for one in device.tenants)
    # Whole devices in turns is what sharing by time means: only parts are added up.
    percent = request.compute_percent
    if percent is not None and percent < WHOLE_PERCENT:
        partly = sum(
            one.compute_percent for one in device.tenants if one.compute_percent < WHOLE_PERCENT
        )
        if partly + percent > WHOLE_PERCENT:
            return f"{promised:g} % of it are promised, wanted are {percent:g}"
    objective = limits.answer_s if request.answer_s is None else request.answer_s
    if device.answer_s is not None and device.answer_s >= objective:
        return (
            f"answers in {device.answer_s * 1000:.0f} ms, the objective is "
            f"{objective * 1000:.0f} ms"
        )
    return None


def _usable(device: Device) -> str:
    kept = f" ({device.reserved_mib} are the driver's)" if device.reserved_mib else ""
    return f"{device.usable_mib} MiB for containers{kept}"


def _is_model(models: Sequence[str], name: str | None) -> bool:
    if name is None:
        return True
    words = _WORD.findall(name.lower())
    return any(_is_within(_WORD.findall(model.lower()), words) for model in models)


def _is_within(wanted: Sequence[str], words: Sequence[str]) -> bool:
    places = range(len(words) - len(wanted) + 1)
    return any(list(words[at : at + len(wanted)]) == list(wanted) for at in places)
