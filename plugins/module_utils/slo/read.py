# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read our own policy of service level objectives, with all its faults at once. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..trees import json_tree, yaml_tree
from ..trees.node import Key, Node, TreeError
from . import values
from .model import QUANTILES, VERSION, WINDOW_US, Objective, Remark

_TOP = ("version", "objectives")
_OBJECTIVE = ("target", "availability", "min_replicas", "latency", "window")
_Value = TypeVar("_Value")


def documents(text: str) -> tuple[list[Node], list[Remark]]:
    """The YAML or JSON documents of a text that hold something, and why there are none."""
    try:
        if text.lstrip()[:1] in ("{", "["):
            return [json_tree.parse(text)], []
        return [one for one in yaml_tree.parse_all(text) if one.value is not None], []
    except TreeError as error:
        return [], [Remark("error", "", error.said, "", error.line, error.column)]


def from_text(text: str) -> tuple[tuple[Objective, ...], list[Remark]]:
    """The objectives of a policy and its faults; with a fault the objectives are not to be used."""
    found, remarks = documents(text)
    if remarks:
        return (), remarks
    if len(found) != 1:
        said = f"the text has {len(found)} documents, wanted is one policy"
        return (), [Remark("error", "", said)]
    return from_node(found[0])


def from_node(root: Node) -> tuple[tuple[Objective, ...], list[Remark]]:
    """The same for a document that was read already."""
    reader = Reader()
    if not root.is_map:
        reader.fault(root, "", "a policy is a mapping", "with version and objectives")
        return (), reader.remarks
    reader.known(root, "", _TOP)
    version = root.get("version")
    if version is None or isinstance(version.value, bool) or version.value != VERSION:
        seen = "missing" if version is None else version.words() or "no number"
        reader.fault(version or root, "version", f"the version is {seen}", f"write {VERSION}")
    listed = root.get("objectives")
    if listed is None or not listed.is_list:
        reader.fault(listed or root, "objectives", "there is no list of objectives")
        return (), reader.remarks
    objectives: dict[str, Objective] = {}
    for number, node in enumerate(listed.elements()):
        path = f"objectives[{number}]"
        one = _objective(reader, node, path)
        if one is not None and one.target in objectives:
            reader.fault(node, path, f"the target {one.target!r} was named before")
        elif one is not None:
            objectives[one.target] = one
    return tuple(objectives.values()), reader.remarks


def _objective(reader: Reader, node: Node, path: str) -> Objective | None:
    if not node.is_map:
        reader.fault(node, path, "an objective is a mapping", f"with {', '.join(_OBJECTIVE)}")
        return None
    reader.known(node, path, _OBJECTIVE)
    target = node.get("target")
    if target is None or not isinstance(target.value, str) or not target.value.strip():
        reader.fault(target or node, f"{path}.target", "it names no target")
        return None
    if not target.value.isprintable():
        reader.fault(target, f"{path}.target", "the target has control characters")
        return None
    latency = reader.latency(node.get("latency"), f"{path}.latency")
    found = Objective(
        target.value,
        reader.value(node.get("availability"), f"{path}.availability", values.ratio),
        reader.value(node.get("min_replicas"), f"{path}.min_replicas", values.count),
        latency,
        reader.value(node.get("window"), f"{path}.window", values.duration_us) or WINDOW_US,
    )
    if found.availability is None and found.min_replicas is None and not latency:
        reader.fault(node, path, "it asks for nothing", "write availability, min_replicas, latency")
    return found


class Reader:
    """Collects what is wrong in the nodes that it reads."""

    def __init__(self) -> None:
        self.remarks: list[Remark] = []

    def fault(self, at: Node | Key, path: str, said: str, advice: str = "") -> None:
        """An error at a place."""
        self.remark("error", at, path, said, advice)

    def remark(self, kind: str, at: Node | Key, path: str, said: str, advice: str = "") -> None:
        """Anything else."""
        self.remarks.append(Remark(kind, path, said, advice, at.line, at.column))

    def known(self, node: Node, path: str, known: Sequence[str]) -> None:
        """A fault for every key that is not among ``known``."""
        for key, _value in node.items():
            if key.name not in known:
                near = difflib.get_close_matches(key.name, known, n=1)
                advice = f"is it {near[0]}?" if near else f"known are {', '.join(known)}"
                self.fault(key, path, f"there is no key {key.name!r} here", advice)

    def value(self, node: Node | None, path: str, read: Callable[[str], _Value]) -> _Value | None:
        """A scalar as ``read`` understands it; None, with a fault, where it does not."""
        if node is None or node.value is None:
            return None
        if isinstance(node.value, bool) or node.is_map or node.is_list:
            self.fault(node, path, "it is neither a text nor a number")
            return None
        try:
            return read(node.words())
        except values.ValueFaultError as error:
            self.fault(node, path, error.said, error.advice)
            return None

    def latency(self, node: Node | None, path: str) -> dict[str, int]:
        """The latencies by quantile."""
        found: dict[str, int] = {}
        if node is None or node.value is None:
            return found
        if not node.is_map:
            self.fault(node, path, "latency is a mapping", "such as {p95: 200ms}")
            return found
        self.known(node, path, QUANTILES)
        for name in QUANTILES:
            given = self.value(node.get(name), f"{path}.{name}", values.duration_us)
            if given is not None:
                found[name] = given
        ordered: list[Any] = [found[name] for name in QUANTILES if name in found]
        if ordered != sorted(ordered):
            self.fault(node, path, "a higher quantile is to be faster than a lower one")
        return found
