#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mig_layout_info
short_description: Read the MIG layouts of a host's GPUs
version_added: "0.1.0"
description:
  - Reads what M(steadygpu.host.mig_layout) works with. That is the layout of every GPU, what each
    of them offers, who holds it, the layout that O(steadygpu.host.mig_layout#module:state=previous)
    would go back to, and the one that comes back at boot.
options:
  deadline_s:
    description:
      - Seconds that the driver has to answer.
    type: float
    default: 60
  socket:
    description:
      - The unix socket of Docker, which is asked for names of containers.
    type: path
    default: /var/run/docker.sock
notes:
  - Needs root, since NVML shows GPU instances to nobody else, and C(pynvml) on the host. The agent
    carries one.
attributes:
  diff_mode:
    support: N/A
    details: It changes nothing.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Read the MIG layouts
  steadygpu.host.mig_layout_info:
  register: mig

- name: Show the UUIDs of all MIG devices
  ansible.builtin.debug:
    msg: "{{ mig.gpus | map(attribute='instances') | flatten | map(attribute='devices') | flatten
      | map(attribute='uuid') }}"
"""

RETURN = r"""
boot:
  description: The layout that comes back at boot, by GPU. Null when none does.
  returned: always
  type: list
  elements: dict
driver_version:
  description: Version of the driver.
  returned: always
  type: str
  sample: 550.163.01
gpus:
  description: Every GPU, in NVML's order.
  returned: always
  type: list
  elements: dict
  contains:
    index:
      description: NVML's index.
      type: int
      sample: 0
    uuid:
      description: UUID of the GPU.
      type: str
      sample: GPU-5d1f1b3e-7a41-4b5c-9a52-3c1de4a8f0aa
    mig:
      description: C(supported), C(current) and C(pending) mode.
      type: dict
      sample: {supported: true, current: true, pending: true}
    instances:
      description: GPU instances with C(profile), C(start), C(size), C(id) and C(devices).
      type: list
      elements: dict
    profiles:
      description:
        - What the GPU offers, each with C(name), C(slices), C(most) and C(placements). From the
          driver while MIG is on, else from the tables of known models.
      type: list
      elements: dict
    holders:
      description: Who holds the GPU, each with C(pid), C(name), C(kind), C(owner), C(container).
      type: list
      elements: dict
previous:
  description: The layout before the last change, by GPU. Null before the first one.
  returned: always
  type: list
  elements: dict
unfinished:
  description:
    - Whether a change was killed or is under way. The next run of M(steadygpu.host.mig_layout)
      starts again what was stopped for it.
  returned: always
  type: bool
  sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.mig import view
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import MigError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "deadline_s": {"type": "float", "default": 60},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    try:
        found = view.read(module.params["deadline_s"], module.params["socket"])
    except MigError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
