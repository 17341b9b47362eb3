#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: heal
short_description: Repair a GPU container host where that is safe and known to help
version_added: "0.1.0"
description:
  - A running container that lost its GPU gets exactly the devices back that it had been given,
    without a restart, and is named for a proper recreate.
  - A stale CDI specification is made anew, C(nvidia_uvm) is loaded, and the units
    C(nvidia-cdi-refresh) are enabled and ordered before Docker.
  - Nothing is stopped or restarted and C(systemctl daemon-reload) is never run, because it can cost
    containers their GPU. Whatever needs more than that is returned in RV(by_hand) with the commands
    for a person.
  - Each step is proved by a second look. In check mode the steps are shown and nothing is changed.
options:
  only:
    description:
      - Only these steps, by their id or by their kind. The kinds are V(uvm), V(cdi-spec),
        V(cdi-refresh), V(cdi-order) and V(gpu-access).
    type: list
    elements: str
    default: []
  deadline_s:
    description:
      - Seconds for each answer of the driver, systemd and Docker.
    type: float
    default: 20
  socket:
    description:
      - The unix socket of Docker.
    type: path
    default: /var/run/docker.sock
notes:
  - Needs root, also in check mode, because only root sees the device rules of containers.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: What would be healed is shown
  steadygpu.host.heal:
  check_mode: true
  register: shown

- name: Containers that lost their GPU have it again
  steadygpu.host.heal:
    only: [gpu-access]
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: success
  type: list
  elements: str
  sample: ["nvidia-modprobe -u -c 0"]
steps:
  description:
    - What is healed, each with C(id), C(seen), C(wanted), C(commands), C(undo) and C(note); when it
      was carried out also with C(healed) and C(after), what the second look showed.
  returned: success
  type: list
  elements: dict
by_hand:
  description: What is wrong and not repaired here, each with C(id), C(seen), C(why), C(commands).
  returned: success
  type: list
  elements: dict
recreate:
  description: Containers to be made anew at a good time, because their repair does not last.
  returned: success
  type: list
  elements: str
  sample: [container trainer]
unclear:
  description: What could not be found out, such as the device rules of a container on cgroup v1.
  returned: success
  type: list
  elements: str
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.heal import healing
from ansible_collections.steadygpu.host.plugins.module_utils.heal.plan import UnknownStepError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "only": {"type": "list", "elements": "str", "default": []},
            "deadline_s": {"type": "float", "default": 20},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    params = module.params
    if os.geteuid() != 0:
        # A user sees neither containers nor their rules, and "nothing to heal" would be a lie.
        module.fail_json(msg="wanted is root (become: true), also to look; nothing was done")
    try:
        outcome = healing.heal(
            not module.check_mode, params["only"], params["deadline_s"], params["socket"]
        )
    except (healing.HealError, UnknownStepError) as error:
        module.fail_json(msg=str(error))
    done = [one.as_dict() for one in outcome.done]
    steps = done or [step.as_dict() for step in outcome.plan.steps]
    result = {
        "changed": bool(outcome.actions),
        "actions": outcome.actions,
        "steps": steps,
        "by_hand": [one.as_dict() for one in outcome.plan.by_hand],
        "recreate": list(outcome.plan.recreate),
        "unclear": list(outcome.plan.unclear),
        "diff": _diff(outcome),
    }
    if outcome.failed:
        said = "; ".join(f"{one.step.id}: {one.after}" for one in outcome.failed)
        module.fail_json(msg=f"not healed: {said}", **result)
    module.exit_json(**result)


def _diff(outcome: healing.Outcome) -> dict[str, str]:
    """What was seen, and what is (or in check mode would be) in its place."""
    after = {one.step.id: one.after for one in outcome.done}
    steps = outcome.plan.steps
    return {
        "before": "".join(f"{step.id}: {step.seen}\n" for step in steps),
        "after": "".join(f"{step.id}: {after.get(step.id, step.wanted)}\n" for step in steps),
    }


if __name__ == "__main__":
    main()
