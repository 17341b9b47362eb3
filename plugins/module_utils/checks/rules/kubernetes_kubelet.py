# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on the kubelet's configuration: CPU, memory and topology managers beside GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..documents.kubernetes import KubeObject
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule

_TOPOLOGY = "kubernetes.io/docs/tasks/administer-cluster/topology-manager"
_CPU = "kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies"
_MEMORY = "kubernetes.io/docs/tasks/administer-cluster/memory-manager"
# Names matter to the letter: cpuManagerPolicy is static, memoryManagerPolicy is Static.
_POLICIES: Mapping[str, tuple[str, ...]] = {
    "cpuManagerPolicy": ("none", "static"),
    "memoryManagerPolicy": ("None", "Static"),
    "topologyManagerPolicy": ("none", "best-effort", "restricted", "single-numa-node"),
    "topologyManagerScope": ("container", "pod"),
}


def _is_kubelet(thing: KubeObject) -> bool:
    return thing.kind.value == "KubeletConfiguration"


def _text(thing: KubeObject, key: str) -> str:
    given = thing.given(key)
    return given.value if given is not None else ""


@rule(
    "kubelet-static-cpu-manager",
    "The static CPU manager takes GPUs from running pods",
    Severity.WARNING,
    reads=KubeObject,
    reason="The static CPU manager updates containers again and again, and every update writes the "
    "device cgroup anew from the specification. GPUs that an older toolkit's hook added behind "
    "the runtime's back are not in it: Failed to initialize NVML: Unknown Error seconds after the "
    "start. Toolkit 1.18 and newer and CDI put them into the specification.",
    fix="Deploy the device plugin with PASS_DEVICE_SPECS=true (compatWithCPUManager in its chart, "
    "privileged), or have GPUs injected by CDI.",
    sources=("NVIDIA/k8s-device-plugin#145", "kubernetes/kubernetes#77073"),
    needs=(Needs("toolkit", "<1.18.0"),),
    unknown=Severity.INFO,
    cases=("CG-004",),
)
def static_cpu_manager(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """``cpuManagerPolicy: static``."""
    given = thing.given("cpuManagerPolicy")
    if _is_kubelet(thing) and given is not None and given.value == "static":
        yield Hit(given.at, "cpuManagerPolicy is static.")


@rule(
    "topology-manager-init-containers",
    "Init containers count when a pod is aligned",
    Severity.INFO,
    reads=KubeObject,
    reason="With single-numa-node the kubelet aligns init containers like all others; one that "
    "asks for other amounts can make a pod fail that would fit: TopologyAffinityError.",
    fix="Give init containers the same requests as the main container, or use best-effort or "
    "restricted.",
    sources=("kubernetes/kubernetes#123816", "kubernetes/kubernetes#84597", _TOPOLOGY),
    cases=("TP-011",),
)
def init_containers(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """``topologyManagerPolicy: single-numa-node``."""
    given = thing.given("topologyManagerPolicy")
    if _is_kubelet(thing) and given is not None and given.value == "single-numa-node":
        yield Hit(given.at, "topologyManagerPolicy is single-numa-node.")


@rule(
    "kubelet-unknown-policy",
    "A policy that the kubelet does not know",
    Severity.FATAL,
    reads=KubeObject,
    reason="The kubelet compares the name to the letter and does not start with another: "
    "cpuManagerPolicy is static, memoryManagerPolicy is Static.",
    fix="Write one of the names there are.",
    sources=(_CPU, _MEMORY, _TOPOLOGY),
)
def unknown_policy(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """A policy that is misspelled, or in another case."""
    if not _is_kubelet(thing):
        return
    for key, names in _POLICIES.items():
        given = thing.given(key)
        if given is None or given.value in names or "{" in given.value or "$" in given.value:
            continue
        near = [name for name in names if name.lower() == given.value.lower()]
        fix = f"Write {key}: {near[0]}." if near else f"Write one of: {', '.join(names)}."
        yield Hit(given.at, f"{key} is {given.value}.", fix)


@rule(
    "kubelet-static-needs-reserved",
    "A static policy without reserved resources",
    Severity.INFO,
    reads=KubeObject,
    reason="With cpuManagerPolicy static the kubelet starts only where CPUs are reserved for the "
    "system, and with memoryManagerPolicy Static only where reservedMemory says so per NUMA node. "
    "Both may stand in another file of its configuration directory or among its flags.",
    fix="Add reservedSystemCPUs (or systemReserved.cpu), and reservedMemory for each NUMA node.",
    sources=(_CPU, _MEMORY),
)
def static_needs_reserved(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """``static`` with nothing reserved in this file."""
    if not _is_kubelet(thing):
        return
    reserved = any(
        thing.tree.get(*path) is not None
        for path in (("reservedSystemCPUs",), ("systemReserved", "cpu"), ("kubeReserved", "cpu"))
    )
    given = thing.given("cpuManagerPolicy")
    if given is not None and given.value == "static" and not reserved:
        yield Hit(given.at, "cpuManagerPolicy is static, and no CPUs are reserved here.")
    given = thing.given("memoryManagerPolicy")
    if given is not None and given.value == "Static" and not thing.tree.get("reservedMemory"):
        yield Hit(given.at, "memoryManagerPolicy is Static, and no memory is reserved here.")


@rule(
    "kubelet-aligns-devices-only",
    "A topology policy without the static CPU manager",
    Severity.INFO,
    reads=KubeObject,
    reason="The topology manager aligns what has hints. Without cpuManagerPolicy static CPUs have "
    "none, so that GPUs are aligned with one another and the threads run anywhere.",
    fix="Add cpuManagerPolicy: static (with reserved CPUs); pods need whole CPUs and the same "
    "requests as limits.",
    sources=(_TOPOLOGY, _CPU),
    row="104",
)
def aligns_devices_only(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """``restricted`` or ``single-numa-node`` where CPUs are not managed."""
    given = thing.given("topologyManagerPolicy")
    if not _is_kubelet(thing) or given is None:
        return
    strict = given.value in ("restricted", "single-numa-node")
    if strict and _text(thing, "cpuManagerPolicy") in ("", "none"):
        yield Hit(given.at, f"topologyManagerPolicy is {given.value}, CPUs are not managed.")
