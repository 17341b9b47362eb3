# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Can this host meet a claim, as it is set up now and with nobody on it? Pure.

Who else uses the devices is the scheduler's question; what is not there cannot be had by waiting.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..checks.host import Gpu, HostView
from ..versions import at_least
from .model import ALL, LINKS, Claim, Conflict

# The driver's own memory limits (NVIDIA MPS documentation, "memory partitioning").
_MEMORY_LIMITS_SINCE = "615"
# Sets beyond this are not tried one by one; hosts with so many devices are wholly switched.
_MOST_SETS = 200_000
_WORD = re.compile(r"[0-9a-z]+")


@dataclass(frozen=True)
class _Device:
    """A whole GPU, or a MIG device of one: what a claim can be given."""

    gpu: Gpu
    name: str
    uuid: str | None
    profile: str | None = None
    memory_mib: int | None = None


def conflicts(claim: Claim, host: HostView) -> list[Conflict]:
    """Why ``host`` cannot meet ``claim``; [] when it can, or when its GPUs are not known."""
    if host.gpus is None:
        return []
    devices = _devices(host.gpus)
    if not devices:
        return [Conflict("count", "this host has no GPU that the driver shows", "nvidia-smi -L")]
    missing = _named(claim, devices)
    if missing:
        return missing
    # All means all that fit, and at least one.
    least = 1 if claim.wanted == ALL else claim.wanted
    for key, keeps, said in _filters(claim):
        left = [one for one in devices if keeps(one)]
        if len(left) < least:
            return [_too_few(claim, key, said, least, left, devices)]
        devices = left
    wanted = len(devices) if claim.wanted == ALL else claim.wanted
    return [*_together(claim, devices, wanted, host), *_held(claim, devices, host)]


def level(claim: Claim, host: HostView) -> str | None:
    """How firmly this host would hold the claim's memory; None where nothing is limited.

    ``exclusive`` (alone on the device), ``hard-hw`` (MIG), ``hard-driver`` (the driver's own
    limits), ``soft-mps`` or ``advisory``: the words of docs/claims.md, the firmest first.
    """
    if claim.memory_mib is None:
        return None
    if claim.mig is not None or (claim.devices and all(_is_mig(n) for n in claim.devices)):
        return "hard-hw"
    if claim.exclusive:
        return "exclusive"
    if at_least(host.version("driver"), _MEMORY_LIMITS_SINCE) and host.version("cgroup") == "2":
        return "hard-driver"
    return "soft-mps" if claim.share in ("mps", "any") else "advisory"


# -- which devices there are -------------------------------------------------------------


def _devices(gpus: Sequence[Gpu]) -> list[_Device]:
    """With MIG on, a GPU is its MIG devices: as a whole it cannot be given to anybody."""
    found = []
    for gpu in gpus:
        if not gpu.mig:
            found.append(_Device(gpu, str(gpu.index), gpu.uuid, None, gpu.memory_mib))
        for one in gpu.mig_devices if gpu.mig else ():
            size = re.search(r"(\d+)gb", one.profile)
            memory = int(size.group(1)) * 1024 if size else None
            name = f"{gpu.index}:{one.index}"
            found.append(_Device(gpu, name, one.uuid, one.profile, memory))
    return found


def _named(claim: Claim, devices: Sequence[_Device]) -> list[Conflict]:
    """Named devices that are not there, or as a whole are cut into MIG devices."""
    found = []
    for name in claim.devices:
        if any(_is_it(name, one) for one in devices):
            continue
        cut = [one for one in devices if one.profile and name in (one.gpu.uuid, str(one.gpu.index))]
        if cut and not claim.mig:
            parts = ", ".join(one.name for one in cut)
            said = f"device={name} is cut into MIG devices and cannot be given as a whole"
            found.append(Conflict("device", said, f"name one of them: {parts}"))
        elif not cut:
            there = ", ".join(
                f"{one.name} ({one.uuid})" if one.uuid else one.name for one in devices
            )
            found.append(
                Conflict("device", f"device={name} is not on this host", f"it has {there}")
            )
    return found


def _is_it(name: str, device: _Device) -> bool:
    """A name is an index, a UUID, or the beginning of one, as the driver takes it too."""
    if name[:1].isdigit():
        return name == device.name
    return device.uuid is not None and device.uuid.startswith(name)


Filter = tuple[str, Callable[[_Device], bool], str]


def _filters(claim: Claim) -> list[Filter]:
    """Key, what it lets pass, and the words for what is wanted; in the order of asking."""
    asked: list[Filter] = [("count", lambda d: True, "")]
    if claim.devices:
        names = claim.devices
        asked.append(("device", lambda d: any(_is_it(n, d) or _part(n, d) for n in names), "named"))
    if claim.models:
        words = " or ".join(claim.models)
        asked.append(("model", lambda d: _is_model(claim.models, d.gpu.name), words))
    if claim.mig is not None:
        profile = claim.mig.name
        asked.append(("mig", lambda d: d.profile == profile, f"of profile {profile}"))
    if claim.whole:
        asked.append(("mig", lambda d: d.profile is None, "without MIG"))
    if claim.memory_mib is not None:
        mib = claim.memory_mib
        asked.append(
            ("memory", lambda d: d.memory_mib is None or d.memory_mib >= mib, f"with {mib} MiB")
        )
    if claim.numa not in (None, "single"):
        node = int(str(claim.numa))
        asked.append(("numa", lambda d: d.gpu.numa_node in (None, node), f"on NUMA node {node}"))
    asked.append(("count", lambda d: d.gpu.error is None, "without an error"))
    return asked


def _part(name: str, device: _Device) -> bool:
    """Is the device a MIG device of the GPU that is named?"""
    return device.profile is not None and name in (str(device.gpu.index), device.gpu.uuid)


def _is_model(models: Sequence[str], name: str | None) -> bool:
    """Are the words of one of ``models`` in the GPU's name? Unknown names pass."""
    if name is None:
        return True
    words = _WORD.findall(name.lower())
    return any(_is_within(_WORD.findall(model.lower()), words) for model in models)


def _is_within(wanted: Sequence[str], words: Sequence[str]) -> bool:
    places = range(len(words) - len(wanted) + 1)
    return any(list(words[at : at + len(wanted)]) == list(wanted) for at in places)


def _too_few(
    claim: Claim,
    key: str,
    said: str,
    wanted: int,
    left: Sequence[_Device],
    before: Sequence[_Device],
) -> Conflict:
    noun = "device" if wanted == 1 else "devices"
    have = f"{len(left) or 'none'} of {len(before)}" if said else str(len(before))
    text = f"the claim wants {wanted} {noun}{' ' if said else ''}{said}; this host has {have}"
    if key == "memory" and before:
        most = max(one.memory_mib or 0 for one in before)
        return Conflict(key, f"{text}, the largest has {most} MiB", f"ask for at most {most}m")
    if key == "model":
        names = sorted({one.gpu.name or "?" for one in before})
        return Conflict(key, text, f"it has {', '.join(names)}")
    if key == "mig" and claim.mig is not None:
        have_now = sorted({one.profile or "whole GPUs" for one in before})
        return Conflict(
            key,
            f"{text} ({', '.join(have_now)})",
            f"steadygpu mig plan all-{claim.mig.name} shows what it takes to make them",
        )
    if key == "mig":
        return Conflict(key, text, "leave mig=off out, or switch MIG off: steadygpu mig plan")
    if key == "count" and said:
        sick = [f"GPU {d.gpu.index}: {d.gpu.error}" for d in before if d.gpu.error]
        return Conflict(key, text, "; ".join(sick))
    return Conflict(key, text, "")


# -- what devices are to each other ------------------------------------------------------


def _together(
    claim: Claim, devices: Sequence[_Device], wanted: int, host: HostView
) -> list[Conflict]:
    if wanted < 2 or (claim.link is None and claim.numa != "single"):
        return []
    apart = _levels(host)
    tried = itertools.islice(itertools.combinations(devices, wanted), _MOST_SETS + 1)
    nearest = None
    for number, chosen in enumerate(tried):
        if number == _MOST_SETS:
            return []  # Not proven either way: no alarm.
        node = _on_one_node(chosen) if claim.numa == "single" else True
        near = _farthest(chosen, apart) if claim.link else 0
        if node and (claim.link is None or near is None or near <= LINKS.index(claim.link)):
            return []
        if near is not None and node:
            nearest = near if nearest is None else min(nearest, near)
    found = []
    if claim.link is not None and nearest is not None:
        found.append(
            Conflict(
                "link",
                f"link={claim.link} between {wanted} devices; the nearest {wanted} of this host "
                f"have {LINKS[nearest]} between them",
                f"write link={LINKS[nearest]}, or ask for fewer devices",
            )
        )
    if not found:
        found.append(
            Conflict(
                "numa",
                f"numa=single and {wanted} devices; no NUMA node of this host has so many"
                + (f" with {claim.link} between them" if claim.link else ""),
                "write numa=any, or ask for fewer devices",
            )
        )
    return found


def _on_one_node(chosen: Sequence[_Device]) -> bool:
    return len({one.gpu.numa_node for one in chosen} - {None}) <= 1


def _farthest(chosen: Sequence[_Device], apart: Callable[[Gpu, Gpu], int | None]) -> int | None:
    """The place in LINKS of the worst pair; None where one pair is not known."""
    worst = 0
    for one, other in itertools.combinations(chosen, 2):
        step = apart(one.gpu, other.gpu)
        if step is None:
            return None
        worst = max(worst, step)
    return worst


def _levels(host: HostView) -> Callable[[Gpu, Gpu], int | None]:
    """How far two GPUs are apart, by the matrix of the facts (``NV12``, ``PIX`` …)."""
    gpu = host.facts.get("gpu")
    matrix = gpu.get("links") if isinstance(gpu, dict) else None

    def apart(one: Gpu, other: Gpu) -> int | None:
        if one.index == other.index:
            return LINKS.index("sys")  # Two MIG devices of one GPU do not reach each other.
        try:
            word = str(matrix[one.index][other.index] or "")  # type: ignore[index]
        except (IndexError, KeyError, TypeError):
            return None
        if re.fullmatch(r"NV\d+", word):
            return 0
        return LINKS.index(word.lower()) if word.lower() in LINKS else None

    return apart


def _held(claim: Claim, devices: Sequence[_Device], host: HostView) -> list[Conflict]:
    """A strict claim whose memory limit nothing on this host would enforce."""
    if claim.policy != "strict" or claim.exclusive or claim.memory_mib is None:
        return []
    cut = [one for one in devices if one.profile]
    if host.version("driver") is None or level(claim, host) in ("hard-hw", "hard-driver") or cut:
        return []
    return [
        Conflict(
            "policy",
            f"policy=strict and share={claim.share}: nothing on this host holds a limit of "
            f"{claim.memory_mib} MiB firmly (it would be {level(claim, host)})",
            "take the device alone (leave share out), ask for a MIG profile, or write "
            f"policy=shared; driver {_MEMORY_LIMITS_SINCE} or newer has limits of its own",
        )
    ]


def _is_mig(name: str) -> bool:
    return name.startswith("MIG-") or ":" in name
