# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on what the articles and others invented for Kubernetes, and on what it removed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.kubernetes import KubeObject, Workload
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule

_RUNTIME_CLASS = ("apiVersion", "kind", "metadata", "handler", "overhead", "scheduling")
# Group, versions that were removed, and since when.
_REMOVED = (
    ("node.k8s.io/v1beta1", "1.25", "node.k8s.io/v1"),
    ("node.k8s.io/v1alpha1", "1.26", "node.k8s.io/v1"),
    ("resource.k8s.io/v1alpha1", "1.27", "resource.k8s.io/v1"),
    ("resource.k8s.io/v1alpha2", "1.31", "resource.k8s.io/v1"),
)
# Kind, the group it is written with, what to have instead.
_INVENTED_KINDS = (
    ("AIWorkloadProfile", "", "Kueue's and Volcano's queues have what it promises."),
    ("SLOPolicy", "scheduling.slo/", "Keep such goals in your own configuration."),
)
_ANNOTATIONS = (
    "io.kubernetes.cri.device-plugin/",
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.count",
)
_METRICS = {"nv_gpu_duty_cycle": "DCGM_FI_DEV_GPU_UTIL"}
_DCGM = "NVIDIA/dcgm-exporter etc/default-counters.csv"


@rule(
    "runtimeclass-unknown-field",
    "A field that RuntimeClass does not have",
    Severity.ERROR,
    reads=KubeObject,
    reason="A RuntimeClass has handler, overhead and scheduling. The API server refuses other "
    "fields, or drops them where validation is off; the version of the OCI specification is a "
    "matter of the runtime.",
    fix="Remove the field.",
    sources=("kubernetes.io/docs/concepts/containers/runtime-class",),
    row="28",
)
def runtimeclass_unknown_field(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """``ociVersion`` and other keys of a RuntimeClass; a handler that is missing."""
    if thing.kind.value != "RuntimeClass" or not thing.api.value.startswith("node.k8s.io/"):
        return
    for key, _node in thing.tree.items():
        if key.name not in _RUNTIME_CLASS and not (key.name == "spec" and _alpha(thing)):
            yield Hit(thing.place(key), f"RuntimeClass {thing.name} has the field {key.name}.")
    if "handler" not in thing.tree.keys and not _alpha(thing):
        seen = f"RuntimeClass {thing.name} has no handler."
        yield Hit(thing.kind.at, seen, "Write handler: nvidia, as the runtime is called.")


def _alpha(thing: KubeObject) -> bool:
    return thing.api.value.endswith("v1alpha1")


@rule(
    "k8s-removed-api",
    "A version of an API that Kubernetes removed",
    Severity.WARNING,
    reads=KubeObject,
    reason="The API server of newer releases does not know this version: no matches for kind. "
    "Classic dynamic resource allocation was withdrawn; structured parameters are in "
    "resource.k8s.io/v1 since 1.34.",
    fix="Write the newer version, whose fields differ for resource claims.",
    sources=("kubernetes.io/docs/reference/using-api/deprecation-guide",),
    row="77",
)
def removed_api(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """RuntimeClasses and resource claims of old."""
    for api, since, newer in _REMOVED:
        if thing.api.value == api:
            seen = f"{thing.kind.value} {thing.name} is of {api}, removed in Kubernetes {since}."
            yield Hit(thing.api.at, seen, f"Write apiVersion: {newer}.")


@rule(
    "k8s-invented-kind",
    "A kind of object that nobody serves",
    Severity.WARNING,
    reads=KubeObject,
    reason="The kind stands in articles; no project known to us defines it: no matches for kind.",
    fix="Remove it, or install the project that defines it first.",
    sources=("kubernetes.io/docs/reference/kubernetes-api",),
    row="79, 121",
)
def invented_kind(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """``AIWorkloadProfile``, ``SLOPolicy``."""
    for kind, group, instead in _INVENTED_KINDS:
        if thing.kind.value == kind and thing.api.value.startswith(group):
            yield Hit(thing.kind.at, f"{thing.api.value} {kind} {thing.name}.", instead)


@rule(
    "keda-invented-metric",
    "A trigger on a metric that no exporter has",
    Severity.WARNING,
    reads=KubeObject,
    reason="The query returns nothing, so that the workload is never scaled.",
    fix="Query DCGM_FI_DEV_GPU_UTIL of dcgm-exporter.",
    sources=(_DCGM,),
    row="134",
)
def keda_metric(thing: KubeObject, host: HostView) -> Iterator[Hit]:
    """``nv_gpu_duty_cycle`` in a ScaledObject's trigger."""
    if thing.kind.value not in ("ScaledObject", "ScaledJob"):
        return
    triggers = thing.tree.get("spec", "triggers")
    for trigger in triggers.elements() if triggers is not None else ():
        metadata = trigger.get("metadata")
        for key, node in metadata.items() if metadata is not None else ():
            for name, real in _METRICS.items():
                if name in node.words():
                    seen = f"The trigger's {key.name} asks for {name}."
                    yield Hit(thing.place(key), seen, f"Write {real} instead of {name}.")


@rule(
    "k8s-device-annotation",
    "An annotation that nothing reads",
    Severity.WARNING,
    reads=Workload,
    reason="GPUs are not asked for by annotations of this name: the kubelet and the device plugin "
    "read limits, and CDI has annotations under cdi.k8s.io/.",
    fix="Ask for nvidia.com/gpu under resources.limits.",
    sources=("kubernetes.io device plugins, CDI",),
    row="30",
)
def device_annotation(load: Workload, host: HostView) -> Iterator[Hit]:
    """``io.kubernetes.cri.device-plugin/…`` on a pod."""
    for name, given in load.annotations.items():
        if name.startswith(_ANNOTATIONS):
            yield Hit(given.at, f"The pod has the annotation {name}.")


@rule(
    "k8s-invented-node-label",
    "A node label that nothing sets",
    Severity.WARNING,
    reads=Workload,
    reason="No component labels nodes with PCI addresses under topology.k8s.io/, so no node "
    "matches and the pod stays Pending. Labels of nodes cannot choose a device on a node either.",
    fix="Select nodes by the labels of GPU feature discovery (nvidia.com/gpu.product), and let "
    "the topology manager or a resource claim choose the device.",
    sources=("NVIDIA/k8s-device-plugin docs/gpu-feature-discovery",),
    row="130",
)
def invented_node_label(load: Workload, host: HostView) -> Iterator[Hit]:
    """``topology.k8s.io/pci-0000:8a:00.0`` in an affinity."""
    for given in load.node_keys:
        if given.spelled.startswith(("topology.k8s.io/pci", "topology.kubernetes.io/pci")):
            yield Hit(given.at, f"The pod selects nodes by {given.spelled}.")


@rule(
    "k8s-spread-over-numa",
    "Pods spread over NUMA nodes",
    Severity.WARNING,
    reads=Workload,
    reason="Topology spread counts pods per label of nodes; NUMA nodes are parts of one node and "
    "have no label. Where no node has the label the constraint has no effect, or the pod waits.",
    fix="Align within a node by the kubelet: topologyManagerPolicy: single-numa-node.",
    sources=("kubernetes.io/docs/tasks/administer-cluster/topology-manager",),
    row="132",
)
def spread_over_numa(load: Workload, host: HostView) -> Iterator[Hit]:
    """A ``topologyKey`` that names NUMA."""
    for given in load.spread_keys:
        if "numa" in given.value.lower():
            yield Hit(given.at, f"topologyKey is {given.value}.")


@rule(
    "k8s-retired-scheduler",
    "A scheduler that is no longer there",
    Severity.WARNING,
    reads=Workload,
    reason="kube-batch was retired in favour of Volcano. A pod whose scheduler does not run "
    "stays Pending without an event.",
    fix="Write schedulerName: volcano, or use Kueue with the default scheduler.",
    sources=("kubernetes-retired/kube-batch",),
    row="128",
)
def retired_scheduler(load: Workload, host: HostView) -> Iterator[Hit]:
    """``schedulerName: kube-batch``."""
    named: Given | None = load.scheduler
    if named is not None and named.value == "kube-batch":
        yield Hit(named.at, f"schedulerName is {named.value}.")
