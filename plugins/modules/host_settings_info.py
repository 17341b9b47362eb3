#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_settings_info
short_description: Read back every setting that is kept on a host
version_added: "0.1.0"
description:
  - Reads what the modules of this collection keep on the host (records in
    C(/var/lib/steadygpu/owned), slices in C(/etc/systemd/system)), and for each setting what the
    kernel, the control group or the driver holds now.
  - Needs nothing on the host but Python. It fails for nothing. A setting that cannot be read, and
    a record that cannot be understood, is a setting that differs, with the reason.
options: {}
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
- name: Read every setting back
  steadygpu.host.host_settings_info:
  register: kept

- name: Nothing has drifted
  ansible.builtin.assert:
    that: kept.differing | length == 0
    fail_msg: "{{ kept.differing | join('; ') }}"
"""

RETURN = r"""
settings:
  description: Every setting that is kept.
  returned: always
  type: list
  elements: dict
  contains:
    owner:
      description: Who keeps it, a role of this collection by its short name.
      type: str
      sample: numa
    name:
      description: The setting as a person knows it.
      type: str
      sample: kernel.numa_balancing
    wanted:
      description: The wanted value.
      type: str
      sample: "0"
    effective:
      description: The value that was read. V(null) where nothing could be read.
      type: str
      sample: "0"
    verdict:
      description:
        - V(effective); V(differs); V(inert), which is written and changes nothing on this host;
          V(unsupported) by this kernel or hardware; V(pending) until the next reboot.
      type: str
      sample: effective
    reason:
      description: Why it is not effective, in one sentence.
      type: str
      sample: ""
    source:
      description: The path that was read.
      type: str
      sample: /proc/sys/kernel/numa_balancing
differing:
  description: A sentence for each of RV(settings) whose verdict is V(differs).
  returned: always
  type: list
  elements: str
  sample:
    - "kernel.numa_balancing (role numa) is 1, wanted 0; /proc/sys/kernel/numa_balancing holds
      another value"
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import DIFFERS
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import survey


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    found = survey()
    module.exit_json(
        changed=False,
        settings=[one.as_dict() for one in found],
        differing=[one.said for one in found if one.setting.verdict == DIFFERS],
    )


if __name__ == "__main__":
    main()
