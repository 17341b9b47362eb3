#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cpu_burst
short_description: Let slices run above their CPU quota for a moment, and never block the quota
version_added: "0.1.0"
description:
  - A slice with a C(CPUQuota) is throttled for the rest of a period once its quota is spent. With
    a burst it may spend what it saved in earlier periods, up to the burst. It is for work that
    comes in gusts, such as inference; the average stays the quota.
  - systemd has no property for it. This module writes the kernel's C(cpu.max.burst), reads it
    back, and leaves behind a service, which sets it again at boot, and a path unit for each slice,
    which wakes the service whenever the quota changes.
  - The kernel refuses a quota below the burst, and systemd only logs that. So the burst follows the
    quota. M(steadygpu.host.systemd_slice) lowers the burst before it lowers a quota; a quota that
    somebody lowers by C(systemctl set-property), and that the kernel refused, is given to it within
    seconds by the service, which says so in its journal.
  - A burst is at most the quota of one period. It does nothing for tasks of C(SCHED_FIFO) and
    C(SCHED_RR), which no quota holds.
options:
  slices:
    description:
      - The burst of each slice, by the slice's name. Either a percentage of its quota, up to
        V(100%), which follows the quota when that changes, or a time span such as V(50ms) of each
        period.
      - A slice that is not named any more gets its former burst back.
      - On a slice without C(CPUQuota) a burst does nothing, and is reported as inert. One that is
        not active gets it when it starts.
    type: dict
    default: {}
  state:
    description:
      - V(absent) gives all slices their former burst back and removes the units.
    type: str
    choices: [present, absent]
    default: present
notes:
  - Needs cgroup v2 and Linux 5.14 or later. On an older kernel it is reported as unsupported.
  - The units need the command C(steadygpu), which the role P(steadygpu.host.agent#role) installs.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Let inference spend in one period what it saved in the one before
  steadygpu.host.cpu_burst:
    slices:
      ai-inference.slice: 100%
      ai-batch.slice: 20ms

- name: No bursts any more
  steadygpu.host.cpu_burst:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample:
    - set ai-inference.slice cpu.max.burst to 300000 (was 0)
    - enable steadygpu-burst.service
settings:
  description: Each setting with what is wanted, what the kernel holds, and the verdict.
  returned: always
  type: list
  elements: dict
  sample:
    - name: ai-inference.slice cpu.max.burst
      wanted: "300000"
      effective: "300000"
      verdict: effective
      reason: ""
      source: /sys/fs/cgroup/ai.slice/ai-inference.slice/cpu.max.burst
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.burst.manage import (
    ensure_absent,
    ensure_present,
)
from ansible_collections.steadygpu.host.plugins.module_utils.burst.model import BurstError
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "slices": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    wanted = module.params["slices"] if module.params["state"] == "present" else {}
    try:
        if wanted:
            outcome = ensure_present(wanted, module.check_mode)
        else:
            outcome = ensure_absent(module.check_mode)
    except (BurstError, SettingsError) as error:
        module.fail_json(msg=str(error))
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=outcome.changed,
        actions=outcome.actions,
        settings=[one.as_dict() for one in outcome.settings],
        diff=outcome.diff,
    )


if __name__ == "__main__":
    main()
