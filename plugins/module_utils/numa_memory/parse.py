# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a person wrote, as :class:`.model.Wish`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..slices.quantities import QuantityError, parse_size
from ..slices.unit_text import name_fault
from ..topology import lists
from .model import ALL_NODES, HugePagesWish, NumaError, Wish

# A name of a CDI device, and of a kernel module.
_CLASS = re.compile(r"[a-z0-9]([a-z0-9_-]{0,30}[a-z0-9])?")
_DRIVER = re.compile(r"[A-Za-z0-9_]{1,56}")


def parse_wish(options: Mapping[str, Any]) -> Wish:
    """The wish of a module's options. Raises NumaError with every fault at once."""
    faults: list[str] = []
    hugepages = _hugepages(options.get("hugepages") or [], faults)
    limits = _limits(options.get("slice_limits") or {}, faults)
    bandwidth = _bandwidth(options.get("memory_bandwidth") or {}, faults)
    cpus = str(options.get("banned_cpus") or "").strip()
    if cpus and lists.numbers(cpus) is None:
        faults.append(f"banned_cpus is {cpus!r}: wanted a list such as 0-3,8")
    drivers = tuple(str(name) for name in options.get("banned_drivers") or [])
    for name in drivers:
        if not _DRIVER.fullmatch(name):
            faults.append(f"banned_drivers: {name!r} is no kernel module, such as mlx5_core")
    percent = int(options.get("keep_free_percent", 10))
    if not 0 <= percent <= 90:
        faults.append(f"keep_free_percent is {percent}: wanted 0 to 90")
    if faults:
        raise NumaError("\n".join(faults))
    return Wish(
        hugepages=hugepages,
        slice_limits=limits,
        numa_balancing=options.get("numa_balancing"),
        banned_cpus=cpus,
        banned_drivers=drivers,
        bandwidth=bandwidth,
        keep_free_percent=percent,
        docker_version=str(options.get("docker_version") or ""),
        daemon_keys=tuple(sorted(options.get("daemon_keys") or [])),
    )


def _hugepages(asked: Sequence[Mapping[str, Any]], faults: list[str]) -> tuple[HugePagesWish, ...]:
    found: dict[tuple[int, int], HugePagesWish] = {}
    for one in asked:
        node = str(one.get("node", "all"))
        size = _page_size(str(one.get("size", "2M")), faults)
        count = int(one.get("count") or 0)
        if node != "all" and not node.isdecimal():
            faults.append(f"hugepages: node is {node!r}, wanted a number or all")
            continue
        if count < 0:
            faults.append(f"hugepages: count is {count}, wanted 0 or more")
        wish = HugePagesWish(ALL_NODES if node == "all" else int(node), size, count)
        if (wish.node, size) in found:
            faults.append(f"hugepages: node {node} with pages of {size} KiB is there twice")
        found[wish.node, size] = wish
    return tuple(found.values())


def _limits(asked: Mapping[str, Any], faults: list[str]) -> dict[str, dict[int, int | None]]:
    found: dict[str, dict[int, int | None]] = {}
    for name, sizes in asked.items():
        fault = name_fault(str(name))
        if fault:
            faults.append(f"slice_limits: {fault}")
            continue
        if not isinstance(sizes, Mapping):
            faults.append(
                f"slice_limits.{name} is {sizes!r}, wanted page size to limit: {{2M: 1G}}"
            )
            continue
        found[str(name)] = {
            _page_size(str(size), faults): _bytes(str(limit), f"slice_limits.{name}", faults)
            for size, limit in sizes.items()
        }
    return found


def _bandwidth(asked: Mapping[str, Any], faults: list[str]) -> dict[str, int]:
    found = {}
    for name, value in asked.items():
        text = str(value).strip().rstrip("%")
        if not _CLASS.fullmatch(str(name)):
            faults.append(
                f"memory_bandwidth: {name!r} is no name of a class, wanted small letters, digits "
                "and dashes"
            )
        elif not text.isdecimal() or not 1 <= int(text) <= 100:
            faults.append(f"memory_bandwidth.{name} is {value!r}, wanted a percentage of 1 to 100")
        else:
            found[str(name)] = int(text)
    return found


def _page_size(text: str, faults: list[str]) -> int:
    size = _bytes(text, "page size", faults)
    if size is None or size % 1024 or size & (size - 1):
        faults.append(f"page size is {text!r}, wanted a power of two such as 2M or 1G")
        return 0
    return size // 1024


def _bytes(text: str, where: str, faults: list[str]) -> int | None:
    if text in ("max", "infinity"):
        return None
    try:
        return parse_size(text)
    except QuantityError as error:
        faults.append(f"{where} is {text!r}: {error}")
        return 0
