# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of MIG profiles: ``1c.3g.20gb+me`` is a compute instance in a ``3g.20gb+me``."""

from __future__ import annotations

import re

_NAME = re.compile(r"(?:([1-9]\d*)c\.)?([1-9]\d*)g\.([1-9]\d*)gb((?:[+-][a-z][a-z0-9.,]*)*)")

# Sizes of compute instances by the compute slices of their GPU instance: MIG user guide,
# "Compute Instance Profiles" (nvidia-smi mig -lcip). There is no 3c in a 4g, no 5c and no 6c.
_COMPUTE_SIZES = {1: (1,), 2: (1, 2), 3: (1, 2, 3), 4: (1, 2, 4), 7: (1, 2, 3, 4, 7)}


def split(name: str) -> tuple[int | None, str]:
    """Compute slices and GPU instance profile of a MIG device's profile.

    ``1c.3g.20gb+me`` -> (1, ``3g.20gb+me``); ``3g.20gb`` -> (None, ``3g.20gb``): all slices
    of the instance. ValueError when it is no name of a profile.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(
            f"{name!r} is no MIG profile: they are written 3g.20gb, 1g.5gb+me or 1c.3g.20gb"
        )
    compute, slices, memory, attributes = match.groups()
    profile = f"{slices}g.{memory}gb{attributes}"
    # A compute instance of all slices has the plain name: 1c.1g.5gb is 1g.5gb.
    partial = int(compute) if compute and compute != slices else None
    return partial, profile


def device_name(profile: str, slices: int, compute: int) -> str:
    """The profile of the MIG device that ``compute`` of the ``slices`` of an instance make."""
    return profile if compute == slices else f"{compute}c.{profile}"


def compute_sizes(slices: int) -> tuple[int, ...]:
    """How large compute instances in an instance of so many compute slices may be."""
    return _COMPUTE_SIZES.get(slices) or tuple(range(1, slices + 1))


def slices_of(profile: str) -> int:
    """The compute slices in a profile's name: 3 of ``3g.20gb``. ValueError for no profile."""
    return int(split(profile)[1].partition("g")[0])
