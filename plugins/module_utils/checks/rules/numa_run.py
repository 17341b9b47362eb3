# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the CPUs and memory of a container against the GPU's NUMA node. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import Gpu, HostView, cpu_list
from ..model import Given, Hit, Severity
from ..registry import rule
from .gpu_host import counted, wanted_indices
from .run_values import shown, write


@rule(
    "numa-mismatch",
    "CPUs, memory and GPU are not on the same NUMA node",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Every copy between host and GPU then crosses the link between the sockets, which "
    "costs bandwidth and adds latency.",
    fix="Take the CPUs and the memory node of the GPU: nvidia-smi topo -m, or steadygpu facts.",
    sources=("kernel admin-guide/cgroup-v2.rst cpuset", "NVIDIA nvidia-smi topo"),
    row="89, 103, 139, 149",
)
def numa_mismatch(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the host's nodes are known."""
    if len(host.nodes) < 2:
        return
    cpus, mems = spec.last("cpuset-cpus"), spec.last("cpuset-mems")
    cpu_nodes, mem_nodes = _nodes_of(cpus, host), _numbers(mems)
    if cpus and mems and cpu_nodes and mem_nodes and not cpu_nodes & mem_nodes:
        seen = f"{shown(cpus)} is node {_text(cpu_nodes)}, {shown(mems)} is another."
        yield Hit(mems.at, seen, f"Write {write(spec, 'cpuset-mems', _text(cpu_nodes))}.")
    gpus = _gpus(spec, host)
    nodes = {gpu.numa_node for gpu in gpus if gpu.numa_node is not None and gpu.numa_node >= 0}
    if len(nodes) != 1:
        return  # GPUs of several nodes: there is no one place for the CPUs
    (node,) = nodes
    if cpus and cpu_nodes and node not in cpu_nodes:
        seen = f"{shown(cpus)} is node {_text(cpu_nodes)}, and the GPU is on node {node}."
        fix = f"Write {write(spec, 'cpuset-cpus', host.nodes.get(node, ''))}."
        yield Hit(cpus.at, seen, fix)
    if mems and mem_nodes and node not in mem_nodes:
        seen = f"{shown(mems)}, and the GPU is on node {node}."
        yield Hit(mems.at, seen, f"Write {write(spec, 'cpuset-mems', str(node))}.")


@rule(
    "cpuset-without-mems",
    "CPUs of one node, memory of all",
    Severity.INFO,
    reads=ContainerSpec,
    reason="cpuset-cpus binds the threads; memory is then mostly taken from the same node, and "
    "from others when that one is full.",
    fix="Add cpuset-mems where memory must stay on the node; the limit is then hard.",
    sources=("kernel admin-guide/cgroup-v2.rst cpuset.mems",),
    row="89",
)
def cpuset_without_mems(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only for GPU work on a host known to have several nodes."""
    cpus = spec.last("cpuset-cpus")
    if cpus and len(host.nodes) > 1 and spec.asks_nvidia and not spec.last("cpuset-mems"):
        nodes = _nodes_of(cpus, host)
        if len(nodes) == 1:
            fix = f"Add {write(spec, 'cpuset-mems', _text(nodes))}."
            yield Hit(cpus.at, f"{shown(cpus)} and no cpuset-mems.", fix)


def _gpus(spec: ContainerSpec, host: HostView) -> list[Gpu]:
    """The GPUs the container gets, as far as they are known."""
    known = host.gpus or ()
    indices = {index for index, _given in wanted_indices(spec)}
    for request in spec.gpus:
        indices |= set(range(min(counted(request) or 0, len(known))))
    uuids = {given.value for request in spec.gpus for given in request.device_ids}
    visible = spec.env.get("NVIDIA_VISIBLE_DEVICES")
    uuids |= set(visible.value.split(",")) if visible else set()
    everything = any(request.wants_all for request in spec.gpus) or "all" in uuids
    return [gpu for gpu in known if everything or gpu.index in indices or gpu.uuid in uuids]


def _nodes_of(cpus: Given | None, host: HostView) -> set[int]:
    wanted = _numbers(cpus)
    return {node for node, listed in host.nodes.items() if cpu_list(listed) & wanted}


def _numbers(given: Given | None) -> frozenset[int]:
    if given is None or not re.fullmatch(r"[\d,-]+", given.value):
        return frozenset()
    try:
        return cpu_list(given.value)
    except ValueError:
        return frozenset()


def _text(numbers: set[int] | frozenset[int]) -> str:
    return ",".join(str(number) for number in sorted(numbers))
