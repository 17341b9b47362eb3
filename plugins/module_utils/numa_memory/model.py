# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person asks of memory and NUMA, and what the host is asked about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OWNER = "numa"
ALL_NODES = -1


class NumaError(Exception):
    """What was asked cannot be had here. The message says what was seen and what to do."""


@dataclass(frozen=True)
class HugePagesWish:
    """``count`` pages of ``size_kib`` on ``node``; :data:`ALL_NODES` stands for each node."""

    node: int
    size_kib: int
    count: int


@dataclass(frozen=True)
class Wish:
    """All that is asked. What is None or empty is left as it is.

    ``slice_limits`` is slice to page size in KiB to bytes, None for no limit. ``bandwidth`` is
    class to percent. ``keep_free_percent`` of a node's memory must stay available after huge pages
    were reserved. ``daemon_keys`` are keys of Docker's configuration that the caller sets for this
    owner, as ``default-ulimits.memlock``, to be remembered.
    """

    hugepages: tuple[HugePagesWish, ...] = ()
    slice_limits: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict)
    numa_balancing: bool | None = None
    banned_cpus: str = ""
    banned_drivers: tuple[str, ...] = ()
    bandwidth: Mapping[str, int] = field(default_factory=dict)
    keep_free_percent: int = 10
    docker_version: str = ""
    daemon_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodePages:
    """Huge pages of one size on one node. ``used`` are those that somebody has or has reserved."""

    total: int
    used: int


@dataclass(frozen=True)
class NodeMemory:
    """One NUMA node: its memory, what is available of it, and its huge pages by size in KiB."""

    node: int
    total_kib: int
    available_kib: int
    pages: Mapping[int, NodePages]
