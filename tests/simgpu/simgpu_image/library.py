# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compiles the simulated libnvidia-ml."""

from __future__ import annotations

from pathlib import Path

from .tools import SOURCES, run

#: The driver version the library is for, in its name and in what it compares the module with.
#: Every profile carries this version.
DRIVER_VERSION = "550.163.01"

_FLAGS = (
    *("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"),
    *("-shared", "-fPIC", "-fvisibility=hidden", "-pthread"),
)


def compile_library(output: Path) -> Path:
    """libnvidia-ml.so.<version> and its soname link in `output`; BuildError without a compiler."""
    output.mkdir(parents=True, exist_ok=True)
    target = output / f"libnvidia-ml.so.{DRIVER_VERSION}"
    sources = sorted(str(path) for path in (SOURCES / "nvml").glob("*.c"))
    run(
        [
            "gcc",
            *_FLAGS,
            f'-DSIMGPU_LIBRARY_VERSION="{DRIVER_VERSION}"',
            "-Wl,-soname,libnvidia-ml.so.1",
            f"-ffile-prefix-map={SOURCES}=.",
            "-o",
            str(target),
            *sources,
        ]
    )
    link = output / "libnvidia-ml.so.1"
    link.unlink(missing_ok=True)
    link.symlink_to(target.name)
    return target
