# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A running lab host goes down and comes up again: by a reboot from within, or by a power cut."""

from __future__ import annotations

import time
from collections.abc import Callable

from . import image as images
from . import machine, snapshot, vm
from .cache import Entry
from .console import LabError
from .host import Hosts, write_manifest

_REBOOT_DEADLINE_S = 300.0
# A host on its way down may keep a connection open and say nothing more.
_POLL_DEADLINE_S = 15.0


def reboot(hosts: Hosts, name: str) -> float:
    """Reboot a host from within and wait until it is up; the seconds that took."""
    entry = hosts.get(name)
    guest = hosts.guest(entry)
    boot_id = "cat /proc/sys/kernel/random/boot_id"
    before = guest.check(boot_id, "the host does not answer")
    began = time.monotonic()
    # The connection may end before the command does, or never.
    guest.answer("systemctl reboot", _POLL_DEADLINE_S)
    while True:
        if time.monotonic() - began > _REBOOT_DEADLINE_S:
            raise LabError(
                f"{name} did not come back within {_REBOOT_DEADLINE_S:g} s of its reboot; "
                f"see `python3 tests/lab log {name}`"
            )
        guest.wait(lambda: vm.is_alive(entry.path), _REBOOT_DEADLINE_S)
        now = guest.answer(boot_id, _POLL_DEADLINE_S)
        if now is not None and now != before:
            break
        time.sleep(0.2)
    snapshot.wait_until_booted(guest, entry.path)
    return time.monotonic() - began


def cut(hosts: Hosts, name: str) -> float:
    """Cut a host's power, boot the same disk, wait until it is up; the seconds from cut to up.

    qemu is killed between two instructions. What the guest had flushed is on its disk: at a
    flush qemu hands everything to the kernel of this machine, also with ``cache=unsafe``, and
    that kernel lives on. What the guest held in its page cache is lost, as it would be. Raises
    LabError when the host does not run or does not come up; then its files stay, to be looked at.
    """
    entry = hosts.get(name)
    with hosts.cache.lock(entry.ident), hosts.cache.in_use():
        image = hosts.cache.find(str(entry.manifest["image"]))
        if image is None:
            raise LabError(f"the kernel of {name} is gone from the cache; stop it and start anew")
        began = time.monotonic()
        vm.kill(entry.path)
        manifest = dict(entry.manifest)
        # Two machines may have taken its port meanwhile.
        manifest["port"] = vm.start(entry.path, booting(entry, images.boot_of(image)))
        write_manifest(entry.path, manifest)
        snapshot.wait_until_booted(hosts.guest(hosts.get(name)), entry.path)
    return time.monotonic() - began


def booting(entry: Entry, boot: machine.Boot) -> Callable[[int], list[str]]:
    """The command line, by port, that boots a host from its own disk, whatever it began from."""
    hardware = list(entry.manifest["hardware"])
    return lambda port: machine.command(hardware, boot, entry.path / vm.DISK, port)
