#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: runtime_routes_info
short_description: Hold a host's containers against its routing policy
version_added: "0.1.0"
description:
  - Reads the policy that M(steadygpu.host.runtime_routes) keeps, and says for every container,
    running or not, which runtime it has and which it should have.
  - Waits for no container. Docker's list of containers takes no lock, and runtime and user are read
    from the engine's own files. Only where those cannot be read is a container inspected, and all
    inspections together have O(deadline_s).
  - A container is not changed by this. It keeps its runtime until it is created anew.
options:
  path:
    description:
      - The file of the policy.
    type: path
    default: /etc/steadygpu/routes.json
  deadline_s:
    description:
      - Seconds for all inspections together.
    type: float
    default: 10
  socket:
    description:
      - The unix socket of Docker.
    type: path
    default: /var/run/docker.sock
attributes:
  diff_mode:
    support: N/A
    details: It changes nothing.
extends_documentation_fragment:
  - steadygpu.host.attributes
seealso:
  - module: steadygpu.host.runtime_routes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Hold the containers against the policy
  steadygpu.host.runtime_routes_info:
  register: routed

- name: Name those that are off it
  ansible.builtin.debug:
    msg: "{{ routed.off_policy | map(attribute='why') }}"
"""

RETURN = r"""
containers:
  description:
    - Every container with C(id), C(name), C(image), C(running), C(runtime), C(wanted) (V(null) when
      any will do), C(route), C(why) and C(standing).
    - C(standing) is V(on), V(off), V(undecided) where too little is known of the container, or
      V(unread) where its runtime was not told in time.
  returned: always
  type: list
  elements: dict
  sample: [{name: train, runtime: runc, wanted: runsc, standing: "off"}]
default_runtime:
  description: Docker's default runtime. V(null) where Docker does not answer.
  returned: always
  type: str
  sample: runc
faults:
  description: What is wrong in the policy, as M(steadygpu.host.runtime_routes) returns it.
  returned: always
  type: list
  elements: dict
lost:
  description: Those of RV(containers) whose runtime Docker does not know. They cannot start again.
  returned: always
  type: list
  elements: dict
off_policy:
  description: Those of RV(containers) that have another runtime than they should.
  returned: always
  type: list
  elements: dict
policy:
  description: The policy in its canonical form. V(null) when there is none, or it cannot be used.
  returned: always
  type: dict
problem:
  description: Why nothing could be said of containers, or of some of them. Empty when nothing is.
  returned: always
  type: str
  sample: ""
told:
  description: What is not as it should be in words, a line for each container. Empty when all is.
  returned: always
  type: list
  elements: str
  sample: ["train: it has the runtime runc, routes[0] (sandbox) wants runsc"]
runtimes:
  description: The runtimes that Docker knows.
  returned: always
  type: list
  elements: str
  sample: [io.containerd.runc.v2, runc]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.routing import view
from ansible_collections.steadygpu.host.plugins.module_utils.routing.model import DEFAULT_PATH


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": DEFAULT_PATH},
            "deadline_s": {"type": "float", "default": 10},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        found: dict[str, Any] = view.audited(
            options["path"], DockerClient(options["socket"]), options["deadline_s"]
        )
    except OSError as error:
        module.fail_json(msg=f"{options['path']} cannot be read: {error}")
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
