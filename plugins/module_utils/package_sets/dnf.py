# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""dnf and rpm: what they have, what they would do, and doing it.

Edited configuration files of a removed package stay beside as ``.rpmsave``, by rpm's own hand.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from ..checks.versions import order
from ..packages import DRIVER_PATTERNS
from ..process import Completed, run
from .archives import Archive
from .model import FetchError, MissingError, PackageError, RefusedError, Solution

_DEADLINE_S = 1800.0
_FORM = "%{name}\t%{epoch}\t%{version}-%{release}\n"
# Our own locks are set anew afterwards, and would hide other versions.
_OPTIONS = ("-y", "-q", "--disableplugin=versionlock")
# systemctl then talks to nobody, so that no scriptlet starts or restarts a unit (systemd,
# docs/ENVIRONMENT.md). Who has changed units reloads systemd afterwards.
NOTHING_RESTARTS: Mapping[str, str] = {"SYSTEMD_OFFLINE": "1"}
_SECTIONS = (
    (re.compile(r"(Installing|Reinstalling)\b.*:"), "new"),
    (re.compile(r"(Upgrading|Downgrading)\b.*:"), "changed"),
    (re.compile(r"(Removing|Replacing)\b.*:"), "removed"),
)
_REPLACING = re.compile(r"\s+replacing\s+(\S+)")
_NOT_FOUND = ("No match for argument", "Unable to find a match")
_NOT_FETCHED = ("Error downloading packages", "Cannot download", "Failed to download")


class Dnf:
    """The package manager of an EL host; the parameters as those of :class:`.apt.Apt`."""

    def __init__(
        self,
        options: Sequence[str] = (),
        archives: Sequence[Archive] = (),
        offline: bool = False,
        deadline_s: float = _DEADLINE_S,
    ) -> None:
        self._archives = archives
        self._offline = offline
        self._deadline_s = deadline_s
        self._options = [*_OPTIONS, *(["--disablerepo=*"] if offline else []), *options]

    def offered(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """By package and version (``[EPOCH:]VERSION-RELEASE``), the newest first: what to give."""
        found: dict[str, dict[str, str]] = {name: {} for name in names}
        if not self._offline:
            argv = ["dnf", *self._options, "repoquery", "--showduplicates", "--qf", _FORM, *names]
            for name, version in parse_repoquery(run(argv, 120).stdout):
                if name in found:
                    found[name][version] = f"{name}-{version}"
        for one in self._archives:
            if one.name in found:
                found[one.name][one.version] = one.path
        return {name: _newest_first(versions) for name, versions in found.items()}

    def refresh(self) -> str | None:
        """Read the repositories' metadata anew; what dnf said, if something is wrong."""
        done = run(["dnf", *self._options, "makecache", "--refresh"], self._deadline_s)
        return None if done.ok else done.said

    def solve(self, verb: str, arguments: Sequence[str]) -> Solution:
        """What ``install`` or ``remove`` would do. Raises MissingError, RefusedError."""
        argv = ["dnf", *self._options, *_kept_out(verb), "--assumeno", verb]
        argv = [word for word in argv if word not in ("-y", "-q")]
        done = run([*argv, *self._all(verb, arguments)], 300)
        said = f"{done.stdout}\n{done.stderr}"
        # It says no to itself, so its status tells nothing.
        if re.search(r"^Error", said, re.MULTILINE) or done.timed_out:
            told = f"dnf {verb} {' '.join(arguments)} cannot be done: {done.said}"
            missing = any(words in said for words in _NOT_FOUND)
            raise MissingError(told) if missing else RefusedError(told)
        return parse_transaction(done.stdout)

    def do(
        self,
        verb: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``dnf install`` or ``remove`` in one transaction.

        ``dnf install`` of an exact version goes down as well (dnf's command reference). Driver and
        kernel are kept out of the transaction. Raises FetchError, PackageError.
        """
        argv = ["dnf", *self._options, *_kept_out(verb), verb, *self._all(verb, arguments)]
        done = run(argv, self._deadline_s, env=environment)
        if done.ok:
            return
        said = f"dnf {verb} {' '.join(arguments)} failed: {done.said}"
        fetch = any(words in done.stderr for words in _NOT_FETCHED)
        raise FetchError(said) if fetch else PackageError(said)

    def finish_interrupted(self, environment: Mapping[str, str] | None = None) -> bool:
        """Nothing to finish with rpm: what a killed run left, the next transaction repairs."""
        return False

    def interrupted(self) -> bool:
        """No: rpm keeps no journal that would have to be finished."""
        return False

    def hold(self, packages: Mapping[str, bool]) -> None:
        """Lock packages to their version, or release them. Raises PackageError."""
        for verb, held in (("add", True), ("delete", False)):
            names = [name for name in packages if packages[name] is held]
            if names:
                done = run(["dnf", "-y", "-q", "versionlock", verb, *names], 120)
                _check(done, f"dnf versionlock {verb} {' '.join(names)}")

    def wait_until_free(self, timeout_s: float) -> None:
        """Nothing to do: dnf waits for another one by itself."""

    def compare(self, left: str, right: str) -> int:
        """-1, 0 or 1: which version is newer."""
        return order.compare(left, right)

    def _all(self, verb: str, arguments: Sequence[str]) -> list[str]:
        """Files beside the wanted ones serve as dependencies, so they all go along."""
        if verb != "install":
            return list(arguments)
        given = set(arguments)
        return [*arguments, *(one.path for one in self._archives if one.path not in given)]


def refuse_needed(names: Sequence[str]) -> None:
    """Raises PackageError if another package needs one of these."""
    _check(run(["rpm", "-e", "--test", *names]), f"rpm -e {' '.join(names)}")


def remove(names: Sequence[str]) -> None:
    """Remove these packages and no other. Raises PackageError."""
    refuse_needed(names)
    argv = ["dnf", *_OPTIONS, "--setopt=clean_requirements_on_remove=False", "remove", *names]
    _check(run(argv, _DEADLINE_S), f"dnf remove {' '.join(names)}")


def owner_of(path: str) -> str | None:
    """The package that brought ``path``; None for a file of nobody."""
    done = run(["rpm", "-qf", "--qf", "%{NAME}\n", path])
    return done.stdout.split("\n")[0] or None if done.ok else None


def parse_repoquery(text: str) -> list[tuple[str, str]]:
    """Name and version of the lines ``NAME<tab>EPOCH<tab>VERSION-RELEASE``. Pure."""
    found = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3:
            name, epoch, version = fields
            found.append((name, version if epoch in ("0", "", "(none)") else f"{epoch}:{version}"))
    return found


def parse_transaction(text: str) -> Solution:
    """The table that dnf shows before it asks. Pure.

    Sections such as ``Installing:`` with lines `` NAME ARCH VERSION REPOSITORY SIZE``. A name that
    is too long has its line alone.
    """
    names: dict[str, set[str]] = {"new": set(), "changed": set(), "removed": set()}
    versions = {}
    section, alone = "", ""
    for line in text.splitlines():
        if line[:1].strip():
            matched = [kind for begin, kind in _SECTIONS if begin.match(line)]
            section, alone = (matched[0] if matched else ""), ""
            continue
        replacing = _REPLACING.match(line)
        if replacing:
            names["removed"].add(_bare(replacing.group(1)))
            continue
        words = ([alone] if alone else []) + line.split()
        alone = words[0] if len(words) == 1 else ""
        if section and len(words) >= 4:
            names[section].add(words[0])
            versions[words[0]] = _without_zero(words[2])
    return Solution(
        frozenset(names["new"]),
        frozenset(names["changed"]),
        frozenset(names["removed"]),
        {name: version for name, version in versions.items() if name not in names["removed"]},
    )


def _bare(spelled: str) -> str:
    """``docker.x86_64`` is ``docker``; dots of the name itself stay."""
    return spelled.rpartition(".")[0] or spelled


def _without_zero(version: str) -> str:
    return version[2:] if version.startswith("0:") else version


def _kept_out(verb: str) -> list[str]:
    return [f"--exclude={pattern}" for pattern in DRIVER_PATTERNS] if verb == "install" else []


def _newest_first(versions: Mapping[str, str]) -> dict[str, str]:
    ordered = sorted(versions, key=functools.cmp_to_key(order.compare), reverse=True)
    return {version: versions[version] for version in ordered}


def _check(done: Completed, what: str) -> None:
    if not done.ok:
        raise PackageError(f"{what} failed: {done.said}")
