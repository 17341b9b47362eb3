# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""apt and dpkg on the way back: what they have, what they would do, and doing it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...process import Completed, run
from ..model import RollbackError

# Another run of apt is waited for this long.
_LOCK_S = 60
# An engine unpacks some hundred megabytes, and an apt that is killed leaves dpkg half done.
_DEADLINE_S = 1800.0
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
    # The configuration is put back by the restore itself.
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "Dpkg::Options::=--force-confold",
    "-o",
    f"DPkg::Lock::Timeout={_LOCK_S}",
)
_ARCHIVES = "var/cache/apt/archives"
_SIMULATED = re.compile(r"^(Inst|Remv|Purg) ([^ ]+)(?: \[([^]]*)\])?")


@dataclass(frozen=True)
class Simulated:
    """What a transaction would do: packages by name, ``changed`` those of another version now."""

    new: frozenset[str]
    changed: frozenset[str]
    removed: frozenset[str]


def available(names: Sequence[str], root: str = "/") -> dict[str, dict[str, str]]:
    """By package and version: what apt-get is to be given to install it.

    ``NAME=VERSION`` where a package source has it, else the path of a file in apt's cache.
    """
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for name, version, path in _archived(os.path.join(root, _ARCHIVES)):
        if name in found:
            found[name][version] = path
    done = run(["apt-cache", "madison", *names], env=_ENVIRONMENT)
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and fields[0] in found and not fields[2].endswith("Sources"):
            found[fields[0]][fields[1]] = f"{fields[0]}={fields[1]}"
    return found


def simulate(verb: str, arguments: Sequence[str]) -> Simulated:
    """Ask apt what ``install`` or ``purge`` would do. Raises RollbackError if it cannot be done."""
    done = run(["apt-get", "-s", *_OPTIONS, verb, *arguments], 120, env=_ENVIRONMENT)
    if not done.ok:
        raise RollbackError(f"apt-get {verb} {' '.join(arguments)} cannot be done: {done.said}")
    return parse_simulation(done.stdout)


def parse_simulation(text: str) -> Simulated:
    """The lines ``Inst NAME [OLD] (NEW …)``, ``Remv NAME [OLD]``, ``Purg NAME [OLD]``. Pure."""
    new: set[str] = set()
    changed: set[str] = set()
    removed: set[str] = set()
    for line in text.splitlines():
        match = _SIMULATED.match(line)
        if match:
            verb, spelled, old = match.groups()
            name = spelled.partition(":")[0]
            if verb != "Inst":
                removed.add(name)
            else:
                (new if old is None else changed).add(name)
    return Simulated(frozenset(new), frozenset(changed), frozenset(removed))


def carry_out(verb: str, arguments: Sequence[str], root: str = "/") -> None:
    """``apt-get install``, ``remove`` or ``purge`` in one transaction. Raises RollbackError.

    No policy-rc.d is written, which would keep every service from starting if we were killed: the
    caller sees to it that nobody is hurt by a service that the packages restart.
    """
    _finish_interrupted(root)
    done = run(["apt-get", *_OPTIONS, verb, *arguments], _DEADLINE_S, env=_ENVIRONMENT)
    _check(done, f"apt-get {verb} {' '.join(arguments)}")


def hold(packages: Mapping[str, bool]) -> None:
    """Hold or release installed packages. Raises RollbackError."""
    lines = [f"{name} {'hold' if held else 'install'}\n" for name, held in packages.items()]
    done = run(["dpkg", "--set-selections"], stdin="".join(lines), env=_ENVIRONMENT)
    _check(done, "dpkg --set-selections")


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


def _finish_interrupted(root: str) -> None:
    """Do what apt demands after a dpkg that was killed."""
    try:
        journal: Collection[str] = os.listdir(os.path.join(root, "var/lib/dpkg/updates"))
    except (FileNotFoundError, NotADirectoryError):
        journal = ()
    if any(name.isdigit() for name in journal):
        argv = ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"]
        _check(run(argv, _DEADLINE_S, env=_ENVIRONMENT), "dpkg --configure -a")


def _check(done: Completed, what: str) -> None:
    if not done.ok:
        raise RollbackError(f"{what} failed: {done.said}")
