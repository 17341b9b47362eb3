# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why these devices and no others: every candidate with its scores, and what it lost by. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from . import choose, parts, score
from .choose import Question
from .fabric import Fabric, members_of
from .model import Decision, Device, Host, Request, Verdict

# So many sets are judged one by one; 16 GPUs have 12,870 sets of eight.
_MOST = 1000
_STAGES = ("doubtful", "weak", "near", "nodes", "links", "score", "left")
# So many of those that lost are shown to a person.
_SHOWN = 8
# So many that lost by the same are shown while there are others.
_ALIKE = 3


@dataclass(frozen=True)
class Candidate:
    """One set that could be taken. ``lost`` is why it was not, "" for the one that was.

    ``behind`` is the first thing in which it is: a field of Verdict, or ``index``.
    """

    devices: tuple[str, ...]
    verdict: Verdict
    terms: Mapping[str, float]
    farthest: str | None
    lost: str = ""
    behind: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        return {
            "devices": list(self.devices),
            "links": self.verdict.links,
            "farthest": self.farthest,
            **self.terms,
            "left": list(self.verdict.left),
            "lost": self.lost,
            "behind": self.behind,
        }


@dataclass(frozen=True)
class Explanation:
    """The decision and what was weighed for it; ``unseen`` further sets were not judged."""

    request: Request
    decision: Decision
    candidates: tuple[Candidate, ...] = ()
    unseen: int = 0

    def as_dict(self) -> dict[str, Any]:
        """As JSON types."""
        decision = self.decision
        return {
            "chosen": [_device(one) for one in decision.chosen],
            "reason": decision.reason,
            "links": decision.links,
            "farthest": decision.farthest,
            "score": decision.score,
            "exact": decision.exact,
            "notes": list(decision.notes),
            "reshapes": [
                {
                    "gpu": one.gpu.index,
                    "profile": one.profile,
                    "steps": [step.text for step in one.plan.steps],
                }
                for one in decision.reshapes
            ],
            "excluded": [
                {"device": device.name, "uuid": device.uuid, "reason": why}
                for device, why in decision.excluded
            ],
            "candidates": [one.as_dict() for one in self.candidates],
            "unseen": self.unseen,
        }


def explain(host: Host, request: Request, fabric: Fabric | None = None) -> Explanation:
    """The decision of ``choose.place`` with everything that was weighed. Raises PlacementError."""
    decision = choose.place(host, request, fabric)
    if decision.reshapes or parts.wanted(host, request):
        return Explanation(request, decision)
    if any(device.profile for device in decision.chosen):
        return Explanation(request, decision)
    question = choose.ask(host, request, fabric)
    names = tuple(device.name for device in decision.chosen)
    sets = _allowed(question)
    judged = list(islice(sets, _MOST))
    unseen = sum(1 for _more in sets)
    candidates = sorted(
        (_candidate(question, mask) for mask in judged),
        key=lambda pair: (pair[1].devices != names, *_descending(pair[1].verdict), pair[0]),
    )
    if not candidates or candidates[0][1].devices != names:
        return Explanation(request, decision, unseen=unseen)
    winner = candidates[0][1]
    told = [winner]
    for _mask, one in candidates[1:]:
        told.append(replace(one, lost=_lost(question, one, winner), behind=_behind(one, winner)))
    return Explanation(request, decision, tuple(told), unseen)


def text(told: Explanation) -> str:
    """The answer as a colleague would give it. Ends with a newline."""
    return "\n".join(_lines(told)) + "\n"


def answer(told: Explanation) -> str:
    """Only what is taken, or why nothing is. Ends with a newline."""
    return "\n".join(_answer(told)) + "\n"


def _lines(told: Explanation) -> Iterator[str]:
    yield from _answer(told)
    decision = told.decision
    if decision.excluded and (decision.chosen or decision.reshapes):
        yield ""
        yield "Not asked:"
        for device, why in decision.excluded:
            yield f"  {device.name}: {why}"
    others = told.candidates[1:]
    if others:
        yield ""
        yield from _table(told, others)


def _answer(told: Explanation) -> Iterator[str]:
    decision, request = told.decision, told.request
    if decision.chosen or decision.reshapes:
        names = [_named(one) for one in decision.chosen]
        yield "Take " + _and([*names, *(f"a new {one.profile}" for one in decision.reshapes)]) + "."
        yield from (f"  {line}" for line in _about(decision, request))
    else:
        yield f"No: {decision.reason}."
    for note in decision.notes:
        yield f"  Note: {note}."


def _about(decision: Decision, request: Request) -> Iterator[str]:
    if decision.farthest:
        yield (
            f"The farthest two have {decision.farthest} between them; all links together are worth "
            f"{decision.links:g}."
        )
    nodes = sorted({one.numa_node for one in decision.chosen if one.numa_node is not None})
    if nodes:
        many = "node" if len(nodes) == 1 else "nodes"
        yield f"NUMA {many} {', '.join(map(str, nodes))}."
    if decision.score is not None:
        weights = request.weights
        terms = score.terms(decision.chosen, request)
        yield (
            f"Score {decision.score:.2f} = {weights.memory:g} × memory {terms['memory']:.2f} + "
            f"{weights.compute:g} × compute {terms['compute']:.2f} + {weights.numa:g} × NUMA "
            f"{terms['numa']:.2f}."
        )
    if not decision.exact:
        yield "The host is too large and irregular to prove that nothing is better."


def _table(told: Explanation, others: tuple[Candidate, ...]) -> Iterator[str]:
    many = len(told.candidates) + told.unseen
    yield f"Best of {many} sets. Some that lost:"
    shown = [told.candidates[0], *_telling(others)]
    width = max(len(_numbers(one.devices)) for one in shown)
    yield f"  {'GPUs':{width}}  links  score  why not"
    for one in shown:
        yield (
            f"  {_numbers(one.devices):{width}}  {one.verdict.links:5g}  {one.terms['score']:5.2f}"
            f"  {one.lost or 'chosen'}"
        )
    left = many - len(shown)
    if left > 0:
        yield f"  … and {left} more, none of them better (--explain --json lists them)"


def _telling(others: tuple[Candidate, ...]) -> list[Candidate]:
    """The best of those that lost, a few of each reason, in their order."""
    seen: Counter[str] = Counter()
    told = []
    for one in others:
        seen[one.behind] += 1
        if seen[one.behind] <= _ALIKE:
            told.append(one)
    return told[:_SHOWN]


def _candidate(question: Question, mask: int) -> tuple[tuple[int, ...], Candidate]:
    places = members_of(mask)
    devices = [question.host.gpus[i].device for i in places]
    return tuple(places), Candidate(
        tuple(device.name for device in devices),
        question.verdict(mask),
        score.terms(devices, question.request),
        question.fabric.farthest(mask),
    )


def _allowed(question: Question) -> Iterator[int]:
    """Every set that meets what is a must."""
    request = question.request
    if not 0 < question.size <= len(members_of(question.pool)):
        return
    for mask in question.fabric.candidates(question.pool, question.size):
        step = question.step if request.strict else None
        if step is not None and not question.fabric.all_near(mask, step):
            continue
        if request.numa == "single":
            nodes = {question.fabric.nodes[i] for i in members_of(mask)} - {None}
            if len(nodes) > 1:
                continue
        yield mask


def _behind(one: Candidate, winner: Candidate) -> str:
    mine, best = one.verdict, winner.verdict
    for name in _STAGES:
        if getattr(mine, name) < getattr(best, name):
            return name
    return "index"


def _lost(question: Question, one: Candidate, winner: Candidate) -> str:
    """The first thing in which a set is behind, in words."""
    mine, best = one.verdict, winner.verdict
    stage = _behind(one, winner)
    if stage == "doubtful":
        return _because(question, one, winner, lambda device: (device.doubts or ("",))[0])
    if stage == "weak":
        return _because(question, one, winner, lambda device: (device.weak or "").partition(":")[0])
    if stage == "near":
        return f"{one.farthest or 'an unknown distance'} is farther than {question.request.tier}"
    if stage == "nodes":
        return f"{-mine.nodes} NUMA nodes instead of {-best.nodes}"
    if stage == "links":
        return f"links {mine.links:g} instead of {best.links:g}" + _farther(one, winner)
    if stage == "score":
        return f"fits worse: {_worse_terms(one, winner)}"
    if stage == "left":
        return "equal now, and leaves less for others: " + _leaves(question, mine, best)
    return "equal in everything; the lower numbers are taken"


def _because(
    question: Question, one: Candidate, winner: Candidate, of: Callable[[Device], str]
) -> str:
    for gpu in question.host.gpus:
        name = gpu.device.name
        if name in one.devices and name not in winner.devices and of(gpu.device):
            said = str(of(gpu.device))
            return said if said.startswith(name) else f"{name}: {said}"
    return "has more devices that had better be left out"


def _farther(one: Candidate, winner: Candidate) -> str:
    if one.farthest == winner.farthest or one.farthest is None:
        return ""
    return f" ({one.farthest} between the farthest two)"


def _worse_terms(one: Candidate, winner: Candidate) -> str:
    worse = [
        f"{key} {one.terms[key]:.2f} instead of {winner.terms[key]:.2f}"
        for key in ("memory", "compute", "numa")
        if one.terms[key] < winner.terms[key]
    ]
    return ", ".join(worse) or f"score {one.terms['score']:.2f}"


def _leaves(question: Question, mine: Verdict, best: Verdict) -> str:
    words = question.left.words
    for word, here, there in zip(words, mine.left, best.left):
        if here < there:
            return f"{word} {here:g} instead of {there:g}"
    return "less"


def _descending(verdict: Verdict) -> tuple[Any, ...]:
    return (
        -verdict.doubtful,
        -verdict.weak,
        not verdict.near,
        -verdict.nodes,
        -verdict.links,
        -verdict.score,
        tuple(-value for value in verdict.left),
    )


def _device(device: Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "uuid": device.uuid,
        "model": device.model,
        "profile": device.profile,
        "numa_node": device.numa_node,
    }


def _named(device: Device) -> str:
    details = [one for one in (device.profile, device.uuid) if one]
    return f"{device.name} ({', '.join(details)})" if details else device.name


def _numbers(names: tuple[str, ...]) -> str:
    return ",".join(name[3:] if name.startswith("GPU") else name for name in names)


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
