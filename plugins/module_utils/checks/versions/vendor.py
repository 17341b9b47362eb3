# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which package of a distribution carries which fix, whatever its version number says. Data.

Distributions mend old versions. A row says from which package on a fix is in; ``date`` is the day
on which the vendor made that package, so that an advisory known by then and not mentioned was
looked at and left open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .order import not_older


@dataclass(frozen=True)
class Patched:
    """From version ``since`` on, ``package`` of the distribution ``os`` has the fixes ``cves``."""

    os: str
    package: str
    since: str
    cves: tuple[str, ...]
    date: str
    source: str


PATCHED: tuple[Patched, ...] = (
    Patched(
        "debian 12",
        "runc",
        "1.1.5+ds1-1+deb12u1",
        ("CVE-2024-21626",),
        "2024-02-02",
        "debian/changelog of runc 1.1.5+ds1-1+deb12u1",
    ),
    Patched(
        "debian 12",
        "containerd",
        "1.6.20~ds1-1+deb12u2",
        ("CVE-2024-25621", "CVE-2024-40635"),
        "2025-11-16",
        "debian/changelog of containerd 1.6.20~ds1-1+deb12u2",
    ),
    Patched(
        "debian 12",
        "containerd",
        "1.6.20~ds1-1+deb12u3",
        ("CVE-2025-64329",),
        "2026-02-12",
        "debian/changelog of containerd 1.6.20~ds1-1+deb12u3",
    ),
    Patched(
        "debian 12",
        "docker.io",
        "20.10.24+dfsg1-1+deb12u1",
        ("CVE-2024-41110",),
        "2024-10-12",
        "debian/changelog of docker.io 20.10.24+dfsg1-1+deb12u1",
    ),
    Patched(
        "debian 13",
        "runc",
        "1.1.15+ds1-2+deb13u1",
        ("CVE-2025-31133", "CVE-2025-52565", "CVE-2026-41579"),
        "2026-11-13",
        "debian/changelog of runc 1.1.15+ds1-2+deb13u1",
    ),
    Patched(
        "debian 13",
        "containerd",
        "1.7.24~ds1-6",
        ("CVE-2024-40635",),
        "2025-04-29",
        "debian/changelog of containerd 1.7.24~ds1-6",
    ),
    Patched(
        "debian 13",
        "containerd",
        "1.7.24~ds1-6+deb13u1",
        ("CVE-2024-25621", "CVE-2025-64329"),
        "2025-11-17",
        "debian/changelog of containerd 1.7.24~ds1-6+deb13u1",
    ),
    Patched(
        "debian 13",
        "docker.io",
        "26.1.5+dfsg1-9+deb13u1",
        (
            "CVE-2026-33747",
            "CVE-2026-33748",
            "CVE-2026-33997",
            "CVE-2026-34040",
            "CVE-2026-41568",
            "CVE-2026-42306",
        ),
        "2026-08-13",
        "debian/changelog of docker.io 26.1.5+dfsg1-9+deb13u1",
    ),
    Patched(
        "debian forky/sid",
        "docker.io",
        "28.5.2+dfsg4-2",
        ("CVE-2026-33997", "CVE-2026-34040"),
        "2026-05-24",
        "debian/changelog of docker.io 28.5.2+dfsg4-2",
    ),
    Patched(
        "debian forky/sid",
        "docker.io",
        "28.5.2+dfsg4-3",
        ("CVE-2026-33747", "CVE-2026-33748", "CVE-2026-41567", "CVE-2026-41568", "CVE-2026-42306"),
        "2026-06-23",
        "debian/changelog of docker.io 28.5.2+dfsg4-3",
    ),
    Patched(
        "rhel 9",
        "runc",
        "4:1.1.9-1.el9",
        ("CVE-2023-25809", "CVE-2023-27561", "CVE-2023-28642"),
        "2023-11-07",
        "ALSA-2023:6380",
    ),
    Patched(
        "rhel 9",
        "runc",
        "4:1.1.12-1.el9_3",
        ("CVE-2024-21626",),
        "2024-02-02",
        "RHSA-2024:0670, ALSA-2024:0670",
    ),
    Patched(
        "rhel 9",
        "runc",
        "4:1.2.5-3.el9_6",
        ("CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"),
        "2025-11-07",
        "RHSA-2025:19927, ALSA-2025:19927",
    ),
)

_OF_THE_MAKERS = (
    "docker-ce",
    "docker-compose-plugin",
    "containerd.io",
    "nvidia-",
    "libnvidia-",
    "datacenter-gpu-manager",
)

# What a version string says of the distribution that built it.
_DEBIAN = re.compile(r"\+deb(\d+)u")
_UBUNTU = re.compile(r"ubuntu[\d.]*~(\d\d\.\d\d)")
_EL = re.compile(r"\.(?:module_?)?\+?el(\d+)")
_BUILT = re.compile(
    r"\+ds|~ds|\+dfsg|\dubuntu|\.el\d|\+el\d|_el\d|\.fc\d|\.amzn|\.azl|\+azure|\+deb"
)


def built_by_distribution(version: str, package: str = "") -> bool:
    """Does a version string show that a distribution built it (``1.1.15+ds1``)?

    Those who make the software also pack it for distributions, and their numbers tell all:
    ``docker-ce 28.3.0-1.el9``.
    """
    return not package.startswith(_OF_THE_MAKERS) and bool(_BUILT.search(version))


def os_of(version: str) -> str | None:
    """The distribution that a package version names itself: ``debian 12``; None for most."""
    for pattern, name in ((_DEBIAN, "debian"), (_UBUNTU, "ubuntu"), (_EL, "rhel")):
        match = pattern.search(version)
        if match:
            return f"{name} {match.group(1)}"
    return None


def usual_package(names: tuple[str, ...]) -> str:
    """That of several packages of one component which the table knows; "" where it knows none."""
    known = {row.package for row in PATCHED}
    return next((name for name in names if name in known), "")


def rows(os: str | None, package: str) -> tuple[Patched, ...]:
    """What is known of one package of one distribution, oldest first."""
    return tuple(row for row in PATCHED if row.os == os and row.package == package)


def fixed_in(known: tuple[Patched, ...], cve: str) -> str | None:
    """The first package with the fix; None where no row names it."""
    return next((row.since for row in known if cve in row.cves), None)


def newest(known: tuple[Patched, ...], version: str) -> Patched | None:
    """The newest row that the installed ``version`` has; None before the first."""
    reached = [row for row in known if not_older(version, row.since)]
    return max(reached, key=lambda row: row.date) if reached else None
