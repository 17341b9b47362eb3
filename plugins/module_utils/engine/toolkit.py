# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVIDIA Container Toolkit on this host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..packages import Package
from ..process import find_program
from .containerd import program_version

CONFIG_PATH = "/etc/nvidia-container-runtime/config.toml"


@dataclass(frozen=True)
class ConfigFile:
    """``status`` is ``present`` or ``absent``; its content is not judged here."""

    path: str
    status: str


@dataclass(frozen=True)
class ToolkitInfo:
    """``ctk`` is the absolute path of ``nvidia-ctk``; ``version`` is without package revision."""

    status: str
    version: str | None
    ctk: str | None
    config: ConfigFile


def read_toolkit(
    packages: Mapping[str, Package], root: str = "/", live: bool = True, deadline_s: float = 30.0
) -> ToolkitInfo:
    """The package database answers first; a toolkit without package is asked itself."""
    ctk = find_program("nvidia-ctk") if live else None
    version = _packaged_version(packages)
    if version is None and ctk is not None:
        version = program_version(ctk, deadline_s)
    present = os.path.exists(os.path.join(root, CONFIG_PATH.lstrip("/")))
    return ToolkitInfo(
        status="installed" if ctk or version else "absent",
        version=version,
        ctk=ctk,
        config=ConfigFile(CONFIG_PATH, "present" if present else "absent"),
    )


def _packaged_version(packages: Mapping[str, Package]) -> str | None:
    for name in ("nvidia-container-toolkit-base", "nvidia-container-toolkit"):
        if name in packages:
            return packages[name].version.rpartition(":")[2].partition("-")[0]
    return None
