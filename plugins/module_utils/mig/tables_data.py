# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and numbers of MIG profiles per GPU model.

Sources, by the letters the rows carry:

a. ``nvidia-smi mig -lgip`` and ``-lgipp`` of a machine of that model, as published: profile
   numbers, counts and placements were read.
b. ``-lgip`` of such a machine: profile numbers and counts were read, placements were not. They
   are those of row a with the same numbers and counts.
c. mig-parted's default configuration: profile names and counts only. Numbers are left out;
   placements as under b.

Placements count memory slices, as the driver does. A 7-slice GPU has eight of them; an RTX PRO
6000 Blackwell has twelve, three to each of its four compute slices.

The names of one model can differ between drivers: an early one called the smallest profile of
a GB200 ``1g.24gb``, later ones ``1g.23gb``. The driver's own answer, to be had once MIG is on,
is therefore always preferred to these rows.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One profile: number as nvidia-smi shows it, compute slices, first slices, size, count.

    ``media`` is what is scarce: decoders and optical flow engines of one instance.
    """

    suffix: str
    id: int
    slices: int
    starts: tuple[int, ...]
    size: int
    most: int
    media: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Model:
    """One row of models: its rows' names in order, and how its GPUs are recognised.

    ``device_ids`` are PCI device numbers; ``pattern`` is matched against the name NVML gives,
    for a board whose number is not listed. Empty where the name does not tell the memory.
    """

    name: str
    kind: str
    names: tuple[str, ...]
    device_ids: tuple[int, ...]
    pattern: str
    source: str


SEVEN_SLICES = "7 slices"
A30 = "A30"
RTX_PRO_6000 = "RTX PRO 6000"

# (memory slices, compute slices, rows). ``suffix`` follows the name of the same position.
KINDS: dict[str, tuple[int, int, tuple[Row, ...]]] = {
    # Source a: A100 40 GB (without 15 and 20, which its driver did not have yet), H100 80 GB,
    # H100 NVL. The two 1g rows end at slice 6: the eighth memory slice goes with a larger one.
    SEVEN_SLICES: (
        8,
        7,
        (
            Row("", 19, 1, (0, 1, 2, 3, 4, 5, 6), 1, 7),
            Row("+me", 20, 1, (0, 1, 2, 3, 4, 5, 6), 1, 1),
            Row("", 15, 1, (0, 2, 4, 6), 2, 4),
            Row("", 14, 2, (0, 2, 4), 2, 3),
            Row("", 9, 3, (0, 4), 4, 2),
            Row("", 5, 4, (0,), 4, 1),
            Row("", 0, 7, (0,), 8, 1),
        ),
    ),
    # Source a; 2g+me, which came with R525, from a newer -lgip. There is one optical flow
    # engine: of the two +me profiles only one at a time.
    A30: (
        4,
        4,
        (
            Row("", 14, 1, (0, 1, 2, 3), 1, 4, (1, 0)),
            Row("+me", 21, 1, (0, 1, 2, 3), 1, 1, (1, 1)),
            Row("", 5, 2, (0, 2), 2, 2, (2, 0)),
            Row("+me", 6, 2, (0, 2), 2, 1, (2, 1)),
            Row("", 0, 4, (0,), 4, 1, (4, 1)),
        ),
    ),
    # Source a. Four decoders and one optical flow engine: beside +me.all only -me fits.
    RTX_PRO_6000: (
        12,
        4,
        (
            Row("", 14, 1, (0, 3, 6, 9), 3, 4, (1, 0)),
            Row("+me", 21, 1, (0, 3, 6, 9), 3, 1, (1, 1)),
            Row("+gfx", 47, 1, (0, 3, 6, 9), 3, 4, (1, 0)),
            Row("+me.all", 65, 1, (0, 3, 6, 9), 3, 1, (4, 1)),
            Row("-me", 67, 1, (0, 3, 6, 9), 3, 4),
            Row("", 5, 2, (0, 6), 6, 2, (2, 0)),
            Row("+gfx", 35, 2, (0, 6), 6, 2, (2, 0)),
            Row("+me.all", 64, 2, (0, 6), 6, 1, (4, 1)),
            Row("-me", 66, 2, (0, 6), 6, 2),
            Row("", 0, 4, (0,), 12, 1, (4, 1)),
            Row("+gfx", 32, 4, (0,), 12, 1, (4, 1)),
        ),
    ),
}


def _seven(small: str, double: str, half: str, whole: str) -> tuple[str, ...]:
    """The seven names of a 7-slice model, from the gigabytes in them."""
    return (
        f"1g.{small}gb",
        f"1g.{small}gb",
        f"1g.{double}gb",
        f"2g.{double}gb",
        f"3g.{half}gb",
        f"4g.{half}gb",
        f"7g.{whole}gb",
    )


# Device numbers: mig-parted's default configuration.
MODELS: tuple[Model, ...] = (
    Model(
        "A100-40GB",
        SEVEN_SLICES,
        _seven("5", "10", "20", "40"),
        (0x20B0, 0x20B1, 0x20F1, 0x20F6),
        r"A[18]00\b.*\b40GB",
        "a",
    ),
    Model(
        "A100-80GB",
        SEVEN_SLICES,
        _seven("10", "20", "40", "80"),
        (0x20B2, 0x20B5, 0x20F3, 0x20F5),
        r"A[18]00\b.*\b80GB",
        "b",
    ),
    Model("PG506-96GB", SEVEN_SLICES, _seven("12", "24", "48", "96"), (0x20B6,), "", "c"),
    Model(
        "A30-24GB", A30, ("1g.6gb",) * 2 + ("2g.12gb",) * 2 + ("4g.24gb",), (0x20B7,), r"A30\b", "a"
    ),
    Model(
        "H100-80GB",
        SEVEN_SLICES,
        _seven("10", "20", "40", "80"),
        (0x2330, 0x2331, 0x2322, 0x2324),
        r"H[18]00 (80GB|PCIe)",
        "a",
    ),
    Model(
        "H100-94GB",
        SEVEN_SLICES,
        _seven("12", "24", "47", "94"),
        (0x2321, 0x233A),
        r"H[18]00 NVL",
        "a",
    ),
    Model(
        "H100-96GB",
        SEVEN_SLICES,
        _seven("12", "24", "48", "96"),
        (0x233D,),
        "",
        "c",
    ),
    # The GPU of a GH200 with 480 GB of *host* memory has 96 GB of its own.
    Model(
        "GH200-96GB",
        SEVEN_SLICES,
        _seven("12", "24", "48", "96"),
        (0x2342,),
        r"GH200 480GB",
        "c",
    ),
    Model("H20-96GB", SEVEN_SLICES, _seven("12", "24", "48", "96"), (0x2329,), r"", "c"),
    Model(
        "GH200-144GB",
        SEVEN_SLICES,
        _seven("18", "36", "72", "144"),
        (0x2348,),
        r"GH200 144G\b",
        "b",
    ),
    Model(
        "H200-141GB",
        SEVEN_SLICES,
        _seven("18", "35", "71", "141"),
        (0x2335, 0x233B),
        r"H200\b",
        "b",
    ),
    Model("B200-180GB", SEVEN_SLICES, _seven("23", "45", "90", "180"), (0x2901,), r"B200\b", "b"),
    Model("GB200", SEVEN_SLICES, _seven("23", "47", "93", "186"), (0x2941,), r"GB200\b", "b"),
    Model("B300", SEVEN_SLICES, _seven("34", "67", "135", "269"), (0x3182,), r"B300\b", "c"),
    Model("GB300", SEVEN_SLICES, _seven("35", "70", "139", "278"), (0x31C2,), r"GB300\b", "c"),
    Model(
        "RTX PRO 6000 Blackwell",
        RTX_PRO_6000,
        ("1g.24gb",) * 5 + ("2g.48gb",) * 4 + ("4g.96gb",) * 2,
        (0x2BB5,),
        r"RTX PRO 6000 Blackwell\b",
        "a",
    ),
)
