# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which versions go together: CUDA, MIG and CDI with drivers and engines. Data, with sources."""

from __future__ import annotations

import re

from ...versions import parse

# CUDA release and the first driver branch that serves all of it (CUDA toolkit release notes,
# table of driver versions).
CUDA_DRIVER: tuple[tuple[str, str], ...] = (
    ("10.0", "410.48"),
    ("10.1", "418.39"),
    ("10.2", "440.33"),
    ("11.0", "450.36.06"),
    ("11.1", "455.23"),
    ("11.2", "460.27.03"),
    ("11.3", "465.19.01"),
    ("11.4", "470.42.01"),
    ("11.5", "495.29.05"),
    ("11.6", "510.39.01"),
    ("11.7", "515.43.04"),
    ("11.8", "520.61.05"),
    ("12.0", "525.60.13"),
    ("12.1", "530.30.02"),
    ("12.2", "535.54.03"),
    ("12.3", "545.23.06"),
    ("12.4", "550.54.14"),
    ("12.5", "555.42.02"),
    ("12.6", "560.28.03"),
    ("12.7", "565.57.01"),
    ("12.8", "570.26"),
    ("12.9", "575.51.03"),
    ("13.0", "580.65.06"),
)

# The first driver on which any release of a CUDA major version runs (CUDA minor version
# compatibility).
CUDA_MAJOR_DRIVER: dict[int, str] = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}

# GPU model and the first driver that has MIG for it (MIG user guide, edition 620).
MIG_DRIVER: tuple[tuple[str, str], ...] = (
    ("A100", "450.80.02"),
    ("A30", "460.73.01"),
    ("H100", "525.85.12"),
    ("H20", "535.161.07"),
    ("H200", "550.90.07"),
    ("GB200", "570.133.20"),
    ("B200", "570.133.20"),
    ("B300", "580.82.07"),
    ("RTX PRO 6000 Blackwell", "575.51.03"),
)

# Architecture and the last driver branch that serves it (NVIDIA Unix driver archive, legacy GPUs).
LAST_BRANCH: tuple[tuple[str, int], ...] = (
    ("fermi", 390),
    ("kepler", 470),
    ("maxwell", 580),
    ("pascal", 580),
    ("volta", 580),
)

# Architectures for which CUDA 13 and newer build nothing (CUDA 13.0 release notes, deprecated
# architectures).
GONE_FROM_CUDA_13 = frozenset({"kepler", "maxwell", "pascal", "volta"})

# Model, the first driver branch that knows it, and the first CUDA that builds for it (NVIDIA
# driver release highlights, CUDA release notes). The least that is sure: an early driver of the
# branch may still lack a board. RTX 4000, 5000 and the like are workstation cards of other ages.
FIRST_FOR_MODEL: tuple[tuple[str, str, int, str], ...] = (
    ("RTX 3050 to 3090", r"RTX 30[5-9]0", 455, "11.1"),
    ("RTX 4050 to 4090", r"RTX 40[5-9]0", 520, "11.8"),
    ("RTX 5050 to 5090", r"RTX 50[5-9]0", 570, "12.8"),
    ("A100", r"A100", 450, "11.0"),
    ("H100", r"H100", 515, "11.8"),
    ("B200 and GB200", r"G?B200", 570, "12.8"),
)

_MODELS: tuple[tuple[str, str], ...] = (
    (r"K[2468]0", "kepler"),
    (r"M(?:4|6|10|40|60)|GTX 9\d\d", "maxwell"),
    (r"P(?:4|40|100)|GTX 10\d\d|TITAN X[Pp]", "pascal"),
    (r"V100|TITAN V", "volta"),
)

# First releases that read CDI 0.7.0, which nvidia-ctk 1.19 and newer write (NVIDIA container
# toolkit release notes 1.19).
CDI_0_7: dict[str, str] = {"docker": "26.1.0", "containerd": "1.7.16", "podman": "5.1.0"}


def architecture_of(model: str) -> str | None:
    """The architecture of an old model by its name; None for all that are not listed."""
    for pattern, architecture in _MODELS:
        if re.search(rf"(?<!\w)(?:{pattern})(?!\w)", model):
            return architecture
    return None


def first_for(model: str) -> tuple[int, str] | None:
    """The first driver branch and the first CUDA of a model; None for one that is not listed."""
    for _title, pattern, branch, cuda in FIRST_FOR_MODEL:
        if re.search(rf"(?<!\w)(?:{pattern})(?![\dA-Z])", model):
            return branch, cuda
    return None


def last_branch(architecture: str | None) -> int | None:
    """The last driver branch for an architecture; None where it is served to this day."""
    return dict(LAST_BRANCH).get(architecture or "")


def cuda_level(driver: str) -> str | None:
    """The newest CUDA that a driver serves by itself, ``12.4`` for 550.54.15.

    None for a version that is no driver's and for one newer than the table.
    """
    have = parse(driver)
    if not have or have < parse(CUDA_DRIVER[0][1]) or have[0] > parse(CUDA_DRIVER[-1][1])[0]:
        return None
    return [cuda for cuda, first in CUDA_DRIVER if have >= parse(first)][-1]


def driver_for(cuda: str) -> str | None:
    """The first driver on which a CUDA release runs: by minor version compatibility from 11 on."""
    wanted = parse(cuda)
    if not wanted:
        return None
    if wanted[0] in CUDA_MAJOR_DRIVER:
        return CUDA_MAJOR_DRIVER[wanted[0]]
    return next((first for known, first in CUDA_DRIVER if parse(known)[:2] == wanted[:2]), None)


def mig_driver(model: str) -> str | None:
    """The first driver with MIG for a model as NVML names it; None for one that is not listed."""
    words = model.upper().replace("-", " ")
    matching = [
        (len(known), first) for known, first in MIG_DRIVER if f" {known.upper()} " in f" {words} "
    ]
    return max(matching)[1] if matching else None
