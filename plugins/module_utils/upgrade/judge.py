# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that a change of the engine means for one host, by release. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ..versions import parse
from . import (
    judge_containerd,
    judge_engine,
    judge_gpus,
    judge_regressions,
    judge_restart,
    releases,
)
from .model import ERROR, INFO, WARNING, Host, Item, Move

_ORDER = {ERROR: 0, WARNING: 1, INFO: 2}


def judge(host: Host, move: Move, packages: Mapping[str, str]) -> tuple[Item, ...]:
    """What changes from ``move.before`` to ``move.after``, the gravest first.

    ``packages`` are the versions of the engine's packages afterwards.
    """
    found = [
        *judge_restart.packages(host),
        *judge_restart.engine(host, move),
        *judge_restart.pending(host),
        *judge_restart.stopped(host),
        *judge_restart.units(host),
        *judge_engine.configuration(host, move),
        *judge_engine.clients(host, move),
        *judge_engine.images(host, move),
        *judge_engine.kernel(host, move),
        *judge_gpus.cdi(host, move),
        *judge_gpus.gpus_flag(host, move),
        *judge_containerd.containerd(host, move),
        *judge_containerd.runc(host, move, dict(packages)),
        *judge_regressions.regressions(host, move, packages),
    ]
    return tuple(sorted(found, key=lambda item: _ORDER[item.severity]))


def hops(move: Move) -> tuple[str, ...]:
    """The releases on the way: this one, each major release between, the other one."""
    before, after = parse(move.before.get("docker"))[:2], parse(move.after.get("docker"))[:2]
    if not before or not after:
        return ()
    low, high = sorted((before, after))
    between = [name for name in releases.MAJORS if low[0] < parse(name)[0] < high[0]]
    ends = [".".join(str(number) for number in one) for one in (low, high)]
    way = list(dict.fromkeys((ends[0], *between, ends[1])))
    return tuple(way if before <= after else way[::-1])
