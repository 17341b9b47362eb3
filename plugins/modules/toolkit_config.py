#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: toolkit_config
short_description: Set keys of the NVIDIA Container Toolkit's config.toml
version_added: "0.1.0"
description:
  - Sets single keys of the configuration of NVIDIA's container runtime and hook. Every other key,
    comments, commented defaults, order and line ends stay as they are. C(nvidia-ctk config --set)
    drops comments and accepts C(mode=bogus).
  - Remembers which values it wrote and what stood there before, in
    C(/var/lib/steadygpu/owned), so that O(state=absent) takes back exactly that and nothing else.
  - Nothing is restarted or reloaded, because nothing needs it. Runtime and hook read the file
    whenever a container is started. A container that runs keeps what it was given until it is
    started again, and then gets what the new configuration gives.
  - Refuses keys that the installed release does not have, with the nearest one that it has, values
    of another type, and words that it does not know. Without an installed toolkit all releases up
    to 1.20 are accepted, and the file is there when it comes.
  - Refuses an C(ldconfig) that the host does not have or the toolkit would refuse, because no
    container would start with it. Then C(nvidia-ctk), from 1.15 on, is asked whether it reads the
    new file as it is meant.
  - The packages of the toolkit write the file anew when they are installed or upgraded. Values
    stay, comments do not, and a further run changes nothing.
options:
  config:
    description:
      - Keys to set, nested as the tables of the file.
      - With an empty value and O(state=present) the file is not touched. With O(state=absent) an
        empty value means all keys that this module set.
      - Since release 1.18 a C(mode) of V(auto) means what C(jit-cdi) does, and before it what
        C(legacy) does. Set it to pin what containers get.
    type: dict
    default: {}
  state:
    description:
      - V(present) sets the keys.
      - V(absent) restores what stood in their place before, for the keys of O(config) that this
        module set; their values in O(config) do not matter. A key that somebody changed since is
        left to them. A file that this module made and that is empty again is removed.
    type: str
    choices: [present, absent]
    default: present
  path:
    description:
      - The configuration file. A rootless engine has its own below C(XDG_CONFIG_HOME).
    type: path
    default: /etc/nvidia-container-runtime/config.toml
  takeover:
    description:
      - Whether to overwrite a key that holds another value which this module did not write.
        Without it such a key is an error that names both values.
      - The packages of the toolkit write some keys into a new file, such as C(mode), C(log-level),
        C(runtimes) and C(ldconfig). What they write counts as nobody's, and is overwritten without
        this option. It comes back with O(state=absent).
    type: bool
    default: false
  validate:
    description:
      - Whether to refuse what is wrong. With V(false) it is warned of and written. Text that is no
        TOML is refused all the same.
    type: bool
    default: true
  deadline_s:
    description:
      - Seconds that C(nvidia-ctk) has.
    type: float
    default: 30
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Containers get GPUs by CDI, whatever the default of the next release
  steadygpu.host.toolkit_config:
    config:
      nvidia-container-runtime:
        mode: jit-cdi

- name: GPUs only by volume mounts, for containers that are not privileged
  steadygpu.host.toolkit_config:
    config:
      accept-nvidia-visible-devices-envvar-when-unprivileged: false
      accept-nvidia-visible-devices-as-volume-mounts: true

- name: The toolkit's configuration is what it was before this collection
  steadygpu.host.toolkit_config:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: [changed nvidia-container-runtime.mode from "auto" to "jit-cdi"]
effect:
  description: What running containers see of the change. Empty without one.
  returned: success
  type: str
  sample: Containers that run keep what they have; each gets the new one at its next start.
mode:
  description:
    - The mode that the file holds afterwards, V(auto) where it does not say.
  returned: success
  type: str
  sample: jit-cdi
toolkit_version:
  description: The installed release that keys were judged by; empty when there is none.
  returned: success
  type: str
  sample: 1.20.0
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.engine import toolkit_config
from ansible_collections.steadygpu.host.plugins.module_utils.engine.toolkit import read_toolkit
from ansible_collections.steadygpu.host.plugins.module_utils.packages import read_installed
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import arguments, redact

EFFECT = "Containers that run keep what they have; each gets the new one at its next start."


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            # Ansible would log it before it is known what in it is secret.
            "config": {"type": "dict", "default": {}, "no_log": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "path": {"type": "path", "default": "/etc/nvidia-container-runtime/config.toml"},
            "takeover": {"type": "bool", "default": False},
            "validate": {"type": "bool", "default": True},
            "deadline_s": {"type": "float", "default": 30},
        },
        supports_check_mode=True,
    )
    options = dict(module.params)
    arguments.hide(module, "config")
    wish = toolkit_config.Wish(
        # Ansible's own subclasses of str and dict stay outside.
        config=json.loads(json.dumps(options["config"])),
        present=options["state"] == "present",
        takeover=options["takeover"],
        validate=options["validate"],
        path=options["path"],
    )
    deadline_s = options["deadline_s"]
    toolkit = read_toolkit(read_installed(deadline_s=deadline_s).packages, deadline_s=deadline_s)
    host = toolkit_config.Host(toolkit.version, toolkit.ctk, deadline_s)
    try:
        plan = toolkit_config.make_plan(wish, host)
        if not module.check_mode:
            toolkit_config.carry_out(plan)
    except toolkit_config.ToolkitRefusedError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        place = error.filename or wish.path
        module.fail_json(msg=f"{place} cannot be read or written: {error.strerror or error}")
    for warning in plan.warnings:
        module.warn(warning)
    before, after = redact.pair(wish.path, plan.before or "", plan.after or "")
    module.exit_json(
        changed=plan.changed,
        actions=list(plan.actions),
        effect=EFFECT if plan.changed else "",
        mode=plan.mode,
        toolkit_version=toolkit.version or "",
        diff={
            "before_header": wish.path,
            "after_header": wish.path,
            "before": before,
            "after": after,
        },
    )


if __name__ == "__main__":
    main()
