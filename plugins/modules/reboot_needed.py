#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: reboot_needed
short_description: Say whether the host has to reboot so that what was set acts
version_added: "0.1.0"
description:
  - Reads what this collection keeps on the host and what the running kernel has of it, and names
    each setting that waits for a boot. It reboots nothing; the role P(steadygpu.host.reboot#role)
    does.
  - A reason that was there before a reboot and is there after it is V(in_vain), and is no reason
    for another one.
  - Names also whose work a reboot would end for good.
options:
  state:
    description:
      - V(look) says what is. V(begin) remembers, before a reboot, what it is for.
    type: str
    choices: [look, begin]
    default: look
  reasons:
    description:
      - Further reasons that the play knows, such as a driver whose module and library differ.
    type: list
    elements: str
    default: []
  socket:
    description:
      - The unix socket of the Docker daemon.
    type: path
    default: /var/run/docker.sock
extends_documentation_fragment:
  - steadygpu.host.attributes
attributes:
  diff_mode:
    description: What it remembers is no configuration that a diff could show.
    support: N/A
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Does anything wait for a reboot?
  steadygpu.host.reboot_needed:
  register: reboot

- name: Say what
  ansible.builtin.debug:
    var: reboot.reasons
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done.
  returned: always
  type: list
  elements: str
  sample: ["remember why the host is rebooted"]
needed:
  description: Whether there is a reason that no reboot was tried for.
  returned: always
  type: bool
  sample: true
reasons:
  description: Why, one sentence each.
  returned: always
  type: list
  elements: str
  sample: ["boot parameter iommu=pt: wanted iommu=pt, and it acts after a boot"]
in_vain:
  description: What still waits although the host was rebooted for it.
  returned: always
  type: list
  elements: str
  sample: []
lost:
  description:
    - Running containers that nothing starts again after a boot, and processes that hold a GPU. Read
      only where a reboot is needed.
  returned: always
  type: list
  elements: str
  sample: ["container train (restart policy no)"]
others:
  description: Packages that ask for a reboot, which this collection leaves to the host's owner.
  returned: always
  type: list
  elements: str
  sample: [linux-image-6.12.57+deb13-amd64]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.boot import at_risk, reboot
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["look", "begin"], "default": "look"},
            "reasons": {"type": "list", "elements": "str", "default": []},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    actions = []
    try:
        verdict = reboot.look(module.params["reasons"])
        needed = bool(verdict.reasons)
        if module.params["state"] == "begin" and needed:
            actions.append("remember why the host is rebooted")
            if not module.check_mode:
                reboot.begin(verdict)
        elif not module.check_mode:
            reboot.forget_cured(verdict)
        lost = at_risk.find(module.params["socket"]) if needed else []
    except (SettingsError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(actions),
        actions=actions,
        needed=needed,
        reasons=list(verdict.reasons),
        in_vain=list(verdict.in_vain),
        lost=lost,
        others=list(verdict.others),
    )


if __name__ == "__main__":
    main()
