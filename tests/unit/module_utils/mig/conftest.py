# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts for the tests of the executor."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.tests.unit.module_utils.mig.simulated import (
    Host,
    build,
    stop_programs,
)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Builds a recorded machine once."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed for this Python")
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler to build the simulated NVML library with")
    machines: dict[str, Path] = {}

    def machine(profile: str) -> Path:
        if profile not in machines:
            machines[profile] = build(tmp_path_factory.mktemp(profile), profile)
        return machines[profile]

    yield machine
    stop_programs()


@pytest.fixture
def host(built: Callable[[str], Path], tmp_path: Path) -> Host:
    """Eight A100, MIG off, nobody on them."""
    return Host(built("dgx-a100"), tmp_path)


@pytest.fixture
def hopper(built: Callable[[str], Path], tmp_path: Path) -> Host:
    """Eight H100."""
    return Host(built("hgx-h100"), tmp_path)
