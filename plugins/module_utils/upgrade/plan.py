# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole plan: packages, what they mean for this host, and who has to start anew. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from . import judge, wanted
from .model import ERROR, WARNING, Host, Item, Move, listed

# In the order in which they are started anew.
_UNITS = {"containerd": "containerd.service", "docker": "docker.service"}


@dataclass(frozen=True)
class Plan:
    """``packages`` are the exact versions of the set, ``before`` those now (absent: not installed).

    ``accepted`` are the blocking items that the user takes, by id with the reason. ``containers``
    are the running ones with their processes. ``stale`` are units that run an older program than
    the one that is installed: what a former change has left to do. ``status`` is Docker's now,
    ``unfinished`` are packages that a killed run has left half done.
    """

    move: Move
    packages: Mapping[str, str]
    before: Mapping[str, str]
    items: tuple[Item, ...]
    accepted: Mapping[str, str]
    containers: Mapping[str, int]
    stale: tuple[str, ...] = ()
    status: str = "running"
    unfinished: Collection[str] = ()

    @property
    def blockers(self) -> tuple[Item, ...]:
        """What stands in the way."""
        return tuple(
            item for item in self.items if item.severity == ERROR and item.id not in self.accepted
        )

    @property
    def changes(self) -> dict[str, tuple[str | None, str]]:
        """The packages whose version changes: from, to."""
        return {
            name: (self.before.get(name), version)
            for name, version in self.packages.items()
            if self.before.get(name) != version
        }

    @property
    def actions(self) -> list[str]:
        """The steps in words."""
        steps = [
            f"bring {name} from {before or self._nothing(name)} to {after}"
            for name, (before, after) in self.changes.items()
        ]
        touched = wanted.versions_of({name: after for name, (_was, after) in self.changes.items()})
        steps += [
            f"restart {unit}"
            for name, unit in _UNITS.items()
            if name in touched or unit in self.stale
        ]
        return steps

    def _nothing(self, name: str) -> str:
        return "half done" if name in self.unfinished else "nothing"

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON types."""
        return {
            "packages": dict(self.packages),
            "packages_before": {
                name: self.before[name] for name in self.packages if name in self.before
            },
            "versions": {"before": dict(self.move.before), "after": dict(self.move.after)},
            "hops": list(judge.hops(self.move)),
            "findings": [item.as_dict() for item in self.items],
            "blockers": [item.id for item in self.blockers],
            "refusal": refusal(self),
            "containers": dict(self.containers),
            "status": self.status,
            "actions": self.actions,
        }


def make(
    host: Host,
    offers: wanted.Offers,
    version: str,
    given: Mapping[str, str],
    accept: Mapping[str, str],
) -> Plan:
    """Choose the packages and judge them. Raises :class:`.wanted.WantedError`."""
    chosen = wanted.choose(version, host.there, offers, given)
    # What runs counts: a program that was replaced under a running daemon is not yet in force.
    move = Move(
        {**wanted.versions_of(host.installed), **host.versions},
        {**host.versions, **wanted.versions_of(chosen)},
    )
    changes = any(host.installed.get(name) != version for name, version in chosen.items())
    items = judge.judge(host, move, chosen) if changes or host.stale else ()
    return Plan(
        move=move,
        packages=chosen,
        before=host.installed,
        items=items + _no_way_back(chosen, host.installed, offers),
        accepted=accept,
        containers={one.name: one.pid for one in host.running},
        stale=host.stale,
        status=host.status,
        unfinished=tuple(host.unfinished),
    )


def _no_way_back(
    chosen: Mapping[str, str], installed: Mapping[str, str], offers: wanted.Offers
) -> tuple[Item, ...]:
    lost = [
        f"{name} {installed[name]}"
        for name, version in chosen.items()
        if name in installed
        and installed[name] != version
        and not offers.has(name, installed[name])
    ]
    if not lost:
        return ()
    return (
        Item(
            "no-way-back",
            WARNING,
            "The packages of now cannot be had any more",
            listed(lost),
            "If the new release does not prove itself, its packages stay, and only the "
            "configuration goes back.",
            "Add a source that has them, or give them as files (migrate_files).",
            "docs/upgrades.md",
        ),
    )


def refusal(plan: Plan) -> str:
    """Why nothing is changed, every reason at once; "" when nothing blocks."""
    if not plan.blockers:
        return ""
    lines = [
        "The engine was left as it is ({} to {}):".format(
            plan.move.before.get("docker", "not known"), plan.move.after.get("docker", "not known")
        )
    ]
    for item in plan.blockers:
        lines += [
            f"{item.id}: {item.title}",
            f"  seen: {item.seen}",
            f"  why:  {item.why}",
            f"  do:   {item.todo}",
        ]
    ids = listed([item.id for item in plan.blockers])
    lines.append(
        "What you know to be right for this host is taken by its id and a reason: accept of the "
        f"module, migrate_accept of the role ({ids})"
    )
    return "\n".join(lines)
