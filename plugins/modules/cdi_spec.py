#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cdi_spec
short_description: Keep the CDI specification of a host's NVIDIA GPUs right
version_added: "0.1.0"
description:
  - Runs C(nvidia-ctk cdi generate), compares with the specification on the host, and replaces it
    atomically when they differ.
  - Keeps the former specification and fails when the tool fails, finds no device, or writes a
    version of the format that the running Docker does not read. The tool itself reports success
    in some of these cases.
  - In check mode on a host without the tool it says that the specification would be generated.
options:
  path:
    description:
      - The specification. Docker looks in C(/etc/cdi) and C(/var/run/cdi).
      - The toolkit's own C(nvidia-cdi-refresh.service) writes the default path at boot.
    type: path
    default: /var/run/cdi/nvidia.yaml
  state:
    description:
      - Whether the specification should be there.
    type: str
    choices: [present, absent]
    default: present
  ctk:
    description:
      - The tool, as a name on the system path or an absolute path.
    type: str
    default: nvidia-ctk
  device_name_strategy:
    description:
      - How devices are named, each of V(index), V(uuid) and V(type-index) once.
    type: list
    elements: str
    choices: [index, uuid, type-index]
    default: [index, uuid]
  deadline_s:
    description:
      - Seconds that the tool has. A driver without persistence daemon takes seconds per GPU.
    type: float
    default: 60
  socket:
    description:
      - The unix socket of Docker, to ask for its version. A stopped Docker is not asked.
    type: path
    default: /var/run/docker.sock
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Containers can ask for GPUs by index and by UUID
  steadygpu.host.cdi_spec:

- name: The specification is gone
  steadygpu.host.cdi_spec:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: [create /var/run/cdi/nvidia.yaml with 17 device names]
devices:
  description: Names of the devices in the specification; empty when only the tool could tell.
  returned: success
  type: list
  elements: str
  sample: ["0", "1", all]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.engine import cdi_generate
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker import read_docker
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import read_services


def make_plan(module: AnsibleModule) -> cdi_generate.SpecPlan:
    """Decide; raises SpecError."""
    path, ctk = module.params["path"], module.params["ctk"]
    if module.params["state"] == "absent":
        return cdi_generate.plan_absent(path)
    if not cdi_generate.available(ctk):
        if module.check_mode:
            return cdi_generate.plan_without_tool(path, ctk)
        raise cdi_generate.SpecError(
            f"{ctk} is not on this host: install nvidia-container-toolkit-base first"
        )
    service = read_services(["docker.service"])["docker.service"]
    docker = read_docker(service, DockerClient(module.params["socket"]))
    return cdi_generate.plan_present(
        path,
        ctk,
        module.params["device_name_strategy"],
        docker.version,
        module.params["deadline_s"],
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/var/run/cdi/nvidia.yaml"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "ctk": {"type": "str", "default": "nvidia-ctk"},
            "device_name_strategy": {
                "type": "list",
                "elements": "str",
                "choices": ["index", "uuid", "type-index"],
                "default": ["index", "uuid"],
            },
            "deadline_s": {"type": "float", "default": 60},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    try:
        plan = make_plan(module)
        if not module.check_mode:
            cdi_generate.carry_out(plan)
    except cdi_generate.SpecError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{module.params['path']} could not be written: {error}")
    module.exit_json(
        changed=plan.changed,
        actions=list(plan.actions),
        devices=list(plan.devices),
        diff={
            "before_header": plan.path,
            "after_header": plan.path,
            "before": plan.before or "",
            "after": plan.after or "",
        },
    )


if __name__ == "__main__":
    main()
