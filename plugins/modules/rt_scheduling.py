#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: rt_scheduling
short_description: Give real-time work its place without taking the host from everybody else
version_added: "0.1.0"
description:
  - Tells what the running kernel does with tasks of C(SCHED_FIFO) and C(SCHED_RR), by what it
    shows of itself, sets what acts on it, and reads it back. What does not act is reported as inert
    or unsupported with the reason, and not written.
  - Before Linux 6.12 the kernel throttles such tasks by C(kernel.sched_rt_runtime_us). From 6.12 on
    it does not; a fair server on each CPU gives normal tasks their share, and the sysctl only
    bounds what C(SCHED_DEADLINE) may be promised. A kernel with real-time groups
    (C(CONFIG_RT_GROUP_SCHED)) keeps real-time tasks out of every container.
  - At least 5 % of each period stay with normal tasks, by whichever of the two acts.
  - A partition gives real-time work CPUs of its own, which is what protects it from others and
    others from it. Containers get in by C(--cgroup-parent); RV(container_options) has what they
    are started with.
  - Refused before anything is written is what would take CPU time from running work, which is
    named.
options:
  preset:
    description:
      - One of three values of C(kernel.sched_rt_runtime_us) at a period of one second, named by
        what they leave to normal tasks where the value acts. V(margin-60) is 400000, V(margin-30)
        is 700000, V(margin-5) is 950000. RV(margins) says what they leave on this kernel.
    type: str
    choices: [margin-60, margin-30, margin-5]
  runtime_us:
    description:
      - A value of C(kernel.sched_rt_runtime_us) in place of O(preset). V(-1), no limit, is refused,
        as is more than 95 % of the period.
    type: int
  period_us:
    description:
      - C(kernel.sched_rt_period_us), written together with O(runtime_us) or O(preset).
    type: int
    default: 1000000
  bound_deadline:
    description:
      - Write O(runtime_us) also on kernels where it bounds nothing but C(SCHED_DEADLINE).
    type: bool
    default: false
  fair_server_runtime_us:
    description:
      - What normal tasks get of each O(fair_server_period_us) on each CPU, from Linux 6.12 on. The
        kernel's own value is 50000 of 1000000. Less than 5 % is refused.
      - Needs debugfs, which kernel lockdown closes where Secure Boot is on.
    type: int
  fair_server_period_us:
    description:
      - The period of the fair servers.
    type: int
    default: 1000000
  partition_cpus:
    description:
      - CPUs for real-time work alone, such as V(2-3). No other group and no interrupt balancing of
        the scheduler uses them then. Empty for none.
    type: str
    default: ""
  partition_kind:
    description:
      - V(isolated) takes them out of load balancing too, so each task stays where it is put.
        V(root) balances among them. Kernels before Linux 6.1 have V(root) only.
    type: str
    choices: [isolated, root]
    default: isolated
  partition_slice:
    description:
      - The slice that has them. Directly below the root, so a name without a dash.
    type: str
    default: realtime.slice
  container_rtprio:
    description:
      - The highest real-time priority a container is to have, 1 to 98. It only goes into
        RV(container_options). A default for all containers of the engine is not set, since every
        container could then run before everybody else.
    type: int
  take_from_running:
    description:
      - Go on although real-time tasks, containers or pinned processes that run now have less CPU
        time or other CPUs afterwards. CPUs that another group claims by a cpuset are refused all
        the same.
    type: bool
    default: false
  state:
    description:
      - V(absent) gives everything its former value back, and removes files, unit and slice.
    type: str
    choices: [present, absent]
    default: present
notes:
  - What is not asked for any more gets its former value back as well.
  - Fair servers and the partition are set again at boot by C(steadygpu-realtime.service), which
    needs the command C(steadygpu) of the role P(steadygpu.host.agent#role).
  - CPU quota and CPU burst do not hold real-time tasks, on any kernel.
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Two CPUs for real-time work, and a tenth of all others for normal tasks whatever happens
  steadygpu.host.rt_scheduling:
    partition_cpus: 2-3
    fair_server_runtime_us: 100000
    container_rtprio: 20
  register: realtime

- name: Start such a container
  ansible.builtin.debug:
    msg: "docker run {{ realtime.container_options | join(' ') }} IMAGE"

- name: Throttle real-time tasks on an old kernel
  steadygpu.host.rt_scheduling:
    preset: margin-30
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample:
    - write /etc/systemd/system/realtime.slice
    - set realtime.slice cpuset.cpus.partition to isolated (was member)
container_options:
  description: What a container of real-time work is started with, for C(docker run).
  returned: always
  type: list
  elements: str
  sample: ["--cgroup-parent=realtime.slice", "--cpuset-cpus=2-3", "--ulimit=rtprio=20"]
kernel:
  description: How the kernel is classified, and by what.
  returned: always
  type: dict
  contains:
    release:
      description: As C(uname -r) prints it.
      type: str
    holds_back:
      description:
        - What holds real-time tasks back. V(throttling), V(fair_server), V(groups) or V(unknown).
      type: str
    real_time_groups:
      description: Whether it has real-time groups that are on; null where nothing tells.
      type: bool
    fair_servers:
      description: The number of CPUs with a fair server that can be seen.
      type: int
    sentence:
      description: The same for a person.
      type: str
  sample:
    release: 6.12.94-amd64
    holds_back: fair_server
    real_time_groups: false
    fair_servers: 64
    sentence: Linux 6.12.94-amd64 has a fair server on each CPU
margins:
  description: What is left to normal tasks, and against whom that holds on this kernel.
  returned: always
  type: list
  elements: dict
  sample:
    - name: sched_rt_runtime_us
      percent: 30.0
      holds_against: []
      sentence: "no margin: on this kernel the value is not written"
settings:
  description: Each setting with what is wanted, what the kernel holds, and the verdict.
  returned: always
  type: list
  elements: dict
  sample:
    - name: fair_server runtime (ns, each CPU)
      wanted: "100000000"
      effective: "100000000"
      verdict: effective
      reason: ""
      source: /sys/kernel/debug/sched/fair_server/cpu0/runtime
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.realtime.judge import parse_cpus
from ansible_collections.steadygpu.host.plugins.module_utils.realtime.manage import (
    ensure_absent,
    ensure_present,
)
from ansible_collections.steadygpu.host.plugins.module_utils.realtime.model import (
    DEFAULT_PERIOD_US,
    PRESETS,
    Partition,
    RealtimeError,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "preset": {"type": "str", "choices": sorted(PRESETS)},
            "runtime_us": {"type": "int"},
            "period_us": {"type": "int", "default": DEFAULT_PERIOD_US},
            "bound_deadline": {"type": "bool", "default": False},
            "fair_server_runtime_us": {"type": "int"},
            "fair_server_period_us": {"type": "int", "default": DEFAULT_PERIOD_US},
            "partition_cpus": {"type": "str", "default": ""},
            "partition_kind": {
                "type": "str",
                "choices": ["isolated", "root"],
                "default": "isolated",
            },
            "partition_slice": {"type": "str", "default": "realtime.slice"},
            "container_rtprio": {"type": "int"},
            "take_from_running": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        mutually_exclusive=[("preset", "runtime_us")],
        supports_check_mode=True,
    )
    params = module.params
    try:
        if params["state"] == "present":
            result = ensure_present(_wish(params), module.check_mode)
        else:
            result = ensure_absent(module.check_mode)
    except (RealtimeError, SettingsError) as error:
        module.fail_json(msg=str(error))
    for warning in result.outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=result.outcome.changed,
        actions=result.outcome.actions,
        settings=[one.as_dict() for one in result.outcome.settings],
        margins=[one.as_dict() for one in result.margins],
        container_options=result.container_options,
        kernel={
            "release": result.kernel.release,
            "holds_back": result.kind.kind,
            "real_time_groups": result.kernel.groups,
            "fair_servers": len(result.kernel.servers),
            "sentence": result.kind.sentence,
        },
        diff=result.outcome.diff,
    )


def _wish(params: Mapping[str, Any]) -> Wish:
    preset, period_us, runtime_us = params["preset"], params["period_us"], params["runtime_us"]
    if preset:
        if period_us != DEFAULT_PERIOD_US:
            raise RealtimeError(
                f"period_us {period_us} beside preset {preset}: a preset is for a period of "
                f"{DEFAULT_PERIOD_US}; wanted runtime_us with a period of its own"
            )
        runtime_us = PRESETS[preset]
    partition = None
    if params["partition_cpus"].strip():
        partition = Partition(
            parse_cpus(params["partition_cpus"]),
            params["partition_slice"],
            params["partition_kind"],
        )
    return Wish(
        runtime_us=runtime_us,
        period_us=period_us,
        bound_deadline=params["bound_deadline"],
        fair_runtime_us=params["fair_server_runtime_us"],
        fair_period_us=params["fair_server_period_us"],
        partition=partition,
        rtprio=params["container_rtprio"],
        take_from_running=params["take_from_running"],
    )


if __name__ == "__main__":
    main()
