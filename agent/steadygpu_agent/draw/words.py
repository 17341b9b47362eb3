# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a picture, and a page of text, say about a machine as a whole. Pure."""

from __future__ import annotations

import re
from collections import Counter

from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Machine
from steadygpu_agent.draw import fabric, tree


def heading(machine: Machine) -> str:
    """The machine's own title, or what GPUs it has."""
    if machine.title:
        return machine.title
    if len(machine.gpus) == 1:
        return short_model(machine.gpus[0].model or "") or "One GPU"
    return _models(machine) or "No GPU"


def subtitle(machine: Machine) -> str:
    """How much is on the picture, and where it is from."""
    nodes = {node for gpu in machine.gpus for node in gpu.numa_nodes}
    nodes |= {node.number for node in machine.nodes}
    words = [
        (_models(machine) if machine.title else "") or counted(len(machine.gpus), "GPU"),
        counted(len(machine.nics), "network adapter") if machine.nics else "",
        counted(len(nodes), "NUMA node") if nodes else "NUMA nodes unknown",
        f"from {machine.source}",
    ]
    return " · ".join(word for word in words if word)


def _models(machine: Machine) -> str:
    """``2 × RTX 4090, 1 × Tesla T4``; the most frequent first."""
    models = Counter(short_model(gpu.model or "") or "GPU" for gpu in machine.gpus)
    return ", ".join(f"{count} × {model}" for model, count in models.most_common())


def description(machine: Machine, links: fabric.Fabric) -> str:
    """The picture in words, for those who cannot see it."""
    found = [subtitle(machine) + "."]
    for panel in tree.panels(machine):
        names = [
            (machine.nics if leaf.nic else machine.gpus)[leaf.index].name for leaf in panel.leaves
        ]
        found.append(f"{panel.title}: {', '.join(names)}.")
    if links.switched:
        found.append(f"NVSwitch with {links.expected} NVLinks to each GPU.")
    found += [
        f"{machine.gpus[link.one].name} and {machine.gpus[link.other].name}: "
        f"{counted(link.count, 'NVLink')}."
        for link in links.direct
    ]
    return " ".join([*found, *(f"{remark}." for remark in machine.remarks)])


def counted(count: int, noun: str) -> str:
    """``1 GPU``, ``8 GPUs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def short_model(model: str) -> str:
    """Without the maker's name, which all have."""
    return re.sub(r"^(NVIDIA|GeForce) ", "", re.sub(r"^NVIDIA ", "", model)).strip()
