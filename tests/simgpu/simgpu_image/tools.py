# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""External programs of the build, with errors that say what to install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

#: tests/simgpu
SOURCES = Path(__file__).resolve().parent.parent

_PACKAGES = {"gcc": "gcc libc6-dev", "gpg": "gnupg"}


class BuildError(Exception):
    """The simulation cannot be built; the text says what to do."""


def run(command: list[str]) -> None:
    """Run a program; BuildError with its own last words if it is missing or fails."""
    name = command[0]
    if shutil.which(name) is None:
        raise BuildError(f"{name} is not installed: apt-get install {_PACKAGES.get(name, name)}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.strip()}")
