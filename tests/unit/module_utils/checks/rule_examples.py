# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examples of rules, ``tests/data/rules/*.yml``: how they are read and judged.

One example is a mapping:

- ``rule``: the id of the rule.
- ``as``: the kind of input (docs/checks.md), or ``host``: then ``bad`` and ``good`` are mappings
  of dotted paths to values set on the healthy host of ``base_host.json``; null is that host itself.
- ``bad``: text (or a list of texts) of which the rule says something.
- ``good``: text (or a list of texts) of which it says nothing.
- ``assume``: what is assumed of the host (``steadygpu check --assume``), for both.
- ``file``: the name of the input where it matters; ``files``: name to text of files beside it.
- ``other_version``: for a rule that holds for some versions only: a mapping of ``assume`` with
  which it says nothing of ``bad`` (or of its own ``bad``); with ``as: host`` further dotted paths,
  laid over those of ``bad``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.steadygpu.host.plugins.module_utils.checks import (
    assume,
    facts_host,
    inspection,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Finding
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds

FOLDER = Path(__file__).resolve().parents[3] / "data" / "rules"
_KEYS = {"rule", "as", "bad", "good", "assume", "file", "files", "other_version"}
# Mappings of evidence whose keys have dots of their own.
_FLAT = {"sysctl", "texts", "left_out", "units", "programs", "packages"}


@dataclass(frozen=True)
class Example:
    """One example; ``where`` is the file and the place in its list, for messages."""

    where: str
    rule: str
    kind: str
    bad: list[Any]
    good: list[Any]
    assume: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    files: dict[str, str] = field(default_factory=dict)
    other_version: dict[str, Any] | None = None


def load(folder: Path = FOLDER) -> list[Example]:
    """Every example there is; raises ValueError for one that is malformed."""
    found = []
    for path in sorted(folder.glob("*.yml")):
        for number, raw in enumerate(yaml.safe_load(path.read_text()) or [], start=1):
            found.append(_example(raw, f"{path.name}[{number}]"))
    return found


def _example(raw: Any, where: str) -> Example:
    unknown = set(raw) - _KEYS
    missing = {"rule", "as", "bad", "good"} - set(raw)
    if unknown or missing:
        raise ValueError(f"{where}: unknown keys {unknown or '-'}, missing keys {missing or '-'}")
    if [] in (raw["bad"], raw["good"]):
        raise ValueError(f"{where} {raw['rule']}: an empty list tests nothing")
    return Example(
        where=f"{where} {raw['rule']}",
        rule=raw["rule"],
        kind=raw["as"] if raw["as"] == "host" else kinds.named(raw["as"]),
        bad=raw["bad"] if isinstance(raw["bad"], list) else [raw["bad"]],
        good=raw["good"] if isinstance(raw["good"], list) else [raw["good"]],
        assume=raw.get("assume") or {},
        file=raw.get("file") or "",
        files=raw.get("files") or {},
        other_version=raw.get("other_version"),
    )


def findings(example: Example, given: Any, more: Mapping[str, Any] | None = None) -> list[Finding]:
    """What all rules say of one input of an example; ``more`` is assumed of the host as well.

    Raises AssertionError where the input cannot be read.
    """
    assumed = assume.from_mapping({**example.assume, **(more or {})})
    if example.kind == "host":
        return list(inspection.inspect_host(assume.apply(host_with(given or {}), assumed)))
    host = assume.apply(HostView(), assumed)
    beside = [
        document
        for name, text in example.files.items()
        if kinds.detect(text, name) in inspection.DESCRIBE_THE_HOST
        for document in kinds.read(text, name).documents
    ]
    if beside:
        host = inspection.sharpen(host, beside)
    result = inspection.inspect(
        given, example.file or "input", host, example.kind, example.files.get
    )
    assert not result.problems, f"{example.where}: {result.problems[0].said}"
    return list(result.findings)


def host_with(changes: Mapping[str, Any]) -> HostView:
    """The healthy host of ``base_host.json`` with other values at the given dotted paths."""
    facts = json.loads((FOLDER / "base_host.json").read_text())
    for path, value in changes.items():
        _set(facts, path, copy.deepcopy(value))
    evidence = facts.pop("evidence", None)
    return facts_host.from_facts(facts, evidence, name="host")


def _set(tree: Any, path: str, value: Any) -> None:
    """Set the value at a path; the longest key that is there wins, as keys may have dots."""
    parts, flat = path.split("."), False
    while True:
        lengths = range(len(parts), 0, -1)
        there = next((n for n in lengths if _has(tree, ".".join(parts[:n]))), None)
        length = there or (len(parts) if flat else 1)
        key = ".".join(parts[:length])
        at = int(key) if isinstance(tree, list) else key
        if length == len(parts):
            if isinstance(tree, list) and at == len(tree):
                tree.append(value)
            else:
                tree[at] = value
            return
        if there is None:
            tree[at] = {}
        flat, tree, parts = key in _FLAT, tree[at], parts[length:]


def _has(tree: Any, key: str) -> bool:
    if isinstance(tree, list):
        return key.isdecimal() and int(key) < len(tree)
    return isinstance(tree, dict) and key in tree
