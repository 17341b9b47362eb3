# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a routing policy from JSON, YAML or plain values, with all its faults at once. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..trees import json_tree, yaml_tree
from ..trees.node import Key, Node, TreeError
from . import images
from .model import (
    PROJECT_LABEL,
    SERVICE_LABEL,
    VERSION,
    Condition,
    Fault,
    Level,
    Policy,
    Route,
)

_TOP = ("version", "routes", "default")
_ROUTE = ("name", "match", "runtime")
_MATCH = ("image", "label", "user", "project", "service", "name")
_LABELS = {"project": PROJECT_LABEL, "service": SERVICE_LABEL}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_USER = re.compile(r"\d{1,10}|[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?")
_LONGEST = 512
MOST_ROUTES = 500


def from_text(text: str, as_json: bool | None = None) -> tuple[Policy | None, list[Fault]]:
    """The policy in a text and its faults; None where an error forbids its use.

    ``as_json``: None means that a text which begins with a brace is JSON, and YAML otherwise.
    """
    if as_json is None:
        as_json = text.lstrip()[:1] == "{"
    try:
        if as_json:
            root = json_tree.parse(text)
        else:
            documents = yaml_tree.parse_all(text)
            if len(documents) != 1:
                said = f"the text has {len(documents)} documents, wanted is one policy"
                return None, [Fault(Level.ERROR, "", said)]
            root = documents[0]
    except TreeError as error:
        return None, [Fault(Level.ERROR, "", error.said, "", error.line, error.column)]
    return _Reader().policy(root)


def from_value(value: Any) -> tuple[Policy | None, list[Fault]]:
    """The same for plain values, such as variables of a play; its faults have no line."""
    policy, faults = from_text(json.dumps(value), True)
    return policy, [Fault(one.level, one.path, one.said, one.advice) for one in faults]


class _Reader:
    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def policy(self, root: Node) -> tuple[Policy | None, list[Fault]]:
        if not root.is_map:
            self._fault(root, "", "a policy is a mapping with routes", "write routes: [...]")
            return None, self.faults
        self._known(root, "", _TOP)
        version = root.get("version")
        if version is not None and (isinstance(version.value, bool) or version.value != VERSION):
            said = f"the version is {version.words() or 'no number'}"
            self._fault(version, "version", said, f"this release knows version {VERSION}")
        routes = tuple(self._routes(root.get("routes"), root))
        default = self._runtime(root.get("default"), "default")
        self._twice(routes)
        wrong = any(one.level is Level.ERROR for one in self.faults)
        return (None if wrong else Policy(routes, default or None)), self.faults

    def _routes(self, node: Node | None, root: Node) -> Iterator[Route]:
        if node is None:
            self._fault(root, "", "the policy has no routes", "write routes: [], if none is meant")
            return
        if not node.is_list:
            self._fault(node, "routes", "routes is no list", "each route begins with a dash")
            return
        if len(node.elements()) > MOST_ROUTES:
            said = f"{len(node.elements())} routes"
            self._fault(node, "routes", said, f"wanted are at most {MOST_ROUTES}")
            return
        for number, one in enumerate(node.elements()):
            route = self._route(number, one)
            if route is not None:
                yield route

    def _route(self, number: int, node: Node) -> Route | None:
        path = f"routes[{number}]"
        if not node.is_map:
            self._fault(node, path, "a route is a mapping", "with match and runtime")
            return None
        self._known(node, path, _ROUTE)
        name_node = node.get("name")
        name = name_node.value if name_node is not None else ""
        if not isinstance(name, str) or len(name) > _LONGEST:
            self._fault(name_node or node, f"{path}.name", "the name is no short text")
            name = ""
        runtime = self._runtime(node.get("runtime"), f"{path}.runtime")
        if not runtime and node.get("runtime") is None:
            self._fault(node, path, "the route names no runtime", "write runtime: NAME")
        conditions = tuple(self._match(node.get("match"), f"{path}.match", node))
        return Route(runtime, conditions, name, number, node.line, node.column)

    def _runtime(self, node: Node | None, path: str) -> str:
        if node is None or node.value is None:
            return ""
        if isinstance(node.value, str) and _NAME.fullmatch(node.value):
            return node.value
        said = f"{_shown(node)} is no name of a runtime"
        self._fault(node, path, said, "wanted is a name from docker info, such as runc")
        return ""

    def _match(self, node: Node | None, path: str, route: Node) -> Iterator[Condition]:
        if node is None or not node.is_map or not node.value:
            what = "nothing" if node is None or not node.value else _shown(node)
            advice = f"wanted is a mapping with at least one of {', '.join(_MATCH)}; what no route "
            advice += "matches is for the key default"
            self._fault(node or route, path, f"match has {what}", advice)
            return
        self._known(node, path, _MATCH)
        labels = node.get("label")
        for key, one in node.items():
            at = f"{path}.{key.name}"
            if labels is not None and labels.get(_LABELS.get(key.name, "")) is not None:
                advice = f"it means the label {_LABELS[key.name]}; keep one of the two"
                self._fault(key, at, f"{key.name} is there twice", advice)
                continue
            if key.name == "label":
                yield from self._labels(one, at)
            elif key.name in _MATCH:
                condition = self._condition(key.name, one, at)
                if condition is not None:
                    yield condition

    def _labels(self, node: Node, path: str) -> Iterator[Condition]:
        if not node.is_map or not node.value:
            said = f"label is {_shown(node)}"
            self._fault(node, path, said, 'wanted are names with values: {tier: "gpu-*"}')
            return
        for key, one in node.items():
            if one.value is None:
                one = Node("*", one.line, one.column, "*")
            found = self._texts(one, f"{path}.{key.name}")
            if found:
                yield _made(f"label:{key.name}", found, found, f"{path}.{key.name}", one)

    def _condition(self, key: str, node: Node, path: str) -> Condition | None:
        found = self._texts(node, path, key)
        if not found:
            return None
        if key in _LABELS:
            return _made(f"label:{_LABELS[key]}", found, found, path, node)
        if key == "image":
            patterns = tuple(full for one in found for full in images.full_patterns(one))
            return _made("image", patterns, found, path, node)
        if key == "user":
            wrong = [one for one in found if not _USER.fullmatch(one)]
            if wrong:
                advice = "wanted is a uid or a name as docker run --user has it, without a group"
                self._fault(node, path, f"{wrong[0]!r} is no user", advice)
                return None
            return _made("user", tuple(user(one) for one in found), found, path, node)
        return _made(key, found, found, path, node)

    def _texts(self, node: Node, path: str, key: str = "") -> tuple[str, ...]:
        """One text or several; () with a fault for anything else."""
        found = []
        for one in node.elements() if node.is_list else [node]:
            text = one.words()
            if not text or isinstance(one.value, (bool, float)):
                advice = "wanted is a text or a list of texts; quote what looks like something else"
                self._fault(one, path, f"{_shown(one)} is no text", advice)
            elif len(text) > _LONGEST or not text.isprintable():
                said = "a pattern that is too long or has control characters"
                self._fault(one, path, said, f"wanted are at most {_LONGEST} characters")
            elif key == "image" and re.search(r"[?\[\]{}\s]", text):
                advice = "the one special character is *, any run of characters"
                self._fault(one, path, f"{text!r} is no pattern of an image", advice)
            else:
                found.append(text)
        if node.is_list and not node.value:
            self._fault(node, path, "the list is empty", "leave the key out, or name something")
        return tuple(dict.fromkeys(found))

    def _twice(self, routes: Sequence[Route]) -> None:
        names: dict[str, Route] = {}
        for route in routes:
            first = names.setdefault(route.name, route)
            if route.name and first is not route:
                said = f"the name {route.name!r} is that of {first.path} too"
                self.faults.append(
                    Fault(Level.ERROR, route.path, said, "", route.line, route.column)
                )

    def _known(self, node: Node, path: str, known: Sequence[str]) -> None:
        for key, _value in node.items():
            if key.name not in known:
                near = difflib.get_close_matches(key.name, known, n=1)
                advice = f"is it {near[0]}?" if near else f"known are {', '.join(known)}"
                self._fault(key, path, f"there is no key {key.name!r} here", advice)

    def _fault(self, at: Node | Key, path: str, said: str, advice: str = "") -> None:
        self.faults.append(Fault(Level.ERROR, path, said, advice, at.line, at.column))


def _made(
    subject: str, patterns: Sequence[str], written: Sequence[str], path: str, node: Node
) -> Condition:
    return Condition(subject, tuple(patterns), tuple(written), path, node.line, node.column)


def user(written: str) -> str:
    """``0`` for root and for nothing, a uid without leading zeros, any other name as it is."""
    name = written.partition(":")[0]
    if name.isdigit() and name.isascii():
        return str(int(name))
    return "0" if name in ("", "root") else name


def _shown(node: Node) -> str:
    if node.is_map:
        return "a mapping"
    if node.is_list:
        return "a list"
    if node.value is None:
        return "nothing"
    return repr(node.words()[:60])
