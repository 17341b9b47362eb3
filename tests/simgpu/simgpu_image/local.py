# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Library and state for tests on the developer's own machine: no nodes, no mounts, no root."""

from __future__ import annotations

from pathlib import Path

from simgpu_guest import profiles, state, tree

from .library import compile_library
from .tools import SOURCES


def build(output: Path, profile: str) -> str:
    """Fill `output`; returns the environment to use it with, as shell assignments."""
    compile_library(output)
    loaded = profiles.load(SOURCES / "profiles", profile)
    slots = tree.model_slots()
    state.write(
        output / "state", profiles.build_state(loaded, slots, check_nodes=False, uvm_major=511)
    )
    return f"LD_LIBRARY_PATH={output.resolve()} SIMGPU_STATE={output.resolve() / 'state'}"
