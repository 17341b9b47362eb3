# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which boot loader started this kernel, so that it is worth telling it something."""

from __future__ import annotations

import os
from typing import Union

from ..atomic import read_text
from . import words
from .grub import CONFIG, Grub
from .grubby import Grubby
from .model import Machine
from .systemd_boot import CMDLINE, ENTRIES, SystemdBoot

Loader = Union[Grub, Grubby, SystemdBoot]

# systemd.io, Boot Loader Interface: who started the kernel, in UTF-16 behind four bytes.
_LOADER_INFO = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


def find(machine: Machine) -> tuple[Loader | None, str]:
    """The boot loader, or None and why parameters cannot be set on this host."""
    by_systemd = "systemd-boot" in _loader_info(machine.root)
    if by_systemd:
        return _systemd_boot(machine)
    by_grub = any(words.key(word) == "BOOT_IMAGE" for word in _cmdline(machine.root))
    if not by_grub:
        return None, (
            "this kernel was started by no boot loader that is known (neither GRUB, which names "
            "itself by BOOT_IMAGE= in /proc/cmdline, nor systemd-boot): a hypervisor, the network "
            "or a container gave it its parameters, and they are to be set there"
        )
    if machine.find("grubby") and not machine.find("update-grub"):
        return Grubby(machine), ""
    grub = Grub(machine)
    if machine.find("update-grub") is None:
        return None, "GRUB started this kernel, and neither update-grub nor grubby is on the host"
    if not grub.entries():
        return None, (
            f"GRUB started this kernel, and {CONFIG} has no entry of this system's kernels: it is "
            "kept elsewhere, as by another system on this machine"
        )
    return grub, ""


def _systemd_boot(machine: Machine) -> tuple[Loader | None, str]:
    loader = SystemdBoot(machine)
    if machine.find("kernel-install") is None:
        return None, "systemd-boot started this kernel, and kernel-install is not on the host"
    if not loader.entries():
        return None, (
            f"systemd-boot started this kernel, and no entry is in {', '.join(ENTRIES)}: a unified "
            "kernel image has its parameters inside, and is to be built anew by what made it"
        )
    if not os.path.exists(os.path.join(machine.root, CMDLINE.lstrip("/"))):
        return None, (
            f"systemd-boot started this kernel, and there is no {CMDLINE}: kernel-install then "
            "takes the parameters of the running kernel. Write that file first, with what "
            "/proc/cmdline holds but initrd="
        )
    return loader, ""


def _loader_info(root: str) -> str:
    try:
        with open(os.path.join(root, _LOADER_INFO), "rb") as handle:
            return handle.read(4096)[4:].decode("utf-16-le", "replace")
    except OSError:
        return ""


def _cmdline(root: str) -> list[str]:
    try:
        return words.split(read_text(os.path.join(root, "proc/cmdline")) or "")
    except OSError:
        return []
