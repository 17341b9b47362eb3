# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on sources that apt cannot read, has twice, or that are for another release. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.kernel import AptSources
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule


@rule(
    "apt-malformed-source",
    "apt cannot read this file",
    Severity.ERROR,
    reads=AptSources,
    reason="One line that is no source stops every apt-get update and install: Type is not known, "
    "or Malformed entry. A page of an error, saved where a list was expected, does that; a list "
    "that says Unsupported distribution! only has no repository at all.",
    fix="Remove the line or the file, and add the repository anew.",
    sources=("apt sources.list(5)",),
)
def apt_malformed_source(file: AptSources, host: HostView) -> Iterator[Hit]:
    """HTML where a list should be, or a line without its parts."""
    for given in file.malformed[:1]:
        yield Hit(given.at, f"This line is no source: {given.value[:60]!r}.")


@rule(
    "apt-source-twice",
    "One repository twice",
    Severity.INFO,
    reads=AptSources,
    reason="apt warns that it is configured multiple times at every update; whoever changes one "
    "entry later and not the other gets an error.",
    fix="Remove one of the two.",
    sources=("apt sources.list(5)",),
)
def apt_source_twice(file: AptSources, host: HostView) -> Iterator[Hit]:
    """The same line, or its two forms."""
    seen = set()
    for source in file.sources:
        what = (source.uri, source.suite, source.signed_by, source.kinds)
        if what in seen:
            yield Hit(source.at, f"{source.uri} {source.suite} is there already.")
        seen.add(what)


_RELEASE = re.compile(r"/repos/(ubuntu|debian|rhel|fedora|sles)(\d+)/")


@rule(
    "apt-repository-of-other-release",
    "A driver repository for another release",
    Severity.WARNING,
    reads=AptSources,
    reason="Packages built for another release want libraries and kernels that this one does not "
    "have: unmet dependencies, or a module that does not build.",
    fix="Use the repository of this release.",
    sources=("NVIDIA driver installation guide, Network repository",),
)
def apt_repository_of_other_release(file: AptSources, host: HostView) -> Iterator[Hit]:
    """Only where the host's release is known."""
    name, _blank, version = (host.os or "").partition(" ")
    for source in file.sources if version[:1].isdigit() else ():
        found = _RELEASE.search(source.uri)
        if found and found.groups() != (name, version.replace(".", "")):
            yield Hit(
                source.at, f"{source.uri} is for {''.join(found.groups())}; this is {host.os}."
            )
