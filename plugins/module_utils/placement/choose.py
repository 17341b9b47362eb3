# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decision: which devices of a host a request gets. Pure.

In this order, and each only among those that are equal in all before it: no doubtful device, in a
set none that lost NVLinks, the wished tier, with policy numa the fewest NUMA nodes, the best links,
the best score, the most left for others, the lowest numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..claims.model import LINKS
from . import filters, parts, score, weights
from .fabric import Fabric, mask_of, members_of, of_host
from .left import Left
from .model import ALL, NUMA, Decision, Device, Host, Request, Verdict


@dataclass(frozen=True)
class Question:
    """A request as it is put to the whole GPUs of a host: sets are bits, in the host's order.

    ``pool`` may be asked; ``doubtful`` and ``weak`` are of it. ``steps`` is each one's score.
    """

    host: Host
    request: Request
    fabric: Fabric
    pool: int
    size: int
    excluded: tuple[tuple[Device, str], ...]
    doubtful: int
    weak: int
    steps: tuple[int, ...]
    left: Left

    @property
    def step(self) -> int | None:
        """The tier that is asked for; one device has no links."""
        if self.request.tier is None or self.size < 2:
            return None
        return LINKS.index(self.request.tier)

    def verdict(self, mask: int) -> Verdict:
        """How good a set is."""
        places = members_of(mask)
        nodes = [self.fabric.nodes[i] for i in places]
        return Verdict(
            doubtful=-_count(mask & self.doubtful),
            weak=-_count(mask & self.weak),
            near=self.step is None or self.fabric.all_near(mask, self.step),
            nodes=-max(1, len(set(nodes) - {None})) if self.request.policy == NUMA else 0,
            links=self.fabric.worth(mask) / weights.HALVES,
            score=score.set_steps([self.steps[i] for i in places], nodes, self.request),
            left=self.left.after(mask),
        )


def place(host: Host, request: Request, fabric: Fabric | None = None) -> Decision:
    """The best devices for the request, or why there are none.

    ``fabric`` is that of this host, where it was made before. Raises PlacementError.
    """
    unknown = _unknown(host, request)
    if unknown:
        return Decision(reason=unknown)
    if parts.wanted(host, request):
        return parts.place(host, request)
    found = ask(host, request, fabric)
    answer = _answer(found)
    if answer.chosen or not parts.instead(host, request):
        return answer
    other = parts.place(host, request)
    return other if other.chosen else answer


def ask(host: Host, request: Request, fabric: Fabric | None = None) -> Question:
    """The question that ``place`` answers and ``explain`` goes through."""
    fabric = fabric or of_host(host)
    pool, doubtful, weak, free = 0, 0, 0, 0
    excluded = []
    for bit, gpu in enumerate(host.gpus):
        device = gpu.device
        if not gpu.mig and not device.faults and not device.foreign and not device.tenants:
            free |= 1 << bit
        if request.devices and not any(filters.is_named(n, device) for n in request.devices):
            excluded.append((device, "is not one of those that the claim names"))
            continue
        reason = "is cut into MIG devices" if gpu.mig else filters.reason_against(device, request)
        if reason:
            excluded.append((device, reason))
            continue
        pool |= 1 << bit
        doubtful |= bool(device.doubts) << bit
        weak |= (device.weak is not None) << bit
    size = _count(pool) if request.count == ALL else request.count
    return Question(
        host,
        request,
        fabric,
        pool,
        size,
        tuple(excluded),
        doubtful,
        weak if size > 1 else 0,
        tuple(score.steps(gpu.device, request) for gpu in host.gpus),
        # Whoever comes next will not want one without NVLinks in a set either.
        Left(fabric, free & ~weak, request, *_thousandths(host, request)),
    )


def _thousandths(host: Host, request: Request) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How much of each GPU's memory is free, and what a shared request takes of it."""
    if not request.shared or not request.memory_mib:
        return (), ()
    free, ask = [], []
    for gpu in host.gpus:
        device = gpu.device
        usable = device.usable_mib or 0
        closed = gpu.mig or device.faults or device.foreign or not usable
        free.append(0 if closed else max(0, 1000 * (usable - device.taken_mib) // usable))
        ask.append(1000 * request.memory_mib // usable if usable else 0)
    return tuple(free), tuple(ask)


def best(question: Question) -> tuple[int, bool]:
    """The best set, 0 where none will do, and whether that is proven."""
    if not question.size or _count(question.pool) < question.size:
        return 0, True
    if question.request.numa == "single":
        answers = [_best_in(question, pool) for pool in _nodes(question, 1)]
    elif question.request.policy == NUMA:
        answers = _fewest_nodes(question)
    else:
        answers = [_best_in(question, question.pool)]
    sets = [mask for mask, _proven in answers if mask]
    proven = all(exact for _mask, exact in answers)
    if len(sets) < 2:
        return (sets[0] if sets else 0), proven
    return max(sets, key=lambda mask: (*question.verdict(mask).order(), *lowest(mask))), proven


def lowest(mask: int) -> tuple[int, ...]:
    """A key by which the set with the lower numbers is the greater."""
    return tuple(-place for place in members_of(mask))


def _best_in(question: Question, pool: int) -> tuple[int, bool]:
    if _count(pool) < question.size:
        return 0, True
    masks, proven = _best_links(question, pool)
    return (_best_of(question, masks) if masks else 0), proven


def _best_links(question: Question, pool: int) -> tuple[Sequence[int], bool]:
    """The sets that are equal up to and with their links."""
    fabric, size, step = question.fabric, question.size, question.step
    rank = _rank(question)
    within, required = _healthiest(question, pool)
    found = fabric.best(within, size, required, step, rank)
    if found.masks or step is None:
        return found.masks, found.exact
    if not question.request.strict:
        found = fabric.best(within, size, required, None, rank)
        return found.masks, found.exact
    return _strictly(question, pool, step)


def _rank(question: Question) -> list[int]:
    """The order in which GPUs with alike links are taken: the score, then what one alone leaves."""
    places = range(question.fabric.size)
    order = sorted(places, key=lambda i: (-question.steps[i], -question.left.unlost(1 << i), i))
    rank = [0] * len(order)
    for number, place in enumerate(order):
        rank[place] = number
    return rank


def _strictly(question: Question, pool: int, step: int) -> tuple[Sequence[int], bool]:
    """A tier that must be reached, where it takes a device that had better be left out."""
    fabric = question.fabric
    if fabric.table is None:
        found = fabric.best(pool, question.size, 0, step)
        return found.masks, found.exact
    sets = [
        mask for mask in fabric.table.all_of(pool, question.size) if fabric.all_near(mask, step)
    ]

    def key(mask: int) -> tuple[int, int, int]:
        doubtful, weak = _count(mask & question.doubtful), _count(mask & question.weak)
        return doubtful, weak, -fabric.worth(mask)

    least = min(map(key, sets), default=None)
    return [mask for mask in sets if key(mask) == least], True


def _healthiest(question: Question, pool: int) -> tuple[int, int]:
    """The pool without what can be avoided, and what of it must be in the set.

    Sound devices first; where they do not suffice all of them are in the set, and so on.
    """
    doubtful, weak = question.doubtful & pool, question.weak & pool
    within = required = 0
    for group in (
        pool & ~doubtful & ~weak,
        weak & ~doubtful,
        doubtful & ~weak,
        doubtful & weak,
    ):
        required, within = within, within | group
        if _count(within) >= question.size:
            break
    return within, required


def _best_of(question: Question, masks: Sequence[int]) -> int:
    """Among sets of equal links: the score, then what is left, then the lowest numbers."""
    if len(masks) == 1:
        return masks[0]
    steps, nodes, request = question.steps, question.fabric.nodes, question.request
    kept: list[int] = []
    most = -1.0
    for mask in masks:
        places = members_of(mask)
        value = score.set_steps([steps[i] for i in places], [nodes[i] for i in places], request)
        if value > most:
            kept, most = [], value
        if value == most:
            kept.append(mask)
    if len(kept) == 1:
        return kept[0]
    kept = question.left.shortlist(kept)
    return max(kept, key=lambda mask: (*question.left.after(mask), *lowest(mask)))


def _fewest_nodes(question: Question) -> list[tuple[int, bool]]:
    """Policy numa: the smallest number of nodes on which the set is as sound and as near."""
    anywhere, proven = _best_in(question, question.pool)
    if not anywhere:
        return [(0, proven)]
    wanted = question.verdict(anywhere).order()[:3]
    known = {node for node in question.fabric.nodes if node is not None}
    for many in range(1, len(known)):
        answers = [_best_in(question, pool) for pool in _nodes(question, many)]
        equal = [
            (mask, exact)
            for mask, exact in answers
            if mask and question.verdict(mask).order()[:3] == wanted
        ]
        if equal:
            return equal
    return [(anywhere, proven)]


def _nodes(question: Question, many: int) -> Iterator[int]:
    """What of the pool lies on each ``many`` nodes; where the node is hidden, on any."""
    nodes = question.fabric.nodes
    inside = members_of(question.pool)
    known = sorted({node for i in inside for node in [nodes[i]] if node is not None})
    if not known:
        yield question.pool
    for chosen in combinations(known, min(many, len(known))):
        yield mask_of(i for i in inside if nodes[i] is None or nodes[i] in chosen)


def _answer(question: Question) -> Decision:
    chosen, proven = best(question)
    if not chosen:
        return Decision(reason=_refusal(question), excluded=question.excluded, exact=proven)
    devices = tuple(question.host.gpus[i].device for i in members_of(chosen))
    farthest = question.fabric.farthest(chosen)
    return Decision(
        chosen=devices,
        links=question.fabric.worth(chosen) / weights.HALVES,
        farthest=farthest,
        score=score.terms(devices, question.request)["score"],
        notes=tuple(_notes(question, chosen, farthest)),
        excluded=question.excluded,
        exact=proven,
    )


def _notes(question: Question, chosen: int, farthest: str | None) -> Iterable[str]:
    for i in members_of(chosen):
        device = question.host.gpus[i].device
        if device.doubts:
            yield f"{device.name} is taken for want of a better one: {device.doubts[0]}"
        if question.weak >> i & 1:
            yield f"it cannot be done without {device.name}: {device.weak}"
    for i in members_of(question.pool & ~chosen & question.weak):
        yield f"left out: {question.host.gpus[i].device.weak}"
    for i in members_of(question.pool & ~chosen & question.doubtful):
        device = question.host.gpus[i].device
        yield f"left out: {device.name}, {device.doubts[0]}"
    step = question.step
    if step is not None and not question.fabric.all_near(chosen, step):
        yield (
            f"link={question.request.tier} is not to be had now, the farthest two are "
            f"{farthest or 'of unknown distance'}; policy=strict would refuse this"
        )


def _refusal(question: Question) -> str:
    size, pool = question.size, _count(question.pool)
    request = question.request
    if pool < max(1, size):
        have = f"{pool} of {len(question.host.gpus)} GPUs will do now" if pool else "no GPU will do"
        reasons = filters.together((device.name, why) for device, why in question.excluded)
        wanted = size if request.count != ALL else "all that fit"
        return f"wanted {wanted}, {have}" + (f": {reasons}" if reasons else "")
    eased = replace(question, request=replace(request, strict=False, tier=None))
    nearest, _proven = best(eased)
    if nearest:
        word = question.fabric.farthest(nearest) or "an unknown distance"
        return (
            f"link={request.tier} with policy=strict: no {size} free GPUs are so near to each "
            f"other; the best {size} have {word} between the farthest two. Wait, ask for "
            "fewer, or write policy=shared"
        )
    return (
        f"numa=single: no NUMA node has {size} GPUs that will do now; wait, ask for fewer, or "
        "write numa=any"
    )


def _unknown(host: Host, request: Request) -> str:
    """Names that no device of the host has."""
    if not host.gpus:
        return "this host has no GPU"
    everything = [
        (device, parent)
        for gpu in host.gpus
        for device, parent in ((gpu.device, None), *((part, gpu.device) for part in gpu.parts))
    ]
    missing = [
        name
        for name in request.devices
        if not any(filters.is_named(name, device, parent) for device, parent in everything)
    ]
    if not missing:
        return ""
    there = ", ".join(device.name for device, _parent in everything)
    return f"device={','.join(missing)} is not on this host; it has {there}"


def _count(mask: int) -> int:
    return bin(mask).count("1")
