# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.ansible_tasks import (
    AnsibleFile,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.commands import (
    CommandLine,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.container import (
    ContainerSpec,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.ansible import (
    read_ansible,
)

pytest.importorskip("yaml")

PLAY = """\
- hosts: gpu
  become: true
  vars: {nvidia_driver_branch: "550"}
  pre_tasks:
    - name: First
      ansible.builtin.setup:
  tasks:
    - name: A block
      when: x
      block:
        - name: Run a container
          community.docker.docker_container:
            name: trainer
            image: "trainer:{{ tag }}"
            runtime: nvidia
            privileged: true
            memory: 8G
            oom_killer: true
            shm_size: "{{ shm }}"
            devices: [/dev/nvidia0]
            published_ports: ["8000:80"]
            ulimits: ["memlock:-1"]
            env: {A: "1", B: "{{ b }}"}
            device_requests:
              - {driver: nvidia, count: -1, capabilities: [[gpu]]}
            new_option: 1
      rescue:
        - debug: msg=failed
    - ansible.builtin.command: docker run --gpus all ubuntu true
      with_items: [1]
    - name: Several lines
      ansible.builtin.shell: |
        set -e
        docker run --privileged {{ image }} true
  handlers:
    - name: Restart
      action: service name=docker state=restarted
"""


def read(text, files=None, file="site.yml"):
    reading = read_ansible(text, file, (files or {}).get)
    assert not reading.problems
    return reading.documents


def test_tasks_of_plays_blocks_and_handlers():
    (document,) = [d for d in read(PLAY) if isinstance(d, AnsibleFile)]
    assert [task.short for task in document.tasks] == [
        "setup",
        "docker_container",
        "debug",
        "command",
        "shell",
        "service",
    ]
    assert document.tasks[1].collection == "community.docker"
    assert document.values["nvidia_driver_branch"].value == "550"


def test_docker_container_is_a_container_like_any_other():
    one = next(d for d in read(PLAY) if isinstance(d, ContainerSpec) and d.how == "ansible")
    assert one.image.value == "trainer:${jinja}"
    assert one.last("memory").value == "8G"
    assert one.last("shm-size").value == "${jinja}"
    assert one.switched_on("privileged")
    assert one.switched_on("oom-kill-disable")
    assert one.last("publish").value == "8000:80"
    assert one.env["B"].value == "${jinja}"
    assert [given.spelled for given in one.unknown] == ["new_option"]
    (request,) = one.gpus
    assert request.wants_all
    assert request.capabilities == ("gpu",)
    assert not request.errors
    assert str(one.last("memory").at) == "site.yml:17:13"


def test_commands_of_tasks_are_commands_with_their_places():
    runs = [d for d in read(PLAY) if isinstance(d, ContainerSpec) and d.how == "run"]
    assert [one.image.value for one in runs] == ["ubuntu", "${jinja}"]
    lines = PLAY.splitlines()
    flag = runs[0].gpus[0].at
    assert lines[flag.line - 1][flag.column - 1 :].startswith("--gpus")
    assert "docker run --privileged" in lines[runs[1].at.line - 1]
    assert any(isinstance(d, CommandLine) and d.name == "set" for d in read(PLAY))


def test_a_file_of_variables_with_comments():
    (document,) = read("ansible_become: true\n# installed: nvidia-headless-535\nx: {y: 1}\n")
    assert document.values["ansible_become"].value == "true"
    assert [comment.value for comment in document.comments] == ["installed: nvidia-headless-535"]
    assert document.tasks == ()


def test_collections_that_a_requirements_file_names():
    files = {"collections/requirements.yml": "collections:\n  - name: community.docker\n"}
    (document,) = [d for d in read("- debug: msg=x\n", files) if isinstance(d, AnsibleFile)]
    assert document.required == {"community.docker"}
    (document,) = [d for d in read("- debug: msg=x\n") if isinstance(d, AnsibleFile)]
    assert document.required is None


def test_broken_yaml_is_a_problem_with_a_place():
    reading = read_ansible("- name: {{ x }}\n  y: [\n", "site.yml")
    assert reading.problems[0].at.line


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n",
        "- 1\n",
        "- - a\n",
        "- hosts: a\n  tasks: x\n",
        "- block: 1\n",
        "words",
        "[]",
        "- docker_container: x\n",
        "- docker_container: {device_requests: [1, [2]], env: [a]}\n",
        "- command: {cmd: [a]}\n",
        "- shell:\n",
        "- command: {argv: [docker, run]}\n",
    ],
)
def test_odd_shapes_are_read(text):
    read_ansible(text, "site.yml")
