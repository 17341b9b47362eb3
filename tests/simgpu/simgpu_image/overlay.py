# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree a lab image gets on top of its root file system. The lab makes everything root's."""

from __future__ import annotations

import shutil
from pathlib import Path

from simgpu_guest import lab

from . import repository
from .library import compile_library
from .tools import SOURCES, BuildError

SUITES = ("trixie", "forky", "bookworm")
UNITS = ("simgpu.service", "simgpu-repo.service")

_MARKER_TEXT = """\
SIMULATION: this is a steadygpu lab machine (Debian {suite}).
GPUs, driver and the NVIDIA Container Toolkit on it are simulated; see `simgpu --help`.
"""


def build(output: Path, suite: str) -> None:
    """Make the tree anew at `output`. A directory with anything else in it is refused."""
    if output.exists() and any(output.iterdir()) and not (output / lab.MARKER).exists():
        raise BuildError(f"{output}: not empty and not an overlay of ours; name another directory")
    shutil.rmtree(output, ignore_errors=True)
    _put(output / lab.MARKER, _MARKER_TEXT.format(suite=suite))
    _install_command(output)
    for unit in UNITS:
        _enable(output, unit)
    repository.build(output / "srv/simgpu/repo")


def _install_command(output: Path) -> None:
    home = output / "usr/local/lib/simgpu"
    compile_library(home)
    (home / "libnvidia-ml.so.1").unlink()  # the guest links it only while a profile is loaded
    for path in sorted((SOURCES / "simgpu_guest").glob("*.py")):
        _put(home / "simgpu_guest" / path.name, path.read_text(encoding="utf-8"))
    for path in sorted((SOURCES / "profiles").rglob("*.json")):
        _put(home / path.relative_to(SOURCES), path.read_text(encoding="utf-8"))
    wrapper = (SOURCES / "simgpu_guest/simgpu.sh").read_text(encoding="utf-8")
    _put(output / "usr/local/sbin/simgpu", wrapper, mode=0o755)
    modprobe = (SOURCES / "simgpu_guest/nvidia-modprobe.sh").read_text(encoding="utf-8")
    _put(output / "usr/bin/nvidia-modprobe", modprobe, mode=0o755)


def _enable(output: Path, unit: str) -> None:
    units = output / "etc/systemd/system"
    _put(units / unit, (SOURCES / "simgpu_guest" / unit).read_text(encoding="utf-8"))
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / unit).symlink_to(f"/etc/systemd/system/{unit}")


def _put(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
