# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which route each container is on, and which it should be on. Pure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import globs, images
from .model import Condition, Policy
from .read import user


class Standing(enum.Enum):
    """How a container stands to the policy."""

    ON = "on"
    OFF = "off"
    UNDECIDED = "undecided"  # what is known of it does not tell which route it meets
    UNREAD = "unread"  # its runtime could not be read in time


@dataclass(frozen=True)
class Container:
    """What routing needs to know of a container; ``runtime`` and ``user`` None: not known.

    ``image`` is as the user wrote it, ``image_names`` what else its image is called where
    that is an id.
    """

    id: str
    name: str
    image: str
    running: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    runtime: str | None = None
    user: str | None = None
    image_id: str = ""
    image_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Audited:
    """One container: ``wanted`` runtime (None: any), and the ``route`` that says so ("": none)."""

    container: Container
    standing: Standing
    wanted: str | None = None
    route: str = ""
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON types, without labels, which may hold anything."""
        one = self.container
        return {
            "id": one.id,
            "name": one.name,
            "image": one.image,
            "running": one.running,
            "runtime": one.runtime,
            "standing": self.standing.value,
            "wanted": self.wanted,
            "route": self.route,
            "why": self.why,
        }


@dataclass(frozen=True)
class Audit:
    """All containers, by name; ``lost`` are those whose runtime the engine does not know."""

    containers: tuple[Audited, ...]
    lost: tuple[Audited, ...] = ()

    def those(self, standing: Standing) -> list[Audited]:
        """The containers with one standing."""
        return [one for one in self.containers if one.standing is standing]


def audit(
    policy: Policy,
    containers: Sequence[Container],
    default_runtime: str,
    known: Collection[str] | None = None,
) -> Audit:
    """Hold every container against the policy; ``known`` are the engine's runtimes."""
    found = sorted(
        (_one(policy, one, default_runtime) for one in containers),
        key=lambda one: (one.container.name, one.container.id),
    )
    lost = [one for one in found if _is_lost(one.container.runtime, known)]
    return Audit(tuple(found), tuple(lost))


def _is_lost(runtime: str | None, known: Collection[str] | None) -> bool:
    shim = runtime is not None and runtime.startswith("io.containerd.")
    return bool(runtime) and known is not None and runtime not in known and not shim


def _one(policy: Policy, container: Container, default_runtime: str) -> Audited:
    possible, doubts = _possible(policy, container)
    actual = container.runtime
    if actual is not None:
        actual = _plain(actual or default_runtime)
    wanted, route = possible[-1] if len(possible) == 1 else (None, "")
    if all(runtime is None for runtime, _route in possible):
        return Audited(container, Standing.ON, None, route, "")
    if actual is None:
        why = "the engine did not say in time which runtime it has"
        return Audited(container, Standing.UNREAD, wanted, route, why)
    fit = [one for one in possible if one[0] is None or _plain(one[0]) == actual]
    if len(fit) == len(possible):
        return Audited(container, Standing.ON, wanted, route, "")
    if not fit:
        names = sorted({str(runtime) for runtime, _route in possible})
        said = _off(actual, names, possible[0][1] if len(possible) == 1 else "")
        return Audited(container, Standing.OFF, wanted, route, said)
    return Audited(container, Standing.UNDECIDED, None, "", "; ".join(doubts))


def _plain(runtime: str) -> str:
    """Docker's runc can also be asked for by the name of its shim."""
    return "runc" if runtime == "io.containerd.runc.v2" else runtime


def _off(actual: str, names: Sequence[str], route: str) -> str:
    by = route or "the policy"
    return f"it has the runtime {actual}, {by} wants {' or '.join(names)}"


def _possible(
    policy: Policy, container: Container
) -> tuple[list[tuple[str | None, str]], list[str]]:
    """The runtimes that the policy may want for a container, with their routes, and the doubts.

    One where everything is known; more where a route before it may hold or not.
    """
    possible: list[tuple[str | None, str]] = []
    doubts: list[str] = []
    names = _image_names(container)
    for route in policy.routes:
        answers = [_holds(one, container, names) for one in route.conditions]
        if any(answer is False for answer in answers):
            continue
        possible.append((route.runtime, route.title))
        if all(answer is True for answer in answers):
            return possible, doubts
        for one, answer in zip(route.conditions, answers):
            if answer is None:
                doubts.append(f"{route.title}: {_doubt(one, container)}")
    possible.append((policy.default, "default" if policy.default else ""))
    return possible, doubts


def _doubt(condition: Condition, container: Container) -> str:
    if condition.subject == "image":
        return f"its image {container.image[:19]} has no name any more"
    if container.user is None:
        return "the engine did not say in time which user it has"
    return (
        f"whether its user {container.user!r} is {' or '.join(condition.written)}, its image says"
    )


def _image_names(container: Container) -> list[str]:
    """The full names of its image; none where only an id is left."""
    if not images.is_id(container.image, container.image_id):
        return list(images.full_names(container.image))
    return [full for name in container.image_names for full in images.full_names(name)]


def _holds(condition: Condition, container: Container, names: Sequence[str]) -> bool | None:
    """Does the condition hold? None where that is not known."""
    kind, _colon, label = condition.subject.partition(":")
    if kind == "label":
        value = container.labels.get(label)
        return value is not None and _any(condition, [value])
    if kind == "name":
        return _any(condition, [container.name])
    if kind == "user":
        return _user(condition, container.user)
    return _any(condition, names) if names else None


def _any(condition: Condition, texts: Sequence[str]) -> bool:
    return any(globs.matches(one, text) for one in condition.patterns for text in texts)


def _user(condition: Condition, given: str | None) -> bool | None:
    if given is None:
        return None
    name = user(given)
    if name in condition.patterns:
        return True
    # A name against a number: only the image knows. Nobody but root is 0.
    unlike = [one for one in condition.patterns if one.isdigit() != name.isdigit()]
    return None if any("0" not in (one, name) for one in unlike) else False
