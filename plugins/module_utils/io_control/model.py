# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of a disk, and what a disk is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEDULERS = ("bfq", "mq-deadline", "kyber", "none")
# All disks with a device behind them that are not named themselves.
ALL = "*"

# Keys of io.cost.model and io.cost.qos (admin-guide/cgroup-v2.rst).
MODEL_KEYS = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
_PERCENTS = ("rpct", "wpct", "min", "max")
QOS_KEYS = ("rpct", "rlat", "wpct", "wlat", "min", "max")


class IoError(Exception):
    """Disks cannot be what was asked. The message says what was seen and what to do."""


@dataclass(frozen=True)
class Wish:
    """One entry of ``devices``. ``scheduler`` and ``iocost`` are None where nothing is wanted.

    ``model`` and ``qos`` are words such as ``rbps=3000000000``, as the kernel prints them.
    """

    given: str
    scheduler: str | None = None
    iocost: bool | None = None
    model: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()


@dataclass(frozen=True)
class Disk:
    """A whole disk with a device behind it.

    ``number`` is ``MAJOR:MINOR``; ``schedulers`` are those the kernel lists or has a module for,
    and ``scheduler`` the one in use, None for a disk without a choice; ``identity`` is a sysfs
    attribute below the disk's directory with its value, by which udev knows the disk under any
    name; ``through`` are the devices between the disk and what was asked for; ``rotates`` is what
    the disk says of itself.
    """

    name: str
    number: str
    scheduler: str | None
    schedulers: tuple[str, ...]
    identity: tuple[str, str] | None = None
    through: tuple[str, ...] = ()
    rotates: bool = False


@dataclass(frozen=True)
class Kernel:
    """What the running kernel can do for weights.

    ``fault`` is why nothing of it can be, None on a host whose io controller is there.
    """

    io_cost: bool
    fault: str | None = None
    costed: Mapping[str, str] = field(default_factory=dict)


def parse_devices(raw: Mapping[str, Any]) -> list[Wish]:
    """Validate ``devices``. Raises IoError that names every fault."""
    wishes, faults = [], []
    for given, said in raw.items():
        try:
            wishes.append(_wish(str(given), said or {}))
        except IoError as error:
            faults.append(f"{given}: {error}")
    if faults:
        raise IoError("\n".join(faults))
    return wishes


def as_plain(wishes: list[Wish]) -> dict[str, Any]:
    """The inverse of :func:`parse_devices`, for the record."""
    return {
        wish.given: {
            "scheduler": wish.scheduler,
            "iocost": wish.iocost,
            "model": dict(word.split("=", 1) for word in wish.model),
            "qos": dict(word.split("=", 1) for word in wish.qos),
        }
        for wish in wishes
    }


def _wish(given: str, said: Mapping[str, Any]) -> Wish:
    unknown = sorted(set(said) - {"scheduler", "iocost", "model", "qos"})
    if unknown:
        raise IoError(f"no {', '.join(unknown)}: wanted scheduler, iocost, model, qos")
    scheduler, iocost = said.get("scheduler"), said.get("iocost")
    if scheduler is not None and scheduler not in SCHEDULERS:
        raise IoError(f"scheduler {scheduler!r}: wanted one of {', '.join(SCHEDULERS)}")
    if iocost not in (None, True, False):
        raise IoError(f"iocost {iocost!r}: wanted true or false")
    model = _words(said.get("model") or {}, MODEL_KEYS)
    qos = _words(said.get("qos") or {}, QOS_KEYS)
    if (model or qos) and not iocost:
        raise IoError("model and qos are those of iocost: wanted `iocost: true` with them")
    if model and len(model) != len(MODEL_KEYS):
        raise IoError(f"a model has all of {', '.join(MODEL_KEYS)}, measured on this disk")
    if iocost and scheduler == "bfq":
        raise IoError(
            "bfq and iocost both share one disk out by weight, one behind the other: wanted one "
            "of the two, with iocost `scheduler: none` or mq-deadline"
        )
    if scheduler is None and iocost is None:
        raise IoError("nothing is asked: wanted scheduler, iocost or both")
    return Wish(given, scheduler, iocost, model, qos)


def _words(said: Mapping[str, Any], known: tuple[str, ...]) -> tuple[str, ...]:
    """The kernel's words in its own order and spelling."""
    unknown = sorted(set(said) - set(known))
    if unknown:
        raise IoError(f"no {', '.join(unknown)}: wanted of {', '.join(known)}")
    words = []
    for key in (key for key in known if key in said):
        try:
            number = float(said[key])
        except (TypeError, ValueError):
            number = -1.0
        if number < 0 or (key not in _PERCENTS and not number.is_integer()):
            raise IoError(f"{key}={said[key]!r}: wanted a number that is not negative")
        words.append(f"{key}={number:.2f}" if key in _PERCENTS else f"{key}={int(number)}")
    return tuple(words)
