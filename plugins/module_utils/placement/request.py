# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a claim to what placement is asked. Pure."""

from __future__ import annotations

from ..claims.model import Claim
from .model import PACK, Limits, Request, Weights

# A claim that says no policy: what cannot be had is a wish, and is said in the answer.
_STRICT = "strict"


def of_claim(
    claim: Claim,
    policy: str = PACK,
    weights: Weights | None = None,
    limits: Limits | None = None,
    cpu_node: int | None = None,
) -> Request:
    """``policy`` is pack, spread or numa, which a claim has no word for. Raises PlacementError."""
    return Request(
        count=claim.wanted,
        devices=claim.devices,
        models=claim.models,
        profile=claim.mig.name if claim.mig else None,
        whole=claim.whole,
        memory_mib=claim.memory_mib,
        compute_percent=claim.compute_percent,
        share=claim.share,
        tier=claim.link,
        strict=claim.policy == _STRICT,
        numa=claim.numa,
        rdma=claim.rdma,
        answer_s=claim.p99_s,
        cpu_node=cpu_node,
        policy=policy,
        weights=weights or Weights(),
        limits=limits or Limits(),
    )
