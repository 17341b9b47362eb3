#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: systemd_slice
short_description: Give containers a shared resource budget that the kernel really holds
version_added: "0.1.0"
description:
  - Writes a systemd slice, starts it, and reads the effective values back from its cgroup.
  - A value is checked three times. By this module, with its own clear errors; by
    C(systemd-analyze verify), whose text is read because it exits 0 on unknown keys; and in
    the kernel's cgroup files after the slice has started.
  - When the kernel does not hold what was asked for, the former state is restored and the
    task fails with what was seen and what was wanted.
  - A value that drifted, for instance by C(systemctl set-property), is set again.
  - A slice is one budget shared by all its members. A limit for a single container belongs
    to the container.
options:
  name:
    description:
      - Name of the slice, such as V(ai-workload.slice).
      - Each dash nests. V(ai-workload.slice) lies inside V(ai.slice); the return value
        RV(control_group) has the real path.
      - For several slices in one task see O(slices) and O(tree).
    type: str
  slices:
    description:
      - Several slices, unit name to a dictionary with C(description) and C(properties), instead of
        O(name).
      - With O(tree) they come beside it. A slice of the same name adds to its properties.
      - All are judged before the first is touched. What an earlier run of this form made and is not
        named any more is taken back, also with an empty value, as soon as no process is inside;
        until then it stays with a warning.
      - A unit of this collection, C(steadygpu-slices.service), starts them at boot.
    type: dict
  tree:
    description:
      - A slice over all GPU work and one below it for each kind, sized for this host.
      - C(name) is the first word, C(gpu) by default, so that V(gpu-training.slice) lies inside
        V(gpu.slice).
      - C(reserve) is what the host keeps for itself. C(memory) and C(tasks) are a percentage or an
        amount (C(10%) each), C(cores) a number of whole cores, taken evenly from all NUMA nodes, or
        a list of CPUs such as V(0-1,64-65) (C(0)).
      - C(members) maps a name to C(preset), one of C(training), C(inference) and C(batch), to
        C(description) and to C(properties), which count before those of the preset. Null takes a
        property of the preset away. A member that is named like a preset has it. Without
        C(members) there are all three.
      - Percentages of memory and tasks in C(members) are of what the reserve leaves.
      - C(properties) add to those of the slice on top.
    type: dict
  docker_parent:
    description:
      - The one of O(slices) and O(tree) that is about to be C(cgroup-parent) of Docker's
        C(daemon.json). This module does not write that file. It only checks the name and remembers
        it, so that RV(docker_parent_is_ours) can tell when the key is to be taken back.
    type: str
    default: ""
  docker_parent_elsewhere:
    description:
      - Something else, such as C(engine_config) of the role engine, keeps C(cgroup-parent) now.
        What was remembered of O(docker_parent) is forgotten, so that the key is not taken back.
    type: bool
    default: false
  state:
    description:
      - V(present) writes and starts the slice.
      - V(absent) stops and deletes it, and fails while a process is inside. With O(slices) or
        O(tree) everything that this form made is taken back.
    type: str
    choices: [present, absent]
    default: present
  description:
    description:
      - One line for C(systemctl status).
    type: str
    default: Workload slice managed by steadygpu.host
  properties:
    description:
      - Resource-control properties by their systemd names.
      - V(CPUWeight) and V(IOWeight) take 1 to 10000, V(CPUWeight) also V(idle).
      - V(CPUQuota) is a percentage of one CPU, so V(300%) is three CPUs.
        V(CPUQuotaPeriodSec) takes V(1ms) to V(1s).
      - V(AllowedCPUs) and V(AllowedMemoryNodes) take numbers and ranges such as V(0-3,8).
      - V(MemoryMin), V(MemoryLow), V(MemoryHigh), V(MemoryMax) and V(MemorySwapMax) take bytes
        with the suffixes V(K), V(M), V(G), V(T) (powers of 1024), a percentage, or
        V(infinity).
      - V(TasksMax) takes a number, a percentage, or V(infinity).
      - V(IODeviceWeight), V(IOReadBandwidthMax), V(IOWriteBandwidthMax), V(IOReadIOPSMax),
        V(IOWriteIOPSMax) and V(IODeviceLatencyTargetSec) take a list of C(PATH VALUE) texts
        or a mapping of path to value. Bandwidth suffixes are powers of 1000.
      - A property that systemd does not have is refused with what is real in its place.
    type: dict
    default: {}
  unit_directory:
    description:
      - Directory of the unit file.
    type: path
    default: /etc/systemd/system
  takeover:
    description:
      - Replace or delete a unit file of this name that this module did not write.
    type: bool
    default: false
  daemon_reload_anyway:
    description:
      - Run C(systemctl daemon-reload) although a container may lose its GPU by it.
      - Without it, a change that needs the reload is refused, before anything is written, while
        such containers run. These are containers that got their GPU, or may have got it, by the
        legacy NVIDIA hook instead of CDI; containers of other engines that hold a GPU open; and
        all containers of a Docker engine that should answer and does not. A host without Docker,
        or with a stopped engine and no container that holds a GPU open, is reloaded.
      - With it, a warning names them.
    type: bool
    default: false
  below_current_use:
    description:
      - Lower C(MemoryMax) or C(TasksMax) below what the slice uses now, or take a memory node from
        the tasks inside, although they may be killed or fail. Without it this is refused before
        anything is written.
      - A C(MemoryHigh) below the current use, a lower C(CPUQuota) and fewer C(AllowedCPUs) only
        slow the tasks down, so they are applied with a warning.
    type: bool
    default: false
  drop_ins:
    description:
      - What to do when a drop-in of somebody else gives a property another value. Drop-ins are
        never edited.
      - V(refuse) fails and names them.
      - V(win) lets the drop-in win. The property is reported as inert, with its words.
    type: str
    choices: [refuse, win]
    default: refuse
notes:
  - A changed unit needs C(systemctl daemon-reload). The reload is left out when systemd has not
    loaded the slice yet, and named in RV(actions) when it runs.
  - With O(state=absent) a reload that could cost a container its GPU is left out, with a
    warning; systemd forgets the deleted unit at its next reload.
  - Needs cgroup v2. C(IOWeight) acts only where iocost or the bfq scheduler is in use; elsewhere
    a warning says that it is inert.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: A budget for all training containers
  steadygpu.host.systemd_slice:
    name: ai-workload.slice
    description: GPU training jobs
    properties:
      CPUQuota: 300%
      MemoryMax: 8G
      TasksMax: 4096

- name: Keep scratch IO of the slice below 200 MB/s
  steadygpu.host.systemd_slice:
    name: ai-scratch.slice
    properties:
      IOWriteBandwidthMax:
        /dev/nvme0n1: 200M

- name: A budget for each kind of GPU work, with two cores kept for the system
  steadygpu.host.systemd_slice:
    tree:
      reserve:
        memory: 16G
        cores: 2
      members:
        training: {}
        inference:
          properties:
            MemoryLow: 30%
        notebooks:
          preset: batch

- name: Remove the slice once it is empty
  steadygpu.host.systemd_slice:
    name: ai-workload.slice
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample: ["write /etc/systemd/system/ai-workload.slice", "start ai-workload.slice"]
control_group:
  description: Path of the slice below the cgroup root, null when it is not active.
  returned: with O(name)
  type: str
  sample: /ai.slice/ai-workload.slice
effective:
  description: The value of each asked property as the kernel holds it, in systemd's spelling.
  returned: with O(name)
  type: dict
  sample: {CPUQuota: 300%, MemoryMax: 8G, TasksMax: "4096"}
docker_parent_is_ours:
  description:
    - C(cgroup-parent) in C(daemon.json) was set for a slice of O(slices) or O(tree), and by this
      collection.
  returned: with O(slices) or O(tree)
  type: bool
  sample: false
settings:
  description:
    - Every property with C(name), C(wanted), C(effective), C(verdict), C(reason) and C(source).
    - C(verdict) is C(effective), C(differs) or C(inert). An inert one does nothing on this host,
      and C(reason) says why.
    - Read before the change in check mode, and empty for a slice that is not active.
  returned: always
  type: list
  elements: dict
  sample:
    - name: ai-workload.slice TasksMax
      wanted: "4096"
      effective: "4096"
      verdict: effective
      reason: ""
      source: /sys/fs/cgroup/ai.slice/ai-workload.slice/pids.max
slices:
  description:
    - What each slice came to, by its name. C(control_group), C(effective) and C(unit_path) as
      below, and C(properties) as they were asked for.
  returned: with O(slices) or O(tree)
  type: dict
unit_path:
  description: Path of the unit file.
  returned: with O(name)
  type: str
  sample: /etc/systemd/system/ai-workload.slice
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_record import (
    RECORD_PATH,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices import reader
from ansible_collections.steadygpu.host.plugins.module_utils.slices.manage import (
    ensure_absent,
    ensure_present,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import (
    SliceError,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    PropertyError,
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.several import (
    docker_key_is_ours,
    ensure_slices,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.tree import expand, merge
from ansible_collections.steadygpu.host.plugins.module_utils.slices.unit_text import name_fault

DESCRIPTION = "Workload slice managed by steadygpu.host"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str"},
            "slices": {"type": "dict"},
            "tree": {"type": "dict"},
            "docker_parent": {"type": "str", "default": ""},
            "docker_parent_elsewhere": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "description": {"type": "str", "default": DESCRIPTION},
            "properties": {"type": "dict", "default": {}},
            "unit_directory": {"type": "path", "default": "/etc/systemd/system"},
            "takeover": {"type": "bool", "default": False},
            "daemon_reload_anyway": {"type": "bool", "default": False},
            "below_current_use": {"type": "bool", "default": False},
            "drop_ins": {"type": "str", "choices": ["refuse", "win"], "default": "refuse"},
        },
        required_one_of=[("name", "slices", "tree")],
        mutually_exclusive=[("name", "slices"), ("name", "tree"), ("name", "docker_parent")],
        supports_check_mode=True,
    )
    try:
        result = _one(module) if module.params["name"] is not None else _several(module)
    except SliceError as error:
        module.fail_json(msg=str(error))
    for warning in result.pop("warnings_found"):
        module.warn(warning)
    module.exit_json(**result)


def _one(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    wish = _wish(params["name"], params["description"], params["properties"], params)
    ensure = ensure_present if params["state"] == "present" else ensure_absent
    outcome = ensure(wish, module.check_mode)
    return {
        "changed": outcome.changed,
        "actions": outcome.actions,
        "control_group": outcome.control_group,
        "effective": outcome.effective,
        "settings": [one.as_dict() for one in outcome.verdicts],
        "unit_path": wish.unit_path,
        "diff": outcome.diff,
        "warnings_found": outcome.warnings,
    }


def _several(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    wanted: dict[str, dict[str, Any]] = {}
    if params["state"] == "present":
        if params["tree"]:
            wanted = expand(params["tree"], reader.shareable())
        wanted = merge(wanted, params["slices"] or {})
    parent = params["docker_parent"]
    if parent and parent not in wanted:
        raise SliceError(
            "docker_parent is {}: wanted one of the slices of this task: {}".format(
                parent, ", ".join(wanted) or "there is none"
            )
        )
    wishes = [
        _wish(name, said.get("description") or DESCRIPTION, said.get("properties") or {}, params)
        for name, said in wanted.items()
    ]
    owns = docker_key_is_ours(RECORD_PATH) and not params["docker_parent_elsewhere"]
    together = ensure_slices(wishes, module.check_mode, bool(parent), owns)
    return {
        "changed": bool(together.actions),
        "actions": together.actions,
        "docker_parent_is_ours": together.docker_parent_is_ours,
        "settings": [one.as_dict() for one in together.verdicts],
        "slices": {
            wish.name: {
                "control_group": together.slices[wish.name].control_group,
                "effective": together.slices[wish.name].effective,
                "properties": wanted[wish.name].get("properties") or {},
                "unit_path": wish.unit_path,
            }
            for wish in wishes
        },
        "diff": together.diff,
        "warnings_found": together.warnings,
    }


def _wish(name: str, description: str, properties: dict[str, Any], params: dict[str, Any]) -> Wish:
    """Raises SliceError for what cannot be a slice of ours."""
    fault = name_fault(name)
    if fault:
        raise SliceError(fault)
    if "\n" in description:
        raise SliceError(f"the description of {name} has several lines: wanted one")
    try:
        settings = parse_properties(properties)
    except PropertyError as error:
        raise SliceError(f"properties of {name}:\n{error}") from error
    return Wish(
        name=name,
        description=description,
        settings=settings,
        unit_directory=params["unit_directory"],
        takeover=params["takeover"],
        daemon_reload_anyway=params["daemon_reload_anyway"],
        below_current_use=params["below_current_use"],
        drop_ins_win=params["drop_ins"] == "win",
    )


if __name__ == "__main__":
    main()
