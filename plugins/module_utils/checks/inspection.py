# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One text from its bytes to its findings: read, judge, leave out what a comment ignores. Pure.

Every face (the command, the module, the tests) goes this way, so that all say the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from .host import HostView
from .judge import judge, judge_documents
from .model import Finding, Problem, Reading
from .readers import kinds
from .readers.ignores import IgnoreComment, read_ignores, without_ignored
from .refine import refine

# Files of these kinds say how the host is, and are read before the others are judged.
DESCRIBE_THE_HOST = frozenset(
    (
        *("daemon_json", "unit", "containerd_toml", "toolkit_toml", "cdi_spec", "cmdline"),
        *("sysctl", "apt_sources"),
    )
)


@dataclass(frozen=True)
class Inspected:
    """What there is to say of one text: ``ignored`` counts findings that a comment switched off."""

    file: str
    kind: str | None
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    ignored: int = 0


def read(
    text: str,
    file: str,
    kind: str | None = None,
    read_file: kinds.ReadFile | None = None,
    list_files: kinds.ListFiles | None = None,
) -> Reading:
    """The documents of a text, its ignoring comments among them; see `kinds.read`."""
    reading = kinds.read(text, file, kind, read_file, list_files)
    return replace(reading, documents=(*reading.documents, *read_ignores(text, file)))


def conclude(reading: Reading, file: str, kind: str | None, host: HostView) -> Inspected:
    """What the rules say of a text that was read. The host itself is not judged here."""
    comments = [d for d in reading.documents if isinstance(d, IgnoreComment)]
    found = judge_documents(reading.documents, host)
    left, ignored = without_ignored(found, comments)
    return Inspected(file, kind, tuple(left), reading.problems, ignored)


def inspect(
    text: str,
    file: str,
    host: HostView,
    kind: str | None = None,
    read_file: kinds.ReadFile | None = None,
    list_files: kinds.ListFiles | None = None,
) -> Inspected:
    """Everything there is to say of one text for this host; the arguments are those of `read`."""
    kind = kind or kinds.detect(text, file)
    return conclude(read(text, file, kind, read_file, list_files), file, kind, host)


def inspect_host(host: HostView) -> tuple[Finding, ...]:
    """What the rules say of the host itself; nothing where it is not live."""
    return tuple(judge((), host))


def sharpen(host: HostView, documents: Iterable[Any]) -> HostView:
    """The host as the files that configure it say it is."""
    return refine(host, tuple(documents))
