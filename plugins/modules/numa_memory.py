#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: numa_memory
short_description: Huge pages, NUMA balancing, interrupts and memory bandwidth that really act
version_added: "0.1.0"
description:
  - Reserves huge pages on each NUMA node, limits those of slices, switches automatic NUMA
    balancing, keeps irqbalance away from CPUs and drivers, and offers classes of memory bandwidth
    to containers.
  - Every value is read back from the kernel. What cannot act on this host is not written. It is
    returned in RV(settings) as C(inert) or C(unsupported), with the reason.
  - Never takes memory that running work needs, and never gives back a huge page that is in use.
    Both are refused before the first write.
  - What is not asked for any more is put back to what it was before, with the files of this module.
options:
  state:
    description:
      - V(present) keeps what the other options say.
      - V(absent) puts back every former value and removes every file of this module.
    type: str
    choices: [present, absent]
    default: present
  hugepages:
    description:
      - Huge pages to reserve, now and at boot, by C(systemd-tmpfiles).
      - When the kernel gives fewer pages than asked for, all are put back and the task fails
        with what it gave.
    type: list
    elements: dict
    default: []
    suboptions:
      node:
        description: Number of the NUMA node, or V(all) for each of them.
        type: str
        default: all
      size:
        description: Size of a page, such as V(2M) or V(1G).
        type: str
        default: 2M
      count:
        description: How many pages of that size the node is to have in all.
        type: int
        required: true
  keep_free_percent:
    description:
      - How much of a node's memory must stay available after huge pages were reserved.
    type: int
    default: 10
  slice_limits:
    description:
      - Limits of huge pages by slice, each a dictionary of page size to limit. V(max) is no limit.
      - systemd has no property for them, so a unit of this module sets them at boot.
    type: dict
    default: {}
  numa_balancing:
    description:
      - Whether the kernel may move memory between nodes by itself (C(kernel.numa_balancing)).
        Without it the value stays what it is.
    type: bool
  banned_cpus:
    description:
      - CPUs that irqbalance gives no interrupts, such as V(0-3,8).
    type: str
    default: ""
  banned_drivers:
    description:
      - Kernel modules whose interrupts irqbalance does not move, such as V(nvidia) or V(mlx5_core).
    type: list
    elements: str
    default: []
  memory_bandwidth:
    description:
      - Classes of memory bandwidth by name, as a percentage, offered to containers by CDI as
        C(--device steadygpu.dev/membw=NAME). Only where the CPU can throttle (resctrl).
      - A class that a container carries is not removed.
    type: dict
    default: {}
  docker_version:
    description:
      - Version of Docker, from the facts. Older than 26.1 it cannot take a class.
    type: str
    default: ""
  daemon_keys:
    description:
      - Keys of Docker's configuration that the caller sets beside this task, to be remembered and
        returned in RV(dropped_daemon_keys) once they are not given any more.
    type: list
    elements: str
    default: []
notes:
  - irqbalance is restarted when its environment file changes, which moves no interrupt by itself.
  - The hugetlb controller, once switched on above a slice, stays on.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Two GiB of huge pages on the node of the GPUs, and no balancing behind pinned jobs
  steadygpu.host.numa_memory:
    hugepages:
      - node: 1
        size: 2M
        count: 1024
    slice_limits:
      ai-workload.slice:
        2M: 1G
    numa_balancing: false

- name: Interrupts stay off the CPUs of real-time work
  steadygpu.host.numa_memory:
    banned_cpus: 8-15

- name: Everything as it was before
  steadygpu.host.numa_memory:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample: [set hugepages-2048kB node 1 to 1024 (was 0)]
settings:
  description: Each setting with what is wanted, what the kernel holds, and a verdict.
  returned: always
  type: list
  elements: dict
  sample:
    - name: hugepages-2048kB node 1
      wanted: "1024"
      effective: "1024"
      verdict: effective
      reason: ""
      source: /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages
dropped_daemon_keys:
  description: Keys that were given in O(daemon_keys) before and are not any more.
  returned: always
  type: list
  elements: str
  sample: [default-shm-size]
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory import manage
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.model import NumaError
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.parse import parse_wish
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "hugepages": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "node": {"type": "str", "default": "all"},
                    "size": {"type": "str", "default": "2M"},
                    "count": {"type": "int", "required": True},
                },
            },
            "keep_free_percent": {"type": "int", "default": 10},
            "slice_limits": {"type": "dict", "default": {}},
            "numa_balancing": {"type": "bool"},
            "banned_cpus": {"type": "str", "default": ""},
            "banned_drivers": {"type": "list", "elements": "str", "default": []},
            "memory_bandwidth": {"type": "dict", "default": {}},
            "docker_version": {"type": "str", "default": ""},
            "daemon_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
        },
        supports_check_mode=True,
    )
    # Ansible's own subclasses of str and dict stay outside.
    options = json.loads(json.dumps(module.params))
    try:
        if options["state"] == "absent":
            result = manage.take_back(module.check_mode)
        else:
            result = manage.ensure(parse_wish(options), module.check_mode)
    except (NumaError, SettingsError) as error:
        module.fail_json(msg=str(error))
    for warning in result.outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=bool(result.outcome.actions),
        actions=result.outcome.actions,
        settings=[setting.as_dict() for setting in result.outcome.settings],
        dropped_daemon_keys=result.dropped_daemon_keys,
        diff=result.outcome.diff,
    )


if __name__ == "__main__":
    main()
