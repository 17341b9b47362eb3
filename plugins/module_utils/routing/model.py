# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A routing policy: which container is to have which OCI runtime. Pure.

dockerd itself cannot route: a container has the runtime that it was created with, or the default.
A policy says what should be; it is audited here and applied by who creates containers.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VERSION = 1
DEFAULT_PATH = "/etc/steadygpu/routes.json"

# Compose writes these labels on what it creates (Compose specification, "labels").
PROJECT_LABEL = "com.docker.compose.project"
SERVICE_LABEL = "com.docker.compose.service"


class Level(enum.IntEnum):
    """How grave a fault of a policy is: an error forbids its use, a note is only told."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The word for people."""
        return self.name.lower()


@dataclass(frozen=True)
class Fault:
    """What is wrong in a policy: ``path`` as ``routes[1].match.image``, the place in the text."""

    level: Level
    path: str
    said: str
    advice: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.said}; {self.advice}" if self.advice else f"{where}{self.said}"

    def as_dict(self) -> dict[str, Any]:
        """The fault as JSON types."""
        return {**vars(self), "level": self.level.label}


@dataclass(frozen=True)
class Condition:
    """One thing that must hold of a container: one of ``patterns`` matches its ``subject``.

    ``subject`` is ``image``, ``user``, ``name`` or ``label:<name>``. ``patterns`` are on the full
    name for images and on uid or name for users; ``written`` is what the user wrote.
    """

    subject: str
    patterns: tuple[str, ...]
    written: tuple[str, ...]
    path: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Route:
    """Containers that meet all ``conditions`` are to have ``runtime``."""

    runtime: str
    conditions: tuple[Condition, ...]
    name: str = ""
    number: int = field(default=0, compare=False)
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    @property
    def path(self) -> str:
        """Where it stands: ``routes[0]``."""
        return f"routes[{self.number}]"

    @property
    def title(self) -> str:
        """What a message calls it."""
        return f"{self.path} ({self.name})" if self.name else self.path


@dataclass(frozen=True)
class Policy:
    """The first route that a container meets counts; ``default`` (None: any) where none does."""

    routes: tuple[Route, ...] = ()
    default: str | None = None

    @property
    def runtimes(self) -> frozenset[str]:
        """All runtimes that it names."""
        default = {self.default} if self.default else set()
        return frozenset({route.runtime for route in self.routes} | default)

    def as_dict(self) -> dict[str, Any]:
        """The policy in its canonical form, as ``routes.json`` holds it."""
        routes = [_route(route) for route in self.routes]
        return {"version": VERSION, "routes": routes, "default": self.default}


def _route(route: Route) -> dict[str, Any]:
    named = {"name": route.name} if route.name else {}
    return {**named, "match": _match(route.conditions), "runtime": route.runtime}


def _match(conditions: tuple[Condition, ...]) -> Mapping[str, Any]:
    match: dict[str, Any] = {}
    for one in conditions:
        kind, _colon, label = one.subject.partition(":")
        if kind == "label":
            match.setdefault("label", {})[label] = list(one.written)
        else:
            match[kind] = list(one.written)
    return match
