# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Frozen machines: memory and disk at one moment, resumed any number of times.

A frozen machine is an entry with ``memory.state``, ``disk.qcow2`` and, in its manifest, the
hardware it needs. A resumed host writes to an overlay of its own, so the entry never changes.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import image as images
from . import kvm, machine, vm
from .cache import Cache, Entry, key
from .console import LabError, call, step, warn
from .qmp import Monitor
from .ssh import Guest, Keys

MEMORY = "memory.state"

_BOOT_DEADLINE_S = 300.0
_FREEZE_DEADLINE_S = 180.0
_WANTED_MIB = 2500

# The page cache would be most of the state.
_SETTLE = "sync && fstrim / && echo 3 > /proc/sys/vm/drop_caches"


def overlay(backing: Entry, disk: Path) -> None:
    """Make ``disk`` a copy-on-write copy of an entry's disk.

    The reference is relative, so that a cache can be moved as a whole.
    """
    target = os.path.relpath(backing.path / vm.DISK, disk.parent)
    call(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", target, str(disk)],
        "making the disk of a lab host",
    )


def wait_until_booted(
    guest: Guest, directory: Path, then: Callable[[], str] = lambda: "true"
) -> None:
    """Wait until systemd has finished starting, and run a script in the same connection.

    ``then`` makes the script at the moment ssh answers: a connection takes half a second.

    Failed units are shown, not an error. Raises LabError, with the end of the console log, when
    the machine does not come up, and when the script fails.
    """
    try:
        guest.wait(lambda: vm.is_alive(directory), _BOOT_DEADLINE_S)
        script = "systemctl is-system-running --wait\nset -e\n" + then()
        done = guest.run(script, _BOOT_DEADLINE_S)
        state = done.stdout.strip()
    except LabError as error:
        console = (directory / vm.CONSOLE_LOG).read_text(encoding="utf-8", errors="replace")
        raise LabError(
            "the lab host did not come up: {}; the end of its console:\n  {}".format(
                error, "\n  ".join(console.splitlines()[-12:])
            )
        ) from error
    if state not in ("running", "degraded") or done.returncode != 0:
        raise LabError(
            f"the lab host came up as {state!r}, wanted running (exit status {done.returncode}): "
            f"{done.stderr.strip() or 'look with `systemctl list-jobs` on it'}"
        )
    if state == "degraded":
        failed = guest.run("systemctl --failed --plain --no-legend").stdout.strip()
        warn("the host is degraded, failed units:\n  " + failed.replace("\n", "\n  "))


def ensure_frozen(cache: Cache, image: Entry, accelerator: str) -> Entry:
    """The image's machine, frozen once it had booted; made when it is not in the cache."""
    hardware = machine.hardware(accelerator)
    version = kvm.qemu_version()
    boot = images.boot_of(image)
    # What a resumed CPU may not miss; emulation is the same everywhere.
    cpu = _cpu_model() if accelerator == "kvm" else ""
    name = key(image.ident, hardware, boot.kernel_args, version, cpu, _SETTLE)
    suite = image.manifest["suite"]
    ident = f"frozen/{suite}-{name}"
    with cache.lock(ident):
        if cache.find(ident) is None:
            cache.require_free(_WANTED_MIB, "freezing a lab host")
            vm.require_memory()
            manifest = {
                "suite": suite,
                "image": image.ident,
                "needs": [image.ident],
                "accelerator": accelerator,
                "hardware": hardware,
                "qemu": version,
            }
            what = step(
                f"debian {suite}: booting and freezing a machine ({accelerator}, about 40 s)"
            )
            with what, cache.building(ident, manifest) as work:
                _boot_and_freeze(cache, image, boot, hardware, work)
        frozen = cache.find(ident)
    assert frozen is not None
    return frozen


def _boot_and_freeze(
    cache: Cache, image: Entry, boot: machine.Boot, hardware: list[str], work: Path
) -> None:
    overlay(image, work / vm.DISK)
    port = vm.start(
        work,
        lambda port: machine.command(hardware, boot, work / vm.DISK, port),
        outlive=False,
    )
    try:
        guest = Guest(Keys.of(cache), port)
        wait_until_booted(guest, work)
        save(guest, work, work)
    finally:
        vm.stop(work)


def save(guest: Guest, directory: Path, target: Path) -> None:
    """Write the memory of the machine in ``directory`` into ``target``; it stays stopped."""
    guest.check(_SETTLE, "the host could not write its disk before the freeze", 120)
    with Monitor(directory) as monitor:
        monitor.save_memory("cat > " + shlex.quote(str(target / MEMORY)), _FREEZE_DEADLINE_S)


def freeze_host(
    cache: Cache, ident: str, directory: Path, guest: Guest, manifest: dict[str, Any]
) -> Entry:
    """Freeze a running host as the entry ``ident`` and let the host go on.

    ``manifest`` is the host's; its disk is copied while the machine stands still.
    """
    size_mib = (directory / vm.DISK).stat().st_blocks >> 11
    cache.require_free(_WANTED_MIB + size_mib, "freezing a lab host")
    with cache.lock(ident):
        kept = {
            name: manifest[name]
            for name in ("suite", "image", "needs", "accelerator", "hardware", "qemu", "checkout")
        }
        kept["profile"] = manifest.get("profile")
        kept["made_at"] = time.time()
        with cache.building(ident, kept) as work:
            try:
                save(guest, directory, work)
                _copy(directory / vm.DISK, work / vm.DISK)
            finally:
                with Monitor(directory) as monitor:
                    monitor.execute("cont")
        entry = cache.find(ident)
    assert entry is not None
    return entry


def resume(directory: Path, deadline_s: float = 60.0) -> None:
    """Let a machine started with a frozen state run."""
    with Monitor(directory) as monitor:
        monitor.wait_until_resumable(deadline_s)
        monitor.execute("cont")


def check_resumable(frozen: Entry) -> None:
    """Raise LabError when another qemu froze the machine than the one that would resume it."""
    version = kvm.qemu_version()
    if frozen.manifest["qemu"] != version:
        raise LabError(
            f"the snapshot {frozen.path.name} was made by {frozen.manifest['qemu']!r} and this "
            f"machine has {version!r}; freeze it again"
        )


def _copy(source: Path, target: Path) -> None:
    """Copy a disk, sharing blocks where the file system can, keeping holes."""
    call(["cp", "--reflink=auto", "--sparse=always", str(source), str(target)], "copying a disk")


def _cpu_model(cpuinfo: str = "/proc/cpuinfo") -> str | None:
    with open(cpuinfo, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return None
