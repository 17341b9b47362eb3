#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: engine_upgrade
short_description: Plan a change of Docker's release, and put installed releases in force
version_added: "0.1.0"
description:
  - With O(step=plan) it chooses the exact packages that bring another release of Docker, up or
    down, and says what that release changes for this host. Versions of the API, keys and flags
    that are gone, CDI and C(--gpus), containerd's configuration and shims, limits, image stores
    and security holes of runc are judged by what the host has of them. Nothing is changed.
  - With O(step=switch) it restarts C(containerd.service) and C(docker.service) where they run
    another program than the installed one, as they do after M(steadygpu.host.package_set). Where a
    container would end it refuses before the first restart and names it.
  - Afterwards every container that ran right before must have its process and may open its GPUs, or
    the task fails.
  - Packages are installed by M(steadygpu.host.package_set). The role P(steadygpu.host.migrate#role)
    does all of it inside a window, and goes back when the proof fails.
options:
  step:
    description:
      - V(plan) reads and judges, V(switch) restarts what is due.
    type: str
    choices: [plan, switch]
    default: plan
  version:
    description:
      - The wanted release, for O(step=plan). An upstream release such as V(28.5.2) or V(28.5), a
        pattern with V(*), the exact version of the daemon's package, or V(candidate) for what the
        package manager would take by itself.
      - An installed release that matches stays as it is, also when there are newer packages of it.
    type: str
    default: candidate
  packages:
    description:
      - Further packages, or other versions of those of the engine, by name.
    type: dict
    default: {}
  files:
    description:
      - Package files on the host, or directories of them, that count as a source.
    type: list
    elements: path
    default: []
  offline:
    description:
      - Whether O(files) are the only source.
    type: bool
    default: false
  update_cache:
    description:
      - Whether to read the lists of the package sources anew when O(version) is not in them, or is
        V(candidate). Not in check mode.
    type: bool
    default: true
  accept:
    description:
      - Ids of findings that would block and are known to be right for this host, each with the
        reason.
    type: dict
    default: {}
  containers:
    description:
      - For O(step=switch), the processes that containers had at the beginning, by name, as
        RV(containers) of the plan. One that ended or was started anew before the first restart is
        named in a warning and in RV(lost), since the restart has not done it.
    type: dict
  start:
    description:
      - For O(step=switch), whether to start also a daemon that is down or does not come up. For the
        way back from a release that does not start.
    type: bool
    default: false
  restart_timeout_s:
    description:
      - Seconds that each daemon has for its restart, and Docker to answer after it.
    type: float
    default: 300
  deadline_s:
    description:
      - Seconds to wait for each answer of a daemon or a program.
    type: float
    default: 60
  socket:
    description:
      - The unix socket of the daemon.
    type: path
    default: /var/run/docker.sock
notes:
  - Docker itself promises live-restore only between patch releases. The plan says so, and between
    which releases it was tried.
attributes:
  diff_mode:
    support: full
    details: Shows the versions before and after.
extends_documentation_fragment:
  - steadygpu.host.attributes
seealso:
  - module: steadygpu.host.package_set
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: What Docker 28.5.2 would change here
  steadygpu.host.engine_upgrade:
    version: 28.5.2
  register: plan

- name: Refuse what would cost somebody something
  ansible.builtin.fail:
    msg: "{{ plan.refusal }}"
  when: plan.blockers | length > 0

- name: Its packages, without a restart
  steadygpu.host.package_set:
    packages: "{{ plan.packages }}"
    on_newer: downgrade

- name: The new daemons, with every container kept
  steadygpu.host.engine_upgrade:
    step: switch
    containers: "{{ plan.containers }}"
"""

RETURN = r"""
actions:
  description: What was done, or in a plan and in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: [bring docker.io from 26.1.5+dfsg1-9 to 28.5.2+dfsg4-5, restart docker.service]
packages:
  description: The exact version of each package of the set, those that stay included.
  returned: success, O(step=plan)
  type: dict
  sample: {docker.io: 28.5.2+dfsg4-5, containerd: 2.1.9+ds1-5}
packages_before:
  description: The versions that are installed now, for the way back.
  returned: success, O(step=plan)
  type: dict
  sample: {docker.io: 26.1.5+dfsg1-9, containerd: 1.7.24~ds1-6}
versions:
  description: The releases of docker, containerd and runc, C(before) and C(after).
  returned: success
  type: dict
  sample: {before: {docker: 26.1.5}, after: {docker: 28.5.2}}
hops:
  description: The releases on the way.
  returned: success, O(step=plan)
  type: list
  elements: str
  sample: ["26.1", "27.0", "28.5"]
findings:
  description:
    - What changes, the gravest first, each with C(id), C(severity) (V(error), V(warning), V(info)),
      C(release), C(title), C(seen), C(why), C(todo) and C(source).
  returned: success, O(step=plan)
  type: list
  elements: dict
blockers:
  description: The ids of errors among RV(findings) that are not accepted.
  returned: success, O(step=plan)
  type: list
  elements: str
  sample: [live-restore-off]
refusal:
  description: The blockers in words, empty without one.
  returned: success, O(step=plan)
  type: str
  sample: ""
status:
  description: What Docker is now, V(running), V(stopped), V(unreachable) or V(absent).
  returned: success, O(step=plan)
  type: str
  sample: running
containers:
  description: The running containers and their processes; after a switch those that were kept.
  returned: success
  type: dict
  sample: {trainer: 4711}
lost:
  description:
    - Containers of O(containers) that had ended or were started anew before the first restart, and
      that the new daemon has not found again.
  returned: success, O(step=switch)
  type: list
  elements: str
  sample: []
restarted:
  description: The units that were, or in check mode would be, restarted.
  returned: success, O(step=switch)
  type: list
  elements: str
  sample: [containerd.service, docker.service]
"""

import json
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import archives
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.apt import Apt
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import RefusedError
from ansible_collections.steadygpu.host.plugins.module_utils.process import CommandMissingError
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade import (
    machine,
    offers,
    plan,
    read,
    switch,
    wanted,
)


def planned(module: AnsibleModule) -> dict[str, Any]:
    """The plan as results. Raises WantedError and RefusedError."""
    options = module.params
    given = {str(name): str(version) for name, version in options["packages"].items()}
    names = list(dict.fromkeys((*wanted.NAMES, *given)))
    host = read.read(names, options["socket"], options["deadline_s"])
    files = archives.read(options["files"], host.manager)
    accept = {str(name): str(reason) for name, reason in options["accept"].items()}

    def attempt() -> plan.Plan:
        there = offers.read(host.manager, names, files, options["offline"])
        return plan.make(host, there, options["version"], given, accept)

    fresh = options["update_cache"] and not options["offline"] and not module.check_mode
    if fresh and host.manager == "dpkg":
        lead = wanted.lead_of(host.there)
        satisfied = wanted.matches(options["version"], host.there[lead])
        if options["version"] == wanted.CANDIDATE:
            refresh(module)
        elif not satisfied:
            try:
                return attempt().as_dict()
            except wanted.WantedError:
                refresh(module)
    return attempt().as_dict()


def refresh(module: AnsibleModule) -> None:
    """Read the lists anew; a source that does not answer is a warning."""
    said = Apt().refresh()
    if said:
        module.warn(f"the package lists could not be read anew: {said}")


def switched(module: AnsibleModule) -> dict[str, Any]:
    """What was restarted, as results. Raises SwitchRefusedError, SwitchFailedError, UnitError."""
    options = module.params
    containers = options["containers"]
    wish = switch.Wish(
        start=options["start"],
        accept=frozenset(str(name) for name in options["accept"]),
        containers=None
        if containers is None
        else {str(name): int(pid) for name, pid in containers.items()},
        timeout_s=options["restart_timeout_s"],
    )
    host = machine.Machine(options["socket"], options["restart_timeout_s"], options["deadline_s"])
    outcome = switch.carry_out(wish, host, module.check_mode)
    for warning in outcome.warnings:
        module.warn(warning)
    return {
        "changed": bool(outcome.restarted),
        "actions": [f"restart {unit}" for unit in outcome.restarted],
        "restarted": list(outcome.restarted),
        "versions": {"before": dict(outcome.before), "after": dict(outcome.after)},
        "containers": dict(outcome.kept),
        "lost": list(outcome.lost),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "str", "choices": ["plan", "switch"], "default": "plan"},
            "version": {"type": "str", "default": "candidate"},
            "packages": {"type": "dict", "default": {}},
            "files": {"type": "list", "elements": "path", "default": []},
            "offline": {"type": "bool", "default": False},
            "update_cache": {"type": "bool", "default": True},
            "accept": {"type": "dict", "default": {}},
            "containers": {"type": "dict"},
            "start": {"type": "bool", "default": False},
            "restart_timeout_s": {"type": "float", "default": 300},
            "deadline_s": {"type": "float", "default": 60},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    try:
        result = planned(module) if module.params["step"] == "plan" else switched(module)
    except (wanted.WantedError, RefusedError, switch.SwitchRefusedError) as error:
        module.fail_json(msg=str(error), refused=True)
    except (switch.SwitchFailedError, UnitError, CommandMissingError, OSError) as error:
        module.fail_json(msg=str(error))
    versions = result["versions"]
    module.exit_json(
        **{"changed": False, **result},
        diff={
            "before": json.dumps(versions["before"], indent=2, sort_keys=True) + "\n",
            "after": json.dumps(versions["after"], indent=2, sort_keys=True) + "\n",
        },
    )


if __name__ == "__main__":
    main()
