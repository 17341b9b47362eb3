# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules without which this host lacks a GPU, a disk, its network or a file system."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator

from ..atomic import read_text
from . import words

_GPU = re.compile(r"nvidia(_(uvm|modeset|drm|peermem))?|amdgpu")
# Drivers of displays that are kept away for the sake of the GPUs; a console counts as their user.
_DISPLAYS = frozenset({"nouveau", "nvidiafb", "nova_core", "nova_drm", "rivafb"})
# By DEVTYPE in the uevent of a network interface, and by its type (ARPHRD_INFINIBAND).
_INTERFACES = {
    "bond": "bonding",
    "bridge": "bridge",
    "macvlan": "macvlan",
    "vlan": "8021q",
    "vxlan": "vxlan",
}
_INFINIBAND = "32"
# Parameters of the kernel that keep modules from being loaded.
_BLACKLISTS = ("modprobe.blacklist", "module_blacklist", "rd.driver.blacklist")


def why(name: str, root: str = "/") -> Iterator[str]:
    """What this host would lack if the module were kept away, one sentence for each thing."""
    module = name.replace("-", "_")
    if _GPU.fullmatch(module):
        yield f"{name} is the driver of the GPUs: kept away, there is no GPU"
        return
    if module in _DISPLAYS:
        return
    found = [what for kept, what in _hardware(root) if kept == module]
    found += [what for kept, what in _interfaces(root) if kept == module]
    found += [what for kind, what in _mounted(root) if _is_of(kind, module)]
    if not found:
        found += _users(module, root)
    for what in dict.fromkeys(found):
        yield f"{name} {what}: kept away, the host may not come up with it"


def kept_away(parameters: Iterable[str]) -> list[tuple[str, str]]:
    """Each module that a parameter of the kernel keeps away, with the parameter."""
    return [
        (name, word)
        for word in parameters
        if words.key(word) in _BLACKLISTS
        for name in words.value(word).split(",")
        if name
    ]


def _hardware(root: str) -> Iterator[tuple[str, str]]:
    """Every driver on the way from a disk or an interface up to the root of the device tree."""
    for kind, what in (("block", "the disk"), ("class/net", "the network interface")):
        for place in sorted(glob.glob(os.path.join(glob.escape(root), "sys", kind, "*"))):
            name = os.path.basename(place)
            device = os.path.realpath(os.path.join(place, "device"))
            if not os.path.exists(os.path.join(place, "device")):
                continue
            while os.path.basename(device) not in ("devices", "sys", ""):
                link = os.path.join(device, "driver", "module")
                if os.path.exists(link):
                    yield os.path.basename(os.path.realpath(link)), f"drives {what} {name}"
                device = os.path.dirname(device)
    # A card whose driver has made no disk or interface yet, by its class.
    for device in glob.glob(os.path.join(glob.escape(root), "sys/module/*/drivers/*/*:*")):
        kind = _read(os.path.join(device, "class")).strip()
        if kind.startswith(("0x01", "0x02")):
            what = "a disk controller" if kind.startswith("0x01") else "a network card"
            module = device.split(os.sep)[-4]
            yield module, f"drives {os.path.basename(device)}, {what}"


def _interfaces(root: str) -> Iterator[tuple[str, str]]:
    for place in sorted(glob.glob(os.path.join(glob.escape(root), "sys/class/net/*"))):
        name = os.path.basename(place)
        for line in _read(os.path.join(place, "uevent")).splitlines():
            key, _equals, value = line.partition("=")
            if key == "DEVTYPE" and value in _INTERFACES:
                yield _INTERFACES[value], f"makes the network interface {name}"
        if _read(os.path.join(place, "type")).strip() == _INFINIBAND:
            yield "ib_ipoib", f"makes the network interface {name}"


def _mounted(root: str) -> Iterator[tuple[str, str]]:
    for line in _read(os.path.join(root, "proc/mounts")).splitlines():
        fields = line.split()
        if len(fields) > 2:
            yield fields[2], f"is the file system of {fields[1]}"


def _is_of(kind: str, module: str) -> bool:
    """Is a file system of this kind one of the module's? That of nfs4 is nfs or nfsv4."""
    name = kind.partition(".")[0]
    return name == module or (name.startswith("nfs") and module.startswith("nfs"))


def _users(module: str, root: str) -> list[str]:
    """Whether something that is loaded, or open, needs it: an array, a volume, a bond."""
    for line in _read(os.path.join(root, "proc/modules")).splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[0] == module and fields[2] != "0":
            users = fields[3].strip(",").replace(",", ", ")
            return [f"is in use{'' if users == '-' else ' by ' + users} now"]
    return []


def _read(path: str) -> str:
    try:
        return read_text(path) or ""
    except OSError:
        return ""
