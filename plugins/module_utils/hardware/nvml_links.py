# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NVLinks of one GPU, from NVML."""

from __future__ import annotations

from typing import Any

from . import pci
from .nvml_library import Library, text_of

# nvml.h, nvmlNvlinkVersion_enum: NVML answers with a code, people speak of generations.
_GENERATIONS = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}
# nvml.h, nvmlIntNvLinkDeviceType_enum. IBM's NPU is how a POWER CPU shows.
_PEER_TYPES = {0: "gpu", 1: "cpu", 2: "switch"}


def read(library: Library, handle: Any) -> dict[str, Any] | None:
    """All links of a GPU; None for a GPU without NVLink.

    The header's maximum grows with each release and an older library refuses the link
    numbers it does not know, so a refused number is skipped, not an error.
    """
    peers: list[dict[str, Any]] = []
    generations: list[int] = []
    for link in range(library.raw.NVML_NVLINK_MAX_LINKS):
        state = library.ask_or_none("nvmlDeviceGetNvLinkState", handle, link)
        if state is None:
            continue
        code = library.ask_lightly("nvmlDeviceGetNvLinkVersion", handle, link)
        if code in _GENERATIONS:
            generations.append(_GENERATIONS[code])
        peers.append(_peer(library, handle, link, up=state == library.raw.NVML_FEATURE_ENABLED))
    if not peers:
        return None
    return {
        "count": sum(1 for peer in peers if peer["state"] == "up"),
        "version": max(generations) if generations else None,
        "peers": peers,
    }


def _peer(library: Library, handle: Any, link: int, up: bool) -> dict[str, Any]:
    """The far end of one link. A link that is down has no far end NVML could name."""
    kind = library.ask_lightly("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link)
    remote = library.ask_lightly("nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
    bus_id = text_of(remote.busId) if remote is not None else None
    return {
        "link": link,
        "type": _PEER_TYPES.get(kind, "unknown"),
        "pci_address": pci.normalise(bus_id) if bus_id else None,
        "state": "up" if up else "down",
    }
