#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_verify
short_description: Prove with real containers that GPUs are isolated and stay with their owners
version_added: "0.1.0"
description:
  - Starts small containers of its own through the Docker Engine API and opens device nodes
    in them. Nothing is pulled, and nothing is left behind.
  - A container given one CDI device must see and open exactly that GPU, and the driver's
    control nodes.
  - It must not open another GPU, and a container without devices must not open any, even by
    a node made with C(mknod) inside the container. This is what the cgroup's device program
    is for.
  - Both must still hold after C(systemctl daemon-reload) plus the start of a third container,
    and after C(docker update). These are the moments at which a GPU that did not come by CDI
    is lost.
  - With O(slice) the containers must run in that slice and be accounted to it, and the kernel
    must hold the limits of memory, tasks and CPU that systemd shows for it. A tighter limit in
    another cgroup on the container's way up is named.
  - The daemon-reload is left out, and said to be, while a running container may have got
    its GPU from the legacy NVIDIA hook, since it could lose it.
options:
  device:
    description:
      - CDI name of the device to give to the first container.
    type: str
    default: nvidia.com/gpu=0
  expect_node:
    description:
      - Device node that O(device) must turn out to be.
      - By default what the driver says in C(/proc/driver/nvidia/gpus). An index counts the GPUs
        in the order of their PCI addresses, a UUID names one; the number of the node is the
        driver's minor number, which may differ from the index.
      - On a host without these files the index is taken for the number.
      - Required for names with neither index nor GPU UUID, such as V(nvidia.com/gpu=all) or the
        UUID of a MIG device.
    type: str
  slice:
    description:
      - Slice in which the containers must run. Without it their place is not judged.
    type: str
  socket:
    description:
      - Path of the Docker Engine's unix socket.
    type: path
    default: /var/run/docker.sock
  deadline_s:
    description:
      - Seconds that the whole proof may take. When they are over, the module fails with the
        checks that were made until then.
      - The removal of the containers may take 30 seconds more.
    type: float
    default: 120
  daemon_reload:
    description:
      - Whether to run C(systemctl daemon-reload) as a part of the proof.
    type: bool
    default: true
  accept_simulated:
    description:
      - Take a node without a driver behind it for opened, as long as the cgroup allows it.
      - Only for hosts with simulated GPUs. On a real host this error means that the driver does
        not answer.
    type: bool
    default: false
  keep_image:
    description:
      - Keep the probe's image of a few kilobytes for the next run.
    type: bool
    default: false
notes:
  - The containers run the host's own shell from a read-only mount of C(/usr), without network
    and with C(MKNOD) as their only capability.
  - Containers of others are listed and inspected, never changed.
attributes:
  check_mode:
    support: partial
    details: It says what it would prove, and starts nothing.
  diff_mode:
    support: N/A
    details: It leaves nothing changed.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Prove that GPU 0 is isolated and stays
  steadygpu.host.gpu_verify:
    device: nvidia.com/gpu=0
    slice: ai-workload.slice

- name: The same by UUID
  steadygpu.host.gpu_verify:
    device: nvidia.com/gpu=GPU-8dc1e42b-0b3c-4b26-a7f1-0a6b5c3d2e1f
"""

RETURN = r"""
checks:
  description: Each promise with what was seen.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: Stable name of the check.
      type: str
      sample: one_gpu_visible
    title:
      description: The promise in words.
      type: str
      sample: a container given one device sees exactly that GPU
    ok:
      description: Whether it holds, or null where it could not be judged.
      type: bool
      sample: true
    seen:
      description: What was found.
      type: str
      sample: /dev/nvidia0
    wanted:
      description: What should have been found.
      type: str
      sample: /dev/nvidia0
    advice:
      description: What to do, or why the check was not made.
      type: str
      sample: ""
summary:
  description: The counts in one line.
  returned: always
  type: str
  sample: 9 proved
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.probe.judge import (
    failure_text,
    summary,
)
from ansible_collections.steadygpu.host.plugins.module_utils.probe.runner import (
    Options,
    ProbeError,
    verify,
)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "device": {"type": "str", "default": "nvidia.com/gpu=0"},
            "expect_node": {"type": "str"},
            "slice": {"type": "str"},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
            "deadline_s": {"type": "float", "default": 120},
            "daemon_reload": {"type": "bool", "default": True},
            "accept_simulated": {"type": "bool", "default": False},
            "keep_image": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    params = dict(module.params)
    options = Options(slice_name=params.pop("slice"), **params)
    if module.check_mode:
        module.exit_json(
            changed=False,
            checks=[],
            summary="not run in check mode: would start three containers, one of them with "
            f"{options.device}, and remove them",
        )
    try:
        checks = verify(options)
    except ProbeError as error:
        module.fail_json(msg=str(error), checks=[], summary="not run")
    result = {
        "changed": False,
        "checks": [check.as_dict() for check in checks],
        "summary": summary(checks),
    }
    if any(check.ok is False for check in checks):
        module.fail_json(msg=failure_text(checks), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
