# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.kubernetes import (
    ChartValues,
    KubeObject,
    Workload,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.kubernetes import (
    read_kubernetes,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.rules.kubernetes_pods import (
    mib,
)

pytest.importorskip("yaml")

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: one
  annotations: {cdi.k8s.io/a: nvidia.com/gpu=0}
spec:
  runtimeClassName: nvidia
  initContainers:
    - {name: get, image: curl}
  containers:
    - name: train
      image: trainer:1
      command: [train]
      args: ["--epochs", "3"]
      env:
        - {name: A, value: "1"}
        - name: TOKEN
          valueFrom: {secretKeyRef: {name: s, key: t}}
      resources:
        requests: {cpu: 4}
        limits: {nvidia.com/gpu: 2, memory: 8Gi}
      securityContext:
        privileged: true
        capabilities: {add: [SYS_NICE]}
      volumeMounts:
        - {name: shm, mountPath: /dev/shm}
  volumes:
    - {name: shm, emptyDir: {medium: Memory}}
    - {name: dev, hostPath: {path: /dev/nvidia0}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: two}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          nodeSelector: {gpu: "yes"}
          containers: [{name: c, image: i}]
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: three}
spec:
  pytorchReplicaSpecs:
    Master:
      template:
        spec:
          containers: [{name: m, image: i}]
    Worker:
      template:
        spec:
          containers: [{name: w, image: i}]
"""


def documents(text, kind):
    reading = read_kubernetes(text, "m.yaml")
    assert not reading.problems
    return [d for d in reading.documents if isinstance(d, kind)]


def test_a_pod_with_everything():
    load = documents(MANIFEST, Workload)[0]
    assert (load.name, load.runtime_class.value) == ("one", "nvidia")
    first, second = load.containers
    assert (first.name, first.init) == ("get", True)
    assert [word.value for word in second.words] == ["train", "--epochs", "3"]
    assert set(second.env) == {"A"}
    assert {n: g.value for n, g in second.gpus.items()} == {"nvidia.com/gpu": "2"}
    assert second.is_privileged
    assert second.mounts == {"/dev/shm": "shm"}
    assert load.memory_volumes == {"shm"}
    assert load.host_paths["dev"].value == "/dev/nvidia0"
    assert str(second.limits["nvidia.com/gpu"].at) == "m.yaml:21:18"


def test_pods_are_found_wherever_they_stand():
    loads = documents(MANIFEST, Workload)
    names = [[container.name for container in load.containers] for load in loads]
    assert names == [["get", "train"], ["c"], ["m"], ["w"]]
    assert [one.kind.value for one in documents(MANIFEST, KubeObject)] == [
        "Pod",
        "CronJob",
        "PyTorchJob",
    ]


def test_a_list_of_objects():
    text = "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Pod\n"
    text += "    metadata: {name: a}\n    spec: {containers: [{name: c, image: i}]}\n"
    assert len(documents(text, Workload)) == 1
    assert len(documents(text, KubeObject)) == 2


def test_the_values_of_a_chart():
    text = "devicePlugin:\n  env:\n    - {name: X, value: y}\ntoolkit: {version: v1.20.0}\n"
    (values,) = documents(text, ChartValues)
    assert values.chart == "gpu-operator"
    assert values.env("devicePlugin")["X"].value == "y"
    assert values.given("toolkit", "version").value == "v1.20.0"
    (values,) = documents("migStrategy: mixed\n", ChartValues)
    assert values.chart == "nvidia-device-plugin"


@pytest.mark.parametrize(
    "text",
    [
        "resources: {limits: {nvidia.com/gpu: 1}}",
        "containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]",
        "- name: a\n  image: b\n  resources: {limits: {nvidia.com/gpu: 1}}",
        '{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a",'
        ' "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}',
    ],
)
def test_parts_of_documentation_are_pods_too(text):
    (load,) = documents(text, Workload)
    assert load.containers[0].gpus["nvidia.com/gpu"].value == "1"


@pytest.mark.parametrize("text", ["kind: [", "a: 1", "- 1", "words"])
def test_what_is_none_of_it_is_a_problem(text):
    assert read_kubernetes(text, "m.yaml").problems


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("6Gi", 6144), ("512Mi", 512), ("1048576", 1), ("1048576k", 1000), ("x", None)],
)
def test_quantities_of_memory(text, wanted):
    assert mib(text) == pytest.approx(wanted) if wanted else mib(text) is None
