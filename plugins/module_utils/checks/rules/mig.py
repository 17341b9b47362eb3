# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MIG of a live host: modes that wait, GPUs without instances, CDI specs that lag behind."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..host import Gpu, HostView, MigDevice
from ..inside import entries, text_at
from ..model import Hit, Severity
from ..place import place
from ..registry import rule

_KIND = "nvidia.com/gpu="
_REFRESH = "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml"
_INDEX = re.compile(r"(\d+):(\d+)$")


@rule(
    "mig-without-devices",
    "MIG is on and the GPU has no instances",
    Severity.WARNING,
    reads=HostView,
    reason="The mode outlives a reboot and the instances do not. Until they are made again no "
    "container can use the GPU, and nvidia-ctk cdi generate fails when no GPU has a device.",
    fix="Make the instances, then generate the CDI spec again; or switch MIG off.",
    sources=("MIG user guide 620", "Azure AgentBaker pull request 8736"),
    cases=("MG-006",),
)
def mig_without_devices(host: HostView, known: HostView) -> Iterator[Hit]:
    """Said of live hosts only: elsewhere nothing tells that there are none."""
    for gpu in host.gpus or ():
        if host.live and gpu.mig and not gpu.mig_devices and not gpu.error:
            yield Hit(
                at=place(host),
                seen=f"GPU {gpu.index}: MIG is on, and there are no MIG devices",
                commands=(f"nvidia-smi mig -i {gpu.index} -lgip", _REFRESH),
            )


@rule(
    "mig-pending",
    "A change of the MIG mode waits for a reset of the GPU",
    Severity.WARNING,
    reads=HostView,
    reason="The mode changes at the next reset, and a GPU in use cannot be reset. nvidia_drm with "
    "modeset is such a user, though no process is listed.",
    fix="Stop what uses the GPU, unload nvidia_drm and nvidia_modeset on a compute host, and "
    "reset the GPU.",
    sources=("MIG user guide 620, enabling MIG mode",),
    cases=("MG-003",),
)
def mig_pending(host: HostView, known: HostView) -> Iterator[Hit]:
    """Current and pending differ."""
    holding = [name for name in ("nvidia_drm", "nvidia_modeset") if host.modules.get(name)]
    for gpu in host.gpus or ():
        if gpu.mig != gpu.mig_pending:
            words = {True: "on", False: "off"}
            also = f"; {' and '.join(holding)} may hold the GPU" if holding else ""
            unload = (f"modprobe -r {' '.join(holding)}",) if holding else ()
            yield Hit(
                at=place(host),
                seen=f"GPU {gpu.index}: MIG is {words[gpu.mig]} and will be "
                f"{words[gpu.mig_pending]}{also}",
                commands=(*unload, f"nvidia-smi --gpu-reset -i {gpu.index}"),
            )


@rule(
    "cdi-lacks-mig-devices",
    "The CDI spec and the MIG devices of the host differ",
    Severity.ERROR,
    reads=HostView,
    reason="nvidia-cdi-refresh does not react to a change of the MIG layout. A device that the "
    "spec lacks cannot be asked for (unresolvable CDI devices); a name that outlived its device "
    "may give a container somebody else's instance.",
    fix="Generate the spec again after each change of the layout.",
    sources=("NVIDIA container toolkit documentation, CDI support",),
    cases=("MG-008",),
)
def cdi_lacks_mig_devices(host: HostView, known: HostView) -> Iterator[Hit]:
    """Only where there is a spec of NVIDIA's whole GPUs or MIG devices."""
    named = {name[len(_KIND) :] for name in host.cdi_devices or () if name.startswith(_KIND)}
    if not host.live or host.gpus is None or not named or any(gpu.error for gpu in host.gpus):
        return
    lacking = [device.uuid for device in _lacking(host.gpus, named)]
    # A spec whose text is known is judged as a file for UUIDs, with the line.
    specs = entries(host.facts, "cdi", "specs")
    read = any(text_at(host.evidence, str(spec.get("path"))) for spec in specs)
    left = [name for name in named if not (read and name.startswith("MIG-"))]
    gone = sorted(name for name in left if _is_gone(name, host.gpus))
    if lacking:
        yield Hit(
            at=place(host),
            seen=f"the spec lacks {', '.join(lacking[:3])}"
            + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""),
            commands=(_REFRESH,),
        )
    if gone:
        yield Hit(
            at=place(host),
            seen=f"the spec names {', '.join(gone[:3])}, which the host does not have",
            commands=(_REFRESH,),
        )


def _lacking(gpus: tuple[Gpu, ...], named: set[str]) -> Iterator[MigDevice]:
    for gpu in gpus:
        for device in gpu.mig_devices:
            if device.uuid not in named and f"{gpu.index}:{device.index}" not in named:
                yield device


def _is_gone(name: str, gpus: tuple[Gpu, ...]) -> bool:
    """Is it the name of a MIG device that no GPU has?"""
    if name.startswith("MIG-"):
        return all(name != device.uuid for gpu in gpus for device in gpu.mig_devices)
    match = _INDEX.match(name)
    if not match:
        return False
    owner = [gpu for gpu in gpus if gpu.index == int(match.group(1))]
    return not owner or int(match.group(2)) >= len(owner[0].mig_devices)
