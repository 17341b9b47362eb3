# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on apt's sources. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.kernel import AptSource, AptSources
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_ARCHITECTURE = re.compile(r"/(\$\(ARCH\)|amd64|arm64|ppc64el)/")
_OLD_TOOLKIT = re.compile(
    r"/nvidia-docker/|/nvidia-container-runtime/"
    r"|/libnvidia-container/((stable|experimental)/)?(ubuntu|debian|centos|rhel|amzn)[0-9.]+/"
)


def _same(source: AptSource) -> tuple[str, str]:
    """What apt takes for one repository."""
    return _ARCHITECTURE.sub("/ARCH/", source.uri), source.suite


def _signed(source: AptSource) -> str:
    return f"signed by {source.signed_by}" if source.signed_by else "without signed-by"


@rule(
    "apt-signed-by-differs",
    "One repository with two settings of signed-by",
    Severity.ERROR,
    reads=AptSources,
    reason="apt stops at the first such pair, and every apt-get update and install fails: "
    "Conflicting values set for option Signed-By regarding source.",
    fix="Remove the older file: one file should have all entries of a repository.",
    sources=(
        "NVIDIA/nvidia-container-toolkit issue 170",
        "NVIDIA/libnvidia-container issue 194",
        "apt sources.list(5)",
    ),
    cases=("PA-001",),
)
def apt_signed_by_differs(file: AptSources, host: HostView) -> Iterator[Hit]:
    """In one file, or against the other files of the host."""
    others = host.evidence.get("apt_sources")
    known = [s for s in others if isinstance(s, AptSource)] if isinstance(others, tuple) else []
    for place, source in enumerate(file.sources):
        earlier = [*file.sources[:place], *(s for s in known if s.at.file != source.at.file)]
        for other in earlier:
            if _same(other) == _same(source) and other.signed_by != source.signed_by:
                where = f"line {other.at.line}" if other.at.file == source.at.file else other.at
                seen = f"{source.uri} is here {_signed(source)}, in {where} {_signed(other)}."
                yield Hit(source.at, seen)
                break


@rule(
    "apt-trusted-source",
    "Packages that nobody checks",
    Severity.WARNING,
    reads=AptSources,
    reason="With trusted=yes apt installs whatever the server, or somebody on the way to it, "
    "sends, as root.",
    fix="Give the repository's key with signed-by.",
    sources=("apt sources.list(5)",),
)
def apt_trusted_source(file: AptSources, host: HostView) -> Iterator[Hit]:
    """[trusted=yes] on something that is not on this host."""
    for source in file.sources:
        if source.trusted and not source.uri.startswith(("file:", "copy:", "cdrom:")):
            yield Hit(source.at, f"{source.uri} has trusted=yes.")


@rule(
    "apt-old-toolkit-repository",
    "A repository of the toolkit that gets no updates",
    Severity.WARNING,
    reads=AptSources,
    reason="The repositories by distribution, those of nvidia-docker among them, ended with "
    "toolkit 1.13 and 1.14: releases with known ways out of a container.",
    fix="Use the toolkit's repository stable/deb and remove this one.",
    sources=("NVIDIA container toolkit install guide", "NVIDIA security bulletins 5582 and 5850"),
    row="7",
)
def apt_old_toolkit_repository(file: AptSources, host: HostView) -> Iterator[Hit]:
    """nvidia-docker and its like."""
    for source in file.sources:
        if _OLD_TOOLKIT.search(source.uri):
            yield Hit(source.at, f"{source.uri} is a repository of former releases.")
