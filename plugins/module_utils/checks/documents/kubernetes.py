# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes manifests and the values of NVIDIA's charts, as models for rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...trees.node import Key, Node
from ..model import Given, Position

# Extended resources that are GPUs or parts of one.
GPU_VENDORS = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/")


def is_gpu(resource: str) -> bool:
    """Is it the name of a resource that a GPU's device plugin offers?"""
    return resource.startswith(GPU_VENDORS) and not resource.endswith(("/hostdev", "/rdma"))


@dataclass(frozen=True)
class KubeContainer:
    """One container of a pod. ``words`` are its command and arguments, ``mounts`` go from path to
    the name of the volume, ``limits`` and ``requests`` from resource to quantity as written.
    """

    at: Position
    name: str = ""
    image: Given | None = None
    init: bool = False
    words: tuple[Given, ...] = ()
    env: Mapping[str, Given] = field(default_factory=dict)
    limits: Mapping[str, Given] = field(default_factory=dict)
    requests: Mapping[str, Given] = field(default_factory=dict)
    privileged: Given | None = None
    capabilities: tuple[Given, ...] = ()
    mounts: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_privileged(self) -> bool:
        """Is it privileged?"""
        return self.privileged is not None and self.privileged.value == "true"

    @property
    def gpus(self) -> dict[str, Given]:
        """The GPU resources among its limits."""
        return {name: given for name, given in self.limits.items() if is_gpu(name)}

    def speaks_of(self, *words: str) -> bool:
        """Does its image, name or command have one of ``words``?"""
        text = " ".join([self.name, self.image.value if self.image else ""])
        text += " " + " ".join(given.value for given in self.words)
        return any(word in text for word in words)


@dataclass(frozen=True)
class Workload:
    """One pod, or one template of pods, wherever it stands.

    ``host_paths`` go from the name of a volume to its path on the host; ``memory_volumes`` are
    those that are memory. ``node_keys`` are the labels of nodes it selects by, ``spread_keys`` the
    topology keys it is spread over. ``fragment`` marks a part of a pod without the rest.
    """

    at: Position
    kind: str
    name: str = ""
    containers: tuple[KubeContainer, ...] = ()
    annotations: Mapping[str, Given] = field(default_factory=dict)
    runtime_class: Given | None = None
    scheduler: Given | None = None
    node_keys: tuple[Given, ...] = ()
    spread_keys: tuple[Given, ...] = ()
    host_paths: Mapping[str, Given] = field(default_factory=dict)
    memory_volumes: frozenset[str] = frozenset()
    fragment: bool = False


@dataclass(frozen=True)
class KubeObject:
    """Any object of a manifest, with its tree for rules about one field."""

    at: Position
    api: Given
    kind: Given
    name: str
    tree: Node

    def place(self, node: Node | Key) -> Position:
        """Where a part of the tree stands."""
        return Position(self.at.file, node.line, node.column)

    def given(self, *path: str) -> Given | None:
        """The text at a path with the place of its key; None where there is no text."""
        return given_at(self.tree, self.at.file, *path)


@dataclass(frozen=True)
class ChartValues:
    """Values of a chart: ``chart`` is ``gpu-operator`` or ``nvidia-device-plugin``."""

    at: Position
    chart: str
    tree: Node

    def given(self, *path: str) -> Given | None:
        """The text at a path with the place of its key; None where there is no text."""
        return given_at(self.tree, self.at.file, *path)

    def env(self, component: str) -> dict[str, Given]:
        """The environment that the values give to a component."""
        return env_of(self.tree.get(component, "env"), self.at.file)


def given_at(tree: Node, file: str, *path: str) -> Given | None:
    """The scalar at a path of a tree with the place of its key."""
    node = tree.get(*path)
    around = tree.get(*path[:-1]) if path[:-1] else tree
    if node is None or around is None or node.is_map or node.is_list or node.value is None:
        return None
    key = around.keys.get(path[-1], Key(path[-1], node.line, node.column))
    return Given(node.words(), Position(file, key.line, key.column), path[-1])


def env_of(node: Node | None, file: str) -> dict[str, Given]:
    """A list of ``name`` and ``value``; a name whose value comes from elsewhere is left out."""
    found: dict[str, Given] = {}
    for element in node.elements() if node is not None else ():
        name, value = element.get("name"), element.get("value")
        if name is not None and value is not None:
            at = Position(file, value.line, value.column)
            found[name.words()] = Given(value.words(), at, name.words())
    return found
