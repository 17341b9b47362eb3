#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: systemd_slice
short_description: Give containers a shared resource budget that the kernel really holds
version_added: "0.1.0"
description:
  - Writes a systemd slice, starts it, and reads the effective values back from its cgroup.
  - A value is checked three times. By this module, with its own clear errors; by
    C(systemd-analyze verify), whose text is read because it exits 0 on unknown keys; and in
    the kernel's cgroup files after the slice has started.
  - When the kernel does not hold what was asked for, the former state is restored and the
    task fails with what was seen and what was wanted.
  - A value that drifted, for instance by C(systemctl set-property), is set again.
  - A slice is one budget shared by all its members. A limit for a single container belongs
    to the container.
options:
  name:
    description:
      - Name of the slice, such as V(ai-workload.slice).
      - Each dash nests. V(ai-workload.slice) lies inside V(ai.slice); the return value
        RV(control_group) has the real path.
    type: str
    required: true
  state:
    description:
      - V(present) writes and starts the slice.
      - V(absent) stops and deletes it, and fails while a process is inside.
    type: str
    choices: [present, absent]
    default: present
  description:
    description:
      - One line for C(systemctl status).
    type: str
    default: Workload slice managed by steadygpu.host
  properties:
    description:
      - Resource-control properties by their systemd names.
      - V(CPUWeight) and V(IOWeight) take 1 to 10000, V(CPUWeight) also V(idle).
      - V(CPUQuota) is a percentage of one CPU, so V(300%) is three CPUs.
        V(CPUQuotaPeriodSec) takes V(1ms) to V(1s).
      - V(AllowedCPUs) and V(AllowedMemoryNodes) take numbers and ranges such as V(0-3,8).
      - V(MemoryMin), V(MemoryLow), V(MemoryHigh), V(MemoryMax) and V(MemorySwapMax) take bytes
        with the suffixes V(K), V(M), V(G), V(T) (powers of 1024), a percentage, or
        V(infinity).
      - V(TasksMax) takes a number, a percentage, or V(infinity).
      - V(IODeviceWeight), V(IOReadBandwidthMax), V(IOWriteBandwidthMax), V(IOReadIOPSMax),
        V(IOWriteIOPSMax) and V(IODeviceLatencyTargetSec) take a list of C(PATH VALUE) texts
        or a mapping of path to value. Bandwidth suffixes are powers of 1000.
      - A property that systemd does not have is refused with what is real in its place.
    type: dict
    default: {}
  unit_directory:
    description:
      - Directory of the unit file.
    type: path
    default: /etc/systemd/system
  takeover:
    description:
      - Replace or delete a unit file of this name that this module did not write.
    type: bool
    default: false
  daemon_reload_anyway:
    description:
      - Run C(systemctl daemon-reload) although a container may lose its GPU by it.
      - Without it, a change that needs the reload is refused, before anything is written, while
        such containers run. These are containers that got their GPU, or may have got it, by the
        legacy NVIDIA hook instead of CDI; containers of other engines that hold a GPU open; and
        all containers of a Docker engine that should answer and does not. A host without Docker,
        or with a stopped engine and no container that holds a GPU open, is reloaded.
      - With it, a warning names them.
    type: bool
    default: false
  below_current_use:
    description:
      - Lower C(MemoryMax) below what the slice uses now, although the kernel may kill processes
        inside. Without it this is refused before anything is written.
      - A C(MemoryHigh) below the current use only throttles, so it is applied with a warning.
    type: bool
    default: false
notes:
  - A changed unit needs C(systemctl daemon-reload). The reload is left out when systemd has not
    loaded the slice yet, and named in RV(actions) when it runs.
  - With O(state=absent) a reload that could cost a container its GPU is left out, with a
    warning; systemd forgets the deleted unit at its next reload.
  - Needs cgroup v2. C(IOWeight) acts only where iocost or the bfq scheduler is in use; elsewhere
    a warning says that it is inert.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: A budget for all training containers
  steadygpu.host.systemd_slice:
    name: ai-workload.slice
    description: GPU training jobs
    properties:
      CPUQuota: 300%
      MemoryMax: 8G
      TasksMax: 4096

- name: Keep scratch IO of the slice below 200 MB/s
  steadygpu.host.systemd_slice:
    name: ai-scratch.slice
    properties:
      IOWriteBandwidthMax:
        /dev/nvme0n1: 200M

- name: Remove the slice once it is empty
  steadygpu.host.systemd_slice:
    name: ai-workload.slice
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample: ["write /etc/systemd/system/ai-workload.slice", "start ai-workload.slice"]
control_group:
  description: Path of the slice below the cgroup root, null when it is not active.
  returned: always
  type: str
  sample: /ai.slice/ai-workload.slice
effective:
  description: The value of each asked property as the kernel holds it, in systemd's spelling.
  returned: always
  type: dict
  sample: {CPUQuota: 300%, MemoryMax: 8G, TasksMax: "4096"}
unit_path:
  description: Path of the unit file.
  returned: always
  type: str
  sample: /etc/systemd/system/ai-workload.slice
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.slices.manage import (
    ensure_absent,
    ensure_present,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import (
    SliceError,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    PropertyError,
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.unit_text import name_fault


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "description": {
                "type": "str",
                "default": "Workload slice managed by steadygpu.host",
            },
            "properties": {"type": "dict", "default": {}},
            "unit_directory": {"type": "path", "default": "/etc/systemd/system"},
            "takeover": {"type": "bool", "default": False},
            "daemon_reload_anyway": {"type": "bool", "default": False},
            "below_current_use": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    params = module.params
    fault = name_fault(params["name"])
    if fault:
        module.fail_json(msg=fault)
    if "\n" in params["description"]:
        module.fail_json(msg="description has several lines: wanted one")
    try:
        settings = parse_properties(params["properties"])
        wish = Wish(
            name=params["name"],
            description=params["description"],
            settings=settings,
            unit_directory=params["unit_directory"],
            takeover=params["takeover"],
            daemon_reload_anyway=params["daemon_reload_anyway"],
            below_current_use=params["below_current_use"],
        )
        ensure = ensure_present if params["state"] == "present" else ensure_absent
        outcome = ensure(wish, module.check_mode)
    except PropertyError as error:
        module.fail_json(msg="properties of {}:\n{}".format(params["name"], error))
    except SliceError as error:
        module.fail_json(msg=str(error))
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=outcome.changed,
        actions=outcome.actions,
        control_group=outcome.control_group,
        effective=outcome.effective,
        unit_path=wish.unit_path,
        diff=outcome.diff,
    )


if __name__ == "__main__":
    main()
