# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings that are known and accepted: a file that lets only new ones fail. Pure.

A finding is recognised by its rule, its file and what was seen, not by its line, so that it stays
known when lines move. Files are named relative to the directory of the baseline file.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .model import Finding

SCHEMA = 1


class BaselineError(ValueError):
    """The text is no baseline; the message says why."""


@dataclass(frozen=True)
class Place:
    """Where a baseline file lies and where the command runs: two absolute directories."""

    folder: str
    here: str

    def name(self, file: str) -> str:
        """``file``, as the command names it, seen from the baseline's directory."""
        return posixpath.relpath(posixpath.join(self.here, file), self.folder)


def fingerprints(findings: Sequence[Finding], place: Place | None = None) -> list[str]:
    """One name for each finding, the same in every run; equal findings are numbered.

    Files are named as ``place`` sees them, or as the findings do.
    """
    seen: Counter[str] = Counter()
    marks = []
    for finding in findings:
        file = place.name(finding.at.file) if place else posixpath.normpath(finding.at.file)
        what = "\0".join((finding.rule, file, finding.seen))
        digest = hashlib.sha256(what.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        marks.append(f"{digest}:{seen[digest]}")
        seen[digest] += 1
    return marks


def write(findings: Sequence[Finding], place: Place) -> str:
    """A baseline of these findings; it has no text of the files, only rules, names and digests."""
    entries = sorted(
        (place.name(finding.at.file), finding.rule, mark)
        for finding, mark in zip(findings, fingerprints(findings, place))
    )
    known = [{"file": file, "rule": rule, "mark": mark} for file, rule, mark in entries]
    return json.dumps({"schema": SCHEMA, "known": known}, indent=2) + "\n"


def read(text: str) -> frozenset[str]:
    """The marks in a baseline; raises BaselineError."""
    try:
        document: Any = json.loads(text)
        if document["schema"] != SCHEMA:
            raise BaselineError(f"schema {document['schema']!r}; this version reads {SCHEMA}")
        return frozenset(str(entry["mark"]) for entry in document["known"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, BaselineError):
            raise
        raise BaselineError("not a baseline that --write-baseline made") from error


def new_ones(
    findings: Sequence[Finding], known: frozenset[str], place: Place
) -> tuple[list[Finding], int]:
    """The findings that the baseline does not have, and how many it has."""
    marks = fingerprints(findings, place)
    left = [finding for finding, mark in zip(findings, marks) if mark not in known]
    return left, len(findings) - len(left)
