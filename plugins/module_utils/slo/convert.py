# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turn scheduler settings of an article into our policy, and say what has no equal. Pure.

Three spellings are known: arguments of a scheduler plugin (``minAvailablePods`` and
``maxLatencyMs``), an ``SLOPolicy`` of ``scheduling.slo/v1``, and its keys with dots
(``slo.latency.p95.ms``). None of them is an API of any release of Docker or Kubernetes. The article
maps a number of pods on a share of time; here each is kept as what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from ..trees.node import Node
from . import values
from .model import QUANTILES, WINDOW_US, Objective, Remark
from .read import Reader, documents, from_node

_POD_WORDS = ("minAvailablePods", "minAvailable", "minReplicas")


@dataclass(frozen=True)
class Given:
    """What the user adds: to whom settings without a target belong, and what they do not say."""

    target: str = ""
    availability: Decimal | None = None
    min_replicas: int | None = None


@dataclass(frozen=True)
class Converted:
    """The objectives, not to be used where a remark is an error, and what became of each key."""

    objectives: tuple[Objective, ...]
    remarks: tuple[Remark, ...]

    def those(self, kind: str) -> list[Remark]:
        """The remarks of one kind."""
        return [one for one in self.remarks if one.kind == kind]

    @property
    def usable(self) -> bool:
        """Is there a policy, and no error?"""
        return bool(self.objectives) and not self.those("error")


@dataclass
class _Draft:
    """What one source says of one target."""

    node: Node
    path: str
    target: str = ""
    availability: Decimal | None = None
    min_replicas: int | None = None
    latency_us: dict[str, int] = field(default_factory=dict)
    window_us: int | None = None


def convert(text: str, given: Given | None = None) -> Converted:
    """Convert every document of a text; settings of one target are put together."""
    given = given or Given()
    nodes, remarks = documents(text)
    if remarks:
        return Converted((), tuple(remarks))
    reader = Reader()
    drafts: list[_Draft] = []
    for number, node in enumerate(nodes):
        path = f"[{number}]" if len(nodes) > 1 else ""
        drafts += list(_document(reader, node, path))
    if not drafts and not reader.remarks:
        reader.remarks.append(Remark("error", "", "the text has no settings of a scheduler"))
    objectives = _together(reader, drafts, given)
    return Converted(tuple(objectives), tuple(reader.remarks))


def _document(reader: Reader, node: Node, path: str) -> Iterator[_Draft]:
    if not node.is_map:
        reader.fault(node, path, "it is no mapping", "wanted is pluginConfig, SLOPolicy, or slo.…")
    elif node.get("objectives") is not None:
        yield from _ours(reader, node, path)
    elif node.get("kind") is not None and _word(node.get("kind")) == "SLOPolicy":
        yield _policy(reader, node, path)
    elif node.get("pluginConfig") is not None or node.get("profiles") is not None:
        yield from _plugins(reader, node, path)
    elif any(key.name == "slo" or key.name.startswith("slo.") for key, _one in node.items()):
        yield _dotted(reader, node, path)
    else:
        said = "it has neither pluginConfig nor kind: SLOPolicy nor keys that begin with slo."
        reader.fault(node, path, said, "nothing of it was converted")


def _ours(reader: Reader, node: Node, path: str) -> Iterator[_Draft]:
    found, remarks = from_node(node)
    reader.remarks += remarks
    for one in found:
        yield _Draft(
            node,
            path,
            one.target,
            one.availability,
            one.min_replicas,
            dict(one.latency_us),
            one.window_us,
        )


# -- the arguments of a plugin --------------------------------------------------------------


def _plugins(reader: Reader, node: Node, path: str) -> Iterator[_Draft]:
    profiles = node.get("profiles")
    for number, profile in enumerate(profiles.elements() if profiles is not None else ()):
        yield from _plugins_of(reader, profile, f"{_under(path, 'profiles')}[{number}]")
    yield from _plugins_of(reader, node, path)


def _plugins_of(reader: Reader, node: Node, path: str) -> Iterator[_Draft]:
    configured = node.get("pluginConfig")
    if configured is None:
        return
    at = _under(path, "pluginConfig")
    listed = configured.elements() if configured.is_list else [configured]
    for number, one in enumerate(listed):
        here = f"{at}[{number}]" if configured.is_list else at
        if one.is_map:
            yield _plugin(reader, one, here)
        else:
            reader.fault(one, here, "a plugin is a mapping with name and args")


def _plugin(reader: Reader, node: Node, path: str) -> _Draft:
    draft = _Draft(node, path)
    name = node.get("name")
    if name is not None:
        said = f"the plugin {_word(name)!r} is code of a scheduler: its settings are kept, not it"
        reader.remark("no_equal", name, f"{path}.name", said)
    for key, one in node.items():
        if key.name not in ("name", "args"):
            _no_equal(reader, key.name, one, f"{path}.{key.name}")
    args = node.get("args")
    if args is None or not args.is_map:
        reader.fault(args or node, f"{path}.args", "the plugin has no args")
        return draft
    for key, one in args.items():
        at = f"{path}.args.{key.name}"
        if key.name in _POD_WORDS:
            _replicas(reader, draft, one, at)
        elif key.name == "maxLatencyMs":
            latency = reader.value(one, at, _milliseconds)
            if latency is not None:
                draft.latency_us["p95"] = latency
                said = (
                    f"kept as latency.p95 {values.duration_text(latency)}, as the article maps it"
                )
                advice = "a maximum has no equal: 5 of 100 answers may be slower"
                reader.remark("changed", one, at, said, advice)
        elif key.name == "target":
            draft.target = _word(one)
        else:
            _no_equal(reader, key.name, one, at)
    return draft


def _replicas(reader: Reader, draft: _Draft, node: Node, path: str) -> None:
    draft.min_replicas = reader.value(node, path, values.count)
    if draft.min_replicas is not None:
        said = f"kept as min_replicas {draft.min_replicas}"
        advice = "the article makes it an availability, but a number of pods is no share of time"
        reader.remark("changed", node, path, said, advice)


def _milliseconds(written: str) -> int:
    return values.duration_us(written, "ms")


# -- SLOPolicy, and its keys with dots ------------------------------------------------------


def _policy(reader: Reader, node: Node, path: str) -> _Draft:
    draft = _Draft(node, path)
    version = node.get("apiVersion")
    if version is not None:
        said = f"no cluster has the kind SLOPolicy of {_word(version)}: it is a file here"
        reader.remark("no_equal", version, _under(path, "apiVersion"), said)
    for key, one in node.items():
        if key.name not in ("apiVersion", "kind", "metadata", "spec"):
            _no_equal(reader, key.name, one, _under(path, key.name))
    spec = node.get("spec")
    if spec is None or not spec.is_map:
        reader.fault(spec or node, _under(path, "spec"), "the policy has no spec")
        return draft
    for key, one in spec.items():
        at = f"{_under(path, 'spec')}.{key.name}"
        if key.name == "target":
            draft.target = _word(one)
            reader.remark("kept", one, at, f"target {draft.target}")
        elif key.name == "window":
            draft.window_us = reader.value(one, at, values.duration_us)
        elif key.name == "availability":
            _availability(reader, draft, one, at)
        elif key.name == "latency":
            for name, latency in reader.latency(one, at).items():
                _latency(reader, draft, one, f"{at}.{name}", name, latency)
        elif key.name in _POD_WORDS:
            _replicas(reader, draft, one, at)
        else:
            _no_equal(reader, key.name, one, at)
    _metadata(reader, draft, node.get("metadata"), _under(path, "metadata"))
    return draft


def _metadata(reader: Reader, draft: _Draft, node: Node | None, path: str) -> None:
    for key, one in node.items() if node is not None else ():
        at = f"{path}.{key.name}"
        if key.name == "name" and not draft.target:
            draft.target = _word(one)
            reader.remark("changed", one, at, f"kept as target {draft.target}")
        elif key.name != "name":
            _no_equal(reader, key.name, one, at)


def _dotted(reader: Reader, node: Node, path: str) -> _Draft:
    draft = _Draft(node, path)
    for name, one in _flat(node, ""):
        at = _under(path, name)
        word, _dot, rest = name[len("slo.") :].partition(".")
        quantile, _dot, unit = rest.rpartition(".")
        if not name.startswith("slo."):
            _no_equal(reader, name, one, at)
        elif word in ("targetAvailability", "availability") and not rest:
            _availability(reader, draft, one, at)
        elif word == "target" and not rest:
            draft.target = _word(one)
        elif word in _POD_WORDS and not rest:
            _replicas(reader, draft, one, at)
        elif word == "latency" and quantile in QUANTILES and unit == "ms":
            found = reader.value(one, at, _milliseconds)
            if found is not None:
                _latency(reader, draft, one, at, quantile, found)
        elif word == "latency" and rest in QUANTILES:
            found = reader.value(one, at, values.duration_us)
            if found is not None:
                _latency(reader, draft, one, at, rest, found)
        else:
            _no_equal(reader, name, one, at)
    return draft


def _flat(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    for key, one in node.items():
        name = f"{path}.{key.name}" if path else key.name
        if one.is_map and one.value:
            yield from _flat(one, name)
        else:
            yield name, one


def _availability(reader: Reader, draft: _Draft, node: Node, path: str) -> None:
    draft.availability = reader.value(node, path, values.ratio)
    if draft.availability is not None:
        said = f"availability {values.ratio_text(draft.availability)}"
        reader.remark("kept", node, path, said)


def _latency(
    reader: Reader, draft: _Draft, node: Node, path: str, quantile: str, latency_us: int
) -> None:
    draft.latency_us[quantile] = latency_us
    said = f"latency.{quantile} {values.duration_text(latency_us)}"
    reader.remark("kept", node, path, said)


# -- putting it together --------------------------------------------------------------------


def _together(reader: Reader, drafts: Sequence[_Draft], given: Given) -> list[Objective]:
    merged: dict[str, _Draft] = {}
    for draft in drafts:
        target = draft.target or given.target
        if not target:
            said = "the settings name no target"
            advice = "say whose they are: --target NAME"
            reader.fault(draft.node, draft.path, said, advice)
            continue
        if not target.isprintable():
            reader.fault(draft.node, draft.path, "the target has control characters")
            continue
        first = merged.get(target)
        if first is None:
            merged[target] = replace(draft, target=target, latency_us=dict(draft.latency_us))
        else:
            _merge(reader, first, draft)
    objectives = []
    for draft in merged.values():
        _complete(reader, draft, given)
        one = Objective(
            draft.target,
            draft.availability,
            draft.min_replicas,
            draft.latency_us,
            draft.window_us or WINDOW_US,
        )
        if one.availability is None and one.min_replicas is None and not one.latency_us:
            reader.fault(draft.node, draft.path, f"nothing is asked for {draft.target}")
        else:
            objectives.append(one)
    return objectives


def _merge(reader: Reader, first: _Draft, other: _Draft) -> None:
    for name in ("availability", "min_replicas", "window_us"):
        here, there = getattr(first, name), getattr(other, name)
        if here is not None and there is not None and here != there:
            _differs(reader, other, first, name)
        setattr(first, name, there if here is None else here)
    for quantile, latency in other.latency_us.items():
        if first.latency_us.setdefault(quantile, latency) != latency:
            _differs(reader, other, first, f"latency.{quantile}")


def _differs(reader: Reader, draft: _Draft, first: _Draft, name: str) -> None:
    said = f"{name} of {first.target} is another than before"
    reader.fault(draft.node, draft.path, said, "remove one of the two")


def _complete(reader: Reader, draft: _Draft, given: Given) -> None:
    """Add what the user says, and ask for what nobody says."""
    if draft.availability is None:
        draft.availability = given.availability
    if draft.min_replicas is None:
        draft.min_replicas = given.min_replicas
    if draft.availability is None:
        known = f"{draft.min_replicas} replicas say" if draft.min_replicas else "a latency says"
        said = f"no availability is named for {draft.target}: {known} nothing of a share of time"
        _needed(reader, draft, said, "add it: --availability 99.95%")
    elif draft.window_us is None:
        days = values.duration_text(WINDOW_US)
        said = f"the availability of {draft.target} has no window; {days} is what is counted over"
        reader.remark("changed", draft.node, draft.path, said)
    if draft.min_replicas is None:
        said = f"no number of replicas is named for {draft.target}: an availability sets none"
        _needed(reader, draft, said, "add what minAvailablePods said: --min-replicas N")


def _needed(reader: Reader, draft: _Draft, said: str, advice: str) -> None:
    reader.remark("needed", draft.node, draft.path, said, advice)


def _no_equal(reader: Reader, name: str, node: Node, path: str) -> None:
    reader.remark("no_equal", node, path, f"{name} has no equal here and was left out")


def _under(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _word(node: Any) -> str:
    return node.words().strip() if isinstance(node, Node) else ""
