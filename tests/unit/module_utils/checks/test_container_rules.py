# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on containers hold for whatever is written, and take nothing for granted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks import assume, inspection
from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.container import (
    ContainerSpec,
    GpuRequest,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import (
    Given,
    Position,
    Severity,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.registry import all_rules

AT = Position("line", 1, 1)
RULES = {name: rule for name, rule in all_rules().items() if rule.reads is ContainerSpec}
FLAGS = sorted(
    {
        *("memory", "memory-swap", "memory-reservation", "memory-swappiness", "shm-size", "cpus"),
        *("cpu-period", "cpu-quota", "cpuset-cpus", "cpuset-mems", "ulimit", "device", "publish"),
        *("volume", "mount", "tmpfs", "security-opt", "cap-add", "group-add", "user", "runtime"),
        *("cgroup-parent", "blkio-weight", "oom-score-adj", "network", "device-cgroup-rule"),
    }
)
OLD_MIG = "--gpus device=MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/7/0 app"
VARIABLES = ["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "DOCKER_HOST"]
VALUES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["9" * 5000, "0-99999999", "8g", "-1", "$X", "all", "1e9", "²", "a=b,c", ":/"]),
)
KNOWN = assume.apply(
    HostView(),
    assume.from_mapping(
        {"gpus": 2, "cpus": 8, "numa": "0:0-3;1:4-7", "docker": "26.1.5", "mig": "0:1g.10gb"}
    ),
)


def _given(value):
    return Given(value, AT)


SPECS = st.builds(
    ContainerSpec,
    at=st.just(AT),
    how=st.sampled_from(["run", "compose", "ansible"]),
    image=st.none() | VALUES.map(_given),
    command=st.lists(VALUES.map(_given), max_size=3).map(tuple),
    flags=st.dictionaries(
        st.sampled_from(FLAGS), st.lists(VALUES.map(_given), min_size=1, max_size=2).map(tuple)
    ),
    gpus=st.lists(
        st.builds(
            GpuRequest,
            at=st.just(AT),
            how=st.sampled_from(["--gpus", "reservation"]),
            raw=VALUES,
            count=st.none() | VALUES.map(_given),
            device_ids=st.lists(VALUES.map(_given), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    env=st.dictionaries(st.sampled_from(VARIABLES), VALUES.map(_given)),
)


@settings(max_examples=2 * settings.default.max_examples // 5)
@given(spec=SPECS)
def test_whatever_is_written_ends_with_findings_that_can_be_read(spec):
    for host in (HostView(), KNOWN):
        for finding in judge([spec], host, RULES):
            assert finding.seen
            assert finding.at.line == 1


@pytest.mark.parametrize(
    "line",
    [
        "docker run --rm --runtime=nvidia --gpus all ubuntu nvidia-smi",
        "docker run --gpus all -it --rm --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 app",
        "docker run --gpus 'all,\"capabilities=compute,utility,graphics\"' app",
        'docker run --gpus "device=${GPU}" -e CUDA_VISIBLE_DEVICES=${GPU} app',
        "docker run --gpus '\"device=1,2\"' -e CUDA_VISIBLE_DEVICES=0,1 app",
        'docker run --cpus="1.5" --memory="1g" --memory-swap="2g" app',
        "docker run --memory 4gb --memory-reservation=2gb app",
        "docker run --cpuset-cpus 0-$(($(nproc)-1)) app",
        "docker run --runtime=habana -e HABANA_VISIBLE_DEVICES=all --cap-add=sys_nice app",
        "docker run --device /dev/kfd --device /dev/dri --group-add $(stat -c %g /dev/kfd) app",
        "docker run --shm-size=16g --gpus all vllm/vllm-openai:latest --tensor-parallel-size 4",
        "docker run --device /dev/fuse --cap-add SYS_ADMIN rclone/rclone mount",
        "docker run --rm --privileged multiarch/qemu-user-static --reset -p yes",
        "docker run --device=/dev/infiniband/uverbs0 --cap-add=IPC_LOCK app",
        "docker run -d -p 9000:9000 -v /var/run/docker.sock:/var/run/docker.sock portainer",
        "docker run --memory-swappiness=0 -m 8g app",
    ],
)
def test_a_line_that_works_is_not_warned_of(line):
    found = inspection.inspect(line + "\n", "line", HostView(), "shell").findings
    assert [finding for finding in found if finding.severity > Severity.INFO] == []


@pytest.mark.parametrize(
    ("line", "rule", "assumed", "severity"),
    [
        ("--gpus all app", "gpus-flag-and-systemd-reload", {}, Severity.INFO),
        (
            "--gpus all app",
            "gpus-flag-and-systemd-reload",
            {"docker": "28.5.2", "cgroup_driver": "systemd"},
            Severity.WARNING,
        ),
        ("--gpus all app", "gpus-flag-and-systemd-reload", {"cgroup_driver": "cgroupfs"}, None),
        ("--cpus 64 app", "cpus-above-host", {}, Severity.INFO),
        ("--cpus 64 app", "cpus-above-host", {"cpus": 16}, Severity.ERROR),
        ("--cpus 64 app", "cpus-above-host", {"cpus": 128}, None),
        ("--gpus device=1 app", "gpu-index-absent", {}, Severity.INFO),
        ("--gpus device=1 app", "gpu-index-absent", {"gpus": 1}, Severity.ERROR),
        ("--gpus device=1 app", "gpu-index-absent", {"gpus": 2}, None),
        (OLD_MIG, "mig-uuid-old-form", {}, Severity.WARNING),
        (OLD_MIG, "mig-uuid-old-form", {"driver": "535.54.03"}, Severity.ERROR),
        (OLD_MIG, "mig-uuid-old-form", {"driver": "460.32.03"}, None),
        ("--cgroup-parent /x app", "container-cgroup-parent", {}, Severity.WARNING),
        (
            "--cgroup-parent /x app",
            "container-cgroup-parent",
            {"cgroup_driver": "systemd"},
            Severity.ERROR,
        ),
        ("--cgroup-parent /x app", "container-cgroup-parent", {"cgroup_driver": "cgroupfs"}, None),
        ("--blkio-weight 300 app", "blkio-weight-inert", {}, Severity.INFO),
        (
            "--blkio-weight 300 app",
            "blkio-weight-inert",
            {"weights_work": "false"},
            Severity.WARNING,
        ),
        ("--blkio-weight 300 app", "blkio-weight-inert", {"weights_work": "true"}, None),
        ("--privileged --gpus device=0 app", "privileged-defeats-gpu-selection", {"gpus": 1}, None),
        ("--gpus all vllm/vllm-openai", "shm-too-small", {}, Severity.WARNING),
        ("--gpus all vllm/vllm-openai", "shm-too-small", {"gpus": 1}, None),
        (
            "-e NVIDIA_VISIBLE_DEVICES=all app",
            "nvidia-variable-without-runtime",
            {"default_runtime": "nvidia"},
            None,
        ),
    ],
)
def test_the_host_settles_what_a_line_alone_cannot(line, rule, assumed, severity):
    host = assume.apply(HostView(), assume.from_mapping(assumed))
    found = inspection.inspect(f"docker run {line}\n", "line", host, "shell").findings
    assert next((f.severity for f in found if f.rule == rule), None) == severity


PLACEMENT = "placement: {constraints: [node.labels.gpu == true]}"
STACK = f"""
services:
  trainer:
    image: trainer
    deploy:
      {PLACEMENT}
      resources:
        limits: {{memory: 4g}}
        reservations: {{memory: 8g}}
"""


@pytest.mark.parametrize(
    ("text", "file", "severity"),
    [
        (STACK, "compose.yaml", Severity.WARNING),
        (STACK.replace(PLACEMENT, ""), "compose.yaml", Severity.ERROR),
        (STACK.replace(PLACEMENT, ""), "docker-stack.yml", Severity.WARNING),
    ],
)
def test_a_reservation_above_the_limit_is_for_swarm_a_risk_only(text, file, severity):
    found = inspection.inspect(text, file, HostView(), "compose").findings
    assert [f.severity for f in found if f.rule == "memory-reservation-above-memory"] == [severity]
