# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Debian root file system of a suite, as a tar: everything that takes the network."""

from __future__ import annotations

import os
import time
from pathlib import Path

from . import apt
from .cache import Cache, Entry, key, tree_digest
from .console import LabError, call, step, warn
from .suites import Suite

TAR = "rootfs.tar.zst"

# Package lists inside the image age with the mirror: packages they name are gone one day.
_MAX_AGE_S = 7 * 86400
_WANTED_MIB = 2500

_BASE = Path(__file__).parent / "guest" / "base"
_NOT_INSTALLED = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")


def ensure(cache: Cache, suite: Suite, setup: apt.AptSetup) -> Entry:
    """The root file system of ``suite``, built when there is none or the one there is old.

    Without network an older one of the same suite serves, with a warning. Raises LabError
    when there is none either.
    """
    parts = [suite.name, suite.packages, setup.mirror, apt.builder_options(setup)]
    parts.append(tree_digest(_BASE, Path(__file__)))
    parts += [tree_digest(Path(path)) for path in setup.certificates]
    ident = f"rootfs/{suite.name}-{key(parts)}"
    with cache.lock(ident):
        entry = cache.find(ident)
        if entry is not None and time.time() - entry.manifest["made_at"] < _MAX_AGE_S:
            return entry
        if not apt.reachable(setup, suite.name):
            return _older(cache, suite, setup, entry)
        cache.require_free(_WANTED_MIB, "building a Debian root file system")
        manifest = {"suite": suite.name, "made_at": time.time()}
        what = step(f"debian {suite.name}: installing packages (about 40 s)")
        with what, cache.building(ident, manifest) as work:
            _bootstrap(suite, setup, work)
    built = cache.find(ident)
    assert built is not None
    return built


def _older(cache: Cache, suite: Suite, setup: apt.AptSetup, same: Entry | None) -> Entry:
    """The best that can be had without network."""
    candidates = [e for e in cache.entries("rootfs") if e.manifest["suite"] == suite.name]
    entry = same or (candidates[0] if candidates else None)
    if entry is None:
        raise LabError(
            f"the mirror {setup.mirror} does not answer for {suite.name}, and no older root file "
            f"system of it is in {cache.root}; check the network, or name another mirror in "
            f"{apt.MIRROR_VARIABLE}"
        )
    days = (time.time() - entry.manifest["made_at"]) / 86400
    warn(
        f"the mirror {setup.mirror} does not answer; using the root file system of {suite.name} "
        f"built {days:.1f} days ago"
    )
    return entry


def _bootstrap(suite: Suite, setup: apt.AptSetup, work: Path) -> None:
    """Run mmdebstrap into ``work``."""
    argv: list[str] = ["mmdebstrap", "--variant=minbase", "--format=tar"]
    argv.append("--include=" + ",".join(suite.packages))
    argv += ["--aptopt=" + option for option in apt.builder_options(setup)]
    argv += ["--dpkgopt=path-exclude=" + pattern for pattern in _NOT_INSTALLED]
    # Neither a build nor a lab host outlives a power failure; syncing each file only costs time.
    argv.append("--dpkgopt=force-unsafe-io")
    argv.append(f'--setup-hook=cp -R "{_BASE}/." "$1/"')
    # The lists and apt's index of them stay: making them takes a guest half a minute.
    argv.append("--skip=cleanup/apt")
    argv.append('--customize-hook=chroot "$1" apt-get clean')
    argv.append('--customize-hook=chroot "$1" apt-cache gencaches')
    argv += [suite.name, str(work / TAR)]
    if setup.mirror is not None:
        argv.append(setup.mirror)
    environ = dict(os.environ)
    if os.geteuid() == 0:
        # What a killed build leaves goes with its directory. Other users build in a user
        # namespace that cannot look into a private cache.
        environ["TMPDIR"] = str(work)
    call(argv, f"building the root file system of {suite.name}", env=environ)
