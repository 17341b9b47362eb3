# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""containerd and runc: which versions, and does containerd run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..process import find_program, run
from .services import Service


@dataclass(frozen=True)
class ContainerdInfo:
    """``status`` is ``running``, ``stopped`` or ``absent``."""

    version: str | None
    status: str


def read_containerd(
    service: Service, known_version: str | None = None, deadline_s: float = 30.0
) -> ContainerdInfo:
    """``known_version`` is what the Docker daemon said already: then no program is run.

    dockerd starts a containerd of its own when no service offers one; that one counts as
    running because Docker could name its version.
    """
    version = known_version or program_version("containerd", deadline_s)
    if version is None and service.load_state == "not-found":
        return ContainerdInfo(None, "absent")
    running = service.active or known_version is not None
    return ContainerdInfo(version, "running" if running else "stopped")


def program_version(program: str, deadline_s: float = 30.0) -> str | None:
    """What ``PROGRAM --version`` prints as its version; None when it is not installed."""
    if find_program(program) is None:
        return None
    return parse_version(run([program, "--version"], deadline_s).stdout)


def parse_version(text: str) -> str | None:
    """The version in ``runc version 1.1.15+ds1`` or ``Docker version 26.1.5+dfsg1, build …``."""
    match = re.search(r"(?:^|\s)v?(\d+\.\d+\.\d+[^\s,]*)", text)
    return match.group(1) if match else None
