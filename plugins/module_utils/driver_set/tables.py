# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which driver fits which GPU, and which packages make one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OPEN = "open"
PROPRIETARY = "proprietary"

PRE_TURING = "before Turing"
TURING = "Turing or newer"
OPEN_ONLY = "Grace Hopper, Blackwell or newer"

# NVIDIA/open-gpu-kernel-modules 595.45.04, README "Compatible GPUs": the table begins with the
# Turing TU102, 1E02; its entries from 2900 on are Blackwell. Nothing before is in it.
_FIRST_TURING = 0x1E02
_FIRST_BLACKWELL = 0x2900
# The same table: GH200.
_GRACE_HOPPER = frozenset({0x2342, 0x2345, 0x2348})

# "supported through the NVIDIA 580.xx Legacy drivers" is what newer modules say of a Pascal (field
# case DR-013); Maxwell, Pascal and Volta left together.
LAST_BRANCH_BEFORE_TURING = 580
# MIG user guide, edition 620: B200 and GB200 from 570.133.20 on.
FIRST_BRANCH_OF_BLACKWELL = 570
# The open modules exist since 515 (driver installation guide, "Kernel Modules").
FIRST_OPEN_BRANCH = 515

# What a distribution calls a driver without a desktop. Where a set is not here it is data of the
# user's: names change, as Ubuntu's did with 590, which lost the branch in them.
_DEBIAN = ("nvidia-smi", "libcuda1", "nvidia-modprobe", "nvidia-persistenced")
_SETS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("debian", OPEN): ("nvidia-open-kernel-dkms", *_DEBIAN),
    ("debian", PROPRIETARY): ("nvidia-kernel-dkms", *_DEBIAN),
}


@dataclass(frozen=True)
class Card:
    """A GPU on the bus: its address, its PCI device number and the kernel driver that has it."""

    address: str
    device: int
    driver: str | None = None

    @property
    def generation(self) -> str:
        """PRE_TURING, TURING or OPEN_ONLY."""
        if self.device >= _FIRST_BLACKWELL or self.device in _GRACE_HOPPER:
            return OPEN_ONLY
        return TURING if self.device >= _FIRST_TURING else PRE_TURING

    def __str__(self) -> str:
        return f"{self.address} (10de:{self.device:04x}, {self.generation})"


def flavour_for(cards: Sequence[Card]) -> str:
    """The kernel modules for all of these GPUs together.

    Open, unless one of them cannot: NVIDIA suggests them since 560.
    """
    return PROPRIETARY if any(card.generation == PRE_TURING for card in cards) else OPEN


def misfits(cards: Sequence[Card], flavour: str, branch: int | None) -> list[str]:
    """Why GPUs would not work with these modules of this branch; None: the branch is not known."""
    wrong = []
    for card in cards:
        if card.generation == PRE_TURING:
            if flavour == OPEN:
                wrong.append(
                    f"{card} has no GSP, which the open modules need: want flavour proprietary"
                )
            if branch is not None and branch > LAST_BRANCH_BEFORE_TURING:
                wrong.append(
                    f"{card} was supported up to branch {LAST_BRANCH_BEFORE_TURING}: want a "
                    f"version of it, not of {branch}"
                )
        if card.generation == OPEN_ONLY and flavour == PROPRIETARY:
            wrong.append(f"{card} works with the open modules alone: want flavour open")
        if (
            card.device >= _FIRST_BLACKWELL
            and branch is not None
            and branch < FIRST_BRANCH_OF_BLACKWELL
        ):
            wrong.append(f"{card} needs branch {FIRST_BRANCH_OF_BLACKWELL} or newer, not {branch}")
    if flavour == OPEN and branch is not None and branch < FIRST_OPEN_BRANCH:
        wrong.append(f"there are open modules since branch {FIRST_OPEN_BRANCH}, not in {branch}")
    return wrong


def packages_for(distribution: str | None, flavour: str) -> tuple[str, ...]:
    """The packages of a driver for containers here; () where they have to be named."""
    return _SETS.get((distribution or "", flavour), ())
