# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which version of the CDI format an engine reads. Data, with one question.

An engine leaves out a specification of a version that came after the CDI library it was built
with. The figures are the versions that the releases themselves ask for (``go.mod``, Docker:
``vendor.mod``) at the tag of each release.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..versions import at_least, parse

# Oldest first; a release reads what the last entry that is not above it says. Docker's 25.0 was
# given a newer library than 26.0 later on. Before the first entry an engine reads no CDI at all.
_READS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "docker": (
        ("25.0.0", "0.6.0"),
        ("25.0.17", "0.8.0"),
        ("26.0.0", "0.6.0"),
        ("26.1.0", "0.7.0"),
        ("27.4.0", "0.8.0"),
        ("28.1.0", "1.0.0"),
        ("29.2.0", "1.1.0"),
    ),
    "containerd": (
        ("1.7.0", "0.5.0"),
        ("1.7.12", "0.6.0"),
        ("1.7.16", "0.7.0"),
        ("1.7.27", "0.8.0"),
        ("2.0.5", "1.0.0"),
        ("2.2.1", "1.1.0"),
    ),
    "podman": (
        ("4.1.0", "0.4.0"),
        ("4.3.0", "0.5.0"),
        ("4.7.0", "0.6.0"),
        ("5.1.0", "0.7.0"),
        ("5.2.0", "0.8.0"),
        ("5.5.0", "1.0.0"),
    ),
    "crio": (
        ("1.24.0", "0.3.0"),
        ("1.25.0", "0.5.0"),
        ("1.28.0", "0.6.0"),
        ("1.30.0", "0.7.0"),
        ("1.31.0", "0.8.0"),
        ("1.33.0", "1.0.0"),
        ("1.35.0", "1.1.0"),
    ),
}
ENGINES = tuple(_READS)


def highest(engine: str, version: str) -> str | None:
    """The newest CDI version that this release is known to read; None when it reads none."""
    known = [cdi for since, cdi in _READS[engine] if at_least(version, since)]
    return known[-1] if known else None


def reads(engine: str, version: str, cdi_version: str) -> bool:
    """Does this release read specifications of ``cdi_version``?

    A release as new as the newest of the table may read what is newer still: it is not refused.
    """
    newest_release, newest = _READS[engine][-1]
    if at_least(version, newest_release) and parse(cdi_version) > parse(newest):
        return True
    known = highest(engine, version)
    return known is not None and at_least(known, cdi_version)


def since(engine: str, cdi_version: str) -> str | None:
    """The first release from which on all read ``cdi_version``; None when none is known."""
    first = None
    for release, cdi in reversed(_READS[engine]):
        if not at_least(cdi, cdi_version):
            break
        first = release
    return first
