# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bind mounts of what the driver would show in /proc and sysfs.

The content lies under /run/simgpu; every mount of ours has a root below that directory, which
is how it is found again. mount(2) is called directly: forty `mount` processes cost seconds in
an emulated machine.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

from .procfs import proc_devices, proc_driver_files
from .state import State

CONTENT = Path("/run/simgpu")
PROC_DRIVER = Path("/proc/driver")
PROC_DEVICES = Path("/proc/devices")
PCI_DEVICES = Path("/sys/bus/pci/devices")

_MS_BIND = 4096
_MNT_DETACH = 2
#: The root of a mount as mountinfo shows it: relative to /run, which is its own file system.
_ROOT_PREFIX = "/" + CONTENT.name + "/"


def mount_all(state: State, *, module_loaded: bool) -> None:
    """Show the GPUs in sysfs and, while the module counts as loaded, what it shows in /proc."""
    for index, gpu in enumerate(state.gpus):
        identity = _identity(gpu.values)
        for name, text in identity.items():
            source = _put(CONTENT / "pci" / str(index) / name, text)
            _bind(source, (PCI_DEVICES / gpu.values["pci"] / name).resolve())
    if module_loaded:
        tree = CONTENT / "proc-driver"
        _copy_existing(PROC_DRIVER, tree)
        for name, text in proc_driver_files(state).items():
            _put(tree / name, text)
        _bind(tree, PROC_DRIVER)
        # As it is at this moment: what another module registers later is not in it.
        devices = proc_devices(PROC_DEVICES.read_text(encoding="ascii"), state)
        _bind(_put(CONTENT / "proc-devices", devices), PROC_DEVICES)


def unmount_all() -> None:
    """Take every mount of ours away, last made first, and forget the content."""
    for target in reversed(our_mounts()):
        _check(_libc().umount2(os.fsencode(target), _MNT_DETACH), f"umount {target}")
    shutil.rmtree(CONTENT, ignore_errors=True)


def our_mounts() -> list[str]:
    """Mount points that show something under /run/simgpu, in the order they were made."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [fields[4] for fields in map(str.split, lines) if fields[3].startswith(_ROOT_PREFIX)]


def _identity(gpu: dict[str, str]) -> dict[str, str]:
    """Sysfs files of a PCI function. `uevent` stays: udev writes to it and would spoil a copy."""
    return {
        "vendor": "0x10de\n",
        "device": gpu["pci_device_id"][:6] + "\n",
        "class": gpu["pci_class"] + "\n",
        "subsystem_vendor": "0x" + gpu["pci_subsystem_id"][-4:] + "\n",
        "subsystem_device": gpu["pci_subsystem_id"][:6] + "\n",
    }


def _copy_existing(source: Path, target: Path) -> None:
    """What other drivers keep in /proc/driver (rtc) stays readable, as it was at this moment."""
    for entry in source.rglob("*"):
        if entry.is_file():
            _put(
                target / entry.relative_to(source),
                entry.read_text(encoding="utf-8", errors="replace"),
            )


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o444)
    return path


def _bind(source: Path, target: Path) -> None:
    result = _libc().mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND, None)
    _check(result, f"bind {source} over {target}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
