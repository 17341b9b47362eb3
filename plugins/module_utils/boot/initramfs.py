# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The initramfs has its own copy of modprobe.d, and may load a module before the disk is there."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..atomic import read_text
from ..process import CommandMissingError
from .model import ALWAYS, NEVER, BootError, Machine

# Every kernel's is made anew: packing takes minutes on a slow machine.
_DEADLINE_S = 900.0
_MODULE = re.compile(r"([^/]+)\.ko(?:\.\w+)?$")


@dataclass(frozen=True)
class Tool:
    """What makes the initramfs here. ``argv`` makes that of every kernel anew.

    With ``each`` it is started for every image, whose name and kernel are its last two words: where
    the images have another name than the tool's own.
    """

    argv: tuple[str, ...]
    listing: str
    image: str
    each: bool = False


# initramfs-tools on Debian and Ubuntu, dracut on RHEL and its kin; dracut on Debian and Ubuntu
# makes images of the name that the boot loader looks for there.
_TOOLS = (
    Tool(("update-initramfs", "-u", "-k", "all"), "lsinitramfs", "/boot/initrd.img-{}"),
    Tool(("dracut", "--force", "--regenerate-all"), "lsinitrd", "/boot/initramfs-{}.img"),
    Tool(("dracut", "--force"), "lsinitrd", "/boot/initrd.img-{}", each=True),
)


@dataclass(frozen=True)
class Judged:
    """``action`` is what is to be done, "" for nothing.

    ``token`` stands for the state of the two files, so that the same state need not be looked into
    twice: the listing of an initramfs takes seconds. ``warning`` tells what cannot be judged.
    """

    action: str = ""
    token: str = ""
    warning: str = ""


def judge(
    path: str, modules: Sequence[str], mode: str, known_token: str, machine: Machine
) -> Judged:
    """Has the initramfs of the running kernel to be made anew because of the file ``path``?

    ``modules`` are those that the file speaks of.
    """
    tool = _tool(machine)
    if tool is None or mode == NEVER:
        return Judged()
    image = _image(tool, machine)
    made = _mtime_ns(image)
    written = _mtime_ns(os.path.join(machine.root, path.lstrip("/")))
    if made is None:
        return Judged(warning=_no_image(path, tool, image) if written is not None else "")
    token = f"{made}:{written}"
    if token == known_token or (written is not None and made >= written):
        return Judged("", token)
    names = _names(tool, image, machine)
    stale = path.lstrip("/") in names
    if written is not None:
        stale = stale or mode == ALWAYS or bool(set(map(_same, modules)) & _modules(names))
    return Judged(_said(tool, machine) if stale else "", token)


def would_be(path: str, modules: Sequence[str] | None, mode: str, machine: Machine) -> str:
    """What is to be done once ``path``, which speaks of ``modules``, has been written.

    None for ``modules``: once it has been removed. For check mode. Raises BootError.
    """
    tool = _tool(machine)
    if tool is None or mode == NEVER:
        return ""
    image = _image(tool, machine)
    if _mtime_ns(image) is None:
        return ""
    names = _names(tool, image, machine)
    needed = path.lstrip("/") in names
    if modules is not None:
        needed = needed or mode == ALWAYS or bool(set(map(_same, modules)) & _modules(names))
    return _said(tool, machine) if needed else ""


def make(machine: Machine) -> None:
    """Make the initramfs of every kernel anew. Raises BootError."""
    tool = _tool(machine)
    if tool is None:
        return
    for argv in _commands(tool, machine):
        done = machine.run(argv, deadline_s=_DEADLINE_S)
        if not done.ok:
            raise BootError(f"{' '.join(argv)} failed:\n{done.said}")


def _tool(machine: Machine) -> Tool | None:
    """The tool whose image the running kernel has, or would have."""
    found = [tool for tool in _TOOLS if machine.find(tool.argv[0]) and machine.find(tool.listing)]
    used = [tool for tool in found if _mtime_ns(_image(tool, machine)) is not None]
    chosen = used or found
    return chosen[0] if chosen else None


def _commands(tool: Tool, machine: Machine) -> list[list[str]]:
    if not tool.each:
        return [list(tool.argv)]
    pattern = os.path.join(glob.escape(machine.root), tool.image.format("*").lstrip("/"))
    start = len(tool.image.format(""))
    images = sorted("/" + os.path.relpath(path, machine.root) for path in glob.glob(pattern))
    # Debian keeps a former image as .bak or .old-dkms beside it; no kernel has such a name.
    return [
        [*tool.argv, image, image[start:]]
        for image in images
        if os.path.isdir(os.path.join(machine.root, "lib/modules", image[start:]))
    ]


def _said(tool: Tool, machine: Machine) -> str:
    return " && ".join(" ".join(argv) for argv in _commands(tool, machine))


def _no_image(path: str, tool: Tool, image: str) -> str:
    return (
        f"the running kernel has no {image}, so it cannot be seen whether its initramfs has what "
        f"{path} says: make it anew with {tool.argv[0]}, if it has one elsewhere"
    )


def _image(tool: Tool, machine: Machine) -> str:
    return os.path.join(machine.root, tool.image.format(_release(machine)).lstrip("/"))


def _release(machine: Machine) -> str:
    try:
        return (read_text(os.path.join(machine.root, "proc/sys/kernel/osrelease")) or "").strip()
    except OSError:
        return ""


def _names(tool: Tool, image: str, machine: Machine) -> frozenset[str]:
    """The paths in an initramfs. Raises BootError."""
    try:
        done = machine.run([tool.listing, image], deadline_s=120.0)
    except CommandMissingError as error:
        raise BootError(str(error)) from error
    if not done.ok:
        raise BootError(f"{tool.listing} {image} failed:\n{done.said}")
    return frozenset(line.split()[-1] for line in done.stdout.splitlines() if line.strip())


def _modules(names: frozenset[str]) -> set[str]:
    found = (_MODULE.search(name) for name in names)
    return {_same(match.group(1)) for match in found if match}


def _same(name: str) -> str:
    return name.replace("-", "_")


def _mtime_ns(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
