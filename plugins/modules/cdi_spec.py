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
  - Judges the specification on the host by files alone (driver version, GPUs, MIG instances,
    C(nvidia_uvm), files that are gone). A fresh one is left as it is and nothing is run. For a
    stale one it runs C(nvidia-ctk cdi generate) and replaces it atomically.
  - Keeps the former specification and fails when the tool fails, finds no device, leaves out what
    the driver has, or writes a version of the format that the running Docker does not read.
    The tool itself reports success in some of these cases.
  - Since release 1.19 the tool writes version 0.7.0 of the format. For an engine that does not read
    it, the tool is asked to leave out group ids of device nodes, which gives an older version.
  - Fails when another specification of the same directory names the same devices, because engines
    then give neither. One that this collection wrote is removed.
  - Never makes systemd reload, and running containers keep what they have. A specification is read
    when a container is created or started.
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
  refresh:
    description:
      - Have it made anew at boot, before the engines start, and after a change of the driver.
      - Adopts C(nvidia-cdi-refresh) of toolkit 1.18 and newer. It is enabled, ordered before
        Docker, and given O(path) and O(device_name_strategy) in its environment file where they are
        not its defaults. Masked units stay masked.
      - Without these units, writes C(steadygpu-cdi.service) and C(steadygpu-cdi.path).
      - Neither notices a change of the MIG layout. M(steadygpu.host.mig_layout) refreshes the
        specification itself.
      - With O(state=absent) takes back what this option wrote. The toolkit's own units stay
        enabled.
    type: bool
    default: false
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
- name: Containers can ask for GPUs by index and by UUID, also after a reboot
  steadygpu.host.cdi_spec:
    refresh: true

- name: What is wrong with the specification, without changing anything
  steadygpu.host.cdi_spec:
  check_mode: true
  register: specification

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
  sample: [replace /var/run/cdi/nvidia.yaml with 17 device names]
stale:
  description:
    - Why the specification was, or in check mode would be, made anew. Empty for one that was right
      or not there.
  returned: success
  type: list
  elements: str
  sample: ["it mounts libraries of driver 550.54.15, and the host has 550.163.01"]
devices:
  description: Names of the devices in the specification; empty when only the tool could tell.
  returned: success
  type: list
  elements: str
  sample: ["0", "1", all]
cdi_version:
  description: Version of the format; empty when only the tool could tell.
  returned: success
  type: str
  sample: 0.7.0
refreshed_by:
  description:
    - Who makes it anew, V(vendor) for the toolkit's units, V(own) for this collection's, V(nobody)
      without O(refresh) and where there is no systemd.
  returned: success
  type: str
  sample: vendor
"""

from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.cdi import keep, units
from ansible_collections.steadygpu.host.plugins.module_utils.cdi.units import UnitsError
from ansible_collections.steadygpu.host.plugins.module_utils.engine import cdi
from ansible_collections.steadygpu.host.plugins.module_utils.engine.cdi_generate import SpecError
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker import read_docker
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import read_services


def make_plan(module: AnsibleModule) -> keep.KeepPlan:
    """Decide; raises SpecError, UnitsError and OSError."""
    wanted = keep.Wanted(
        path=module.params["path"],
        ctk=module.params["ctk"],
        strategies=module.params["device_name_strategy"],
        refresh=module.params["refresh"],
        deadline_s=module.params["deadline_s"],
    )
    if module.params["state"] == "absent":
        return keep.plan_absent(wanted)
    service = read_services(["docker.service"])["docker.service"]
    docker = read_docker(service, DockerClient(module.params["socket"]))
    wanted = replace(
        wanted,
        engines=keep.engines(docker.version),
        directories=docker.cdi_spec_dirs or cdi.DEFAULT_DIRECTORIES,
    )
    return keep.plan_present(wanted, module.check_mode)


def shown(plan: keep.KeepPlan) -> list[dict[str, str]]:
    """The files before and after. To be asked before it is done; raises OSError."""
    files = [(plan.spec.path, plan.spec.before or "", plan.spec.after or "")]
    files += units.texts(plan.units) if plan.units is not None else []
    return [
        {"before_header": path, "after_header": path, "before": old, "after": new}
        for path, old, new in files
    ]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/var/run/cdi/nvidia.yaml"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "refresh": {"type": "bool", "default": False},
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
        diff = shown(plan)
        done = keep.carry_out(plan, module.check_mode, module.params["deadline_s"])
    except (SpecError, UnitsError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        place = error.filename or module.params["path"]
        module.fail_json(msg=f"{place} could not be written: {error.strerror or error}")
    for text in done.warnings:
        module.warn(text)
    module.exit_json(
        changed=bool(done.actions),
        actions=done.actions,
        stale=list(plan.stale),
        devices=list(plan.spec.devices),
        cdi_version=plan.spec.cdi_version or "",
        refreshed_by=plan.refreshed_by,
        diff=diff,
    )


if __name__ == "__main__":
    main()
