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
ARCHITECTURES = {"turing": 6, "ampere": 7, "ada": 8, "hopper": 9}
MIB = 1024 * 1024
#: P2P over PCIe: data-centre cards can, GeForce cards answer "chipset not supported".
P2P_OK, P2P_CHIPSET_NOT_SUPPORTED = 0, 1

_NAMESPACE = uuid.UUID("5f0c2d1e-7a34-5b0e-9c61-2d8a4be7f015")


class ProfileError(Exception):
    """No such profile, or it does not fit this machine."""


def names(directory: Path) -> list[str]:
    """Known profiles."""
    return sorted(path.stem for path in directory.glob("*.json"))


def load(directory: Path, name: str) -> dict[str, Any]:
    """One profile; ProfileError lists the known ones."""
    known = names(directory)
    if name not in known:
        raise ProfileError(f"unknown profile {name!r}; known: {', '.join(known)}")
    profile: dict[str, Any] = json.loads((directory / f"{name}.json").read_text(encoding="utf-8"))
    return profile


def build_state(
    profile: dict[str, Any], slots: list[Slot], *, check_nodes: bool, uvm_major: int
) -> State:
    """The driver state of `profile` on this machine's slots; ProfileError if they are too few."""
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
        }
    )
    for index, entry in enumerate(profile["gpus"]):
        model = profile["models"][entry["model"]]
        values = _gpu_values(profile["name"], index, model, used[index])
        values["levels"] = " ".join(str(_nvml_level(used[index], other)) for other in used)
        state.gpus.append(Gpu(values=values))
    _add_links(state, profile)
    return state


def _nvml_level(one: Slot, other: Slot) -> int:
    return LEVELS["X" if one is other else level(one, other)]


def _gpu_values(profile: str, index: int, model: dict[str, Any], slot: Slot) -> dict[str, str]:
    """UUIDs are made from profile and index, so that a profile always has the same ones."""
    major, minor = model["compute_capability"]
    ecc, datacentre = model["ecc"], model["datacentre"]
    values: dict[str, Any] = {
        "uuid": f"GPU-{uuid.uuid5(_NAMESPACE, f'{profile}/{index}')}",
        "name": model["name"],
        "minor": index,
        "pci": slot.address,
        "pci_device_id": f"{model['pci_device_id']}10de",
        "pci_subsystem_id": f"{model['pci_subsystem_id']}",
        "pci_class": model["pci_class"],
        "architecture": ARCHITECTURES[model["architecture"]],
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
        "numa_node": slot.numa_node,
        "cpu_mask": mask_words(slot.cpus),
        "persistence": int(datacentre),
        "compute_mode": 0,
        "nvlink_version": model.get("nvlink_version", 0),
        "mig_supported": int(model["mig"]),
        "ecc_supported": int(ecc),
        "ecc_enabled": int(ecc),
        "gsp": int(datacentre),
        "fabric": int(model.get("fabric", False)),
        "lost": 0,
        "p2p_status": P2P_OK if datacentre else P2P_CHIPSET_NOT_SUPPORTED,
        "vbios": model["vbios"],
    }
    if datacentre:  # consumer boards report no serial
        values["serial"] = str(
            1_650_000_000_000 + uuid.uuid5(_NAMESPACE, profile).int % 10**8 + index
        )
    return {key: str(value) for key, value in values.items()}


def _add_links(state: State, profile: dict[str, Any]) -> None:
    addresses = state.addresses()
    links = profile["nvlink"]
    for bridge in links.get("bridges", []):
        one, other = bridge["gpus"]
        for number in range(bridge["links"]):
            state.gpus[one].links[number] = Link("gpu", addresses[other], True)
            state.gpus[other].links[number] = Link("gpu", addresses[one], True)
    switches = links.get("switches", [])
    if not switches:
        return
    per_switch = links["links_per_gpu"] / len(switches)
    for gpu in state.gpus:
        for number in range(links["links_per_gpu"]):
            gpu.links[number] = Link("switch", switches[int(number / per_switch)], True)
