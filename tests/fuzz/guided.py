# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Coverage-guided fuzzing of the readers and rules, with nothing but Python.

Usage: ``python tests/fuzz/guided.py [--seconds 60] [--seed 1]`` in the project's environment.
An input that reaches a pair of lines in a row that none reached before is kept and mutated
further. One that raises, or takes longer than two seconds, is made smaller and written to
build/fuzz/, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SLOW_S = 2.0
_LONGEST = 4096
_WATCHED = ("/module_utils/checks/", "/module_utils/trees/", "/module_utils/claims/")
_TOKENS = [
    *(b"\n", b"\t", b" ", b"'", b'"', b"\\", b"\\\n", b"#", b"$", b"${", b"}", b"$(", b"`", b"--"),
    *(b"=", b":", b": ", b"- ", b"[", b"]", b"{", b"}", b",", b"&a ", b"*a", b"<<: ", b"!x ", b"|"),
    *(b">-\n", b"---\n", b"<<EOF\n", b"EOF\n", b"\0", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf"),
    *(b"0", b"-1", b"1e999", b"9" * 30, b"0x", b".5", b"nan", b"null", b"true", b"~", b"%", b"@"),
    *(b"services:\n", b"extends:\n", b"[[", b"]]", b'"""', b"'''", b"1979-05-27", b"0o7"),
    *(b"--gpus ", b"-e ", b"-v ", b"-p ", b"device=", b"nvidia.com/gpu=", b"MIG-", b"GPU-"),
]


@dataclass
class Crash:
    """An input that must not do what it did: ``said`` is the traceback, or that it was slow."""

    kind: str
    data: bytes
    said: str


@dataclass
class Coverage:
    """Which pairs of lines, one run after the other in one call, were ever reached."""

    seen: set[tuple[CodeType, int, int]] = field(default_factory=set)
    fresh: int = 0
    _last: dict[int, int] = field(default_factory=dict)

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """A function for ``sys.settrace``."""
        return self._line if any(part in frame.f_code.co_filename for part in _WATCHED) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            key = id(frame)
            edge = (frame.f_code, self._last.get(key, 0), frame.f_lineno)
            self._last[key] = frame.f_lineno
            if edge not in self.seen:
                self.seen.add(edge)
                self.fresh += 1
        elif event == "return":
            self._last.pop(id(frame), None)
        return self._line


def fuzz(
    judge: Callable[[bytes, str], None],
    seeds: list[tuple[str, bytes]],
    at_most: Callable[[float], Any],
    seconds: float,
    seed: int = 1,
) -> tuple[list[Crash], int, int]:
    """Mutate ``seeds`` for that long: what crashed, how many inputs ran, how many edges there are.

    Ends early with the third crash: one fault often has many inputs.
    """
    chance = random.Random(seed)
    coverage = Coverage()
    corpus: list[tuple[str, bytes]] = []
    crashes: list[Crash] = []
    waiting = list(seeds)
    chance.shuffle(waiting)
    until, runs = time.monotonic() + seconds, 0
    while time.monotonic() < until and len(crashes) < 3:
        # Half of the time a seed that was not tried yet, while there are some.
        if waiting and (not corpus or chance.random() < 0.5):
            kind, data = waiting.pop()
        else:
            # Later entries reached something new most recently: they are tried more often.
            place = int(len(corpus) * chance.random() ** 0.5)
            kind, data = corpus[place]
            data = _mutated(data, corpus, chance)
        runs += 1
        coverage.fresh = 0
        said = run(judge, at_most, kind, data, coverage)
        if said:
            crashes.append(_smaller(Crash(kind, data, said), judge, at_most))
        elif coverage.fresh:
            corpus.append((kind, data))
    return crashes, runs, len(coverage.seen)


def run(
    judge: Callable[[bytes, str], None],
    at_most: Callable[[float], Any],
    kind: str,
    data: bytes,
    coverage: Coverage | None = None,
) -> str:
    """What went wrong with one input; "" for nothing. Tracing makes it slower: so is the limit."""
    try:
        with at_most(SLOW_S * (5 if coverage else 1)):
            if coverage:
                sys.settrace(coverage.trace)
            try:
                judge(data, kind)
            finally:
                sys.settrace(None)
    except Exception:
        return traceback.format_exc()
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return f"slow: more than {SLOW_S} s\n{traceback.format_exc(limit=-3)}"
    return ""


def _mutated(data: bytes, corpus: list[tuple[str, bytes]], chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _round in range(1 + int(chance.expovariate(0.7))):
        start = chance.randrange(len(changed) + 1)
        end = min(len(changed), start + int(chance.expovariate(0.1)))
        what = chance.randrange(7)
        if what == 0:
            changed[start:start] = chance.choice(_TOKENS)
        elif what == 1:
            changed[start:end] = chance.choice(_TOKENS)
        elif what == 2:
            del changed[start:end]
        elif what == 3:
            changed[start:start] = changed[start:end] * chance.choice((1, 1, 2, 20))
        elif what == 4:
            other = chance.choice(corpus)[1]
            cut = chance.randrange(len(other) + 1)
            changed[start:end] = other[cut : cut + 1 + int(chance.expovariate(0.05))]
        elif what == 5 and start < len(changed):
            changed[start] ^= 1 << chance.randrange(8)
        else:
            lines = bytes(changed).split(b"\n")
            chance.shuffle(lines)
            changed = bytearray(b"\n".join(lines))
    return bytes(changed[:_LONGEST])


def _smaller(
    crash: Crash, judge: Callable[[bytes, str], None], at_most: Callable[[float], Any]
) -> Crash:
    """The same crash with as little input as a minute of trying gives."""
    until, size = time.monotonic() + 20, max(1, len(crash.data) // 2)
    data, said = crash.data, crash.said
    while size and time.monotonic() < until:
        start = 0
        while start < len(data) and time.monotonic() < until:
            shorter = data[:start] + data[start + size :]
            now = run(judge, at_most, crash.kind, shorter)
            if now and now.splitlines()[-1].split(":")[0] == said.splitlines()[-1].split(":")[0]:
                data, said = shorter, now
            else:
                start += size
        size //= 2
    return Crash(crash.kind, data, said)


def main() -> int:
    """Fuzz, print, and keep what crashed."""
    sys.path.insert(0, str(ROOT / "build" / "collections"))
    from ansible_collections.steadygpu.host.tests.fuzz import target

    parser = argparse.ArgumentParser(description="Coverage-guided fuzzing of the checks.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    crashes, runs, edges = fuzz(
        target.judge_once, target.seeds(), target.at_most, arguments.seconds, arguments.seed
    )
    print(f"{runs} inputs, {edges} edges, {len(crashes)} crashes")
    folder = ROOT / "build" / "fuzz"
    for crash in crashes:
        folder.mkdir(parents=True, exist_ok=True)
        name = folder / f"{crash.kind}-{hashlib.sha256(crash.data).hexdigest()[:12]}"
        name.write_bytes(crash.data)
        print(f"\n{name}: {crash.kind} {crash.data!r}\n{crash.said}")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
