#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: io_control
short_description: Give disks a scheduler or iocost, so that IO weights act
version_added: "0.1.0"
description:
  - C(IOWeight) of a slice and C(--blkio-weight) of a container do nothing on a disk that has
    neither the scheduler bfq nor iocost. This module gives disks one of the two, now and at every
    boot, reads the result back from the kernel, and says for every disk of the host whether weights
    act on it.
  - Limits such as C(IOReadBandwidthMax) act without either.
  - What was in force before is remembered in C(/var/lib/steadygpu/owned/settings-io.json).
  - The scheduler comes back at boot by a rule of udev, C(/etc/udev/rules.d/90-steadygpu-io.rules),
    iocost by the unit C(steadygpu-io.service), which runs C(steadygpu io apply) and so needs the
    role P(steadygpu.host.agent#role).
  - What this kernel or disk does not have is reported as V(unsupported) with the reason, and
    nothing is written for it.
options:
  devices:
    description:
      - A disk to what it is to have. The disk is a name such as V(nvme0n1), a device file, best one
        of C(/dev/disk/by-id) since names may change, any other path, such as V(/var/lib/docker), or
        V(*) for all disks that are not named.
      - A partition, a logical volume, an array, an encrypted device or a loop device is taken as
        the disks below it, which are named in a warning. A directory that is yet to come counts as
        the one that it will be in.
      - C(scheduler) is V(bfq), V(mq-deadline), V(kyber) or V(none).
      - C(iocost) switches iocost on or off. Not together with bfq, since both share the disk out.
        A disk that has bfq now needs another C(scheduler) with it.
      - C(model) is the cost model of the disk, with all of C(rbps), C(rseqiops), C(rrandiops),
        C(wbps), C(wseqiops) and C(wrandiops) as measured. Without it the kernel uses its own.
      - C(qos) has C(rpct), C(rlat), C(wpct), C(wlat), C(min) and C(max), latencies in microseconds.
      - What an earlier run set and is not named any more is put back.
    type: dict
    default: {}
  state:
    description:
      - V(present) makes the disks be as O(devices) says.
      - V(absent) puts back what was there before. A value that somebody else changed since is left
        alone, with a warning.
    type: str
    choices: [present, absent]
    default: present
notes:
  - Neither change costs a request that is under way. bfq takes CPU time for each request, which a
    fast NVMe disk feels; iocost is made for those.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Weights act on the disk of the containers
  steadygpu.host.io_control:
    devices:
      /var/lib/docker:
        scheduler: none
        iocost: true

- name: bfq on a slow disk, iocost with a measured model on a fast one
  steadygpu.host.io_control:
    devices:
      sda:
        scheduler: bfq
      /dev/disk/by-id/nvme-EXAMPLE:
        scheduler: none
        iocost: true
        model:
          rbps: 2706339840
          rseqiops: 89698
          rrandiops: 110036
          wbps: 1063126016
          wseqiops: 135560
          wrandiops: 130734

- name: All disks are as they were
  steadygpu.host.io_control:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample: ["write /etc/udev/rules.d/90-steadygpu-io.rules", "set vda scheduler to bfq (was none)"]
settings:
  description:
    - Each setting with C(name), C(wanted), C(effective), C(verdict), C(reason) and C(source).
    - C(verdict) is C(effective), C(differs), C(inert) or C(unsupported).
    - Read before the change in check mode.
  returned: always
  type: list
  elements: dict
  sample:
    - name: vda scheduler
      wanted: bfq
      effective: bfq
      verdict: effective
      reason: ""
      source: /sys/block/vda/queue/scheduler
weights:
  description: Whether IO weights act on each disk of the host, and by what, or why they do not.
  returned: always
  type: dict
  sample: {vda: io.weight acts by bfq}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.io_control.manage import absent, keep
from ansible_collections.steadygpu.host.plugins.module_utils.io_control.model import (
    IoError,
    parse_devices,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    try:
        wishes = parse_devices(module.params["devices"])
        if module.params["state"] == "present" and wishes:
            outcome = keep(wishes, module.check_mode)
        else:
            outcome = absent(module.check_mode)
    except (IoError, SettingsError) as error:
        module.fail_json(msg=str(error))
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=bool(outcome.actions),
        actions=outcome.actions,
        settings=[one.as_dict() for one in outcome.settings],
        weights=outcome.weights,
        diff=outcome.diff,
    )


if __name__ == "__main__":
    main()
