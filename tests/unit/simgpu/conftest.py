# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The simulated NVML, compiled once, driven by PyPI's pynvml in one process per question."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SIMGPU = Path(__file__).resolve().parents[2] / "simgpu"
sys.path.insert(0, str(SIMGPU))
sys.path.insert(0, str(SIMGPU / "toolkit"))

from simgpu_guest import profiles, state, tree  # noqa: E402
from simgpu_image.library import compile_library  # noqa: E402

_PRELUDE = """
import json, sys
import pynvml as n
def answer(function, *arguments):
    "The call's result, or the name of the error NVML gave."
    try:
        result = function(*arguments)
    except n.NVMLError as error:
        return type(error).__name__
    return result if isinstance(result, (int, str, list, type(None))) else "object"
"""


class Driver:
    """A simulated driver: its state can be changed, and NVML asked about it."""

    def __init__(self, directory: Path, library: Path, profile: str) -> None:
        self.path = directory / "state"
        self.profile = profiles.load(SIMGPU / "profiles", profile)
        self.slots = tree.model_slots()
        self.state = profiles.build_state(
            self.profile, self.slots, check_nodes=False, uvm_major=511
        )
        self.environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(library.parent),
            "SIMGPU_STATE": str(self.path),
        }
        self.write()

    def write(self) -> None:
        """Make the library see what `state` says now."""
        state.write(self.path, self.state)

    def ask(self, code: str, timeout_s: float = 20) -> Any:
        """Run `code`, which leaves its answer in `out`, and return that."""
        program = f"{_PRELUDE}\n{code}\nprint(json.dumps(out))"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def sources() -> Path:
    """Where the simulation's sources lie."""
    return SIMGPU


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of the compiled library."""
    if shutil.which("gcc") is None:
        pytest.fail("gcc is not installed: apt-get install gcc libc6-dev")
    return compile_library(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(tmp_path: Path, library: Path) -> Callable[[str], Driver]:
    """Makes a driver with the GPUs of a profile."""
    return lambda profile: Driver(tmp_path, library, profile)
