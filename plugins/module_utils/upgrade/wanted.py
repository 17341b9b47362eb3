# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages bring the wanted release of the engine. Pure.

The engine comes as a set: daemon, client, containerd and runc of a distribution are built and
tested together, so they are taken from the same suite. Docker's own packages keep their
containerd, which has releases of its own.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..checks.versions.order import compare
from ..versions import parse

# Those who bring the daemon, and with each: what has its version, and what comes from its suite.
_SETS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "docker-ce": (("docker-ce-cli", "docker-ce-rootless-extras"), ()),
    "docker.io": (
        ("docker-cli",),
        ("containerd", "runc", "containerd-app", "runc-app"),
    ),
    "moby-engine": (("moby-cli",), ("moby-containerd", "moby-runc", "containerd", "runc")),
}
# What the plan reads versions of.
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "docker": tuple(_SETS),
    "containerd": ("containerd.io", "containerd", "containerd-app", "moby-containerd"),
    "runc": ("runc", "runc-app", "moby-runc"),
}
NAMES = tuple(
    dict.fromkeys(
        name
        for lead, (same, others) in _SETS.items()
        for name in (lead, *same, *others, "containerd.io")
    )
)
CANDIDATE = "candidate"
_SUITE = re.compile(r"\S+ ([^\s/]+?)(?:-security|-updates|-proposed-updates)?/\S+ ")
_NUMBERS = re.compile(r"\d+(\.\d+)*$")


class WantedError(Exception):
    """The wanted release cannot be had; says what was seen and what to do."""


@dataclass(frozen=True)
class Offer:
    """A version of a package that an archive has; ``archive`` as the package manager names it."""

    package: str
    version: str
    archive: str


@dataclass(frozen=True)
class Offers:
    """What can be had: ``listed`` from archives, ``candidates`` what would be taken unasked.

    ``kept`` are names and versions that lie in the package manager's cache.
    """

    listed: tuple[Offer, ...] = ()
    candidates: Mapping[str, str] = field(default_factory=dict)
    kept: frozenset[tuple[str, str]] = frozenset()

    def of(self, package: str, suite: str | None = None) -> list[str]:
        """The versions of a package, the newest first; only those of one suite, if given."""
        found = {
            one.version
            for one in self.listed
            if one.package == package and suite in (None, suite_of(one.archive))
        }
        return sorted(found, key=functools.cmp_to_key(compare), reverse=True)

    def has(self, package: str, version: str) -> bool:
        """Can this version be had?"""
        return (package, version) in self.kept or version in self.of(package)

    def suites(self, package: str, version: str) -> list[str]:
        """Where a version can be had."""
        return [
            suite_of(one.archive)
            for one in self.listed
            if (one.package, one.version) == (package, version)
        ]


def suite_of(archive: str) -> str:
    """The suite that an archive belongs to: ``trixie`` also for its updates and its security.

    ``archive`` is ``URL SUITE/COMPONENT ARCHITECTURE Packages`` or, of dnf, a repository's id.
    """
    match = _SUITE.match(archive)
    return match.group(1) if match else archive


def lead_of(installed: Collection[str]) -> str:
    """The installed package with the daemon. Raises WantedError without one."""
    for name in _SETS:
        if name in installed:
            return name
    raise WantedError(
        "no package of Docker is installed ({}); the role engine installs one, and a Docker that "
        "came without a package can only be replaced by hand".format(", ".join(_SETS))
    )


def choose(
    version: str,
    installed: Mapping[str, str],
    offers: Offers,
    given: Mapping[str, str],
) -> dict[str, str]:
    """The exact version of every package of the set, those that stay included.

    ``version`` is ``candidate``, an upstream release (``28.5.2``, ``28.5``), a pattern with ``*``
    or the daemon's exact package version. ``installed`` are versions by name, what a killed run has
    left half done among them: "" where that was cut before it had one. ``given`` names packages and
    versions that are wanted besides or instead. Raises WantedError.
    """
    lead = lead_of(installed)
    same, others = _SETS[lead]
    members = [name for name in (*same, *others) if name in installed]
    chosen = {lead: installed[lead], **{name: installed[name] for name in members}}
    if version == CANDIDATE:
        chosen = {name: offers.candidates.get(name) or have for name, have in chosen.items()}
    elif not matches(version, installed[lead]):
        chosen[lead] = _offered(lead, version, offers)
        suite = offers.suites(lead, chosen[lead])[0]
        for name in same:
            if name in members:
                chosen[name] = _of_same_version(name, chosen[lead], suite, offers)
        for name in others:
            if name in members:
                chosen[name] = (offers.of(name, suite) or [installed[name]])[0]
    else:
        # Finish what a run that was killed has left: another branch than the daemon's suite has.
        for suite in offers.suites(lead, installed[lead])[:1]:
            for name in members:
                newest = (offers.of(name, suite) or [installed[name]])[0]
                if parse(newest)[:2] != parse(installed[name])[:2]:
                    chosen[name] = newest
    told = {**chosen, **given}
    return {name: one or _offered(name, "*", offers) for name, one in told.items()}


def matches(wanted: str, version: str) -> bool:
    """Is a package version what was asked for?"""
    if wanted == version or ("*" in wanted and fnmatch.fnmatchcase(version, wanted)):
        return True
    numbers = parse(wanted)
    return bool(_NUMBERS.match(wanted)) and parse(version)[: len(numbers)] == numbers


def _offered(lead: str, wanted: str, offers: Offers) -> str:
    there = offers.of(lead)
    for version in there:
        if matches(wanted, version):
            return version
    seen = ", ".join(there) or "no version at all"
    raise WantedError(
        f"no package source has {lead} {wanted}; they have: {seen}. Add a source that has it (or "
        "migrate_files with its packages), or name one of these"
    )


def _of_same_version(name: str, version: str, suite: str, offers: Offers) -> str:
    there: Sequence[str] = offers.of(name)
    if version in there:
        return version
    # A package of the same source may have an epoch or a revision of its own.
    alike = [one for one in offers.of(name, suite) if parse(one) == parse(version)]
    if alike:
        return alike[0]
    raise WantedError(
        f"no package source has {name} in version {version}, which the daemon needs; they have: "
        + (", ".join(there) or "no version at all")
    )


def versions_of(packages: Mapping[str, str]) -> dict[str, str]:
    """The versions of docker, containerd and runc that packages bring, as far as they tell."""
    found = {}
    for component, names in COMPONENTS.items():
        name = next((name for name in names if name in packages), None)
        if name is not None:
            found[component] = packages[name]
    return found
