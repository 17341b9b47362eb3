# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the package sources of this host have. Reads only; no list is refreshed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..package_sets.apt import Apt
from ..package_sets.archives import Archive
from ..process import CommandMissingError, run
from .wanted import Offer, Offers

_FORM = "%{name}\t%{epoch}\t%{version}-%{release}\t%{repoid}\n"
_CANDIDATE = re.compile(r"^\s+Candidate: (\S+)$")


def read(
    manager: str | None,
    names: Sequence[str],
    files: Sequence[Archive] = (),
    offline: bool = False,
    deadline_s: float = 120.0,
) -> Offers:
    """By apt's lists at hand or by dnf's cache, and ``files``, alone where it is ``offline``."""
    there = tuple(Offer(one.name, one.version, "files") for one in files if one.name in names)
    if offline:
        return Offers(there, {one.package: one.version for one in there})
    try:
        if manager == "dpkg":
            listed = run(["apt-cache", "madison", *names], deadline_s).stdout
            policy = run(["apt-cache", "policy", *names], deadline_s).stdout
            kept = frozenset(
                (name, version)
                for name, versions in Apt(archives=files).offered(names).items()
                for version in versions
            )
            return Offers((*there, *parse_madison(listed)), parse_policy(policy), kept)
        if manager == "rpm":
            argv = ["dnf", "-q", "--disableplugin=versionlock", "repoquery"]
            form = ["--qf", _FORM, *names]
            listed = run([*argv, "--showduplicates", *form], deadline_s).stdout
            newest = run([*argv, "--latest-limit=1", *form], deadline_s).stdout
            candidates = {one.package: one.version for one in parse_repoquery(newest)}
            return Offers((*there, *parse_repoquery(listed)), candidates)
    except CommandMissingError:
        pass
    return Offers(there)


def parse_madison(text: str) -> tuple[Offer, ...]:
    """Lines of ``NAME | VERSION | ARCHIVE``, without those of source packages. Pure."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 3 and not fields[2].endswith("Sources"):
            found.append(Offer(*fields))
    return tuple(found)


def parse_policy(text: str) -> dict[str, str]:
    """Package to candidate of ``apt-cache policy``. Pure."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        match = _CANDIDATE.match(line)
        if line and not line[0].isspace():
            name = line.rstrip().rstrip(":")
        elif match and name and match.group(1) != "(none)":
            found[name] = match.group(1)
    return found


def parse_repoquery(text: str) -> tuple[Offer, ...]:
    """Lines of ``NAME<tab>EPOCH<tab>VERSION-RELEASE<tab>REPOSITORY``. Pure."""
    found = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 4:
            name, epoch, version, archive = fields
            shown = version if epoch in ("0", "", "(none)") else f"{epoch}:{version}"
            found.append(Offer(name, shown, archive))
    return tuple(found)
