#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pcie_acs
short_description: Switch PCI Access Control Services off on chosen bridges, on bare metal
version_added: "0.1.0"
description:
  - With ACS on, bridges send traffic between two GPUs up to the root complex, which makes it slow
    or hang. This module clears the control register of chosen bridges, reads it back, and leaves a
    boot unit behind, because firmware and kernel switch ACS on again at each boot.
  - ACS is isolation. It is refused in a virtual machine, where it must stay on, and on a host that
    gives devices to virtual machines by vfio-pci. Where an IOMMU is on, a warning says which
    devices are no longer kept apart.
  - It is also refused while a process works on a GPU, since the way of its traffic would change.
  - A bridge that has become another card since is left alone.
options:
  state:
    description:
      - V(present) keeps ACS off on O(bridges) and gives others that this module changed their
        former state back. V(absent) gives it back to all, and removes the boot unit.
    type: str
    choices: [present, absent]
    default: present
  bridges:
    description:
      - PCI addresses of bridges such as V(0000:3b:00.0), or V(gpus) for every bridge above a GPU
        that has ACS.
    type: list
    elements: str
    default: []
notes:
  - The boot unit runs C(steadygpu), which the role P(steadygpu.host.agent#role) installs.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: GPUs behind one switch reach each other directly
  steadygpu.host.pcie_acs:
    bridges: [gpus]

- name: ACS is as the firmware had it
  steadygpu.host.pcie_acs:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample: ["switch ACS off on 0000:3b:00.0 (control 001d becomes 0000)"]
settings:
  description: Each bridge with the control register that is wanted and the one it has.
  returned: always
  type: list
  elements: dict
  sample:
    - name: ACS control of 0000:3b:00.0
      wanted: "0000"
      effective: "0000"
      verdict: effective
      reason: ""
      source: /sys/bus/pci/devices/0000:3b:00.0/config
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.acs.decide import AcsError
from ansible_collections.steadygpu.host.plugins.module_utils.acs.manage import keep_off, put_back
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "bridges": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    bridges = module.params["bridges"]
    try:
        if module.params["state"] == "present" and bridges:
            outcome = keep_off(bridges, module.check_mode)
        else:
            outcome = put_back(module.check_mode)
    except (AcsError, SettingsError) as error:
        module.fail_json(msg=str(error))
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=bool(outcome.actions),
        actions=outcome.actions,
        diff=outcome.diff,
        settings=[setting.as_dict() for setting in outcome.settings],
    )


if __name__ == "__main__":
    main()
