# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The operations that are cut, what must hold at each cut, and what the next run must reach.

At a cut, as the disk is: every managed file is exactly the old or the new one (content, mode,
owner, extended attributes), everything in the store can be read, and what it refers to is there.

After the next run: the tree is the one that a run without a cut leaves, the store holds the same
states, no journal and no temporary file is left.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.rollback import codec, model
from ansible_collections.steadygpu.host.tests.cuts import world
from ansible_collections.steadygpu.host.tests.cuts.operation import perform, store_of
from ansible_collections.steadygpu.host.tests.cuts.tracing import CHECKOUT, Call, Operations, Record
from ansible_collections.steadygpu.host.tests.cuts.tree import Seen, Tree, look

OWN = "/var/lib/steadygpu"
COUNTS = CHECKOUT / "build" / "cuts"
_STORE_NAMES = re.compile(
    r"/(schema|lock|sequence|settled|incoming|vouched\.jsonl|(labels|window|restore|pending)\.json"
    r"|objects(/[0-9a-f](/[0-9a-f]{63})?)?|checkpoints(/[0-9]+-[0-9a-f]{8}\.json)?)"
)
# How a path comes, goes or becomes another file.
_EXCHANGES = re.compile("rename|link|symlink|unlink|rmdir")
# A file that is being put back, until it is renamed.
_BEING_WRITTEN = re.compile(r"/\.[^/]+\.steadygpu-[^/]+(/|$)")
# What atomic.write_atomic leaves when it is killed; nobody reads it.
_HALF_WRITTEN = re.compile(r"/\.[^/]+\.[a-z0-9_]{8}$")
# What actors note down of what they did, and no host had before.
_TOLD = {f"/recorded/{name}.json" for name in ("limits", "docker", "loaded")}


@dataclass(frozen=True)
class Operation:
    """What is cut (``verb``), in which state of a host, and what the next run does.

    ``cut`` looks at the disk of a killed run, ``after`` at that of the next one; both get the root.
    """

    name: str
    verb: str
    prepare: Callable[[Path], None]
    again: Callable[[Path], None]
    cut: Callable[[Path], None] = lambda root: None
    after: Callable[[Path], None] = lambda root: None


@dataclass(frozen=True)
class Prepared:
    """A traced run that was not cut: the ``template`` it began from, the tree before and after."""

    operation: Operation
    template: Path
    whole: Path
    before: Tree
    after: Tree
    states: tuple[str, ...]
    record: Record


class Sweep:
    """Cuts operations below a scratch directory."""

    def __init__(self, operations: Operations, scratch: Path) -> None:
        self._operations = operations
        self._scratch = scratch

    def prepare(self, operation: Operation) -> Prepared:
        """Trace a whole run."""
        template = self._scratch / operation.name
        template.mkdir()
        operation.prepare(template)
        return self._trace(operation, template)

    def prepare_resume(self) -> Prepared:
        """Trace a run that ends an undo which was killed half way through its steps."""
        undo = self.prepare(UNDO)
        steps = [call for call in undo.record.calls if call.name.startswith("rename")]
        template = self._scratch / RESUME.name
        killed = self._copy(undo.template, "killed")
        self._operations.cut(UNDO.verb, killed, steps[len(steps) // 2])
        assert store_of(str(killed)).restore_journal() is not None
        killed.rename(template)
        return self._trace(RESUME, template)

    def _trace(self, operation: Operation, template: Path) -> Prepared:
        before = look(template, OWN)
        whole = self._copy(template, "whole")
        record = self._operations.record(operation.verb, whole)
        after = look(whole, OWN)
        check_store(whole)
        check_names(whole)
        return Prepared(operation, template, whole, before, after, states(whole), record)

    def laid_out(self) -> Tree:
        """The host before a change."""
        root = self._scratch / "laid-out"
        root.mkdir()
        world.lay_out(root)
        return look(root)

    def cut(self, prepared: Prepared, call: Call) -> None:
        """One cut and the next run. Raises AssertionError, with the call, when one goes wrong."""
        operation = prepared.operation
        root = self._copy(prepared.template, "cut")
        try:
            self._operations.cut(operation.verb, root, call)
            check_old_or_new(prepared, look(root, OWN))
            check_store(root)
            operation.cut(root)
            operation.again(root)
            check_same(prepared.after, look(root, OWN))
            check_store(root)
            check_names(root)
            check_nothing_open(root, prepared)
            operation.after(root)
        except Exception as error:
            raise AssertionError(f"{operation.name} cut before {call}: {error!r}") from error

    def _copy(self, template: Path, name: str) -> Path:
        target = self._scratch / name
        subprocess.run(["rm", "-rf", str(target)], check=True)
        subprocess.run(["cp", "-a", "--reflink=auto", str(template), str(target)], check=True)
        return target


def sample(calls: Sequence[Call], wanted: int) -> list[Call]:
    """Every call that exchanges a managed file, and so many of the others, evenly spread, the last
    one among them.
    """
    exchanging = [call for call in calls if _EXCHANGES.match(call.name) and _is_managed(call)]
    rest = [call for call in calls if call not in exchanging]
    count = min(wanted, len(rest))
    return exchanging + [rest[(number + 1) * len(rest) // count - 1] for number in range(count)]


def _is_managed(call: Call) -> bool:
    return "/etc/" in call.text and OWN not in call.text


# -- what must hold -----------------------------------------------------------------------


def check_old_or_new(prepared: Prepared, cut: Tree) -> None:
    """No managed path is half of anything."""
    for path in sorted({*prepared.before, *prepared.after, *cut}):
        allowed = (prepared.before.get(path), prepared.after.get(path))
        found = cut.get(path)
        if found in allowed or path.startswith("/recorded"):
            continue
        if found and (_BEING_WRITTEN.search(path) or _HALF_WRITTEN.search(path)):
            continue
        if found and _directory_under_way(found, allowed[1] or allowed[0]):
            continue
        raise AssertionError(f"{path} is {found}, wanted one of {allowed}")


def _directory_under_way(found: Seen, wanted: Seen | None) -> bool:
    """A directory cannot be exchanged in one step; it must only never allow more than it shall."""
    both = found.kind == "directory" and wanted is not None and wanted.kind == "directory"
    return both and wanted is not None and not found.mode & ~wanted.mode


def check_same(wanted: Tree, found: Tree) -> None:
    """The tree of a run that was not cut, and nothing beside it."""
    for path in sorted({*wanted, *found}):
        if wanted.get(path) != found.get(path) and not _HALF_WRITTEN.search(path):
            raise AssertionError(f"{path} is {found.get(path)}, wanted {wanted.get(path)}")


def check_store(root: Path) -> None:
    """Every checkpoint can be read with all its content, and what is referred to is there."""
    store = store_of(str(root))
    damaged = [*store.damaged(), *store.verify()]
    assert not damaged, damaged
    checkpoints = {one.id: one for one in store.checkpoints()}
    for checkpoint in checkpoints.values():
        for path, entry in checkpoint.state.files.items():
            if entry.digest is not None:
                content = store.content(entry.digest)
                assert len(content) == entry.size, (checkpoint.id, path)
    for name, ident in store.labels().items():
        assert ident in checkpoints, f"label {name} names {ident}, which is not there"
    window, journal = store.window(), store.restore_journal()
    assert window is None or window.base in checkpoints
    assert journal is None or {journal.target, journal.replaced} <= set(checkpoints), journal
    settled = store.settled()
    assert settled is None or settled in checkpoints


def check_names(root: Path) -> None:
    """Nothing in the store that has no meaning, and no object that no checkpoint needs."""
    directory = root / model.DIRECTORY.lstrip("/")
    for path in look(directory):
        assert _STORE_NAMES.fullmatch(path), f"{path} was left in the store"
    store = store_of(str(root))
    needed = {entry.digest for one in store.checkpoints() for entry in one.state.files.values()} - {
        None
    }
    there = {path[9:].replace("/", "") for path in look(directory) if path.count("/") == 3}
    assert there == needed, f"unused objects: {there - needed}, missing: {needed - there}"


def check_nothing_open(root: Path, prepared: Prepared) -> None:
    """The journal is gone, the window is what it is after a run without a cut, and so are the
    states in the store.
    """
    store, whole = store_of(str(root)), store_of(str(prepared.whole))
    assert store.restore_journal() is None
    window, wanted = store.window(), whole.window()
    assert (window is None) == (wanted is None), window
    assert states(root) == prepared.states, (states(root), prepared.states)
    labelled = {name: store.get(name).id.partition("-")[2] for name in store.labels()}
    assert labelled == {name: whole.get(name).id.partition("-")[2] for name in whole.labels()}
    assert len(store.pending()) == len(whole.pending())


def states(root: Path) -> tuple[str, ...]:
    """The digests of the states in the store, oldest first; the clock is not among them."""
    return tuple(codec.state_digest(one.state) for one in store_of(str(root)).checkpoints())


# -- the operations -------------------------------------------------------------------------


def _verbs(*verbs: str) -> Callable[[Path], None]:
    def do(root: Path) -> None:
        for verb in verbs:
            if verb in ("lay_out", "change", "meddle"):
                getattr(world, verb)(root)
            else:
                perform(verb, str(root))

    return do


def _exported(root: Path) -> None:
    """A file with a checkpoint, and a host that has none."""
    _verbs("lay_out", "begin", "change", "confirm", "export")(root)
    shutil.rmtree(root / model.DIRECTORY.lstrip("/"))


def _resume_and_undo(root: Path) -> None:
    """What a run finds in the journal it ends; a window that is still open is undone after it."""
    perform("resume", str(root))
    if store_of(str(root)).window() is not None:
        perform("undo", str(root))


def _window_has_a_base(root: Path) -> None:
    window = store_of(str(root)).window()
    if window is not None:
        assert store_of(str(root)).get(window.base).state.files[world.GONE].kind == "file"


def _change_and_undo(root: Path) -> None:
    """The window of the second attempt leads back."""
    before = look(root, OWN)
    world.change(root)
    perform("undo", str(root))
    check_same(before, {path: one for path, one in look(root, OWN).items() if path not in _TOLD})


def _confirmed_or_open(root: Path) -> None:
    store = store_of(str(root))
    if store.window() is None:
        assert {model.STABLE, model.BEFORE_CHANGE} <= set(store.labels())


def _written_is_vouched(root: Path) -> None:
    """Whatever is new was vouched for before: so it can be told from what others write."""
    at = root / world.RULES.lstrip("/")
    known = vouched.since(0, str(root))
    if '"two"' in at.read_text():
        assert world.RULES in known
    if not (root / world.GONE.lstrip("/")).exists():
        assert "absent" in known[world.GONE]


UNDO = Operation("undo", "undo", _verbs("lay_out", "begin", "change", "meddle"), _resume_and_undo)
# Prepared by :meth:`Sweep.prepare_resume`.
RESUME = Operation("resume", "resume", _verbs(), _resume_and_undo)
OPERATIONS = (
    Operation("first-take", "take", _verbs("lay_out"), _verbs("take")),
    Operation("take", "take", _verbs("lay_out", "take", "change"), _verbs("take")),
    Operation(
        "write", "write", _verbs("lay_out", "take"), _verbs("write"), cut=_written_is_vouched
    ),
    Operation(
        "begin",
        "begin",
        _verbs("lay_out"),
        _verbs("begin"),
        cut=_window_has_a_base,
        after=_change_and_undo,
    ),
    Operation(
        "confirm",
        "confirm",
        _verbs("lay_out", "begin", "change"),
        _verbs("confirm"),
        cut=_confirmed_or_open,
    ),
    UNDO,
    RESUME,
    Operation(
        "forward",
        "forward",
        _verbs("lay_out", "begin", "change", "confirm", "back"),
        _verbs("resume", "forward"),
    ),
    Operation(
        "export", "export", _verbs("lay_out", "begin", "change", "confirm"), _verbs("export")
    ),
    Operation("import", "import", _exported, _verbs("import")),
    Operation(
        "prune",
        "prune",
        _verbs("lay_out", "take", "change", "take", "meddle", "take"),
        _verbs("prune"),
    ),
)
