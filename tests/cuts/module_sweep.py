# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cuts of whole modules: what must hold at each cut, and what the next run must reach.

At a cut every file outside our own directory is the old one, or one that was vouched for before it
was written: whole, and known as ours. The next run leaves what a run without a cut leaves, the one
after it changes nothing, and ``state: absent`` then leads back to the very bytes that were there.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_json import NEUTRAL
from ansible_collections.steadygpu.host.tests.cuts.module_cases import (
    ABSENT,
    CASES,
    CHANGED,
    PRESENT,
)
from ansible_collections.steadygpu.host.tests.cuts.tracing import MODULE, Call, Operations, Record
from ansible_collections.steadygpu.host.tests.cuts.tree import Seen, Tree, look

_OWN = "/var/lib/steadygpu/"
# The ledger grows with every run, and what stands for the host's daemons is looked at by itself.
_NOT_COMPARED = (_OWN + "rollback", "/recorded", "/tmp")
_BESIDE = re.compile(r'["<]/(recorded|tmp)/')
# What atomic.write_atomic leaves when it is killed; nobody reads it.
_HALF_WRITTEN = re.compile(r"/\.[^/]+\.[a-z0-9_]{8}$")


@dataclass(frozen=True)
class ModuleOperation:
    """A step of a case, on a host where ``first`` was done."""

    case: str
    step: str
    first: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For a person."""
        return f"{self.case}-{self.step}"


@dataclass(frozen=True)
class Prepared:
    """A traced run that was not cut: the host it began from, and the trees of before and after."""

    operation: ModuleOperation
    template: Path
    before: Tree
    after: Tree
    laid_out: Tree
    recorded: Mapping[str, Any]
    record: Record
    whole: Path


OPERATIONS = tuple(
    operation
    for case in CASES
    for operation in (
        ModuleOperation(case, PRESENT),
        ModuleOperation(case, CHANGED, (PRESENT,)),
        ModuleOperation(case, ABSENT, (PRESENT,)),
    )
)


class ModuleSweep:
    """Cuts modules below a scratch directory."""

    def __init__(self, operations: Operations, scratch: Path) -> None:
        self._operations = operations
        self._scratch = scratch

    def prepare(self, operation: ModuleOperation) -> Prepared:
        """Trace a whole run."""
        template = self._scratch / operation.name
        template.mkdir()
        CASES[operation.case].prepare(template)
        for directory in ("tmp", "run", "var/lib"):
            (template / directory).mkdir(parents=True, exist_ok=True)
        laid_out = compared(template)
        for step in operation.first:
            self._run(operation.case, step, template)
        whole = self._copy(template, "whole")
        record = self._operations.record(_verb(operation.case, operation.step), whole)
        _done(record.answer)
        assert record.answer["changed"], record.answer
        # What stands for the host's daemons and trials in /tmp are not the module's work.
        ours = [call for call in record.calls if not _BESIDE.search(call.text)]
        return Prepared(
            operation,
            template,
            compared(template),
            compared(whole),
            laid_out,
            recorded(whole),
            Record(tuple(ours), record.lines, record.answer),
            whole,
        )

    def cut(self, prepared: Prepared, call: Call) -> None:
        """One cut and the next runs. Raises AssertionError, with the call, when one goes wrong."""
        case, step = prepared.operation.case, prepared.operation.step
        root = self._copy(prepared.template, "cut")
        try:
            self._operations.cut(_verb(case, step), root, call)
            check_whole_or_old(prepared, root)
            self._run(case, step, root)
            check_same(prepared.after, compared(root))
            assert recorded(root) == prepared.recorded, recorded(root)
            again = self._run(case, step, root)
            assert not again["changed"], again["actions"]
            self._run(case, ABSENT, root)
            check_same(prepared.laid_out, compared(root))
        except Exception as error:
            raise AssertionError(f"{prepared.operation.name} cut before {call}: {error}") from error

    def _run(self, case: str, step: str, root: Path) -> Mapping[str, Any]:
        return _done(self._operations.run(_verb(case, step), root))

    def _copy(self, template: Path, name: str) -> Path:
        target = self._scratch / name
        subprocess.run(["rm", "-rf", str(target)], check=True)
        subprocess.run(["cp", "-a", "--reflink=auto", str(template), str(target)], check=True)
        return target


def _verb(case: str, step: str) -> str:
    return f"{MODULE}{case}:{step}"


def _done(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    assert not answer.get("failed"), answer["msg"]
    return answer


def compared(root: Path) -> Tree:
    """What lies on the host, without temporary files of writers that were killed."""
    return {
        path: one
        for path, one in look(root).items()
        if not path.startswith(_NOT_COMPARED)
        and not _HALF_WRITTEN.search(path)
        and one.kind != "directory"
    }


def recorded(root: Path) -> Mapping[str, Any]:
    """What stands for the host's daemons, without clocks."""
    found = {}
    for path in sorted((root / "recorded").glob("[a-z]*.json")):
        one = json.loads(path.read_text())
        one.pop("started_at", None)
        # What a daemon was told to forget it may have as a neutral value, or not at all.
        live = one.get("live", {})
        one["live"] = {key: live[key] for key in live if live[key] != NEUTRAL.get(key)}
        found[path.stem] = one
    return found


def check_whole_or_old(prepared: Prepared, root: Path) -> None:
    """No file is half of anything, and none is new without being vouched for."""
    known = vouched.since(0, str(root))
    found = compared(root)
    for path in sorted({*prepared.before, *found}):
        old, new = prepared.before.get(path), found.get(path)
        if new == old:
            continue
        said = "absent" if new is None else new.content
        said = f"link:{said}" if new is not None and new.kind == "link" else said
        assert said in known.get(path, []), f"{path} is {new}, and nobody vouched for it"
        if new is not None and path.startswith(_OWN):
            json.loads((root / path.lstrip("/")).read_text())
        elif new is not None:
            modes = {one.mode for one in (old, prepared.after.get(path)) if one is not None}
            assert new.mode in modes, f"{path} has mode {new.mode:o}"
    assert not recorded(root).get("docker", {}).get("killed"), "a container was ended"


def check_same(wanted: Tree, found: Tree) -> None:
    """The same files, and nothing beside them."""
    for path in sorted({*wanted, *found}):
        told = _told(found.get(path)), _told(wanted.get(path))
        assert told[0] == told[1], "{} is {}, wanted {}".format(path, *told)


def _told(one: Seen | None) -> tuple[str, int, str] | None:
    return None if one is None else (one.kind, one.mode, one.content[:16])
