# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a claim needs on the host before anybody can grant it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .model import Claim


@dataclass(frozen=True)
class Missing:
    """A tool that is not there: ``said`` names it and the reason, ``advice`` how to get it."""

    tool: str
    said: str
    advice: str

    def __str__(self) -> str:
        return f"{self.said}; {self.advice}"


def missing(
    claim: Claim, facts: Mapping[str, Any], programs: Mapping[str, str | None]
) -> list[Missing]:
    """The tools that ``claim`` needs and the host lacks.

    ``facts`` is ``gpu_host``; a section that is not in it is not judged. ``programs`` has the
    paths of :data:`PROGRAMS`, None for one that was looked for and is not there.
    """
    return [*_driver(facts), *_toolkit(facts, programs), *_mps(claim, programs)]


# What the face looks for on the host.
PROGRAMS = ("nvidia-ctk", "nvidia-cuda-mps-control")


def _driver(facts: Mapping[str, Any]) -> list[Missing]:
    gpu = _mapping(facts.get("gpu"))
    driver = _mapping(gpu.get("driver"))
    status = driver.get("status")
    if not gpu or (status == "loaded" and gpu.get("source") == "nvml"):
        return []
    reason = driver.get("reason") or f"the driver is {status}"
    return [
        Missing(
            "nvml",
            f"the NVIDIA driver does not answer: {reason}",
            "install or load it; nvidia-smi -L must list the GPUs",
        )
    ]


def _toolkit(facts: Mapping[str, Any], programs: Mapping[str, str | None]) -> list[Missing]:
    """GPUs reach a container by a CDI specification; nvidia-ctk writes it."""
    specs = _mapping(facts.get("cdi")).get("specs") or []
    usable = any(s.get("status") == "valid" and s.get("kind") == "nvidia.com/gpu" for s in specs)
    if usable or programs.get("nvidia-ctk", "unknown") is not None:
        return []
    return [
        Missing(
            "nvidia-ctk",
            "no CDI specification describes the GPUs, and nvidia-ctk, which writes one, is missing",
            "install nvidia-container-toolkit",
        )
    ]


def _mps(claim: Claim, programs: Mapping[str, str | None]) -> list[Missing]:
    asks_share = claim.compute_percent is not None and 0 < claim.compute_percent < 100
    if claim.share != "mps" and not (asks_share and claim.mig is None):
        return []
    if programs.get("nvidia-cuda-mps-control", "unknown") is not None:
        return []
    why = "share=mps" if claim.share == "mps" else f"compute={claim.compute_percent:g}%"
    return [
        Missing(
            "nvidia-cuda-mps-control",
            f"{why} is done by MPS, and nvidia-cuda-mps-control is missing",
            "install the driver's compute package (nvidia-compute-utils, or nvidia-driver-cuda)",
        )
    ]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
