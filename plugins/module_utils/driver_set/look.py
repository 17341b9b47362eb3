# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One look at the driver of a host: files, and one question to the package database."""

from __future__ import annotations

import glob
import os

from .. import osinfo, packages
from ..hardware import holders, library, pci, procfs, secure_boot, services
from ..process import CommandMissingError, run
from . import daemon, kernels
from .model import CONTAINER, NOBODY, PACKAGES, RUNFILE, UNKNOWN, View
from .names import in_step
from .tables import Card

# Debian's dkms and Ubuntu's shim make a key when the first module is built (dkms(8)).
_KEYS = ("var/lib/dkms/mok.pub", "var/lib/shim-signed/mok/MOK.der")
# What shim found enrolled at this boot: the kernel shows it here, and as a variable of EFI.
_ENROLLED = (
    "sys/firmware/efi/mok-variables/MokListRT",
    "sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23",
)
_PROC_DEADLINE_S = 5.0
# These hold GPUs for others, and let them go for a new driver when they are restarted.
_NOT_WORK = ("persistence",)


def view(root: str = "/") -> View:
    """The host as it is. Never fails: what cannot be read is None or empty."""
    proc = procfs.read(_PROC_DEADLINE_S, root)
    system = osinfo.read_kernel(root)
    found = packages.read_installed(root)
    all_kernels = kernels.read_kernels(system.release, root)
    running = next((one for one in all_kernels if one.running), None)
    shown = View(
        os=osinfo.read_os(root),
        installed=found,
        kernel=system.release,
        loaded=proc.version,
        flavour=proc.flavour,
        library=library.release(library.find(root)),
        on_disk=kernels.module_release(running.path if running else None),
        cards=tuple(_cards(root)),
        modules=procfs.read_modules(root),
        kernels=all_kernels,
        builds=kernels.read_builds(root),
        nvswitches=proc.nvswitches,
        fabric_manager=services.read_fabric_manager(proc.nvswitches, proc.version, root),
        persistence=services.read_persistence_daemon(root).status,
        unit=daemon.read_unit(root),
        can_hold=can_hold(found.manager, root),
        secure_boot=secure_boot.read(root),
        key_enrolled=key_enrolled(root),
        holders=tuple(_holders(proc, root)),
    )
    return _with_origin(shown, root)


def key_enrolled(root: str = "/") -> bool | None:
    """Does the firmware know a key of this host's that modules are signed with?

    None where the list cannot be read. Without a key there is none that could be enrolled.
    """
    lists = [text for text in (_bytes(root, path) for path in _ENROLLED) if text]
    if not lists:
        return None
    keys = [key for key in (_bytes(root, path) for path in _KEYS) if key]
    return any(key in text for key in keys for text in lists)


def _cards(root: str) -> list[Card]:
    found = []
    for one in pci.read_display_devices(root):
        try:
            number = int(one.device, 16)
        except ValueError:
            continue
        found.append(Card(one.address, number, one.driver))
    return found


def _holders(proc: procfs.Report, root: str) -> list[str]:
    minors = {gpu.minor: index for index, gpu in enumerate(proc.gpus) if gpu.minor is not None}
    told = []
    for index, found in sorted(holders.find(minors, root).items()):
        for one in found:
            if one.kind in _NOT_WORK:
                continue
            whose = f" of container {one.container[:12]}" if one.container else ""
            told.append(f"GPU {index}: {one.name} (process {one.pid}{whose})")
    return told


def _with_origin(shown: View, root: str) -> View:
    origin = NOBODY
    if in_step(shown.versions):
        origin = PACKAGES
    elif os.path.isdir(os.path.join(root, "run/nvidia/driver/usr")):
        origin = CONTAINER
    elif os.path.exists(os.path.join(root, "usr/bin/nvidia-uninstall")):
        origin = RUNFILE
    elif shown.loaded or shown.on_disk or shown.library:
        origin = UNKNOWN
    return View(**{**vars(shown), "origin": origin})


def persistence_mode(root: str = "/", deadline_s: float = 20.0) -> bool | None:
    """Is persistence mode on for every GPU? None where the driver does not say."""
    if root != "/":
        return None
    argv = ["nvidia-smi", "--query-gpu=persistence_mode", "--format=csv,noheader"]
    try:
        done = run(argv, deadline_s)
    except CommandMissingError:
        return None
    return parse_persistence(done.stdout) if done.ok else None


def parse_persistence(text: str) -> bool | None:
    """One line a GPU; a GPU that has no such mode does not count. Pure."""
    said = [line.strip() for line in text.splitlines() if line.strip() in ("Enabled", "Disabled")]
    return "Disabled" not in said if said else None


def can_hold(manager: str | None, root: str = "/") -> bool:
    """Can a version be kept? dnf 4 needs its plugin; the locks of dnf 5 are not read here."""
    if manager != "rpm":
        return True
    if os.path.realpath(os.path.join(root, "usr/bin/dnf")).endswith("dnf5"):
        return False
    plugins = "usr/lib/python3*/site-packages/dnf-plugins/versionlock.py"
    return bool(glob.glob(os.path.join(glob.escape(root), plugins)))


def _bytes(root: str, path: str) -> bytes | None:
    try:
        with open(os.path.join(root, path), "rb") as handle:
            return handle.read()
    except OSError:
        return None
