# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Profiles: recorded machines as data, and how one becomes the state of a driver."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from .state import Gpu, Link, State
from .tree import LEVELS, Slot, level, mask_words

#: nvmlDeviceArchitecture_t.
ARCHITECTURES = {"volta": 5, "turing": 6, "ampere": 7, "ada": 8, "hopper": 9}
MIB = 1024 * 1024
#: P2P over PCIe: data-centre cards can, GeForce cards answer "chipset not supported".
P2P_OK, P2P_CHIPSET_NOT_SUPPORTED = 0, 1
#: NVML_GPU_FABRIC_STATE_COMPLETED.
FABRIC_COMPLETED = 3
#: The numbers of a `mig` line of the state file, in order; the starts follow.
MIG_NUMBERS = (
    *("id", "slices", "size", "instances", "sm", "memory_mib"),
    *("copy_engines", "decoders", "encoders", "jpegs", "ofas", "p2p"),
)

_NAMESPACE = uuid.UUID("5f0c2d1e-7a34-5b0e-9c61-2d8a4be7f015")


class ProfileError(Exception):
    """No such profile, or it does not fit this machine."""


def names(directory: Path) -> list[str]:
    """Known profiles."""
    return sorted(path.stem for path in directory.glob("*.json"))


def load(directory: Path, name: str) -> dict[str, Any]:
    """One profile, MIG tables in place of their names; ProfileError lists the known ones."""
    known = names(directory)
    if name not in known:
        raise ProfileError(f"unknown profile {name!r}; known: {', '.join(known)}")
    profile: dict[str, Any] = _read(directory / f"{name}.json")
    for model in profile["models"].values():
        if model["mig"] is not None:
            model["mig"] = _read(directory / "mig" / f"{model['mig']}.json")
    return profile


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def build_state(
    profile: dict[str, Any],
    slots: list[Slot],
    *,
    check_nodes: bool,
    uvm_major: int,
    caps_major: int = 0,
) -> State:
    """The driver state of `profile` on this machine's slots; ProfileError if they are too few.

    With `caps_major` 0 there are no capability nodes.
    """
    wanted = [gpu["slot"] for gpu in profile["gpus"]]
    if max(wanted) >= len(slots):
        raise ProfileError(
            f"profile {profile['name']}: slot {max(wanted)} wanted, this machine has {len(slots)} "
            "PCIe end points (pci-testdev); boot it with the lab's eight-slot tree"
        )
    used = [slots[index] for index in wanted]
    driver = profile["driver"]
    state = State(
        settings={
            "profile": profile["name"],
            "fail": "none",
            "check_nodes": str(int(check_nodes)),
            "module": driver["version"],
            "flavour": driver["flavour"],
            "cuda": str(driver["cuda"]),
            "uvm_major": str(uvm_major),
            "caps_major": str(caps_major),
        }
    )
    for index, entry in enumerate(profile["gpus"]):
        model = profile["models"][entry["model"]]
        values = _gpu_values(profile["name"], index, model, used[index])
        values["levels"] = " ".join(str(_nvml_level(used[index], other)) for other in used)
        state.gpus.append(Gpu(values=values, mig=_mig_profiles(model["mig"])))
    _add_links(state, profile)
    return state


def _nvml_level(one: Slot, other: Slot) -> int:
    return LEVELS["X" if one is other else level(one, other)]


def _gpu_values(profile: str, index: int, model: dict[str, Any], slot: Slot) -> dict[str, str]:
    """UUIDs are made from profile and index, so that a profile always has the same ones."""
    major, minor = model["compute_capability"]
    ecc, datacentre = model["ecc"], model["datacentre"]
    architecture, mig = ARCHITECTURES[model["architecture"]], model["mig"]
    (power_min, power_max), (sm, sm_max) = model["power_range_w"], model["sm_clock_mhz"]
    memory_clock, memory_clock_max = model["memory_clock_mhz"]
    fabric = bool(model.get("fabric", False))
    values: dict[str, Any] = {
        "uuid": f"GPU-{uuid.uuid5(_NAMESPACE, f'{profile}/{index}')}",
        "name": model["name"],
        "minor": index,
        "pci": slot.address,
        "pci_device_id": f"{model['pci_device_id']}10de",
        "pci_subsystem_id": f"{model['pci_subsystem_id']}",
        "pci_class": model["pci_class"],
        "architecture": architecture,
        "cc_major": major,
        "cc_minor": minor,
        "memory_total": model["memory_mib"] * MIB,
        "memory_reserved": model["memory_reserved_mib"] * MIB,
        "memory_used": 0,
        "bar1_total": model["bar1_mib"] * MIB,
        "bar1_used": MIB,
        "pcie_gen_max": model["pcie_generation"],
        "pcie_gen": model["pcie_generation"],
        "pcie_width_max": 16,
        "pcie_width": 16,
        "power_limit_mw": model["power_limit_w"] * 1000,
        "power_default_mw": model["power_limit_w"] * 1000,
        "power_min_mw": power_min * 1000,
        "power_max_mw": power_max * 1000,
        "clock_sm": sm,
        "clock_sm_max": sm_max,
        "clock_memory": memory_clock,
        "clock_memory_max": memory_clock_max,
        "display_active": 0,
        "display_mode": 0,
        "numa_node": slot.numa_node,
        "cpu_mask": mask_words(slot.cpus),
        "persistence": int(datacentre),
        "compute_mode": 0,
        "nvlink_version": model.get("nvlink_version", 0),
        "mig_supported": int(mig is not None),
        "ecc_supported": int(ecc),
        "ecc_enabled": int(ecc),
        "ecc_pending": int(ecc),
        "ecc_corrected": 0,
        "ecc_uncorrected": 0,
        "remap_supported": int(datacentre and architecture >= ARCHITECTURES["ampere"]),
        "remapped_corrected": 0,
        "remapped_uncorrected": 0,
        "remapped_pending": 0,
        "remapped_failed": 0,
        "gsp": int(datacentre and architecture >= ARCHITECTURES["turing"]),
        "fabric": int(fabric),
        "fabric_state": FABRIC_COMPLETED if fabric else 0,
        "fabric_status": 0,
        "fabric_clique": 0,
        "lost": 0,
        "p2p_status": P2P_OK if datacentre else P2P_CHIPSET_NOT_SUPPORTED,
        "vbios": model["vbios"],
    }
    if mig is not None:
        values["mig_slices"] = mig["compute_slices"]
        values["mig_memory_slices"] = mig["memory_slices"]
        values["mig_reset"] = mig["mode_change"]
        values["mig_persists"] = int(mig["mode_persists"])
    if datacentre:  # consumer boards report no serial
        values["serial"] = str(
            1_650_000_000_000 + uuid.uuid5(_NAMESPACE, profile).int % 10**8 + index
        )
    return {key: str(value) for key, value in values.items()}


def _mig_profiles(table: dict[str, Any] | None) -> dict[int, str]:
    """NVML_GPU_INSTANCE_PROFILE_* -> the rest of its `mig` line."""
    profiles = [] if table is None else table["profiles"]
    return {
        profile["nvml"]: " ".join(
            map(str, [profile["name"], *(profile[key] for key in MIG_NUMBERS), *profile["starts"]])
        )
        for profile in profiles
    }


def _add_links(state: State, profile: dict[str, Any]) -> None:
    """Each GPU numbers its links in the order of the profile, from 0."""
    addresses = state.addresses()
    links = profile["nvlink"]
    for bridge in links.get("bridges", []):
        for one, other in (bridge["gpus"], reversed(bridge["gpus"])):
            mine = state.gpus[one].links
            for _link in range(bridge["links"]):
                mine[len(mine)] = Link("gpu", addresses[other], True)
    switches = links.get("switches", [])
    if not switches:
        return
    per_switch = links["links_per_gpu"] / len(switches)
    for gpu in state.gpus:
        for number in range(links["links_per_gpu"]):
            gpu.links[number] = Link("switch", switches[int(number / per_switch)], True)
