#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nccl_topology
short_description: Give containers the real NCCL topology of a host that hides its PCIe tree
version_added: "0.1.0"
description:
  - Checks a NCCL topology file against the host, stamps it with a fingerprint of the host's GPUs
    and NICs, and offers it to containers as the CDI device C(steadygpu.dev/nccl=topology), which
    mounts the file read-only and sets E(NCCL_TOPO_FILE).
  - A file that does not fit is refused before anything is written. NCCL fails every job on a file
    that it cannot read, and places a device that a file does not name as if there were no file.
  - A file that was made for another tree is stale. It does not stay injected. The module withdraws
    it, says so, and fails until it is given a file of the new tree. Containers that ask for the
    device start all the same, without a topology file.
  - Hardware changes while a host is off. So with a file the module writes and enables
    C(steadygpu-nccl.service), which withdraws a stale file at boot, before any container engine
    starts. It holds them back for two minutes at most and stops none from starting.
  - The unit runs C(/usr/local/bin/steadygpu), which the role P(steadygpu.host.agent#role) installs.
    Without the command systemd skips the unit, and the module warns.
  - No C(systemctl daemon-reload) is run. The unit is read at the next boot.
  - Containers that are running keep the file they were started with.
  - See C(docs/nccl.md) of the collection.
options:
  state:
    description:
      - Whether containers are offered a topology file. With V(absent) the unit goes too, before
        the files.
    type: str
    choices: [present, absent]
    default: present
  content:
    description:
      - The topology file as text, for example by the lookup P(ansible.builtin.file#lookup), or by
        M(ansible.builtin.slurp) from the cloud's own image.
      - Without it the file is made from the host's PCIe tree, which works only where the tree is
        not hidden.
    type: str
  fingerprint:
    description:
      - The fingerprint of the host that O(content) is for, as this module returned it. With
        another one on the host the module fails.
      - It is also how to say that a file that went stale is right for the new tree after all.
    type: str
  gate:
    description:
      - With V(if_idle) a new file is measured before it is used, when C(all_reduce_perf) of
        nccl-tests is on the host and nobody uses its GPUs. It is kept only when the bandwidth with
        the file is not worse than without.
      - With V(never) it is not measured.
    type: str
    choices: [if_idle, never]
    default: if_idle
  nccl_tests:
    description:
      - The program C(all_reduce_perf), or the directory of nccl-tests. The default is to look for
        the program on the system path.
    type: path
  tolerance_percent:
    description:
      - A change of bandwidth up to this size counts as none.
    type: float
    default: 3
  run_deadline_s:
    description:
      - Seconds that one run of C(all_reduce_perf) has; there are four.
    type: float
    default: 120
  deadline_s:
    description:
      - Seconds to wait for NVML before measuring.
    type: float
    default: 20
  takeover:
    description:
      - Replace or remove files at O(path) and O(spec_path) that are not of this module.
      - A unit C(steadygpu-nccl.service) that is not of this module, or is masked, is always left
        alone. With O(state=present) the module then fails.
    type: bool
    default: false
  path:
    description:
      - The topology file on the host.
    type: path
    default: /etc/steadygpu/nccl-topology.xml
  spec_path:
    description:
      - The CDI specification. Engines read C(/etc/cdi) and C(/var/run/cdi).
    type: path
    default: /etc/cdi/steadygpu-nccl.json
extends_documentation_fragment:
  - steadygpu.host.attributes
seealso:
  - module: steadygpu.host.cdi_spec
  - module: steadygpu.host.gpu_facts
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Containers see the layout that the cloud documents for this machine type
  steadygpu.host.nccl_topology:
    content: "{{ lookup('ansible.builtin.file', 'ndv4-topo.xml') }}"

- name: The file that the cloud's image ships is read
  ansible.builtin.slurp:
    src: /opt/microsoft/ndv5-topo.xml
  register: shipped

- name: The file that the cloud's image ships reaches containers
  steadygpu.host.nccl_topology:
    content: "{{ shipped.content | b64decode }}"
    nccl_tests: /opt/nccl-tests

- name: Containers are offered no topology file
  steadygpu.host.nccl_topology:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: always
  type: list
  elements: str
  sample: [create /etc/steadygpu/nccl-topology.xml for 8 GPUs and 8 NICs]
status:
  description:
    - What was found before anything was done. V(fresh) fits the host as it is, V(stale) was made
      for another tree, V(foreign) is not of this module.
  returned: always
  type: str
  sample: absent
injected:
  description: Whether containers that ask for the device get the file, after this run.
  returned: always
  type: bool
  sample: true
fingerprint:
  description: Fingerprint of the host's GPUs, and of the NICs that the file names, as they are now.
  returned: always
  type: str
  sample: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
device:
  description: The CDI device to ask for.
  returned: always
  type: str
  sample: steadygpu.dev/nccl=topology
gate:
  description: What was measured. Figures are means in GB/s, V(null) when there are none.
  returned: always
  type: dict
  contains:
    status:
      description:
        - V(better), V(same), V(worse), V(failed) (NCCL does not run with the file) or
          V(not_measured).
      type: str
    before_gbs:
      description: Bus bandwidth without the file.
      type: float
    after_gbs:
      description: Bus bandwidth with the file.
      type: float
    reason:
      description: The figures, or why there are none, for a person.
      type: str
  sample: {status: better, before_gbs: 41.9, after_gbs: 186.2, reason: "..."}
"""

from dataclasses import asdict
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.nccl import (
    carrier,
    gate,
    host,
    manage,
    users,
)


def make_plan(module: AnsibleModule) -> tuple[manage.Plan, gate.Gate]:
    """Decide, and measure where that decides. Raises OSError."""
    params = module.params
    wanted = manage.Wanted(
        content=params["content"],
        fingerprint=params["fingerprint"],
        takeover=params["takeover"],
        file_path=params["path"],
        spec_path=params["spec_path"],
    )
    seen = host.read()
    if params["state"] == "absent":
        return manage.plan_absent(seen, wanted), gate.Gate("not_measured", reason="state is absent")
    plan = manage.plan_present(seen, wanted)
    measured = measure(module, plan)
    if measured.refuses:
        reason = f"the topology is not used, bandwidth is {measured.status}: {measured.reason}"
        plan = manage.refused(plan, reason)
    return plan, measured


def measure(module: AnsibleModule, plan: manage.Plan) -> gate.Gate:
    """The gate's answer, or why it gives none."""
    params = module.params
    reason, program = None, None
    if plan.failure or plan.after is None:
        reason = "the topology is refused without measuring"
    elif not plan.to_measure:
        reason = "nothing new: the same file is in use"
    elif params["gate"] == "never":
        reason = "gate is never"
    elif module.check_mode:
        reason = "check mode runs nothing on a GPU"
    else:
        program = gate.find(params["nccl_tests"])
        where = params["nccl_tests"] or "the system path"
        reason = None if program else f"no {gate.PROGRAM} at {where}; nccl-tests has it"
    if reason or program is None or plan.after is None:
        return gate.Gate("not_measured", reason=reason)
    try:
        gpus = users.gpus(deadline_s=params["deadline_s"])
    except users.UnusableError as error:
        return gate.Gate("not_measured", reason=str(error))
    return gate.measure(
        program,
        len(gpus),
        plan.after,
        lambda: users.busy(gpus),
        params["run_deadline_s"],
        params["tolerance_percent"],
    )


def results(plan: manage.Plan, measured: gate.Gate) -> dict[str, Any]:
    """What a run returns, whether it succeeds or fails."""
    found = plan.found
    return {
        "changed": plan.changed,
        "actions": list(plan.actions),
        "status": found.status,
        "injected": carrier.state(plan.spec_after) == "injected",
        "fingerprint": plan.fingerprint,
        "device": f"{carrier.KIND}={carrier.DEVICE}",
        "gate": asdict(measured),
        "diff": [
            _diff(plan.wanted.file_path, found.text, plan.after),
            _diff(plan.wanted.spec_path, found.spec_text, plan.spec_after),
        ],
    }


def _diff(path: str, before: str | None, after: str | None) -> dict[str, str]:
    return {
        "before_header": path,
        "after_header": path,
        "before": before or "",
        "after": after or "",
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "content": {"type": "str"},
            "fingerprint": {"type": "str"},
            "gate": {"type": "str", "choices": ["if_idle", "never"], "default": "if_idle"},
            "nccl_tests": {"type": "path"},
            "tolerance_percent": {"type": "float", "default": 3},
            "run_deadline_s": {"type": "float", "default": 120},
            "deadline_s": {"type": "float", "default": 20},
            "takeover": {"type": "bool", "default": False},
            "path": {"type": "path", "default": carrier.FILE_PATH},
            "spec_path": {"type": "path", "default": carrier.SPEC_PATH},
        },
        supports_check_mode=True,
    )
    try:
        plan, measured = make_plan(module)
        if not module.check_mode:
            manage.carry_out(plan)
    except OSError as error:
        module.fail_json(msg=f"{error.filename or 'a file'} could not be read or written: {error}")
    for text in plan.warnings:
        module.warn(text)
    if plan.failure:
        module.fail_json(msg=plan.failure, **results(plan, measured))
    module.exit_json(**results(plan, measured))


if __name__ == "__main__":
    main()
