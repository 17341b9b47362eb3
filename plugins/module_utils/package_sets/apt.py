# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""apt and dpkg: what they have, what they would do, and doing it."""

from __future__ import annotations

import errno
import fcntl
import functools
import hashlib
import os
import re
import struct
import time
from collections.abc import Iterable, Mapping, Sequence

from ..checks.versions import order
from ..process import Completed, run
from .archives import Archive
from .model import FetchError, MissingError, PackageError, RefusedError, Solution

# Another run of apt is waited for this long.
LOCK_S = 60.0
# An engine unpacks some hundred megabytes, and an apt that is killed leaves dpkg half done.
DEADLINE_S = 1800.0
_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
    # needrestart would restart engines on its own account.
    "NEEDRESTART_SUSPEND": "1",
    "NEEDRESTART_MODE": "l",
}
_OPTIONS = (
    "-y",
    "-q",
    "--allow-downgrades",
    "--allow-change-held-packages",
    "--no-install-recommends",
    # Configuration files are somebody's, or put back by a restore.
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "Dpkg::Options::=--force-confold",
)
# No source but the files that are named; and a cache of its own, so that the host's stays.
_OFFLINE = (
    "-o",
    "Dir::Etc::sourcelist=/dev/null",
    "-o",
    "Dir::Etc::sourceparts=/dev/null",
    "-o",
    "Dir::Cache::pkgcache=",
    "-o",
    "Dir::Cache::srcpkgcache=",
)
_ARCHIVES = "var/cache/apt/archives"
_LOCKS = ("var/lib/dpkg/lock-frontend", "var/lib/dpkg/lock")
# struct flock of 64-bit Linux: type, whence, start, length, process.
_FLOCK = "hhqqi4x"
_SIMULATED = re.compile(r"(Inst|Remv|Purg|Conf) ([^ ]+)(?: \[([^]]*)\])?(?: \(([^ )]+))?")
_NOT_FOUND = ("Unable to locate package", "was not found", "has no installation candidate")
_NOT_FETCHED = ("Failed to fetch", "Unable to fetch some archives")


class Apt:
    """The package manager of a Debian or Ubuntu host.

    ``options`` are further ones of apt-get, ``archives`` package files that count as offered;
    with ``offline`` nothing else does. ``environment`` is added to that of a run that changes.
    """

    def __init__(
        self,
        root: str = "/",
        options: Sequence[str] = (),
        archives: Sequence[Archive] = (),
        offline: bool = False,
        lock_timeout_s: float = LOCK_S,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._root = root
        self._archives = archives
        self._offline = offline
        self._deadline_s = deadline_s
        self._options = [*_OPTIONS, "-o", f"DPkg::Lock::Timeout={int(lock_timeout_s)}"]
        self._options += _OFFLINE if offline else ()
        self._options += [f"--with-source={one.path}" for one in archives]
        self._options += options

    def offered(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """By package and version, the newest first: what apt-get is to be given to install it.

        ``NAME=VERSION`` where a source or a file has it, else the path of a file in apt's cache.
        """
        found: dict[str, dict[str, str]] = {name: {} for name in names}
        if not self._offline:
            for name, version, path in _archived(os.path.join(self._root, _ARCHIVES)):
                if name in found:
                    found[name][version] = path
            done = run(["apt-cache", "madison", *names], env=_ENVIRONMENT)
            for name, version in parse_madison(done.stdout):
                if name in found:
                    found[name][version] = f"{name}={version}"
        for one in self._archives:
            if one.name in found:
                found[one.name][one.version] = f"{one.name}={one.version}"
        return {name: _newest_first(versions) for name, versions in found.items()}

    def refresh(self) -> str | None:
        """Read the lists of the sources anew; what apt said, if it said that something is wrong."""
        lock = ["-o", f"DPkg::Lock::Timeout={int(LOCK_S)}"]
        done = run(["apt-get", "-q", *lock, "update"], self._deadline_s, env=_ENVIRONMENT)
        wrong = [line for line in done.stderr.splitlines() if line[:2] in ("E:", "W:")]
        return "\n".join(wrong[-6:]) or (None if done.ok else done.said)

    def solve(self, verb: str, arguments: Sequence[str]) -> Solution:
        """What ``install``, ``remove`` or ``purge`` would do.

        Raises MissingError if a package is not known, RefusedError if it cannot be done.
        """
        argv = ["apt-get", "-s", *self._options, verb, *arguments]
        done = run(argv, 120, env=_ENVIRONMENT)
        if done.ok:
            return parse_simulation(done.stdout)
        said = f"apt-get {verb} {' '.join(arguments)} cannot be done: {_complaint(done)}"
        if any(words in done.stderr for words in _NOT_FOUND):
            raise MissingError(said)
        raise RefusedError(said)

    def do(
        self,
        verb: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``apt-get install``, ``remove`` or ``purge`` in one transaction.

        Raises FetchError before anything is changed, PackageError.
        """
        env = {**_ENVIRONMENT, **(environment or {})}
        done = run(["apt-get", *self._options, verb, *arguments], self._deadline_s, env=env)
        if done.ok:
            return
        said = f"apt-get {verb} {' '.join(arguments)} failed: {_complaint(done)}"
        if any(words in done.stderr for words in _NOT_FETCHED):
            raise FetchError(said)
        raise PackageError(said)

    def finish_interrupted(self, environment: Mapping[str, str] | None = None) -> bool:
        """Do what apt demands after a dpkg that was killed. True if there was something to do."""
        if not self.interrupted():
            return False
        argv = ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"]
        done = run(argv, self._deadline_s, env={**_ENVIRONMENT, **(environment or {})})
        _check(done, "dpkg --configure -a")
        return True

    def interrupted(self) -> bool:
        """Has a dpkg that was killed left its journal, so that apt refuses to do anything?"""
        try:
            journal = os.listdir(os.path.join(self._root, "var/lib/dpkg/updates"))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return any(name.isdigit() for name in journal)

    def hold(self, packages: Mapping[str, bool]) -> None:
        """Hold or release installed packages. Raises PackageError."""
        lines = [f"{name} {'hold' if held else 'install'}\n" for name, held in packages.items()]
        done = run(["dpkg", "--set-selections"], stdin="".join(lines), env=_ENVIRONMENT)
        _check(done, "dpkg --set-selections")

    def wait_until_free(self, timeout_s: float) -> None:
        """Wait for another package manager to end. Raises RefusedError if it does not in time."""
        end = time.monotonic() + timeout_s
        for path in self._locks():
            while (holder := _holder(path)) is not None:
                if time.monotonic() >= end:
                    raise RefusedError(
                        f"process {holder} has held {path} for {timeout_s:.0f} s; wait until this "
                        "package manager has ended, or raise lock_timeout_s"
                    )
                # A lock of this kind cannot be waited for with a deadline.
                time.sleep(0.5)

    def busy(self) -> bool:
        """Is a package manager at work now?"""
        return any(_holder(path) is not None for path in self._locks())

    def _locks(self) -> list[str]:
        return [os.path.join(self._root, lock) for lock in _LOCKS]

    def compare(self, left: str, right: str) -> int:
        """-1, 0 or 1: which version is newer."""
        return order.compare(left, right)


def parse_simulation(text: str) -> Solution:
    """The lines ``Inst NAME [OLD] (NEW …)``, ``Conf``, ``Remv`` and ``Purg NAME [OLD]``. Pure."""
    new: set[str] = set()
    changed: set[str] = set()
    removed: set[str] = set()
    configured: set[str] = set()
    versions = {}
    for line in text.splitlines():
        match = _SIMULATED.match(line)
        if match is None:
            continue
        verb, spelled, old, version = match.groups()
        name = spelled.partition(":")[0]
        if verb == "Conf":
            configured.add(name)
        elif verb != "Inst":
            removed.add(name)
        else:
            (new if old is None else changed).add(name)
            versions[name] = version or ""
    half = frozenset(configured - new - changed)
    return Solution(frozenset(new), frozenset(changed), frozenset(removed), versions, half)


def parse_madison(text: str) -> list[tuple[str, str]]:
    """Name and version of the lines ``NAME | VERSION | SOURCE … Packages``. Pure."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and not fields[2].endswith("Sources"):
            found.append((fields[0], fields[1]))
    return found


def owner_of(path: str) -> str | None:
    """The package that brought ``path``; None for a file of nobody."""
    # On merged-usr hosts the database may know it by its old name.
    for spelled in dict.fromkeys((path, path.replace("/usr/", "/", 1), os.path.realpath(path))):
        done = run(["dpkg-query", "-S", spelled])
        name = done.stdout.partition(":")[0]
        if done.ok and name and not name.startswith("diversion "):
            return name.partition(",")[0]
    return None


def edited_conffiles(names: Sequence[str], root: str = "/") -> list[str]:
    """The configuration files of packages that are no longer as they came."""
    done = run(["dpkg-query", "-W", "-f", "${Conffiles}\n", *names])
    return sorted(path for path, md5 in parse_conffiles(done.stdout) if _differs(path, md5, root))


def parse_conffiles(text: str) -> list[tuple[str, str]]:
    """Path and MD5 of the lines `` /etc/x d41d8… [obsolete]``. Pure."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0].startswith("/"):
            found.append((words[0], words[1]))
    return found


def _newest_first(versions: Mapping[str, str]) -> dict[str, str]:
    ordered = sorted(versions, key=functools.cmp_to_key(order.compare), reverse=True)
    return {version: versions[version] for version in ordered}


def _holder(path: str) -> int | None:
    """The process that holds apt's lock on a file; None when it is free or not there."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EROFS):
            return None
        raise
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _whence, _start, _length, process = struct.unpack(
            _FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
        )
        return None if kind == fcntl.F_UNLCK else int(process)
    finally:
        os.close(descriptor)


def _differs(path: str, md5: str, root: str) -> bool:
    where = os.path.join(root, path.lstrip("/"))
    if os.path.islink(where) or not os.path.isfile(where):
        return False
    with open(where, "rb") as handle:
        # dpkg's own checksum, not a matter of security.
        return hashlib.md5(handle.read(), usedforsecurity=False).hexdigest() != md5


def _archived(directory: str) -> Iterable[tuple[str, str, str]]:
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in sorted(names):
        words = name[: -len(".deb")].split("_") if name.endswith(".deb") else []
        if len(words) == 3:
            yield words[0], words[1].replace("%3a", ":"), os.path.join(directory, name)


def _complaint(done: Completed) -> str:
    """What apt said, and of what it prints to stdout the lines that say what does not fit."""
    unmet = done.stdout.partition("The following packages have unmet dependencies:")[2]
    lines = [line.strip() for line in unmet.splitlines() if line.strip()][:8]
    return "\n".join([done.said, *lines]) if done.stderr.strip() else done.said


def _check(done: Completed, what: str) -> None:
    if not done.ok:
        raise PackageError(f"{what} failed: {done.said}")
