#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: mig_layout
short_description: Give GPUs a MIG layout, keep it over reboots, and go back to the former one
version_added: "0.1.0"
description:
  - Reads the GPUs, plans the smallest change, and carries it out through NVML. Instances that
    may stay are not touched and keep their UUIDs. GPUs that the layout does not name are left
    alone.
  - Refuses to disturb anybody. A change of MIG mode needs the whole GPU without clients, and to
    destroy an instance needs that instance unused. The refusal comes before the first change, for
    all GPUs at once, and names every holder, with the names of containers. A container that was
    given the GPU counts also while it does not use it.
  - Reads the result back. When any step fails, the former layout is restored, and the failure
    says both.
  - Refreshes the CDI specification and compares it with the new devices. A specification that
    names a device that is gone is never left.
  - A change that is killed is remembered. The next run, or the next boot, starts again what was
    stopped for it.
  - Never restarts a container engine or a kubelet, and never runs C(systemctl daemon-reload).
options:
  layout:
    description:
      - The layout, required with O(state=present).
      - A name of O(configs), or one of V(all-disabled), V(all-enabled), V(all-balanced) and
        V(all-PROFILE) such as V(all-1g.5gb).
      - A list of entries as NVIDIA's mig-parted has them (C(devices), C(mig-enabled),
        C(mig-devices), C(device-filter)). C(devices) also takes UUIDs, PCI addresses and models.
      - Or a dictionary from such a selector to a name, to counts by profile, or to a boolean for
        the mode alone.
    type: raw
  configs:
    description:
      - Named layouts. A configuration of mig-parted, or only what it has below C(mig-configs).
    type: dict
    default: {}
  state:
    description:
      - V(previous) goes back to the layout before the last change. Done twice, it comes again.
    type: str
    choices: [present, previous]
    default: present
  persist:
    description:
      - Whether the layout comes back at boot, before container engines start. V(true) writes
        C(/etc/steadygpu/mig.json) and enables C(steadygpu-mig.service), V(false) removes them.
      - The unit runs C(/usr/local/bin/steadygpu), which the role P(steadygpu.host.agent#role)
        installs. When it fails, engines start all the same.
    type: bool
    default: true
  stop:
    description:
      - What may be stopped for a change, in this order. It is started again in reverse order,
        whatever comes of the change.
      - Names of systemd units, C(container:NAME) for Docker's containers, and
        C(module:nvidia_drm).
      - Only what runs is stopped, and only when there is something to change. Units that systemd
        stops along with one of these are started again as well.
      - Container engines and kubelets are refused, and so are units that would take them along.
      - What could not be started again is refused too. These are transient units and containers
        that were started with C(--rm).
    type: list
    elements: str
    default: []
  deadline_s:
    description:
      - Seconds that reading all GPUs, or changing one of them, may take, and that another run is
        waited for.
    type: float
    default: 120
  cdi_path:
    description:
      - The CDI specification that is refreshed. An empty string leaves specifications alone.
    type: str
    default: /var/run/cdi/nvidia.yaml
  ctk:
    description:
      - The tool that writes it, as a name on the system path or an absolute path. On a host
        without it, a warning says that the specification was not refreshed.
    type: str
    default: nvidia-ctk
  socket:
    description:
      - The unix socket of Docker, which is asked for names of containers.
    type: path
    default: /var/run/docker.sock
notes:
  - Needs root, and C(pynvml) on the host. The agent carries one.
  - While MIG is off the driver does not say what a GPU offers, so check mode shows placements from
    tables of the known models.
  - Where NVML takes a new mode and cannot activate it, RV(status) is V(pending). Instances are
    then made by the next run, or by the boot unit, after what RV(needs) says.
attributes:
  idempotent:
    support: partial
    details: With O(state=previous) every run goes back, so two runs end where they began.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Seven small devices on every GPU that can have them
  steadygpu.host.mig_layout:
    layout: all-1g.5gb

- name: Two GPUs cut differently, monitoring may be stopped meanwhile
  steadygpu.host.mig_layout:
    layout:
      - devices: [0]
        mig-enabled: true
        mig-devices: {3g.20gb: 2}
      - devices: [GPU-5d1f1b3e-7a41-4b5c-9a52-3c1de4a8f0aa]
        mig-enabled: false
    stop:
      - container:dcgm-exporter
      - nvidia-persistenced.service

- name: A layout out of mig-parted's own file
  steadygpu.host.mig_layout:
    layout: inference
    configs: "{{ lookup('ansible.builtin.file', 'mig-parted.yaml') | from_yaml }}"

- name: As it was before
  steadygpu.host.mig_layout:
    state: previous
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample:
    - stop nvidia-persistenced.service
    - "GPU 0: enable MIG mode"
    - "GPU 0: create GPU instance 3g.20gb at 0:4"
    - start nvidia-persistenced.service
layouts:
  description: Every GPU of the host as it is afterwards.
  returned: success
  type: list
  elements: dict
  contains:
    index:
      description: NVML's index.
      type: int
      sample: 0
    uuid:
      description: UUID of the GPU.
      type: str
      sample: GPU-5d1f1b3e-7a41-4b5c-9a52-3c1de4a8f0aa
    mig:
      description: C(supported), C(current) and C(pending) mode.
      type: dict
      sample: {supported: true, current: true, pending: true}
    instances:
      description: GPU instances with C(profile), C(start), C(size), C(id) and C(devices).
      type: list
      elements: dict
needs:
  description: What a pending mode waits for, V(reset) or V(reboot). Null when nothing is pending.
  returned: success
  type: str
  sample: reboot
notes:
  description:
    - What is as it was asked for and worth knowing. GPUs that were left alone and why, GPUs in MIG
      mode without an instance, and placements of check mode that are those of our tables.
    - What is wrong or needs a hand comes as a warning.
  returned: success
  type: list
  elements: str
  sample: ["there is no MIG on GPU 3, 4 (Tesla T4): left alone"]
pending:
  description: The GPUs whose mode waits, each with C(gpu), C(uuid), C(needs) and C(reason).
  returned: success
  type: list
  elements: dict
reason:
  description: Why the mode waits and what to do, for a person. Empty when nothing is pending.
  returned: success
  type: str
  sample: ""
status:
  description:
    - V(applied), V(unchanged), or V(pending) when a GPU's mode waits for what RV(needs) says.
    - V(unknown) in check mode on a host without the agent, since only C(pynvml) can read the GPUs.
  returned: success
  type: str
  sample: applied
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.mig import apply, cdi, change, view
from ansible_collections.steadygpu.host.plugins.module_utils.mig.model import MigError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "layout": {"type": "raw"},
            "configs": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["present", "previous"], "default": "present"},
            "persist": {"type": "bool", "default": True},
            "stop": {"type": "list", "elements": "str", "default": []},
            "deadline_s": {"type": "float", "default": 120},
            "cdi_path": {"type": "str", "default": cdi.DEFAULT_PATH},
            "ctk": {"type": "str", "default": "nvidia-ctk"},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        required_if=[("state", "present", ["layout"])],
        supports_check_mode=True,
    )
    params = module.params
    settings = cdi.Settings(params["cdi_path"], params["ctk"], params["socket"])
    options = change.Options(
        layout=params["layout"],
        configs=params["configs"],
        previous=params["state"] == "previous",
        stop=params["stop"],
        persist=params["persist"],
        deadline_s=params["deadline_s"],
        specification=settings if params["cdi_path"] else None,
        socket=params["socket"],
    )
    try:
        outcome = apply.foresee(options) if module.check_mode else apply.apply(options)
    except MigError as error:
        done = list(getattr(error, "actions", []))
        module.fail_json(msg=str(error), actions=done, changed=bool(done))
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=outcome.changed,
        status=outcome.status,
        needs=outcome.needs,
        reason=outcome.reason,
        pending=outcome.pending,
        actions=outcome.actions,
        notes=outcome.notes,
        layouts=[view.gpu(layout) for layout in outcome.layouts],
        diff={
            "before_header": "MIG layout",
            "after_header": "MIG layout",
            "before": outcome.before,
            "after": outcome.after,
        },
    )


if __name__ == "__main__":
    main()
