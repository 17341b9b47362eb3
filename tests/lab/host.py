# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab hosts of a checkout: started, described, frozen, stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import image as images
from . import kvm, machine, snapshot, suites, vm
from .cache import Cache, Entry, limit_bytes
from .console import LabError, say, step
from .ssh import Guest, Keys

CHECKOUT = Path(__file__).resolve().parents[2]

_NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$")
_WANTED_MIB = 1500
_DEAD_HOST_AGE_S = 86400.0

# Twins resumed from one state share what must be unique: give each its own clock, random
# numbers, name and machine id. The journal is filed under the machine id, so it moves along.
# The boot id is the kernel's, and stays the same in all twins until they reboot.
_PERSONALISE = """
{clock}
echo {seed} > /dev/urandom
old=$(cat /etc/machine-id)
echo {machine_id} > /etc/machine-id
hostname {name}
echo {name} > /etc/hostname
printf '127.0.0.1 localhost\\n127.0.1.1 {name}\\n' > /etc/hosts
for journal in /var/log/journal /run/log/journal; do
    if [ -d $journal/$old ]; then mv $journal/$old $journal/{machine_id}; fi
done
systemctl restart systemd-journald
"""


@dataclass(frozen=True)
class Request:
    """What a user asks of a host. ``snapshot`` names a snapshot of this checkout, or None."""

    name: str
    suite: str
    profile: str | None = None
    snapshot: str | None = None
    cold: bool = False


class Hosts:
    """The hosts of one checkout in a cache."""

    def __init__(self, cache: Cache, environ: Mapping[str, str], checkout: Path = CHECKOUT) -> None:
        self.cache = cache
        self.environ = environ
        self.checkout = checkout
        self._prefix = hashlib.sha256(str(checkout.resolve()).encode()).hexdigest()[:8] + "-"

    def start(self, request: Request) -> dict[str, Any]:
        """Start a host and wait until it can be used; describe it.

        A host that already runs as asked is left alone. Raises LabError, and leaves no process
        and no files, when it does not come up.
        """
        check_name(request.name)
        ident = self._ident(request.name)
        with self.cache.lock(ident):
            running = self._running(ident)
            if running is not None and running.manifest["ready"]:
                _require_same(running.manifest, request)
                return self.describe(running)
            with self.cache.in_use():
                started = self._start(ident, request)
        self.collect()
        return started

    def stop(self, name: str) -> bool:
        """End a host and remove what it had. True when there was one."""
        ident = self._ident(name)
        with self.cache.lock(ident):
            directory = self.cache.root / ident
            if not directory.exists():
                return False
            vm.stop(directory)
            self._discard(ident)
        return True

    def names(self) -> list[str]:
        """Every host of this checkout that has a directory, running or not, by name."""
        mine = (name for name in self._all_names() if name.startswith(self._prefix))
        return [name[len(self._prefix) :] for name in mine]

    def running(self) -> list[Entry]:
        """The hosts of this checkout that run and were started completely, by name."""
        found = (self._running(self._ident(name)) for name in self.names())
        return [entry for entry in found if entry is not None and entry.manifest["ready"]]

    def directory(self, name: str) -> Path:
        """Where the files of a host are, or would be."""
        return self.cache.root / self._ident(name)

    def get(self, name: str) -> Entry:
        """A running host. Raises LabError when there is none of that name."""
        entry = self._running(self._ident(name))
        if entry is None or not entry.manifest["ready"]:
            others = ", ".join(other.manifest["name"] for other in self.running()) or "none"
            raise LabError(
                f"no lab host {name!r} runs in this checkout; running: {others}; start it with "
                f"`python3 tests/lab start {name} --suite trixie`"
            )
        return entry

    def guest(self, entry: Entry) -> Guest:
        """The way into a running host."""
        return Guest(Keys.of(self.cache), int(entry.manifest["port"]))

    def describe(self, entry: Entry) -> dict[str, Any]:
        """What a user or a playbook wants to know of a host."""
        manifest = entry.manifest
        return {
            "name": manifest["name"],
            "suite": manifest["suite"],
            "profile": manifest.get("profile"),
            "snapshot": manifest.get("snapshot"),
            "accelerator": manifest["accelerator"],
            "port": manifest["port"],
            "pid": vm.running_pid(entry.path),
            "directory": str(entry.path),
        }

    def freeze(self, name: str, snapshot_name: str) -> Entry:
        """Freeze a running host as a snapshot of this checkout; the host goes on."""
        check_name(snapshot_name)
        with self.cache.lock(self._ident(name)), self.cache.in_use():
            entry = self.get(name)
            ident = f"snapshots/{self._prefix}{snapshot_name}"
            self._refuse_if_used(ident, snapshot_name)
            manifest = dict(entry.manifest, checkout=str(self.checkout))
            with step(f"freezing {name} as snapshot {snapshot_name}"):
                frozen = snapshot.freeze_host(
                    self.cache, ident, entry.path, self.guest(entry), manifest
                )
            # The machine stood still meanwhile.
            self.guest(entry).check(f"date -s @{time.time():.0f}", "setting the clock")
        self.collect()
        return frozen

    def collect(self, wait: bool = False) -> list[str]:
        """Bring the cache below its bound; returns what went.

        Hosts of any checkout that ended by themselves a day ago go as well, and snapshots of
        checkouts that are no more.
        """
        removed = []
        for name in self._all_names():
            ident = "hosts/" + name
            directory = self.cache.root / ident
            ended = vm.running_pid(directory) is None
            if ended and time.time() - directory.stat().st_mtime > _DEAD_HOST_AGE_S:
                with contextlib.suppress(BlockingIOError), self.cache.lock(ident, wait=False):
                    self._discard(ident)
                    removed.append(ident)
        for entry in self.cache.entries("snapshots"):
            if not os.path.isdir(entry.manifest["checkout"]):
                self.cache.remove(entry)
                removed.append(entry.ident)
        return removed + self.cache.collect(limit_bytes(self.environ), self._running_idents, wait)

    def _all_names(self) -> list[str]:
        """The directories of hosts of every checkout."""
        directory = self.cache.root / "hosts"
        return sorted(os.listdir(directory)) if directory.is_dir() else []

    def _running_idents(self) -> list[str]:
        """The running hosts of every checkout."""
        root = self.cache.root / "hosts"
        return ["hosts/" + n for n in self._all_names() if vm.running_pid(root / n) is not None]

    def _start(self, ident: str, request: Request) -> dict[str, Any]:
        """Start a host that is known not to run; the caller holds its lock."""
        began = time.monotonic()
        source, frozen = self._source(request)
        image = self.cache.find(str(source.manifest.get("image", source.ident)))
        if image is None:
            raise LabError(
                f"the image of {source.path.name} is gone from the cache; freeze the snapshot again"
            )
        self.cache.require_free(_WANTED_MIB, "a lab host")
        vm.require_memory()
        directory = self.cache.root / ident
        # What a starter that was killed left, perhaps with its machine.
        vm.stop(directory)
        self._discard(ident)
        directory.mkdir(parents=True, mode=0o755)
        try:
            manifest = self._boot(directory, source, image, frozen, request)
            guest = Guest(Keys.of(self.cache), manifest["port"])
            if frozen:
                snapshot.resume(directory)
            snapshot.wait_until_booted(
                guest, directory, lambda: _personalise(request.name, set_clock=frozen)
            )
            if request.profile and request.profile != source.manifest.get("profile"):
                guest.check(
                    f"simgpu load {shlex.quote(request.profile)}",
                    f"the simulated GPUs {request.profile!r} cannot be loaded",
                )
            manifest["ready"] = True
            write_manifest(directory, manifest)
        except BaseException:
            vm.stop(directory)
            self._discard(ident)
            raise
        how = "resumed" if frozen else "booted"
        say(
            f"{request.name} is up after {time.monotonic() - began:.1f} s "
            f"({manifest['suite']}, {manifest['accelerator']}, {how})"
        )
        entry = self.cache.find(ident)
        assert entry is not None
        return self.describe(entry)

    def _source(self, request: Request) -> tuple[Entry, bool]:
        """What the host starts from, and whether that is a frozen machine."""
        if request.snapshot is not None:
            ident = f"snapshots/{self._prefix}{request.snapshot}"
            found = self.cache.find(ident)
            if found is None:
                raise LabError(
                    f"no snapshot {request.snapshot!r} in this checkout; make it with "
                    f"`python3 tests/lab freeze NAME {request.snapshot}`"
                )
            snapshot.check_resumable(found)
            return found, True
        image = images.ensure(self.cache, suites.suite(request.suite), self.environ)
        accelerator = kvm.choose(self.cache, image, self.environ)
        if request.cold:
            return image, False
        return snapshot.ensure_frozen(self.cache, image, accelerator), True

    def _boot(
        self, directory: Path, source: Entry, image: Entry, frozen: bool, request: Request
    ) -> dict[str, Any]:
        """Start qemu on an overlay of ``source``; returns the host's manifest."""
        accelerator = source.manifest.get("accelerator") or kvm.choose(
            self.cache, image, self.environ
        )
        manifest: dict[str, Any] = {
            "name": request.name,
            "suite": source.manifest["suite"],
            "profile": request.profile or source.manifest.get("profile"),
            "snapshot": request.snapshot,
            "image": image.ident,
            "needs": [source.ident],
            "accelerator": accelerator,
            "hardware": source.manifest.get("hardware") or machine.hardware(accelerator),
            "qemu": kvm.qemu_version(),
            "ready": False,
        }
        disk = directory / vm.DISK
        snapshot.overlay(source, disk)
        write_manifest(directory, manifest)
        manifest["port"] = vm.start(
            directory,
            lambda port: machine.command(
                manifest["hardware"],
                images.boot_of(image),
                disk,
                port,
                source.path / snapshot.MEMORY if frozen else None,
            ),
        )
        return manifest

    def _ident(self, name: str) -> str:
        return f"hosts/{self._prefix}{name}"

    def _running(self, ident: str) -> Entry | None:
        entry = self.cache.find(ident, touch=False)
        if entry is None or vm.running_pid(entry.path) is None:
            return None
        return entry

    def _discard(self, ident: str) -> None:
        """Remove the files of a host that does not run."""
        directory = self.cache.root / ident
        self.cache.remove(Entry(ident, directory, {}))

    def _refuse_if_used(self, ident: str, snapshot_name: str) -> None:
        """A snapshot that hosts or other snapshots are copies of cannot be replaced under them."""
        candidates = [*self.running(), *self.cache.entries("snapshots")]
        users = [
            user.path.name[len(self._prefix) :]
            for user in candidates
            if user.ident != ident and ident in self.cache.closure([user.ident])
        ]
        if users:
            raise LabError(
                f"snapshot {snapshot_name!r} cannot be replaced while {', '.join(users)} stand(s) "
                "on it; stop that first, or take another name"
            )


def _personalise(name: str, set_clock: bool) -> str:
    """The script that makes a host of its own; a machine that booted has the right time."""
    return _PERSONALISE.format(
        clock=f"date -s @{time.time():.2f} >/dev/null" if set_clock else "",
        seed=os.urandom(64).hex(),
        machine_id=uuid.uuid4().hex,
        name=name,
    )


def check_name(name: str) -> None:
    """Raise LabError unless ``name`` can be a host name."""
    if not _NAME.match(name):
        raise LabError(
            f"{name!r} cannot name a lab host or snapshot; use up to 42 of a-z, 0-9 and -, "
            "beginning and ending with a letter or digit"
        )


def _require_same(manifest: Mapping[str, Any], request: Request) -> None:
    """Raise LabError when the host that runs under this name is not what was asked for."""
    wanted: dict[str, str | None] = {"snapshot": request.snapshot}
    if request.snapshot is None:
        wanted["suite"] = request.suite
    if request.profile is not None:
        wanted["profile"] = request.profile
    for what, value in wanted.items():
        if manifest.get(what) != value:
            name = manifest["name"]
            raise LabError(
                f"{name} already runs with {what} {manifest.get(what)!r}, asked for {value!r}; "
                f"stop it first: python3 tests/lab stop {name}"
            )


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write a host's ``entry.json`` in one step: others read it at any moment."""
    temporary = directory / "entry.json.new"
    temporary.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    temporary.replace(directory / "entry.json")
