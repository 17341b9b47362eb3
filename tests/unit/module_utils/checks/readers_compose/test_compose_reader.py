# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.compose import (
    ComposeFault,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.container import (
    ComposeFile,
    ContainerSpec,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.compose import (
    read_compose,
)

pytest.importorskip("yaml")


def read(text, files=None, env=None, file="compose.yaml"):
    return read_compose(text, file, (files or {}).get, env)


def spec(text, name="app", **more):
    reading = read(text, **more)
    assert not reading.problems
    return next(d for d in reading.documents if isinstance(d, ContainerSpec) and d.name == name)


def faults(text, **more):
    return [d for d in read(text, **more).documents if isinstance(d, ComposeFault)]


def values(one, flag):
    return [given.value for given in one.all(flag)]


FULL = """\
services:
  app:
    image: trainer:1
    container_name: trainer
    command: train --epochs 3 "two words"
    runtime: nvidia
    privileged: true
    shm_size: 8gb
    mem_limit: 16g
    memswap_limit: 16g
    cpus: 2.5
    cpuset: 0-3
    ipc: host
    network_mode: host
    pids_limit: -1
    group_add: [44, video]
    cap_add: [SYS_NICE]
    security_opt:
      - seccomp:unconfined
      - label=disable
    devices:
      - /dev/kfd
      - nvidia.com/gpu=0
      - source: /dev/dri
        target: /dev/dri
        permissions: rwm
    ports:
      - "127.0.0.1:8000:80"
      - target: 443
        published: "8443"
        host_ip: 0.0.0.0
        protocol: tcp
    volumes:
      - data:/data:ro
      - type: bind
        source: /run
        target: /run
        read_only: true
    ulimits:
      memlock: -1
      nofile: {soft: 1024, hard: 2048}
    environment:
      NCCL_DEBUG: INFO
      WORLD_SIZE: 8
      FROM_CALLER:
    labels: [a.b=c, flag]
    logging: {driver: json-file, options: {max-size: 10m}}
    blkio_config:
      weight: 300
      device_read_bps: [{path: /dev/sda, rate: 12mb}]
    sysctls: {net.core.somaxconn: 1024}
    extra_hosts: ["other:10.0.0.1"]
    healthcheck: {test: [CMD, nvidia-smi]}
    profiles: [gpu]
"""


def test_every_way_to_write_a_service_becomes_dockers_flags():
    one = spec(FULL)
    assert one.image.value == "trainer:1"
    assert [word.value for word in one.command] == ["train", "--epochs", "3", "two words"]
    wanted = {
        "name": ["trainer"],
        "runtime": ["nvidia"],
        "privileged": ["true"],
        "shm-size": ["8gb"],
        "memory": ["16g"],
        "memory-swap": ["16g"],
        "cpus": ["2.5"],
        "cpuset-cpus": ["0-3"],
        "ipc": ["host"],
        "network": ["host"],
        "pids-limit": ["-1"],
        "group-add": ["44", "video"],
        "cap-add": ["SYS_NICE"],
        "security-opt": ["seccomp=unconfined", "label=disable"],
        "device": ["/dev/kfd", "nvidia.com/gpu=0", "/dev/dri:/dev/dri:rwm"],
        "publish": ["127.0.0.1:8000:80", "0.0.0.0:8443:443/tcp"],
        "volume": ["data:/data:ro"],
        "mount": ["type=bind,source=/run,target=/run,readonly"],
        "ulimit": ["memlock=-1", "nofile=1024:2048"],
        "log-driver": ["json-file"],
        "log-opt": ["max-size=10m"],
        "blkio-weight": ["300"],
        "device-read-bps": ["/dev/sda:12mb"],
        "sysctl": ["net.core.somaxconn=1024"],
        "add-host": ["other:10.0.0.1"],
        "health-cmd": ["CMD nvidia-smi"],
        "profiles": ["gpu"],
    }
    assert {flag: values(one, flag) for flag in wanted} == wanted
    assert set(one.flags) == set(wanted)
    assert {name: given.value for name, given in one.env.items()} == {
        "NCCL_DEBUG": "INFO",
        "WORLD_SIZE": "8",
        "FROM_CALLER": "",
    }
    assert {name: given.value for name, given in one.labels.items()} == {"a.b": "c", "flag": ""}
    assert not one.unknown
    assert not faults(FULL + "volumes: {data: {}}\n")


def test_places_are_those_of_the_file():
    one = spec(FULL)
    assert str(one.at) == "compose.yaml:2:3"
    assert str(one.last("privileged").at) == "compose.yaml:7:5"
    assert str(one.all("security-opt")[0].at) == "compose.yaml:19:9"
    assert one.last("memory").spelled == "mem_limit"


RESERVED = """\
services:
  app:
    image: trainer
    deploy:
      replicas: 2
      resources:
        limits: {cpus: "4", memory: 8g, pids: 100}
        reservations:
          memory: 4g
          devices:
            - driver: nvidia
              #count: 1
              device_ids: ['${FIRST:-0}', 'GPU-abc']
              capabilities: [gpu, utility]
              options: {virtualization: "false"}
"""


def test_a_reservation_becomes_a_request_and_comments_are_none():
    one = spec(RESERVED)
    (request,) = one.gpus
    assert request.how == "reservation"
    assert request.driver.value == "nvidia"
    assert request.count is None
    assert [(g.value, g.spelled) for g in request.device_ids] == [
        ("0", "${FIRST:-0}"),
        ("GPU-abc", "device_ids"),
    ]
    assert request.capabilities == ("gpu", "utility")
    assert request.options == {"virtualization": "false"}
    assert request.errors == ()
    assert values(one, "memory") == ["8g"]
    assert values(one, "memory-reservation") == ["4g"]
    assert values(one, "cpus") == ["4"]
    assert values(one, "pids-limit") == ["100"]
    assert values(one, "deploy.replicas") == ["2"]


@pytest.mark.parametrize(
    ("request_text", "errors"),
    [
        ("{driver: nvidia, count: 1, device_ids: ['0'], capabilities: [gpu]}", ["count-and-ids"]),
        ("{driver: nvidia, count: all}", ["capabilities-missing"]),
        ("{driver: nvidia, count: 1, capabilities: gpu}", ["capabilities-type"]),
        ("{driver: nvidia, count: any, capabilities: [gpu]}", ["bad-count"]),
        ("{driver: nvidia, count: 0.5, capabilities: [gpu]}", ["bad-count"]),
        ("{driver: nvidia, count: 1, capabilities: [gpu], memory: 8g}", ["unexpected-key"]),
        ("{driver: nvidia, count: ALL, capabilities: [gpu]}", []),
        ("{driver: nvidia, count: '2', capabilities: [gpu]}", []),
        ("{driver: nvidia, count: '${N}', capabilities: [gpu]}", []),
        ("{driver: cdi, device_ids: [nvidia.com/gpu=all], capabilities: [gpu]}", []),
    ],
)
def test_what_is_wrong_with_a_request(request_text, errors):
    text = (
        "services: {app: {image: t, deploy: {resources: {reservations: {devices: "
        f"[{request_text}]}}}}}}}}}}\n"
    )
    (request,) = spec(text).gpus
    assert [error.spelled for error in request.errors] == errors


def test_the_key_gpus():
    (request,) = spec("services:\n  app:\n    image: t\n    gpus: all\n").gpus
    assert request.wants_all
    assert request.how == "gpus"
    (request,) = spec("services:\n  app:\n    image: t\n    gpus: [{driver: nvidia}]\n").gpus
    assert request.wants_all
    assert request.capabilities == ("gpu",)


def test_a_variable_that_nobody_set_stays_and_is_named():
    one = spec("services:\n  app:\n    image: t:${TAG}\n    shm_size: ${SHM:-2g}\n")
    assert one.image.value == "t:${TAG}"
    assert values(one, "shm-size") == ["2g"]
    assert one.shell == {"TAG"}


def test_dotenv_and_the_caller_give_values():
    text = "services:\n  app:\n    image: t:${TAG}-${KIND}\n"
    files = {"here/.env": "TAG=1\nKIND='a'  # ours\n"}
    assert spec(text, files=files, file="here/compose.yaml").image.value == "t:1-a"
    one = spec(text, files=files, env={"TAG": "2"}, file="here/compose.yaml")
    assert one.image.value == "t:2-a"


def test_env_file_gives_variables_with_their_own_places():
    text = "services:\n  app:\n    image: t\n    env_file: [run.env]\n    environment: {B: own}\n"
    one = spec(text, files={"run.env": "# c\nA=1\nB=2\n"})
    assert (one.env["A"].value, str(one.env["A"].at)) == ("1", "run.env:2:1")
    assert one.env["B"].value == "own"


def test_anchors_and_merge_keys():
    text = """\
x-gpu: &gpu
  runtime: nvidia
  environment: &env {NVIDIA_VISIBLE_DEVICES: all}
services:
  app:
    <<: *gpu
    image: t
    environment:
      <<: *env
      MORE: "1"
"""
    one = spec(text)
    assert values(one, "runtime") == ["nvidia"]
    assert set(one.env) == {"NVIDIA_VISIBLE_DEVICES", "MORE"}


def test_extends_of_another_file():
    text = """\
services:
  app:
    image: mine
    privileged: false
    environment: {A: mine}
    cap_add: [SYS_NICE]
    extends: {file: ../hw/hwaccel.yml, service: cuda}
"""
    other = """\
services:
  base:
    image: theirs
    shm_size: 1g
    cap_add: [IPC_LOCK]
  cuda:
    extends: base
    privileged: true
    environment: {A: theirs, B: theirs}
    deploy: {resources: {reservations: {devices: [{count: 1, capabilities: [gpu]}]}}}
"""
    files = {"hw/hwaccel.yml": other}
    one = spec(text, files=files, file="app/compose.yaml")
    assert one.image.value == "mine"
    assert values(one, "privileged") == ["false"]
    assert values(one, "shm-size") == ["1g"]
    assert values(one, "cap-add") == ["IPC_LOCK", "SYS_NICE"]
    assert {name: given.value for name, given in one.env.items()} == {"A": "mine", "B": "theirs"}
    assert [request.count.value for request in one.gpus] == ["1"]
    assert one.gpus[0].at.file == "hw/hwaccel.yml"


def test_extends_in_a_circle_over_two_files_ends():
    text = "services:\n  app:\n    image: t\n    extends: {file: b.yml, service: app}\n"
    back = text.replace("b.yml", "compose.yaml")
    found = faults(text, files={"b.yml": back, "compose.yaml": text})
    assert [fault.kind for fault in found] == ["compose-extends-cycle"]


def test_include_is_part_of_the_whole_file():
    text = "include:\n  - more.yml\n  - path: [deep/other.yml]\nservices:\n  app:\n    image: t\n"
    files = {
        "more.yml": "services:\n  more:\n    image: m\n",
        "deep/other.yml": "include: [../more.yml]\nservices:\n  other:\n    image: o\n",
    }
    reading = read(text, files=files)
    (whole,) = [d for d in reading.documents if isinstance(d, ComposeFile)]
    assert {one.name for one in whole.services} == {"app", "more", "other"}
    assert [d.name for d in reading.documents if isinstance(d, ContainerSpec)] == ["app"]


def test_a_fault_of_a_shared_block_is_named_once():
    text = """\
x-common: &common {image: t, user: 1000}
services:
  one: {<<: *common}
  two: {<<: *common}
"""
    assert len(faults(text)) == 1


def test_tags_that_reset_are_no_faults():
    text = "services:\n  app:\n    image: t\n    deploy: !reset null\n    ports: !override []\n"
    text += "    environment: !reset null\n"
    assert faults(text) == []


@pytest.mark.parametrize(
    "text", ["services: [", "a: b: c", "services:\n\tapp: {}\n", "just words", "[1, 2]"]
)
def test_what_is_no_compose_file_is_a_problem_with_a_place(text):
    reading = read(text)
    assert reading.problems
    assert reading.problems[0].at.file == "compose.yaml"


def test_the_first_format_of_compose_is_named():
    assert [f.kind for f in faults("app:\n  image: t\n")] == ["compose-first-format"]


_NAMES = (
    "image gpus deploy ports volumes environment ulimits devices extends networks healthcheck "
    "logging blkio_config extra_hosts labels command resources reservations limits count "
    "device_ids capabilities env_file"
)
_KEYS = st.sampled_from(_NAMES.split())
_LEAVES = st.sampled_from(["all", "1", "0.5", "null", "'${X}'", "'${'", "true", "'a=b'", "!x y"])
_TREES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: "[" + ", ".join(parts) + "]")
        | st.dictionaries(_KEYS, inner, max_size=3).map(
            lambda parts: "{" + ", ".join(f"{key}: {value}" for key, value in parts.items()) + "}"
        )
    ),
    max_leaves=12,
)


@settings(max_examples=3 * settings.default.max_examples // 2)
@given(_TREES, _KEYS)
def test_any_shape_of_a_service_is_read_without_an_exception(tree, key):
    for text in (f"services: {{app: {tree}}}", f"services: {{app: {{{key}: {tree}}}}}", tree):
        read(text, files={"all": "services: {all: {image: x}}"})
