# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of cuts share: a scratch directory, the traced server, the counts at the end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.tests.cuts.module_sweep import ModuleSweep
from ansible_collections.steadygpu.host.tests.cuts.sweep import COUNTS, Sweep
from ansible_collections.steadygpu.host.tests.cuts.tracing import MODULES, PROGRAM, Operations


@contextlib.contextmanager
def _operations(program: Path) -> Iterator[tuple[Operations, Path]]:
    """A server, and a directory in memory: what a SIGKILL leaves is the same there, and a sweep
    waits for thousands of fsyncs.
    """
    if shutil.which("strace") is None:
        pytest.skip("strace is missing; as root: apt-get install strace")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="cuts-", dir=memory) as scratch:
        with Operations(Path(scratch), program) as operations:
            yield operations, Path(scratch)


@pytest.fixture
def sweep() -> Iterator[Sweep]:
    """Cuts of checkpoints, changes and the way back."""
    with _operations(PROGRAM) as (operations, scratch):
        yield Sweep(operations, scratch)


@pytest.fixture(scope="module")
def module_sweep() -> Iterator[ModuleSweep]:
    """Cuts of whole modules."""
    with _operations(MODULES) as (operations, scratch):
        yield ModuleSweep(operations, scratch)


def pytest_configure(config: pytest.Config) -> None:
    """Counts of a former run are not those of this one."""
    if not hasattr(config, "workerinput") and COUNTS.exists():
        for file in COUNTS.glob("*.json"):
            file.unlink()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many cuts there were, of how many calls; all of it is in ``build/cuts``."""
    rows = [json.loads(file.read_text()) for file in sorted(COUNTS.glob("*.json"))]
    if rows and not os.environ.get("PYTEST_XDIST_WORKER"):
        terminalreporter.section("cuts")
        for row in rows:
            terminalreporter.write_line(
                "{operation:<22} {cuts:>5} of {calls:>5} calls that change the disk, "
                "{seconds:.1f} s".format(**row)
            )
        cuts, calls = (sum(row[name] for row in rows) for name in ("cuts", "calls"))
        terminalreporter.write_line(f"{'together':<22} {cuts:>5} of {calls:>5}")
