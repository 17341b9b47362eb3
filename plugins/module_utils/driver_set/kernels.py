# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernels of the host: which has a driver module, and which could get one built."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..atomic import read_text
from ..process import CommandMissingError, run

_MODULES = "lib/modules"
# Debian calls its files nvidia-current.ko and nvidia-current-uvm.ko, and makes nvidia an alias.
_FILE = re.compile(r"nvidia(?:-current|-tesla)?(?:-\d+)?(?:-open)?(-uvm)?\.ko(?:\.\w+)?$")
_DKMS = "var/lib/dkms"


@dataclass(frozen=True)
class Kernel:
    """``module`` and ``uvm`` are files below /lib/modules/RELEASE, None where there are none."""

    release: str
    running: bool
    headers: bool
    module: str | None = None
    uvm: str | None = None

    @property
    def path(self) -> str | None:
        """The module's file as the host sees it."""
        return f"/lib/modules/{self.release}/{self.module}" if self.module else None


@dataclass(frozen=True)
class Build:
    """One module of DKMS: ``state`` is ``added``, ``built`` or ``installed`` for ``kernel``."""

    name: str
    version: str
    kernel: str | None
    state: str

    def as_dict(self) -> dict[str, str | None]:
        """As the module returns it."""
        return {
            "name": self.name,
            "version": self.version,
            "kernel": self.kernel,
            "state": self.state,
        }


def read_kernels(running: str | None, root: str = "/") -> tuple[Kernel, ...]:
    """Every kernel that has modules here, by name."""
    found = []
    for release in _names(os.path.join(root, _MODULES)):
        directory = os.path.join(root, _MODULES, release)
        index = read_text(os.path.join(directory, "modules.dep"))
        # A removed kernel leaves a directory with nothing but what DKMS built.
        if index is None and release != running:
            continue
        module, uvm = parse_modules(index or "")
        headers = os.path.exists(os.path.join(directory, "build", "Makefile"))
        found.append(Kernel(release, release == running, headers, module, uvm))
    return tuple(found)


def parse_modules(text: str) -> tuple[str | None, str | None]:
    """The files of nvidia and nvidia-uvm in a ``modules.dep``. Pure."""
    module, uvm = None, None
    for line in text.splitlines():
        path = line.partition(":")[0]
        match = _FILE.match(os.path.basename(path))
        if match and match.group(1):
            uvm = uvm or path
        elif match:
            module = module or path
    return module, uvm


def module_release(path: str | None, deadline_s: float = 10.0) -> str | None:
    """The release that a module's file says it is; None where it cannot be told."""
    if path is None:
        return None
    try:
        done = run(["modinfo", "-F", "version", path], deadline_s)
    except CommandMissingError:
        return None
    return done.stdout.strip() or None if done.ok else None


def read_builds(root: str = "/") -> tuple[Build, ...]:
    """What DKMS has of NVIDIA's modules, from its tree: asking its program takes seconds.

    ``/var/lib/dkms/NAME/VERSION/source`` is a module that was added, ``VERSION/KERNEL/ARCH/module``
    one that was built, and ``kernel-KERNEL-ARCH`` beside the versions one that is installed
    (dkms(8)).
    """
    found = []
    for name in _names(os.path.join(root, _DKMS)):
        if not name.startswith("nvidia"):
            continue
        tree = os.path.join(root, _DKMS, name)
        entries = _names(tree)
        installed = {
            (os.path.basename(os.path.dirname(os.path.dirname(target))), kernel)
            for target, kernel in _links(tree, entries)
        }
        for version in entries:
            if version.startswith("kernel-") or not os.path.isdir(os.path.join(tree, version)):
                continue
            kernels = [
                kernel
                for kernel in _names(os.path.join(tree, version))
                if kernel not in ("source", "build")
                and os.path.isdir(os.path.join(tree, version, kernel))
            ]
            for kernel in kernels:
                state = "installed" if (version, kernel) in installed else "built"
                found.append(Build(name, version, kernel, state))
            if not kernels:
                found.append(Build(name, version, None, "added"))
    return tuple(found)


def build_log(builds: Sequence[Build], root: str = "/") -> str | None:
    """The log of a build that did not end well, as the host sees it."""
    for build in builds:
        path = f"/{_DKMS}/{build.name}/{build.version}/build/make.log"
        if os.path.exists(os.path.join(root, path.lstrip("/"))):
            return path
    return None


def without_driver(kernels: Sequence[Kernel]) -> list[str]:
    """Kernels, other than the running one, that would boot into a host without a driver."""
    running = [kernel for kernel in kernels if kernel.running]
    if not running or running[0].module is None:
        return []
    return [one.release for one in kernels if not one.running and one.module is None]


def _links(tree: str, entries: Sequence[str]) -> list[tuple[str, str]]:
    """Target and kernel of the links ``kernel-KERNEL-ARCH``, which lead to VERSION/KERNEL/ARCH."""
    found = []
    for entry in entries:
        path = os.path.join(tree, entry)
        if entry.startswith("kernel-") and os.path.islink(path):
            target = os.readlink(path)
            found.append((target, os.path.basename(os.path.dirname(target))))
    return found


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
