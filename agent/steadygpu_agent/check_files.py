# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of ``steadygpu check``: which there are, what is in them, and what each one says.

Any bytes end with a message: a file that is too large, no text, or takes too long is named.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import signal
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from ansible_collections.steadygpu.host.plugins.module_utils.checks import inspection
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.inspection import Inspected
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import Position, Problem
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers import kinds
from ansible_collections.steadygpu.host.plugins.module_utils.evidence import walk

STDIN = "-"
# A file of 2 MiB takes seconds where PyYAML has no C library; a lab host is 8 times slower.
DEADLINE_S = 30.0
# Below this, workers cost more than they save.
_WORTH_WORKERS = 40
_MOST_WORKERS = 8


class _LateError(BaseException):
    """The file took too long. Not an Exception: no reader may swallow it."""


@dataclass(frozen=True)
class Source:
    """A file to judge: ``given`` by its name, or found in a directory."""

    path: str
    given: bool = True


@dataclass(frozen=True)
class Text:
    """What is in a source; ``problem`` says why there is no text, ``quiet`` that it may be so."""

    source: Source
    text: str | None = None
    problem: Problem | None = None
    quiet: bool = False


def gather(paths: Sequence[str], only_known: bool = False) -> tuple[list[Source], list[Problem]]:
    """The files at the given paths, those of known names below directories; and what is missing.

    Links to directories below a directory are not followed. With ``only_known`` a given file is
    treated as one that was found: it may be none of ours.
    """
    sources: dict[str, Source] = {}  # by the absolute path: a file is judged once
    problems: list[Problem] = []

    def unlisted(folder: str, why: str) -> None:
        problems.append(Problem(Position(folder), f"cannot be listed: {why}"))

    for path in paths:
        if path == STDIN:
            sources.setdefault(path, Source(path))
        elif os.path.isdir(path):
            for found in walk.below(path, unlisted):
                sources.setdefault(os.path.abspath(found), Source(found, given=False))
        elif os.path.lexists(path):
            # A link to nothing, or in a circle, is told by the system's own words when it is read.
            sources[os.path.abspath(path)] = Source(path, given=not only_known)
        else:
            problems.append(Problem(Position(path), "there is no such file"))
    return list(sources.values()), problems


def load(source: Source) -> Text:
    """The text of a source, or the reason why there is none."""
    try:
        data = _bytes(source.path)
    except OSError as error:
        return _none(source, f"cannot be read: {error.strerror}", quiet=not source.given)
    said = kinds.refused(data)
    if said and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        binary = len(data) <= kinds.LIMIT_BYTES
        return _none(source, said, quiet=not source.given and (binary or not _known(source)))
    return Text(source, decoded(data))


def decoded(data: bytes) -> str:
    """Bytes as text; what is not UTF-8 in them becomes a replacement character."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _known(source: Source) -> bool:
    return kinds.by_name(source.path) is not None


def _none(source: Source, said: str, quiet: bool) -> Text:
    return Text(source, None, _problem(source, said), quiet)


def _bytes(path: str) -> bytes:
    """At most one byte more than is read of a text, so that a device without an end has one."""
    if path == STDIN:
        return sys.stdin.buffer.read(kinds.LIMIT_BYTES + 1)
    with open(path, "rb") as opened:
        return opened.read(kinds.LIMIT_BYTES + 1)


def shown(path: str) -> str:
    """The name of a source in messages."""
    return "stdin" if path == STDIN else path


def beside(path: str) -> str | None:
    """The text of a file that another one refers to; None where there is none to be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        data = _bytes(path)
    except (OSError, ValueError):
        return None
    return None if kinds.refused(data) else decoded(data)


def listed(pattern: str) -> list[str]:
    """The files that a glob pattern means, sorted; at most a hundred."""
    return sorted(itertools.islice(glob.iglob(pattern), 100))


@dataclass(frozen=True)
class Result:
    """What one source came to. ``note`` is set when it was left out, ``lines`` when it is shown."""

    inspected: Inspected
    note: Problem | None = None
    lines: tuple[str, ...] = ()
    judged: bool = True


def judge(source: Source, host: HostView, kind: str | None = None) -> Result:
    """Read and judge one source. Never raises: what goes wrong is a problem of that file."""
    name = shown(source.path)
    try:
        with _deadline(DEADLINE_S):
            return _judged(source, name, host, kind)
    except _LateError:
        said = f"not judged within {DEADLINE_S:.0f} s; give up on it, or judge it in parts"
        return _unjudged(source, said)
    except Exception as error:
        # A reader or rule of ours is wrong. The other files must still be judged.
        if os.environ.get("STEADYGPU_DEBUG"):
            raise
        said = f"not judged, by a fault of steadygpu: {type(error).__name__}; please report it"
        return _unjudged(source, said)


def _judged(source: Source, name: str, host: HostView, kind: str | None) -> Result:
    loaded = load(source)
    if loaded.text is None:
        why = loaded.problem or _problem(source, "cannot be read")
        if loaded.quiet:
            return Result(Inspected(name, None), note=why, judged=False)
        return _unjudged(source, why.said)
    kind = kind or kinds.detect(loaded.text, name)
    if kind is None and not source.given:
        return Result(Inspected(name, None), judged=False)
    inspected = inspection.inspect(loaded.text, name, host, kind, beside, listed)
    is_template = kinds.is_ytt(loaded.text) or (
        bool(inspected.problems) and kinds.is_template(loaded.text)
    )
    if is_template and not source.given:
        note = _problem(source, "a template; judge the file that is made of it")
        return Result(Inspected(name, kind), note=note, judged=False)
    lines = tuple(loaded.text.splitlines()) if inspected.findings else ()
    # What could not be read, and of which nothing is said, was not judged.
    judged = bool(inspected.findings) or not inspected.problems
    return Result(inspected, lines=lines, judged=judged)


def documents(source: Source, kind: str) -> tuple[object, ...]:
    """The documents in a source; none where it cannot be read, which is said when it is judged."""
    text = load(source).text
    if text is None:
        return ()
    try:
        with _deadline(DEADLINE_S):
            return inspection.read(text, shown(source.path), kind, beside, listed).documents
    except (_LateError, Exception):
        return ()


def judge_all(sources: Sequence[Source], host: HostView, kind: str | None = None) -> list[Result]:
    """Every source judged, in order; many of them by worker processes."""
    workers = min(_MOST_WORKERS, _cpus())
    if len(sources) < _WORTH_WORKERS or workers < 2 or not hasattr(os, "fork"):
        return [judge(source, host, kind) for source in sources]
    # The first one here: what it imports the workers then have from the start.
    return [judge(sources[0], host, kind), *_by_workers(sources[1:], host, kind, workers)]


def _by_workers(
    sources: Sequence[Source], host: HostView, kind: str | None, workers: int
) -> list[Result]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Small enough that no worker ends long before the others.
    size = max(1, min(32, len(sources) // (workers * 4)))
    chunks = [sources[start : start + size] for start in range(0, len(sources), size)]
    results: list[Result] = []
    pool = ProcessPoolExecutor(workers, get_context("fork"), initializer=_leave_interrupts)
    try:
        pending = [pool.submit(_judge_chunk, chunk, host, kind) for chunk in chunks]
        for chunk, waiting in zip(chunks, pending):
            try:
                results += waiting.result()
            except BrokenProcessPool:
                said = "not judged: the worker process that read it was ended; is memory short?"
                results += [_unjudged(one, said) for one in chunk]
    finally:
        # After an interrupt nobody waits for what was not begun.
        pool.shutdown(wait=True, cancel_futures=True)
    return results


def _leave_interrupts() -> None:
    """In a worker: Ctrl-C is for the process that waits for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _unjudged(source: Source, said: str) -> Result:
    return Result(
        Inspected(shown(source.path), None, problems=(_problem(source, said),)), judged=False
    )


def _problem(source: Source, said: str) -> Problem:
    return Problem(Position(shown(source.path)), said)


def _judge_chunk(sources: Sequence[Source], host: HostView, kind: str | None) -> list[Result]:
    return [judge(source, host, kind) for source in sources]


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise :class:`_LateError` inside when it takes longer; only in a main thread."""

    def late(number: int, frame: FrameType | None) -> None:
        raise _LateError

    try:
        before = signal.signal(signal.SIGALRM, late)
    except ValueError:  # not in the main thread: whoever calls has a deadline of its own
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
