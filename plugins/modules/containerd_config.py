#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: containerd_config
short_description: Set settings of containerd in a drop-in of its own and make containerd take them
version_added: "0.1.0"
description:
  - Writes one drop-in, in a directory that containerd's first file really imports and in the
    version of that file. The first file gets one more import where none fits, and is else left as
    it is.
  - Before anything is written, containerd itself reads a copy of all files with the new ones
    among them (C(containerd config dump)). What is asked for must be in its answer, and nothing
    that was there may be gone, or the task fails and says what.
  - containerd 1.x takes the table of a plugin whole from the file that it reads last. There the
    drop-in repeats what other files say of the same plugin. After a change of those files run the
    module again.
  - Remembers what it was asked for in C(/var/lib/steadygpu/owned), so that O(state=absent) takes
    back exactly that. What is set to the right value already, by a file or by containerd itself,
    is left to whoever set it.
  - containerd reads its files at its start only. It is restarted when that ends nobody's
    container, see O(restart), and asked afterwards whether its plugins are well, and Docker
    whether it has found it again. If not, the former files come back and it is restarted with
    them.
  - A containerd that does not run is not started. The files are written for its next start.
  - k3s, RKE2, k0s and MicroK8s write the configuration of their own containerd. There the task
    fails and names the place for the settings.
  - Docker needs none of this for its containers. It is for Kubernetes, nerdctl and NRI.
options:
  config:
    description:
      - Settings to own, as in C(config.toml), each key below C(plugins) with its whole name.
      - In the names of version 3 (C(io.containerd.cri.v1.runtime),
        C(io.containerd.cri.v1.images)) or of version 2 (C(io.containerd.grpc.v1.cri)). They are
        written in those that the host's first file needs.
      - Single settings are owned, lists as a whole. C(disabled_plugins) and C(required_plugins)
        are added to what other files have.
    type: dict
    default: {}
  cdi:
    description:
      - Whether pods get CDI devices. Off in containerd 1.7 unless it is set, on in 2.0 and newer.
    type: bool
  nri:
    description:
      - Whether NRI plugins may connect. They see the containers of Kubernetes only, not Docker's.
    type: bool
  runtimes:
    description:
      - Runtimes for Kubernetes by name, what C(handler) of a RuntimeClass names. Others stay.
      - Each may have C(path), the program that the shim runs in the place of runc;
        C(systemd_cgroup), a truth value; and C(type), the shim, C(io.containerd.runc.v2) by
        default.
    type: dict
    default: {}
  default_runtime:
    description:
      - The runtime of pods that name none. It must be defined.
    type: str
  state:
    description:
      - V(present) sets what is asked for.
      - V(absent) takes back what of it this module set, or all that it set where nothing is asked
        for. Values do not matter then.
    type: str
    choices: [present, absent]
    default: present
  path:
    description:
      - containerd's first file. By default the one that its unit names with C(--config), or
        C(/etc/containerd/config.toml).
    type: path
  takeover:
    description:
      - Whether our drop-in may set what another file sets to another value. Without it that is an
        error that names both. The other file is not changed, and counts again after
        O(state=absent).
    type: bool
    default: false
  restart:
    description:
      - What to do when containerd has something to learn.
      - V(when_safe) restarts it if no container ends by it. Shims, in which containers live,
        outlive a restart where the unit has C(KillMode=process), as containerd's own unit does.
        Otherwise, if systemd would stop Docker with it and live-restore is off, if another
        service would be stopped with it, if containers live by the setting, or if a runtime would
        go with which containers of Kubernetes run, the task fails before it writes anything.
      - V(never) writes the files and reports RV(restart_pending).
      - V(always) restarts, also when that ends containers.
      - An image that Kubernetes is just pulling is pulled anew.
    type: str
    choices: [when_safe, never, always]
    default: when_safe
  restart_timeout_s:
    description:
      - Seconds that containerd has to come up, and Docker to find it again.
    type: float
    default: 120
  socket:
    description:
      - The unix socket of the Docker daemon.
    type: path
    default: /var/run/docker.sock
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Pods get CDI devices, and NRI plugins may connect
  steadygpu.host.containerd_config:
    cdi: true
    nri: true

- name: A RuntimeClass can name the NVIDIA runtime
  steadygpu.host.containerd_config:
    runtimes:
      nvidia:
        path: /usr/bin/nvidia-container-runtime
        systemd_cgroup: true

- name: Any other setting
  steadygpu.host.containerd_config:
    config:
      oom_score: -999
      plugins:
        io.containerd.cri.v1.runtime:
          max_container_log_line_size: 32768

- name: The configuration of containerd is what it was before this collection
  steadygpu.host.containerd_config:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: [set plugins.'io.containerd.nri.v1.nri'.disable = false, restart containerd]
drop_in:
  description: Where the settings stand afterwards; null where none are ours.
  returned: success
  type: str
  sample: /etc/containerd/conf.d/steadygpu.toml
applied:
  description:
    - How containerd learnt of the change. V(none) means that it has nothing to learn, or that
      RV(restart_pending) is true. V(not_running) means at its next start, V(not_installed) that
      there is no containerd yet, in check mode only.
  returned: success
  type: str
  sample: restart
restart_pending:
  description: Whether containerd has not read all of its files yet, and O(restart) forbids it to.
  returned: success
  type: bool
  sample: false
restart_reason:
  description: Why a restart is pending.
  returned: when RV(restart_pending) is true
  type: str
  sample: containerd reads its configuration at its start only, and restart is never
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.containerd.apply import (
    ContainerdFailedError,
    carry_out,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.names import Asked
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.plan import (
    Plan,
    Wish,
    make_plan,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.record import (
    RECORD_PATH,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.refusals import (
    ContainerdRefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.containerd.tool import (
    Containerd,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import (
    CommandMissingError,
    find_program,
)
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import by_key, redact


def differences(plan: Plan) -> list[dict[str, str]]:
    """One diff for each file, without secrets."""
    found = []
    for change in plan.files:
        before, after = redact.pair(change.path, change.before or "", change.after or "")
        header = {"before_header": change.path, "after_header": change.path}
        found.append({**header, "before": before, "after": after})
    return found


def hide_secrets(module: AnsibleModule) -> None:
    """Keep the secrets in ``config``, and no more than these, out of result and journal."""
    config = module.params["config"]
    # All values of it are there, and would be hidden wherever they stand, such as "runc".
    module.no_log_values.clear()
    module.no_log_values.update(by_key.telling(by_key.secrets_of(config)))
    module.params["config"] = by_key.hidden(config)
    module.log("Invoked with " + json.dumps(module.params, default=str))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            # Ansible would log it before it is known what in it is secret, see hide_secrets.
            "config": {"type": "dict", "default": {}, "no_log": True},
            "cdi": {"type": "bool"},
            "nri": {"type": "bool"},
            "runtimes": {"type": "dict", "default": {}},
            "default_runtime": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "path": {"type": "path"},
            "takeover": {"type": "bool", "default": False},
            "restart": {
                "type": "str",
                "choices": ["when_safe", "never", "always"],
                "default": "when_safe",
            },
            "restart_timeout_s": {"type": "float", "default": 120},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    options = dict(module.params)
    hide_secrets(module)
    wish = Wish(
        asked=Asked(
            # Ansible's own subclasses of str and dict stay outside.
            config=json.loads(json.dumps(options["config"])),
            cdi=options["cdi"],
            nri=options["nri"],
            runtimes=json.loads(json.dumps(options["runtimes"])),
            default_runtime=options["default_runtime"],
        ),
        present=options["state"] == "present",
        takeover=options["takeover"],
        restart=options["restart"],
        path=options["path"],
    )
    tool = Containerd(options["restart_timeout_s"], options["socket"])
    warnings: list[str] = []

    def is_program(path: str) -> bool:
        if find_program(path) is not None:
            return True
        if module.check_mode:  # what brings it may be a task before this one
            warnings.append(f"{path}: there is no such program yet; without it the task will fail")
        return bool(module.check_mode)

    try:
        plan = make_plan(wish, tool, is_program=is_program)
        if not module.check_mode:
            warnings.extend(carry_out(plan, tool, options["restart_timeout_s"]).warnings)
    except (ContainerdRefusedError, ContainerdFailedError, CommandMissingError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(
            msg=f"a file of containerd, or {RECORD_PATH}, cannot be read or written: {error}"
        )
    for warning in (*plan.warnings, *warnings):
        module.warn(warning)
    result = {
        "changed": plan.changed,
        "actions": list(plan.actions),
        "drop_in": plan.drop_in,
        "applied": plan.how,
        "restart_pending": plan.pending is not None,
        "diff": differences(plan),
    }
    if plan.pending is not None:
        result["restart_reason"] = plan.pending
    module.exit_json(**result)


if __name__ == "__main__":
    main()
