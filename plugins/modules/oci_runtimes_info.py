#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: oci_runtimes_info
short_description: Judge the runtimes that Docker is to have
version_added: "0.1.0"
description:
  - Looks at the program of every runtime. It must be there, not be writable by everybody, and have
    no known hole. Versions of runc and of the NVIDIA Container Toolkit are judged by the version
    tables of the checks, as the distribution patched them; of other runtimes no table is known.
  - Judges the definitions, for instance arguments with which no container would start.
  - Says which containers carry the name of which runtime. A runtime that a container carries must
    not be taken away, because the container could not be started again.
  - Changes nothing. The role P(steadygpu.host.runtimes#role) refuses what this module refuses.
options:
  runtimes:
    description:
      - The runtimes by name, as C(daemon.json) has them.
    type: dict
    default: {}
  default:
    description:
      - The runtime that is to be Docker's default. Empty means that it stays what it is.
    type: str
    default: ""
  absent:
    description:
      - Names of runtimes that are to be taken away.
    type: list
    elements: str
    default: []
  unsafe_allowed:
    description:
      - Names of runtimes whose known holes are a warning instead of a refusal.
    type: list
    elements: str
    default: []
  routed:
    description:
      - Names of runtimes that a routing policy names. They are not to be taken away.
    type: list
    elements: str
    default: []
  routes_path:
    description:
      - The routing policy of the host. The runtimes that it names are not to be taken away either.
      - Empty when O(routed) stands in its place.
    type: path
    default: /etc/steadygpu/routes.json
  deadline_s:
    description:
      - Seconds that a program, the package manager and Docker have for each answer.
    type: float
    default: 30
  socket:
    description:
      - The unix socket of Docker. Where nobody answers, the engine's files say which containers
        there are.
    type: path
    default: /var/run/docker.sock
notes:
  - In check mode a program that is missing is a warning, because what brings it may not have been
    installed yet.
attributes:
  diff_mode:
    support: N/A
    details: It changes nothing.
extends_documentation_fragment:
  - steadygpu.host.attributes
seealso:
  - module: steadygpu.host.docker_daemon
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Judge a second runtime
  steadygpu.host.oci_runtimes_info:
    runtimes:
      crun:
        path: /usr/bin/crun
  register: judged

- name: Define it
  steadygpu.host.docker_daemon:
    config: "{{ judged.present }}"
  when: judged.refusals | length == 0
"""

RETURN = r"""
absent:
  description: The keys that M(steadygpu.host.docker_daemon) is to take back, for O(absent).
  returned: always
  type: dict
  sample: {runtimes: {old: {}}}
carried:
  description: The names of containers, running or not, by the runtime that they were created with.
  returned: always
  type: dict
  sample: {runc: [web], nvidia: [train]}
default_runtime:
  description: Docker's default runtime. V(null) where Docker does not answer.
  returned: always
  type: str
  sample: runc
defined:
  description: The runtimes that Docker knows. V(null) where Docker does not answer.
  returned: always
  type: list
  elements: str
  sample: [io.containerd.runc.v2, nvidia, runc]
present:
  description: The keys that M(steadygpu.host.docker_daemon) is to set, for what can be used.
  returned: always
  type: dict
  sample: {runtimes: {crun: {path: /usr/bin/crun}}}
refusals:
  description: What forbids the change, each with what to do. Empty when nothing does.
  returned: always
  type: list
  elements: str
runtimes:
  description:
    - What is known of each runtime in O(runtimes), with C(name), C(program), C(component),
      C(version), C(package), C(missing), C(refused), C(unsafe), C(warnings) and C(containers).
  returned: always
  type: list
  elements: dict
  sample: [{name: crun, program: /usr/bin/crun, version: "1.21", unsafe: []}]
warnings_found:
  description: What is to be known and forbids nothing.
  returned: always
  type: list
  elements: str
"""

import json
from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils import osinfo, packages
from ansible_collections.steadygpu.host.plugins.module_utils.checks.preflight import platform_key
from ansible_collections.steadygpu.host.plugins.module_utils.engine import runtime_users
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_control import UNIT
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    DockerClient,
    EngineError,
    EngineUnreachableError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.services import read_services
from ansible_collections.steadygpu.host.plugins.module_utils.routing import programs, store
from ansible_collections.steadygpu.host.plugins.module_utils.routing.model import DEFAULT_PATH
from ansible_collections.steadygpu.host.plugins.module_utils.routing.runtimes import program_of
from ansible_collections.steadygpu.host.plugins.module_utils.routing.wishes import Wish, decide


def engine(client: DockerClient) -> tuple[dict[str, Any] | None, dict[str, list[str]]]:
    """What Docker says of itself (None: nothing), and the containers by runtime."""
    try:
        info = client.info()
        return info, runtime_users.find(client, runtime_users.data_root(info, {}))
    except (EngineError, EngineUnreachableError):
        flags = read_services([UNIT])[UNIT].flags
        return None, runtime_users.find(None, runtime_users.data_root({}, flags))


def routed_by(path: str) -> tuple[list[str], list[str]]:
    """The runtimes that the policy in a file names, and why it could not be asked. OSError."""
    loaded = store.load(path) if path else None
    if loaded is None:
        return [], []
    policy, faults = loaded
    if policy is not None:
        return sorted(policy.runtimes), []
    told = "; ".join(str(one) for one in faults)
    return [], [f"{path} cannot be used, so which runtimes it names is not known: {told}"]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "runtimes": {"type": "dict", "default": {}},
            "default": {"type": "str", "default": ""},
            "absent": {"type": "list", "elements": "str", "default": []},
            "unsafe_allowed": {"type": "list", "elements": "str", "default": []},
            "routed": {"type": "list", "elements": "str", "default": []},
            "routes_path": {"type": "path", "default": DEFAULT_PATH},
            "deadline_s": {"type": "float", "default": 30},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    options = module.params
    # Ansible's own subclasses of str and dict stay outside.
    wanted = json.loads(json.dumps(options["runtimes"]))
    info, carried = engine(DockerClient(options["socket"], options["deadline_s"]))
    try:
        named, unread = routed_by(options["routes_path"] if options["absent"] else "")
    except OSError as error:
        module.fail_json(msg=f"{options['routes_path']} cannot be read: {error}")
    asked = {
        name: program_of(one) if isinstance(one, dict) else None for name, one in wanted.items()
    }
    found = programs.all_of(asked, packages.read_installed(), options["deadline_s"])
    defined = None if info is None else sorted(info.get("Runtimes") or {})
    default_now = None if info is None else str(info.get("DefaultRuntime") or "runc")
    wish = Wish(
        runtimes=wanted,
        default=options["default"],
        absent=options["absent"],
        unsafe_allowed=options["unsafe_allowed"],
        routed=[*options["routed"], *named],
        lenient=module.check_mode,
    )
    system = platform_key(asdict(osinfo.read_os()))
    answer = decide(wish, found, carried, defined, default_now, system)
    module.exit_json(
        changed=False,
        runtimes=[one.as_dict() for one in answer.verdicts],
        refusals=list(answer.refusals),
        warnings_found=[*answer.warnings, *unread],
        present=dict(answer.present),
        absent=dict(answer.absent),
        carried=carried,
        defined=defined,
        default_runtime=default_now,
    )


if __name__ == "__main__":
    main()
