# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""System calls as strace sees them: which change the disk, and SIGKILL right before one of them.

An operation runs in a server that has imported everything and forks for each job; strace attaches
to the stopped fork. It counts the calls of a name in each thread by itself, so only calls of the
main thread can be aimed at; that others change nothing is checked.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("operation.py")
MODULES = Path(__file__).with_name("module_run.py")

# What can change a file, a directory or their metadata. fsync is not among them: a SIGKILL right
# before it shows the same disk as one right before the next change.
_CHANGING = (
    *("write", "pwrite64", "writev", "pwritev", "pwritev2"),
    *("sendfile", "copy_file_range", "splice", "ftruncate", "truncate", "fallocate"),
    *("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat"),
    *("unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "mknod", "mknodat"),
    *("chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "utimensat"),
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"),
)
# These change something only when they are told to make or empty a file.
_OPENING = ("openat", "open", "creat")
_MAKES = re.compile(r"\bO_(CREAT|TRUNC)\b")
_LASTING = ("fsync", "fdatasync", "syncfs")
_STORE = "/var/lib/steadygpu/rollback"
# A lock that no process holds and contents that no checkpoint names may be lost. Removed objects
# may come back.
_MAY_BE_LOST = re.compile(
    rf"{_STORE}/(lock|incoming(/[^/]*)?): |{_STORE}/objects/.: not flushed since unlink "
)
_LINE = re.compile(r"^(?P<thread>\d+) +(?P<name>\w+)\((?P<rest>.*)$")
# A path as a process names it that has its root below another one; not those of the kernel.
_INSIDE = re.compile(r'"(?=/(?!dev/|proc/|sys/))')
# What begins the verb of an operation that has the scratch host for its root: a whole module.
MODULE = "module:"


@dataclass(frozen=True)
class Call:
    """One call that changes the disk: the ``nth`` of its name, and what strace prints of it."""

    name: str
    nth: int
    text: str


@dataclass(frozen=True)
class Record:
    """One whole run: its changing calls in order, and every line of the trace."""

    calls: tuple[Call, ...]
    lines: tuple[str, ...]
    answer: Any


class CutError(AssertionError):
    """The operation was not cut where it should have been."""


class Operations:
    """The server ``program``, and strace around its jobs. A context manager."""

    def __init__(self, scratch: Path, program: Path = PROGRAM) -> None:
        self._trace = scratch / "trace"
        self._program = program
        env = dict(
            os.environ,
            PYTHONPATH=str(CHECKOUT / "build" / "collections"),
            # A set has the same order in the run that is listed and in those that are cut.
            PYTHONHASHSEED="0",
            PYTHONDONTWRITEBYTECODE="1",
        )
        self._server = subprocess.Popen(
            [sys.executable, str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def __enter__(self) -> Operations:
        return self

    def __exit__(self, *unused: object) -> None:
        self._server.kill()
        self._server.communicate()

    def run(self, verb: str, root: Path) -> Any:
        """Let an operation run to its end, untraced; what it answers."""
        self._ask(verb, root, traced=False)
        return self._answer()["answer"]

    def record(self, verb: str, root: Path) -> Record:
        """Let it run to its end; what it answers, and which of its calls change the disk."""
        pid = self._ask(verb, root, traced=True)
        self._strace(pid, [*_OPENING, *_CHANGING, *_LASTING])
        answer = self._answer()["answer"]
        lines = self._lines(verb, root)
        return Record(tuple(_calls(lines, pid, str(root))), tuple(lines), answer)

    def cut(self, verb: str, root: Path, call: Call) -> None:
        """Kill it right before one of its calls. Raises CutError when that call did not come."""
        pid = self._ask(verb, root, traced=True)
        kill = f"inject={call.name}:signal=SIGKILL:when={call.nth}"
        self._strace(pid, [call.name], "-e", kill)
        ended = self._answer()
        lines = self._lines(verb, root)
        last = [line for line in lines if _LINE.match(line)][-1:]
        if ended["signal"] != signal.SIGKILL:
            raise CutError(f"{verb} ran to its end, wanted a cut at {call}: {ended}")
        if not last or str(root) not in last[0]:
            raise CutError(f"{verb} was cut at {last}, wanted {call}")

    def _lines(self, verb: str, root: Path) -> list[str]:
        """The trace, with every path as it is seen from here."""
        lines = self._trace.read_text(encoding="utf-8", errors="replace").splitlines()
        if not verb.startswith(MODULE):
            return lines
        return [_INSIDE.sub(f'"{root}', line) for line in lines]

    def _ask(self, verb: str, root: Path, traced: bool) -> int:
        assert self._server.stdin is not None
        job = {"verb": verb, "root": str(root), "traced": traced}
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        return int(self._line())

    def _answer(self) -> Mapping[str, Any]:
        ended: dict[str, Any] = json.loads(self._line())
        if ended["error"]:
            raise AssertionError(ended["error"])
        return ended

    def _line(self) -> str:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise AssertionError(f"{self._program.name} ended with {self._server.wait()}")
        return line

    def _strace(self, pid: int, names: list[str], *more: str) -> None:
        """Follow a stopped process to its end."""
        argv = ["strace", "-f", "-y", "-s", "0", "-o", str(self._trace), "-e", "signal=none"]
        argv += ["-e", "trace=" + ",".join("?" + name for name in names), *more, "-p", str(pid)]
        strace = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
        assert strace.stderr is not None
        said = strace.stderr.readline()
        if "attached" not in said:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"strace could not attach: {said}{strace.communicate()[1]}")
        os.kill(pid, signal.SIGCONT)
        strace.communicate()


def _calls(lines: list[str], main: int, root: str) -> list[Call]:
    """The changing calls below ``root``, each with its number among all calls of its name."""
    counts: Counter[str] = Counter()
    calls = []
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        name, rest = found["name"], found["rest"]
        changes = name in _CHANGING or (name in _OPENING and _MAKES.search(rest) is not None)
        below = root in rest
        if int(found["thread"]) != main:
            if changes and below:
                raise AssertionError(f"a thread changes the disk, which cannot be cut: {line}")
            continue
        counts[name] += 1
        # One that fails leaves the disk as the next one finds it.
        if changes and below and "= -1 " not in rest:
            calls.append(Call(name, counts[name], rest.replace(root, "")[:120]))
    return calls


def unflushed(record: Record, root: Path) -> list[str]:
    """What a power cut could lose or turn round, in words, by the trace of a run without a cut.

    - a file is fsynced after its last write and before its rename, and a directory after its last
      change, before the operation ends;
    - before a document of the store comes or goes, all that was changed before it is on the disk;
    - before a path outside the store comes or goes, all that was changed in the store is.
    """
    return _Flushes(str(root)).read(record.lines)


class _Flushes:
    """Reads a trace and remembers what is not on the disk yet."""

    # A name below an open directory, an absolute path, a descriptor.
    _PATH = re.compile(
        r'<(?P<below>/[^>]*)>, "(?P<name>[^"]+)"|"(?P<quoted>/[^"]*)"|<(?P<open>/[^>]*)>'
    )

    def __init__(self, root: str) -> None:
        self._root = root
        self._written: dict[str, str] = {}
        self._directories: dict[str, str] = {}
        self._faults: list[str] = []

    def read(self, lines: tuple[str, ...]) -> list[str]:
        for line in lines:
            found = _LINE.match(line)
            if found is not None and "= -1 " not in line:
                self._call(found["name"], found["rest"])
        self._faults += [f"at the end: {fault}" for fault in self._pending()]
        return self._faults

    def _pending(self) -> list[str]:
        """What a power cut at this moment could lose."""
        lost = [f"{path}: never flushed since {why}" for path, why in self._written.items()]
        lost += [f"{path}: not flushed since {why}" for path, why in self._directories.items()]
        told = [one.replace(self._root, "") for one in lost]
        return [one for one in told if not _MAY_BE_LOST.match(one)]

    @staticmethod
    def _path(found: re.Match[str]) -> str:
        if found["below"]:
            return os.path.join(found["below"], found["name"])
        return str(found["quoted"] or found["open"]).replace(" (deleted)", "")

    def _barrier(self, path: str, what: str) -> None:
        """Something comes or goes that makes sense only if what was before it is there."""
        seen = path.replace(self._root, "")
        in_store = seen.startswith(_STORE)
        if in_store and not re.search(r"\.json$|/settled$", seen):
            return
        for fault in self._pending():
            if in_store or fault.startswith(_STORE):
                self._faults.append(f"before {what} {seen}: {fault}")

    def _call(self, name: str, rest: str) -> None:
        found = [self._path(one) for one in self._PATH.finditer(rest)]
        paths = [path for path in found if path.startswith(self._root)]
        if not paths:
            return
        if name in ("syncfs",):
            self._written.clear()
            self._directories.clear()
        elif name in _LASTING:
            self._written.pop(paths[0], None)
            self._directories.pop(paths[0], None)
        elif name.startswith(("write", "pwrite", "ftruncate", "sendfile", "copy_file")):
            self._written[paths[-1] if name == "copy_file_range" else paths[0]] = name
        elif name.startswith("rename"):
            self._barrier(paths[1], name)
            if paths[0] in self._written:
                told = f"{paths[0]} became {paths[1]} before it was flushed"
                self._faults.append(told.replace(self._root, ""))
                del self._written[paths[0]]
            for path in paths[:2]:
                self._directories[os.path.dirname(path)] = f"{name} {rest[:160]}"
        elif name.startswith(("link", "symlink", "mkdir", "unlink", "rmdir")):
            path = paths[-1]
            if name.startswith(("unlink", "rmdir")):
                self._barrier(path, name)
                self._written.pop(path, None)
                self._directories.pop(path, None)
            self._directories[os.path.dirname(path)] = f"{name} {rest[:160]}"
