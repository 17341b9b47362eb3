#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: container_hardening
short_description: What GPU containers may do to their host, and whom a stricter setting would cost
version_added: "0.1.0"
description:
  - Looks at every running container that has a GPU, of any engine, and names those that are
    privileged, have C(SYS_ADMIN), or run without a seccomp filter. GPU work needs none of these.
  - Judges stricter settings before they are written. Containers that would lose their GPU by them
    at their next start are named, and nothing is done unless that is allowed.
  - Writes none of these settings itself. It returns the keys for
    M(steadygpu.host.docker_daemon) and M(steadygpu.host.toolkit_config), remembers
    them, and says later which are to be taken back. The role
    P(steadygpu.host.hardening#role) does all of it.
options:
  state:
    description:
      - V(present) judges and remembers.
      - V(absent) forgets, and returns all keys that were remembered as dropped.
    type: str
    choices: [present, absent]
    default: present
  audit:
    description:
      - V(report) warns of what running containers may do.
      - V(refuse) fails, with their names. No container is stopped.
    type: str
    choices: [report, refuse]
    default: report
  accepted:
    description:
      - Names of containers, also patterns such as V(dcgm-exporter*), that may do it.
    type: list
    elements: str
    default: []
  keep_seccomp:
    description:
      - Fail where Docker's default profile is C(unconfined).
    type: bool
    default: true
  env_injection:
    description:
      - Whether unprivileged containers may ask for GPUs by C(NVIDIA_VISIBLE_DEVICES). Images set
        it, so with V(true) an image can take GPUs that nobody gave it. Without this option the
        toolkit's setting stays.
    type: bool
  env_injection_losers_accepted:
    description:
      - Go on although containers lose their GPU at their next start by O(env_injection=false).
    type: bool
    default: false
  no_new_privileges:
    description:
      - Docker's default for containers. With V(true) C(sudo) and other set-user-ID programs gain
        nothing in them. Without this option it stays.
    type: bool
  selinux_type:
    description:
      - The type that GPU containers are to be given, such as V(nvidia_container_t). It is said
        whether this host can use it; nothing is installed.
    type: str
    default: ""
  socket:
    description:
      - The unix socket of the daemon. A stopped one is not started by asking.
    type: path
    default: /var/run/docker.sock
  deadline_s:
    description:
      - Seconds for looking at all containers.
    type: float
    default: 60
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: See what GPU containers may do
  steadygpu.host.container_hardening:
    accepted: [dcgm-exporter]

- name: Refuse a host whose GPU containers could take it over
  steadygpu.host.container_hardening:
    audit: refuse
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done.
  returned: always
  type: list
  elements: str
  sample: [remember the settings of hardening]
findings:
  description:
    - What running GPU containers may do, each with C(container), the C(rule) of the checks,
      C(seen), C(fix), and whether it is C(accepted).
  returned: always
  type: list
  elements: dict
  sample:
    - container: notebook
      rule: privileged
      seen: --privileged opens the whole host to notebook.
      fix: Start it with single devices (gpus, device) and single capabilities (cap-add).
      accepted: false
settings:
  description: Each setting with what is wanted, what the engine or kernel says, and a verdict.
  returned: always
  type: list
  elements: dict
  sample: [{name: Docker seccomp profile, wanted: a filter, effective: builtin, verdict: effective}]
daemon:
  description: Keys for Docker's configuration.
  returned: always
  type: dict
  sample: {no-new-privileges: true}
toolkit:
  description: Keys for the toolkit's configuration.
  returned: always
  type: dict
  sample: {accept-nvidia-visible-devices-envvar-when-unprivileged: false}
dropped_daemon:
  description: Keys of Docker's configuration that were asked for before and are not any more.
  returned: always
  type: dict
  sample: {}
dropped_toolkit:
  description: The same of the toolkit's configuration.
  returned: always
  type: dict
  sample: {}
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.hardening import judge, manage, read
from ansible_collections.steadygpu.host.plugins.module_utils.hardening.model import HardeningError
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "audit": {"type": "str", "choices": ["report", "refuse"], "default": "report"},
            "accepted": {"type": "list", "elements": "str", "default": []},
            "keep_seccomp": {"type": "bool", "default": True},
            "env_injection": {"type": "bool"},
            "env_injection_losers_accepted": {"type": "bool", "default": False},
            "no_new_privileges": {"type": "bool"},
            "selinux_type": {"type": "str", "default": ""},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
            "deadline_s": {"type": "float", "default": 60},
        },
        supports_check_mode=True,
    )
    # Ansible's own subclasses of str and dict stay outside.
    options = json.loads(json.dumps(module.params))
    try:
        if options["state"] == "absent":
            result = manage.take_back(module.check_mode)
        else:
            wish = judge.parse_wish(options)
            host = read.read(wish, options["socket"], options["deadline_s"])
            result = manage.ensure(wish, host, module.check_mode)
    except (HardeningError, SettingsError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}")
    for warning in result.warnings:
        module.warn(warning)
    module.exit_json(
        changed=bool(result.actions),
        actions=result.actions,
        findings=[one.as_dict() for one in result.findings],
        settings=[setting.as_dict() for setting in result.settings],
        daemon=result.daemon,
        toolkit=result.toolkit,
        dropped_daemon=result.dropped_daemon,
        dropped_toolkit=result.dropped_toolkit,
    )


if __name__ == "__main__":
    main()
