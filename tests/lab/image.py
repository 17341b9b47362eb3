# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A bootable disk of a suite: root file system, the simulated GPUs, and the lab's settings."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import apt, rootfs
from .cache import Cache, Entry, key, tree_digest
from .console import LabError, call, step
from .machine import Boot
from .ssh import Keys
from .suites import Suite
from .vm import DISK

KERNEL = "vmlinuz"
INITRD = "initrd.img"

_DISK_SIZE = "8G"
_WANTED_MIB = 3000

_TESTS = Path(__file__).parent.parent
_SYSTEM = Path(__file__).parent / "guest" / "system"
_SIMGPU = _TESTS / "simgpu"

# Background work that only disturbs a test, or that a jump of the clock after a resume starts.
_MASKED_UNITS = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "systemd-networkd-wait-online.service",
    "systemd-tmpfiles-clean.timer",
)


def boot_of(image: Entry) -> Boot:
    """The kernel and initrd of an image."""
    return Boot(image.path / KERNEL, image.path / INITRD, tuple(image.manifest["kernel_args"]))


def ensure(cache: Cache, suite: Suite, environ: Mapping[str, str]) -> Entry:
    """The image of ``suite`` as this checkout describes it, built when it is not in the cache.

    Raises LabError when it cannot be built.
    """
    setup = apt.read_setup(environ)
    keys = Keys.of(cache)
    root = rootfs.ensure(cache, suite, setup)
    publics = [path.with_suffix(".pub").read_text() for path in (keys.user, keys.host)]
    source = tree_digest(_SYSTEM, _SIMGPU, Path(__file__))
    settings = [suite.kernel_args, publics, apt.guest_configuration(setup)]
    name = key(root.ident, root.manifest["made_at"], settings, source)
    ident = f"images/{suite.name}-{name}"
    with cache.lock(ident):
        if cache.find(ident) is None:
            cache.require_free(_WANTED_MIB, "making a disk image")
            manifest: dict[str, Any] = {"suite": suite.name, "kernel_args": suite.kernel_args}
            what = step(f"debian {suite.name}: making the disk image (about 20 s)")
            with what, cache.building(ident, manifest) as work:
                _assemble(root.path / rootfs.TAR, suite, setup, keys, work)
                manifest["kernel"] = tree_digest(work / KERNEL)
        image = cache.find(ident)
    assert image is not None
    return image


def _as_root() -> list[str]:
    """A command prefix under which files of every owner can be made.

    For others than root that is a user namespace in which they are root; what they write
    themselves is root's there.
    """
    return [] if os.geteuid() == 0 else ["unshare", "--map-auto", "--map-root-user", "--"]


def _assemble(tar: Path, suite: Suite, setup: apt.AptSetup, keys: Keys, work: Path) -> None:
    """Fill ``work`` with disk, kernel and initrd."""
    tree = work / "tree"
    tree.mkdir(mode=0o755)
    try:
        # The tar's device nodes are those of a container builder; the kernel brings its own.
        call(
            [*_as_root(), "tar", "-C", str(tree), "--zstd", "--exclude=./dev/*", "-xpf", str(tar)],
            "unpacking the root file system",
        )
        _add_simulation(tree, suite)
        _configure(tree, setup, keys)
        for pattern, name in (("vmlinuz-*", KERNEL), ("initrd.img-*", INITRD)):
            found = sorted((tree / "boot").glob(pattern))
            if len(found) != 1:
                raise LabError(
                    f"the image of {suite.name} holds {len(found)} files boot/{pattern}, wanted 1"
                )
            shutil.copyfile(found[0], work / name)
        raw = work / "disk.raw"
        # The feature is unknown to the e2fsck of older suites.
        options = ["-q", "-t", "ext4", "-m", "0", "-O", "^metadata_csum_seed"]
        call(
            [*_as_root(), "mke2fs", *options, "-d", str(tree), str(raw), _DISK_SIZE],
            "making the file system",
        )
        call(
            ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(work / DISK)],
            "making the disk",
        )
        raw.unlink()
    finally:
        call([*_as_root(), "rm", "-rf", str(tree)], "removing the unpacked image")


def _add_simulation(tree: Path, suite: Suite) -> None:
    """Lay the simulated driver and its local package repository over the root file system."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as overlay:
        call(
            [sys.executable, str(_SIMGPU), "overlay", "--output", overlay, "--suite", suite.name],
            "making the simulated GPUs",
        )
        os.chmod(overlay, 0o755)
        packed = str(tree.parent / "overlay.tar")
        call(
            ["tar", "-C", overlay, "--owner=0", "--group=0", "-cf", packed, "."],
            "packing the simulated GPUs",
        )
        # /lib and /sbin of a merged-usr system are links and must stay links.
        call(
            [*_as_root(), "tar", "-C", str(tree), "--keep-directory-symlink", "-xpf", packed],
            "adding the simulated GPUs",
        )
        os.unlink(packed)
    call([*_as_root(), "ldconfig", "-r", str(tree)], "indexing the libraries of the image")


def _configure(tree: Path, setup: apt.AptSetup, keys: Keys) -> None:
    """Write the settings that make the root file system a lab host."""
    call(["cp", "-R", str(_SYSTEM) + "/.", str(tree)], "copying the lab's settings")
    etc = tree / "etc"
    units = etc / "systemd" / "system"
    for unit in _MASKED_UNITS:
        _link(units / unit, "/dev/null")
    for unit in ("systemd-networkd.service", "systemd-resolved.service"):
        wanted = units / "multi-user.target.wants"
        wanted.mkdir(exist_ok=True)
        _link(wanted / unit, "/usr/lib/systemd/system/" + unit)
    _link(etc / "resolv.conf", "../run/systemd/resolve/stub-resolv.conf")
    # With an id, systemd does not take the boot for a first one. Each host gets its own later.
    _write(etc / "machine-id", uuid.uuid4().hex + "\n", 0o444)
    _write(etc / "hostname", "lab\n")
    _write(etc / "hosts", "127.0.0.1 localhost\n127.0.1.1 lab\n")
    (tree / "root" / ".ssh").mkdir(mode=0o700, exist_ok=True)
    _write(tree / "root/.ssh/authorized_keys", keys.user.with_suffix(".pub").read_text(), 0o600)
    for former in (etc / "ssh").glob("ssh_host_*"):
        former.unlink()
    _write(etc / "ssh/ssh_host_ed25519_key", keys.host.read_text(), 0o600)
    _write(etc / "ssh/ssh_host_ed25519_key.pub", keys.host.with_suffix(".pub").read_text())
    # Newer servers lock out an address after connections that do not log in, such as the lab's
    # waiting for a greeting, and to a guest everybody is one address. Older ones do not know it.
    if b"persourcepenalties" in (tree / "usr/sbin/sshd").read_bytes().lower():
        _write(etc / "ssh/sshd_config.d/penalties.conf", "PerSourcePenalties no\n")
    # apt: the builder left its view of the mirror and of the proxy; the guest has its own.
    (etc / "apt/apt.conf.d/99mmdebstrap").unlink(missing_ok=True)
    _write(etc / "apt/apt.conf.d/90lab", apt.guest_configuration(setup))
    for sources in [*etc.glob("apt/sources.list"), *etc.glob("apt/sources.list.d/*")]:
        if setup.mirror is not None:
            seen = apt.seen_from_guest(setup.mirror)
            _write(sources, sources.read_text(encoding="utf-8").replace(setup.mirror, seen))
    _trust(tree, setup)


def _trust(tree: Path, setup: apt.AptSetup) -> None:
    """Let the guest trust the authorities this machine added, a mirror's or a proxy's."""
    bundle = tree / "etc/ssl/certs/ca-certificates.crt"
    for path in map(Path, setup.certificates):
        text = path.read_text(encoding="utf-8", errors="replace")
        if text.strip() and text not in bundle.read_text(encoding="utf-8"):
            target = tree / "usr/local/share/ca-certificates" / (path.stem + ".crt")
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(target, text)
            with open(bundle, "a", encoding="utf-8") as handle:
                handle.write(text.rstrip("\n") + "\n")


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def _link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)
