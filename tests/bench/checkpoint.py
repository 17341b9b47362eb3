# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a checkpoint and the way back cost on a typical host, besides reloads of an engine.

Usage: ``make bench``, or ``python tests/bench/checkpoint.py [TIMES]`` in the project's environment.

It lays out the 300 small files that a checkpoint of a provisioned host holds, on the disk that the
checkout lies on, and times many takes and restores of them: the first take of a host, one after a
change, one when nothing changed, and the undo of a change of 25 files. The state of units, packages
and the kernel is read from this machine each time; what it has not is not in the figure, and the
table says so. Each figure also stands as a ratio to ``cp -a`` of the same files with an fsync of
each in the same run, a tenth as often: that ratio can be compared between disks.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "collections"))

# The collection is found only now.
from ansible_collections.steadygpu.host.plugins.module_utils.rollback import (  # noqa: E402
    model,
    scope,
    window,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import (  # noqa: E402
    files,
    observe,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import (  # noqa: E402
    Store,
)
from ansible_collections.steadygpu.host.plugins.module_utils.vouched import vouch  # noqa: E402
from ansible_collections.steadygpu.host.tests.cuts.scratch_host import ScratchHost  # noqa: E402

TIMES = 200
CHANGED = 25
RUN = "bench"
REASON = model.Reason(who="bench")

# How many files of which size, in bytes, below which directory: as on a host with a private
# registry, whose certificates are most of the files.
_SHAPE = (
    ("/etc/steadygpu/conf{}.json", 40, 600),
    ("/etc/docker/certs.d/registry{}.example:5000/ca.crt", 60, 1800),
    ("/etc/containerd/certs.d/registry{}.example/hosts.toml", 60, 250),
    ("/etc/sysctl.d/{}-site.conf", 30, 400),
    ("/etc/modprobe.d/site{}.conf", 25, 300),
    ("/etc/modules-load.d/site{}.conf", 10, 60),
    ("/etc/systemd/system/team{}.slice", 40, 350),
    ("/etc/systemd/system/docker.service.d/{}.conf", 10, 200),
    ("/etc/systemd/system/steadygpu-job{}.service", 10, 700),
    ("/etc/cdi/vendor{}.yaml", 8, 48_000),
    ("/etc/containerd/conf.d/{}.toml", 5, 900),
)


class BenchHost(ScratchHost):
    """Files below the scratch root; units, packages and the kernel are this machine's."""

    def observe(self, sink: Any, declared: Sequence[str]) -> model.State:
        """All of it, as on a host."""
        rest = observe.observe(files.MemorySink(), root="/")
        found = files.read(scope.areas(declared), sink, self.root)
        # Steps for what this machine is would be no steps of the scratch host.
        return model.State(files=found, runtime=rest.runtime, kernel_cmdline=rest.kernel_cmdline)


def main() -> None:
    """Measure and print."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else TIMES
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as scratch:
        root = Path(scratch, "root")
        paths = _lay_out(root)
        host = BenchHost(str(root))
        state = host.observe(files.MemorySink(), ())
        kept = sum(entry.kind == "file" for entry in state.files.values())
        if kept < len(paths):
            raise SystemExit(
                f"the checkpoint holds {kept} files of {len(paths)}: scope and shape differ"
            )
        rest = observe.observe(files.MemorySink(), root="/")
        takes = _Takes(root, Path(scratch), host, paths)
        rows = [
            ("`cp -a` with fsync of each file", *takes.measure(max(times // 10, 2), takes.copy)),
            ("first take", *takes.measure(times, takes.first)),
            (f"take, {CHANGED} files changed", *takes.measure(times, takes.changed)),
            ("take, nothing changed", *takes.measure(times, takes.same)),
            (f"undo of {CHANGED} files", *takes.measure(times, takes.undo)),
        ]
    base = rows[0][1]
    print(f"| {len(paths)} files, {times} times | p50 | p99 | p50 against the copy |")
    print("|---|---|---|---|")
    for name, middle, late in rows:
        print(f"| {name} | {middle:.3f} s | {late:.3f} s | {middle / base:.2f} × |")
    units, packages = len(rest.units), len(rest.packages)
    print(f"\nEach take read {units} units and {packages} packages of this machine; not there:")
    for part, why in rest.unknown.items() or {"-": "nothing"}.items():
        print(f"- {part}: {why.splitlines()[0]}")


def _lay_out(root: Path) -> list[Path]:
    """The files, with contents that differ from each other; their paths."""
    letters = random.Random(4)
    made = []
    for pattern, count, size in _SHAPE:
        for number in range(count):
            path = root / pattern.format(number).lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(letters.randbytes(size // 2).hex() + "\n")
            made.append(path)
    return made


class _Takes:
    """What is timed. Each method prepares and then returns what to time."""

    def __init__(self, root: Path, scratch: Path, host: BenchHost, paths: list[Path]) -> None:
        self._root, self._scratch, self._host, self._paths = root, scratch, host, paths
        self._turn = 0

    def measure(
        self, times: int, prepare: Callable[[], Callable[[], object]]
    ) -> tuple[float, float]:
        """Seconds: the median and the 99th percentile."""
        seconds = []
        for _attempt in range(times):
            work = prepare()
            os.sync()
            began = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - began)
        cuts = quantiles(seconds, n=100, method="inclusive")
        return cuts[49], cuts[98]

    def copy(self) -> Callable[[], object]:
        """What a person would do."""
        target = self._scratch / "copy"
        shutil.rmtree(target, ignore_errors=True)

        def work() -> None:
            subprocess.run(["cp", "-a", str(self._root), str(target)], check=True)
            for path in self._paths:
                _fsync(target / path.relative_to(self._root))

        return work

    def first(self) -> Callable[[], object]:
        """Into an empty store."""
        shutil.rmtree(self._directory, ignore_errors=True)
        return self._take

    def changed(self) -> Callable[[], object]:
        """Into a store that knows most of the contents."""
        self._take()
        self._change(vouched=False)
        return self._take

    def same(self) -> Callable[[], object]:
        """What begins each run that changes nothing."""
        self._take()
        return self._take

    def undo(self) -> Callable[[], object]:
        """The whole way back: looked, saved, planned, journalled, put back, looked again."""
        # Hundreds of changes are not in the ledger of a host that prunes.
        shutil.rmtree(self._directory, ignore_errors=True)
        window.begin(self._store(), self._host, RUN, "bench", 3600.0, REASON)
        self._change(vouched=True)

        def work() -> None:
            outcome = window.undo(self._store(), self._host, RUN, model.RestoreOptions())
            if not outcome.changed or outcome.left or outcome.conflicts:
                raise SystemExit(f"the undo did something else than it was timed for: {outcome}")

        return work

    @property
    def _directory(self) -> str:
        return str(self._root) + model.DIRECTORY

    def _store(self) -> Store:
        return Store(self._directory)

    def _take(self) -> None:
        store = self._store()
        with store.locked():
            state = self._host.observe(store.sink, ())
            store.add(state, REASON, self._host.machine())

    def _change(self, vouched: bool) -> None:
        """New contents, of the files that a restore may bring back."""
        self._turn += 1
        mine = [
            path for path in self._paths if path.name.startswith("conf") and path.suffix == ".json"
        ]
        for number, path in enumerate(mine[:CHANGED]):
            text = f"{self._turn} {number}\n"
            if vouched:
                vouch(str(path), text, root=str(self._root))
            path.write_text(text)


def _fsync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
