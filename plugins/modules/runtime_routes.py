#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: runtime_routes
short_description: Keep a host's routing policy, which container is to have which runtime
version_added: "0.1.0"
description:
  - Writes C(/etc/steadygpu/routes.json), an ordered list of routes. The first route that a
    container meets says which OCI runtime it is to have.
  - Docker cannot route. It gives a container the runtime that it was created with, or the default
    runtime. The policy is what M(steadygpu.host.runtime_routes_info) and C(steadygpu routes audit)
    hold containers against, and what the scheduler's runtime will read. This module changes no
    container.
  - Refuses a policy with a route that no container can reach, or with a runtime that Docker does
    not know, and warns of routes that overlap.
options:
  routes:
    description:
      - The routes in their order. Each has C(match) and C(runtime), and may have a C(name).
      - C(match) has one or more of C(image), C(label), C(user), C(project), C(service) and C(name),
        and all of them must hold. A value is a text or a list of texts of which one must match.
        C(*) stands for any run of characters. C(label) is a mapping from a label to its value.
        C(user) is a uid, or a name as it was given to the container. C(project) and C(service) are
        those of Docker Compose.
    type: list
    elements: dict
    default: []
  default:
    description:
      - The runtime of containers that no route matches. Empty means that any will do.
    type: str
    default: ""
  state:
    description:
      - V(absent) removes the file.
    type: str
    choices: [present, absent]
    default: present
  path:
    description:
      - The file of the policy.
    type: path
    default: /etc/steadygpu/routes.json
  expected_runtimes:
    description:
      - Runtimes that Docker does not know yet and will.
    type: list
    elements: str
    default: []
  deadline_s:
    description:
      - Seconds that Docker has to say which runtimes it knows.
    type: float
    default: 30
  socket:
    description:
      - The unix socket of Docker. Where nobody answers, it is not judged whether the runtimes
        exist.
    type: path
    default: /var/run/docker.sock
extends_documentation_fragment:
  - steadygpu.host.attributes
seealso:
  - module: steadygpu.host.runtime_routes_info
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Images of others run in a sandbox, all else in runc
  steadygpu.host.runtime_routes:
    routes:
      - name: our own builds
        match:
          image: registry.example.com/ours/*
        runtime: runc
      - name: all other images of jobs
        match:
          label: {kind: job}
        runtime: runsc
    default: runc

- name: There is no policy
  steadygpu.host.runtime_routes:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: ["write /etc/steadygpu/routes.json: 2 routes, runc for the rest"]
faults:
  description:
    - Everything that was found in the policy, each with C(level) (V(error), V(warning) or V(note)),
      C(path), C(said) and C(advice).
  returned: always
  type: list
  elements: dict
policy:
  description: The policy in its canonical form. V(null) when there is none.
  returned: success
  type: dict
runtimes_judged:
  description: Whether Docker could be asked which runtimes there are.
  returned: success
  type: bool
  sample: true
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    DockerClient,
    EngineError,
    EngineUnreachableError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.routing import read, store
from ansible_collections.steadygpu.host.plugins.module_utils.routing.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.routing.model import (
    DEFAULT_PATH,
    Fault,
    Level,
    Policy,
)


def known_runtimes(client: DockerClient) -> set[str] | None:
    """Those that Docker names; None where it does not answer."""
    try:
        return set(client.info().get("Runtimes") or {})
    except (EngineError, EngineUnreachableError):
        return None


def refusal(faults: list[Fault]) -> str:
    """All errors in one message."""
    errors = "; ".join(str(one) for one in faults if one.level is Level.ERROR)
    return f"the routing policy was not taken, nothing was changed: {errors}"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "routes": {"type": "list", "elements": "dict", "default": []},
            "default": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "path": {"type": "path", "default": DEFAULT_PATH},
            "expected_runtimes": {"type": "list", "elements": "str", "default": []},
            "deadline_s": {"type": "float", "default": 30},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    options = module.params
    policy: Policy | None = None
    faults: list[Fault] = []
    known: set[str] | None = None
    if options["state"] == "present":
        # Ansible's own subclasses of str and dict stay outside.
        value = {"routes": json.loads(json.dumps(options["routes"]))}
        policy, faults = read.from_value({**value, "default": options["default"] or None})
        if policy is not None:
            known = known_runtimes(DockerClient(options["socket"], options["deadline_s"]))
            wanted = None if known is None else known | set(options["expected_runtimes"])
            faults = faults + judge(policy, wanted)
    told = [one.as_dict() for one in faults]
    if any(one.level is Level.ERROR for one in faults):
        module.fail_json(msg=refusal(faults), faults=told)
    try:
        plan = store.plan(policy, options["path"])
        if not module.check_mode:
            store.carry_out(plan)
    except store.RefusedError as error:
        module.fail_json(msg=str(error), faults=told)
    except OSError as error:
        module.fail_json(msg=f"{options['path']} cannot be read or written: {error}", faults=told)
    for one in faults:
        if one.level is Level.WARNING:
            module.warn(f"routing policy: {one}")
    module.exit_json(
        changed=bool(plan.actions),
        actions=list(plan.actions),
        faults=told,
        policy=None if policy is None else policy.as_dict(),
        runtimes_judged=known is not None,
        diff={
            "before_header": plan.path,
            "after_header": plan.path,
            "before": plan.before or "",
            "after": plan.after or "",
        },
    )


if __name__ == "__main__":
    main()
