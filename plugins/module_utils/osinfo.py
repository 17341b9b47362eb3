# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the operating system says it is: ``/etc/os-release``, the machine, the kernel."""

from __future__ import annotations

import os
import platform
import shlex
from dataclasses import dataclass

from .atomic import read_text

# ID and ID_LIKE words that decide which package names and paths apply.
_FAMILIES = (
    ("debian", {"debian", "ubuntu"}),
    ("rhel", {"rhel", "fedora", "centos"}),
    ("suse", {"suse", "opensuse", "sles"}),
)


@dataclass(frozen=True)
class OsInfo:
    """``family`` is ``debian``, ``rhel``, ``suse``, or the ID itself when it is none of these.

    ``vendor_image`` is the name of an image that the machine's vendor maintains, such as DGX OS.
    """

    id: str | None
    version_id: str | None
    codename: str | None
    family: str | None
    name: str | None
    machine: str
    python: str
    vendor_image: str | None = None


@dataclass(frozen=True)
class KernelInfo:
    """``release`` as ``uname -r`` prints it, ``cmdline`` as the boot loader gave it."""

    release: str | None
    cmdline: str | None


def read_os(root: str = "/") -> OsInfo:
    """Read os-release under ``root``; machine and Python are those of this process."""
    text = read_text(os.path.join(root, "etc/os-release"))
    if text is None:
        text = read_text(os.path.join(root, "usr/lib/os-release"))
    fields = parse_os_release(text or "")
    return OsInfo(
        id=fields.get("ID"),
        version_id=fields.get("VERSION_ID"),
        codename=fields.get("VERSION_CODENAME"),
        family=family_of(fields),
        name=fields.get("PRETTY_NAME"),
        machine=platform.machine(),
        python=platform.python_version(),
        vendor_image=_vendor_image(root),
    )


def read_kernel(root: str = "/") -> KernelInfo:
    """The running kernel's release and command line from ``/proc``."""
    release = read_text(os.path.join(root, "proc/sys/kernel/osrelease"))
    cmdline = read_text(os.path.join(root, "proc/cmdline"))
    return KernelInfo(
        release=release.strip() if release else None,
        cmdline=cmdline.strip() if cmdline is not None else None,
    )


def _vendor_image(root: str) -> str | None:
    text = read_text(os.path.join(root, "etc/dgx-release"))
    if text is None:
        return None
    fields = parse_os_release(text)
    words = fields.get("DGX_PRETTY_NAME"), fields.get("DGX_SWBUILD_VERSION")
    return " ".join(word for word in words if word) or "DGX OS"


def parse_os_release(text: str) -> dict[str, str]:
    """``KEY=value`` lines with shell quoting; lines that break its rules are passed over."""
    fields = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if not equals or key.startswith("#"):
            continue
        try:
            words = shlex.split(value)
        except ValueError:
            continue
        fields[key] = words[0] if words else ""
    return fields


def family_of(fields: dict[str, str]) -> str | None:
    """The family that ID or ID_LIKE names; the ID itself for an unknown one."""
    words = {fields.get("ID", ""), *fields.get("ID_LIKE", "").split()}
    for family, members in _FAMILIES:
        if words & members:
            return family
    return fields.get("ID")
