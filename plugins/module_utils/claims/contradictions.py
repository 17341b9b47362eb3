# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims that no host can meet, because two of their keys exclude each other. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .model import ALL, Claim, Conflict


def contradictions(claim: Claim) -> list[Conflict]:
    """What of the claim excludes something else of it; [] for a sound one."""
    return [conflict for check in _CHECKS for conflict in check(claim)]


def _count_and_devices(claim: Claim) -> Iterator[Conflict]:
    if claim.devices and claim.count not in (None, len(claim.devices)):
        count = "all" if claim.count == ALL else claim.count
        yield Conflict(
            "count",
            f"count={count} and {len(claim.devices)} named devices",
            "leave count out: the named devices are what is meant",
        )


def _mig_off_and_mig_devices(claim: Claim) -> Iterator[Conflict]:
    named = [name for name in claim.devices if _is_mig(name)]
    if claim.whole and named:
        yield Conflict(
            "mig", f"mig=off and {named[0]}, which is a MIG device", "leave one of the two out"
        )


def _memory_and_profile(claim: Claim) -> Iterator[Conflict]:
    # A profile's name rounds: 1g.5gb has 4,864 MiB, 1g.10gb 9,728. None has more than its name.
    if claim.mig and claim.memory_mib and claim.memory_mib > claim.mig.memory_gb * 1024:
        yield Conflict(
            "memory",
            f"memory of {claim.memory_mib} MiB and mig={claim.mig.name}, which has at most "
            f"{claim.mig.memory_gb} GiB",
            "ask for a larger profile, or for less memory",
        )


def _links_of_mig(claim: Claim) -> Iterator[Conflict]:
    """NVIDIA MIG user guide, "Application considerations": no P2P between instances."""
    mig = claim.mig is not None or (claim.devices and all(map(_is_mig, claim.devices)))
    if mig and claim.link and claim.wanted != 1:
        yield Conflict(
            "link",
            f"link={claim.link} between MIG devices, which cannot reach each other, neither over "
            "NVLink nor over PCIe",
            "ask for whole GPUs (mig=off), or leave link out",
        )


_CHECKS: tuple[Callable[[Claim], Iterator[Conflict]], ...] = (
    _count_and_devices,
    _mig_off_and_mig_devices,
    _memory_and_profile,
    _links_of_mig,
)


def _is_mig(name: str) -> bool:
    return name.startswith("MIG-") or ":" in name
