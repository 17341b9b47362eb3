# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes manifests, parts of them, and the values of NVIDIA's charts. Pure.

A pod is found wherever it stands: in a Pod, in a template of a workload or of somebody's custom
resource, or as a fragment of documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...trees import json_tree, yaml_tree
from ...trees.node import Node, TreeError
from ..documents.kubernetes import (
    ChartValues,
    KubeContainer,
    KubeObject,
    Workload,
    env_of,
    given_at,
)
from ..model import Given, Position, Problem, Reading

_OPERATOR_NAMES = (
    "devicePlugin toolkit migManager dcgmExporter gfd cdi mig driver operator "
    "nodeStatusExporter sandboxWorkloads dcgm vgpuManager validator"
)
_OPERATOR = frozenset(_OPERATOR_NAMES.split())
_PLUGIN_NAMES = (
    "migStrategy deviceListStrategy deviceIDStrategy compatWithCPUManager failOnInitError "
    "nvidiaDriverRoot deviceDiscoveryStrategy"
)
_PLUGIN = frozenset(_PLUGIN_NAMES.split())
_CONTAINER = frozenset(("env", "resources", "securityContext", "image", "args", "volumeMounts"))
_POD = frozenset(("containers", "initContainers", "volumes", "runtimeClassName", "affinity"))
# A tree is not deeper than this where it is made of Kubernetes' own types.
_DEEPEST = 60


def read_kubernetes(text: str, file: str) -> Reading:
    """The objects, pods and chart values of a text of one or more documents."""
    try:
        roots = (
            [json_tree.parse(text)]
            if text.lstrip()[:1] == "{" and not yaml_tree.available()
            else yaml_tree.parse_all(text, unique=False)
        )
    except TreeError as error:
        return Reading(problems=(Problem(Position(file, error.line, error.column), error.said),))
    documents: list[Any] = []
    for root in roots:
        if root.is_map:
            documents += _document(root, file)
        elif root.is_list and any(element.get("name") for element in root.elements()):
            documents += _listed(root, file)
    if not documents and any(root.value is not None for root in roots):
        said = "no Kubernetes object, part of a pod or values of a chart is in it"
        return Reading(problems=(Problem(Position(file, 1, 1), said),))
    return Reading(documents=tuple(documents))


def _document(root: Node, file: str) -> Iterator[Any]:
    kind, api = given_at(root, file, "kind"), given_at(root, file, "apiVersion")
    if kind is not None and api is not None:
        for item in root.elements() or _items(root):
            yield from _document(item, file)
        name = given_at(root, file, "metadata", "name")
        at = Position(file, root.line, root.column)
        yield KubeObject(at, api, kind, name.value if name else "", root)
        yield from _workloads(root, file, kind.value)
        return
    names = set(root.value)
    at = Position(file, root.line, root.column)
    # `driver` and `operator` alone may be anybody's; what only the operator has is enough alone.
    if names & (_OPERATOR - {"driver", "operator", "validator", "mig", "cdi"}) or (
        len(names & _OPERATOR) > 1
    ):
        yield ChartValues(at, "gpu-operator", root)
    elif names & _PLUGIN:
        yield ChartValues(at, "nvidia-device-plugin", root)
    if names & _POD:
        yield _workload(root, root, file, "Pod", fragment=True)
    elif names & _CONTAINER:
        container = _container(root, file, init=False)
        yield Workload(at, "Pod", containers=(container,), fragment=True)
    else:
        yield from _workloads(root, file, "")


def _items(root: Node) -> list[Node]:
    items = root.get("items")
    return [item for item in items.elements() if item.is_map] if items is not None else []


def _listed(root: Node, file: str) -> Iterator[Any]:
    """A list of containers, or of variables, as documentation shows them."""
    containers = tuple(
        _container(element, file, init=False)
        for element in root.elements()
        if element.get("image") or element.get("resources")
    )
    at = Position(file, root.line, root.column)
    if not containers:
        containers = (KubeContainer(at, env=env_of(root, file)),)
    yield Workload(at, "Pod", containers=containers, fragment=True)


def _workloads(node: Node, file: str, kind: str, depth: int = 0) -> Iterator[Workload]:
    """Every pod below ``node``: whatever has a list of containers."""
    if depth > _DEEPEST:
        return
    containers = node.get("containers")
    if containers is not None and any(element.is_map for element in containers.elements()):
        yield _workload(node, node, file, kind)
        return
    for name, value in node.value.items() if node.is_map else ():
        inner = value.get("containers") if value.is_map else None
        if inner is not None and any(element.is_map for element in inner.elements()):
            yield _workload(value, node, file, kind)
        elif name != "items" or depth:
            yield from _workloads(value, file, kind, depth + 1)
    for element in node.elements():
        if element.is_map:
            yield from _workloads(element, file, kind, depth + 1)


def _workload(spec: Node, around: Node, file: str, kind: str, fragment: bool = False) -> Workload:
    containers = [
        _container(element, file, init=key != "containers")
        for key in ("initContainers", "containers")
        for element in _list(spec, key)
        if element.is_map
    ]
    name = given_at(around, file, "metadata", "name")
    annotations = around.get("metadata", "annotations")
    return Workload(
        at=Position(file, spec.line, spec.column),
        kind=kind,
        name=name.value if name else "",
        containers=tuple(containers),
        annotations=_texts(annotations, file),
        runtime_class=given_at(spec, file, "runtimeClassName"),
        scheduler=given_at(spec, file, "schedulerName"),
        node_keys=tuple(_node_keys(spec, file)),
        spread_keys=tuple(_spread_keys(spec, file)),
        host_paths=_host_paths(spec, file),
        memory_volumes=frozenset(
            _text(volume.get("name"))
            for volume in _list(spec, "volumes")
            if _text(volume.get("emptyDir", "medium")) == "Memory"
        ),
        fragment=fragment,
    )


def _list(node: Node, *path: str) -> list[Node]:
    inner = node.get(*path)
    return inner.elements() if inner is not None else []


def _text(node: Node | None) -> str:
    return node.words() if node is not None else ""


def _texts(node: Node | None, file: str) -> dict[str, Given]:
    if node is None:
        return {}
    return {
        key.name: Given(value.words(), Position(file, key.line, key.column), key.name)
        for key, value in node.items()
        if not value.is_map and not value.is_list
    }


def _container(node: Node, file: str, init: bool) -> KubeContainer:
    words = [
        Given(element.words(), Position(file, element.line, element.column), key)
        for key in ("command", "args")
        for element in _list(node, key)
    ]
    added = _list(node, "securityContext", "capabilities", "add")
    return KubeContainer(
        at=Position(file, node.line, node.column),
        name=_text(node.get("name")),
        image=given_at(node, file, "image"),
        init=init,
        words=tuple(words),
        env=env_of(node.get("env"), file),
        limits=_texts(node.get("resources", "limits"), file),
        requests=_texts(node.get("resources", "requests"), file),
        privileged=given_at(node, file, "securityContext", "privileged"),
        capabilities=tuple(
            Given(one.words(), Position(file, one.line, one.column), "add") for one in added
        ),
        mounts={
            _text(mount.get("mountPath")): _text(mount.get("name"))
            for mount in _list(node, "volumeMounts")
        },
    )


def _host_paths(spec: Node, file: str) -> dict[str, Given]:
    found = {}
    for volume in _list(spec, "volumes"):
        path = given_at(volume, file, "hostPath", "path")
        if path is not None:
            found[_text(volume.get("name"))] = path
    return found


def _node_keys(spec: Node, file: str) -> Iterator[Given]:
    selector = spec.get("nodeSelector")
    for key, value in selector.items() if selector is not None else ():
        yield Given(value.words(), Position(file, key.line, key.column), key.name)
    affinity = ("affinity", "nodeAffinity")
    required = (*affinity, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    preferred = (*affinity, "preferredDuringSchedulingIgnoredDuringExecution")
    terms = _list(spec, *required)
    terms += [term for one in _list(spec, *preferred) if (term := one.get("preference"))]
    for term in terms:
        for expression in _list(term, "matchExpressions"):
            key_ = given_at(expression, file, "key")
            if key_ is not None:
                yield Given(_text(expression.get("operator")), key_.at, key_.value)


def _spread_keys(spec: Node, file: str) -> Iterator[Given]:
    for constraint in _list(spec, "topologySpreadConstraints"):
        key = given_at(constraint, file, "topologyKey")
        if key is not None:
            yield key
