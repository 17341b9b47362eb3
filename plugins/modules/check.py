#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: check
short_description: Find settings of a GPU host that are known to break
version_added: "0.1.0"
description:
  - Judges what is known of a host, C(ansible_facts['gpu_host']), together with its configuration
    files by the rules of this collection, and returns findings, each with its reason and fix.
  - Reads on the host - the configuration of Docker, containerd, the NVIDIA Container Toolkit, CDI
    specifications, units, slices, kernel command line and settings, package versions and holds,
    listening sockets and running containers. Judges on the controller. Changes nothing, and needs
    nothing on the host but Python.
  - The values of secrets never leave the host in a result. The texts of files travel to the
    controller to be judged there and are dropped.
options:
  paths:
    description:
      - Further files or directories of the host to judge, such as its Compose projects.
      - In a directory, files of known kinds are read, 2 MiB each at most; links to directories are
        not followed.
    type: list
    elements: path
    default: []
  facts:
    description:
      - The facts to judge, as M(steadygpu.host.gpu_facts) and M(steadygpu.host.runtime_facts)
        return them. Those of the host, C(ansible_facts['gpu_host']), when not given.
    type: dict
  fail_on:
    description:
      - Fail when there is a finding of this severity or a graver one. V(never) only reports.
    type: str
    choices: [never, info, warning, error, fatal]
    default: never
  accept:
    description:
      - Rules whose findings are left out, as rule id to the reason why that is right on this host.
    type: dict
    default: {}
  socket:
    description:
      - The unix socket of the Docker daemon.
    type: path
    default: /var/run/docker.sock
  deadline_s:
    description:
      - Seconds to wait for each answer of a daemon or a program.
    type: float
    default: 30
attributes:
  diff_mode:
    support: N/A
    details: It changes nothing.
extends_documentation_fragment:
  - steadygpu.host.attributes
  - steadygpu.host.attributes.action
seealso:
  - module: steadygpu.host.gpu_facts
  - module: steadygpu.host.runtime_facts
  - plugin: steadygpu.host.checks_page
    plugin_type: filter
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Facts of the host and its engine
  ansible.builtin.import_role:
    name: steadygpu.host.facts

- name: Whatever is known to break is an error in this play
  steadygpu.host.check:
    paths: [/srv/compose]
    fail_on: error
    accept:
      privileged: "the capture cards of this studio need it (OPS-112)"
"""

RETURN = r"""
findings:
  description: What was found, the gravest first.
  returned: success
  type: list
  elements: dict
  contains:
    rule:
      description: The id of the rule; docs/rules has a page for each.
      type: str
    severity:
      description: V(fatal), V(error), V(warning) or V(info).
      type: str
    file:
      description: The file it stands in, or the host's name.
      type: str
    line:
      description: The line, 0 when it is about the input as a whole.
      type: int
    column:
      description: The column, 0 when it is about the input as a whole.
      type: int
    title:
      description: What is wrong, in general.
      type: str
    seen:
      description: What stands there.
      type: str
    reason:
      description: Why it breaks.
      type: str
    fix:
      description: What to do.
      type: str
    commands:
      description: Lines that can be pasted on the host.
      type: list
      elements: str
    costs:
      description: What a command may cost running jobs, each with the command.
      type: list
      elements: str
    assumed:
      description: What had to be taken for granted.
      type: list
      elements: str
    sources:
      description: Where that is written, or where it was seen.
      type: list
      elements: str
counts:
  description: How many findings there are of each severity.
  returned: success
  type: dict
  sample: {fatal: 0, error: 1, warning: 2, info: 4}
accepted:
  description: How many findings O(accept) left out.
  returned: success
  type: int
unusable:
  description: Inputs that could not be judged, each with C(file) and C(said).
  returned: success
  type: list
  elements: dict
table:
  description: The findings above info as lines for a person.
  returned: success
  type: list
  elements: str
about:
  description: The host in one line.
  returned: success
  type: str
  sample: Docker 26.1.5, driver 550.163.01, 8 GPUs
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.evidence.gather import gather
from ansible_collections.steadygpu.host.plugins.module_utils.evidence.walk import read_paths


def main() -> None:
    """The half that runs on the host: it reads, and the action plugin judges."""
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "path", "default": []},
            "facts": {"type": "dict"},
            "fail_on": {
                "type": "str",
                "default": "never",
                "choices": ["never", "info", "warning", "error", "fatal"],
            },
            "accept": {"type": "dict", "default": {}},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
            "deadline_s": {"type": "float", "default": 30},
        },
        supports_check_mode=True,
    )
    facts = module.params["facts"] or {}
    evidence = gather(facts, module.params["deadline_s"], module.params["socket"])
    more, left_out = read_paths(module.params["paths"])
    evidence["left_out"].update(left_out)
    module.exit_json(changed=False, evidence=evidence, more=more)


if __name__ == "__main__":
    main()
