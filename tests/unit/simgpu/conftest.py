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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SIMGPU = Path(__file__).resolve().parents[2] / "simgpu"
sys.path.insert(0, str(SIMGPU))
sys.path.insert(0, str(SIMGPU / "toolkit"))

from simgpu_guest import profiles, state, tree  # noqa: E402
from simgpu_image import packages  # noqa: E402
from simgpu_image.library import compile_library  # noqa: E402

#: What every program asked of the library begins with.
PRELUDE = """
import json, sys
import pynvml as n
def answer(function, *arguments):
    "The call's result, or the name of the error NVML gave."
    try:
        result = function(*arguments)
    except n.NVMLError as error:
        return type(error).__name__
    return result if isinstance(result, (int, str, list, type(None))) else "object"
def gpu(index=0):
    "Handle of a GPU; begins NVML."
    n.nvmlInit()
    return n.nvmlDeviceGetHandleByIndex(index)
def offers(h):
    "Profiles of GPU instances by the driver's id."
    found = {}
    for number in range(n.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = n.nvmlDeviceGetGpuInstanceProfileInfo(h, number)
        except n.NVMLError:
            continue
        found[info.id] = info
    return found
def placements(h, profile):
    count = n.c_uint()
    n.nvmlDeviceGetGpuInstancePossiblePlacements(h, profile, None, n.byref(count))
    array = (n.c_nvmlGpuInstancePlacement_t * count.value)()
    n.nvmlDeviceGetGpuInstancePossiblePlacements(h, profile, array, n.byref(count))
    return [[one.start, one.size] for one in array]
def instances(h):
    "[id, profile id, start, size] of every GPU instance, by id."
    found = []
    for profile, info in offers(h).items():
        count, array = n.c_uint(), (n.c_nvmlGpuInstance_t * info.instanceCount)()
        n.nvmlDeviceGetGpuInstances(h, profile, array, n.byref(count))
        for handle in array[:count.value]:
            one = n.nvmlGpuInstanceGetInfo(handle)
            found.append([one.id, one.profileId, one.placement.start, one.placement.size])
    return sorted(found)
def create(h, profile, start=None):
    "Handle of a new GPU instance."
    if start is None:
        return n.nvmlDeviceCreateGpuInstance(h, profile)
    size = placements(h, profile)[0][1]
    place = n.c_nvmlGpuInstancePlacement_t(start, size)
    return n.nvmlDeviceCreateGpuInstanceWithPlacement(h, profile, n.byref(place))
def mig_devices(h):
    found = []
    for index in range(n.nvmlDeviceGetMaxMigDeviceCount(h)):
        try:
            found.append(n.nvmlDeviceGetMigDeviceHandleByIndex(h, index))
        except n.NVMLError_NotFound:
            pass
    return found
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
        program = f"{PRELUDE}\n{code}\nprint(json.dumps(out))"
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

    @contextmanager
    def talk(self, code: str) -> Iterator[Callable[[Any], Any]]:
        """One process for many questions: `code` defines answer_to(request)."""
        loop = "for line in sys.stdin: print(json.dumps(answer_to(json.loads(line))), flush=True)"
        process = subprocess.Popen(
            [sys.executable, "-c", f"{PRELUDE}\n{code}\n{loop}"],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def ask(request: Any) -> Any:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            return json.loads(stdout.readline())

        with process:
            try:
                yield ask
            finally:
                stdin.close()


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


@pytest.fixture
def install(tmp_path: Path) -> Callable[[str], Path]:
    """Lays out the files of nvidia-container-toolkit-base; returns where its Python code lies."""

    def lay_out(version: str) -> Path:
        name = "nvidia-container-toolkit-base"
        package = next(p for p in packages.all_packages() if (p.name, p.version) == (name, version))
        root = tmp_path / version
        for path, file in package.files.items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
        return root / "usr/lib/nvidia-container-toolkit-simulation"

    return lay_out


@pytest.fixture
def ctk(install: Callable[[str], Path]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs nvidia-ctk as packaged, with the environment of a simulated driver."""
    home = install(packages.VERSIONS[-1])

    def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "nvidia_ctk", *arguments],
            env={**environment, "PYTHONPATH": str(home)},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    return run
