# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jinja face of module_utils/numa_memory/cpuset.py."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_cpuset
short_description: The CPUs and the memory node beside GPUs, for a container
version_added: "0.1.0"
author: steadygpu.host contributors (@steadygpu)
description:
  - Says which CPUs and which memory nodes lie beside the GPUs of a container, so that its work does
    not cross the link between sockets.
positional: gpus
options:
  _input:
    description: C(ansible_facts['gpu_host']).
    type: dict
    required: true
  gpus:
    description:
      - The GPUs, each by index, UUID, PCI address, or the UUID of one of its MIG devices. V(all)
        names every GPU.
    type: list
    elements: str
    default: [all]
"""

EXAMPLES = r"""
- name: Start a container beside GPU 0
  community.docker.docker_container:
    name: training
    image: trainer
    cpuset_cpus: "{{ (ansible_facts['gpu_host'] | steadygpu.host.gpu_cpuset(['0'])).cpuset_cpus }}"
    cpuset_mems: "{{ (ansible_facts['gpu_host'] | steadygpu.host.gpu_cpuset(['0'])).cpuset_mems }}"
"""

RETURN = r"""
_value:
  description:
    - C(cpuset_cpus) and C(cpuset_mems) as C(docker run) takes them, C(nodes), and both as C(flags).
  type: dict
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.cpuset import beside
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.model import NumaError


def gpu_cpuset(gpu_host: Mapping[str, Any], gpus: Sequence[Any] = ("all",)) -> dict[str, Any]:
    """See the documentation above; raises AnsibleFilterError."""
    plain = json.loads(json.dumps(gpu_host))  # core >= 2.19 hands tagged types to filters
    if "gpu" not in plain:
        raise AnsibleFilterError("gpu_host has no section gpu: run steadygpu.host.gpu_facts first")
    named = [gpus] if isinstance(gpus, (str, int)) else list(gpus)
    try:
        return beside(plain["gpu"], [str(name) for name in named]).as_dict()
    except NumaError as error:
        raise AnsibleFilterError(f"gpu_cpuset: {error}") from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"gpu_cpuset": gpu_cpuset}
