#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: docker_daemon
short_description: Set keys of Docker's daemon.json and make the daemon take them
version_added: "0.1.0"
description:
  - Sets single keys of the daemon's configuration file. Every other key, the order of keys and the
    indentation stay as they are.
  - Remembers which values it wrote and what stood there before, in
    C(/var/lib/steadygpu/owned), so that O(state=absent) takes back exactly
    that and nothing else.
  - Reloads the daemon when it can take the changed keys on reload, and restarts it otherwise.
    A restart that would end running containers is refused before anything is written, see
    O(restart).
  - Asks the daemon afterwards whether it took the keys. If it did not, or does not come back, the
    former file and daemon are restored and the task fails with the daemon's last log lines.
  - No secret is shown or logged. Passwords in the URLs of proxies and registries, tokens, and what
    stands under a key that is named like one, are C(<redacted>) in RV(actions), the diff, the
    arguments and errors. A file that is new and holds one is made with mode 0600.
  - Docker older than 28.2 does not start containers with CDI devices again when it starts itself. A
    restart or start that would leave such containers behind is warned of, with their names.
  - A daemon that is just starting is waited for, up to O(restart_timeout_s).
  - A daemon that is not installed, or that is stopped and O(start) is V(false), is not started.
    The file is written for its next start.
options:
  config:
    description:
      - Keys to set, as in C(daemon.json).
      - Objects such as C(features) and C(log-opts) are merged key by key. One runtime of
        C(runtimes) and one limit of C(default-ulimits) is owned as a whole. So are lists and
        scalars, but C(exec-opts) is merged by the name before the C(=).
      - With an empty value and O(state=present) the file is not touched. With O(state=absent) an
        empty value means all keys that this module set.
    type: dict
    default: {}
  state:
    description:
      - V(present) sets the keys.
      - V(absent) restores what stood in their place before, for the keys of O(config) that this
        module set; their values in O(config) do not matter. A key that somebody changed since is
        left to them. A runtime whose name containers carry, running or stopped, is not taken away,
        since they would not start again; then nothing is, unless O(restart=always).
    type: str
    choices: [present, absent]
    default: present
  path:
    description:
      - The daemon's configuration file.
    type: path
    default: /etc/docker/daemon.json
  takeover:
    description:
      - Whether to overwrite a key that holds another value which this module did not write.
        Without it such a key is an error that names both values.
    type: bool
    default: false
  restart:
    description:
      - What to do when changed keys need a restart of the daemon.
      - V(when_safe) restarts if no container runs or if live-restore keeps them. When live-restore
        itself is among the keys, it is made effective by a reload first. Otherwise the task fails
        before it writes anything.
      - live-restore does not keep containers over a change of storage, bridge, user namespace or
        containerd, such as C(data-root), C(storage-driver), C(bip) or
        C(features.containerd-snapshotter). With such a key every running container counts, also
        when somebody else changed it, in the file or in the unit, and the daemon shows that it was
        not restarted since.
      - On a Swarm node C(live-restore) as V(true) is an error with every value of this option,
        because dockerd would refuse its next start.
      - V(never) writes the file, reloads what can be reloaded, and reports RV(restart_pending).
      - V(always) restarts or starts, also when that ends containers.
    type: str
    choices: [when_safe, never, always]
    default: when_safe
  start:
    description:
      - Whether to start C(docker.service) when it exists and is stopped, after the file is written.
      - Containers that live on without the daemon are ended by its start, unless live-restore is in
        force then. Such a start is refused, unless O(restart=always).
      - If the daemon does not come up or does not take the keys, the former file is put back, the
        daemon is stopped again and the task fails with its last log lines.
      - Whether it starts at boot is not changed.
    type: bool
    default: false
  restart_timeout_s:
    description:
      - Seconds that the daemon has for a reload, a restart or a start.
    type: float
    default: 120
  validate:
    description:
      - Whether to refuse what C(dockerd --validate) refuses (Docker 23.0 and newer), and what it
        wrongly accepts. These are unknown keys and features and those of another release, a default
        runtime that is not defined, a runtime without its program or with keys it does not have, a
        cgroup driver, log driver or log option that does not exist, a C(cgroup-parent) that is no
        slice, and settings that exclude each other. With V(false) the latter are warnings.
      - For a Docker newer than this collection knows, an unknown key or feature is a warning.
    type: bool
    default: true
  socket:
    description:
      - The unix socket of the daemon.
    type: path
    default: /var/run/docker.sock
extends_documentation_fragment:
  - steadygpu.host.attributes
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Docker injects CDI devices and keeps containers over its restarts
  steadygpu.host.docker_daemon:
    config:
      live-restore: true
      features:
        cdi: true

- name: The NVIDIA runtime can be asked for by name
  steadygpu.host.docker_daemon:
    config:
      runtimes:
        nvidia:
          path: /usr/bin/nvidia-container-runtime

- name: Docker's configuration is what it was before this collection
  steadygpu.host.docker_daemon:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: [set features.cdi = true, restart docker]
applied:
  description:
    - How the daemon learnt of the change. V(none) means that it has nothing to learn, or that
      RV(restart_pending) is true. V(not_running) means at its next start, V(start) that it was
      started now.
  returned: success
  type: str
  sample: restart
restart_pending:
  description:
    - Whether the file holds keys that the daemon takes only at a restart, which O(restart) forbids.
  returned: success
  type: bool
  sample: false
restart_reason:
  description: Why a restart is pending.
  returned: when RV(restart_pending) is true
  type: str
  sample: features cannot be reloaded and restart is never
"""

import json

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_apply import (
    DaemonFailedError,
    carry_out,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_control import (
    DockerDaemon,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_plan import (
    DaemonRefusedError,
    Plan,
    Wish,
    make_plan,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_record import (
    record_path_of,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.process import CommandMissingError
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import arguments, redact


def told(plan: Plan) -> list[str]:
    """The plan's steps in words."""
    steps = list(plan.actions)
    if plan.live_restore_first:
        steps.append("reload docker, so that live-restore keeps the containers")
    if plan.how in ("reload", "restart", "start"):
        steps.append(f"{plan.how} docker")
    if plan.live_restore_last:
        steps.append("reload docker without live-restore, which kept the containers so far")
    return steps


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            # Ansible would log it before it is known what in it is secret, see arguments.hide.
            "config": {"type": "dict", "default": {}, "no_log": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "path": {"type": "path", "default": "/etc/docker/daemon.json"},
            "takeover": {"type": "bool", "default": False},
            "restart": {
                "type": "str",
                "choices": ["when_safe", "never", "always"],
                "default": "when_safe",
            },
            "start": {"type": "bool", "default": False},
            "restart_timeout_s": {"type": "float", "default": 120},
            "validate": {"type": "bool", "default": True},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    options = dict(module.params)
    arguments.hide(module, "config")
    engine = DockerDaemon(DockerClient(options["socket"]), options["restart_timeout_s"])
    wish = Wish(
        # Ansible's own subclasses of str and dict stay outside.
        config=json.loads(json.dumps(options["config"])),
        present=options["state"] == "present",
        takeover=options["takeover"],
        restart=options["restart"],
        validate=options["validate"],
        path=options["path"],
        start=options["start"],
    )
    record = record_path_of(wish.path)
    try:
        if not wish.leaves_file or wish.start:
            engine.wait_until_settled()
        plan = make_plan(wish, engine, record)
        if not module.check_mode:
            carry_out(plan, engine, options["restart_timeout_s"], record)
    except (DaemonRefusedError, DaemonFailedError, CommandMissingError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{options['path']} or {record} cannot be read or written: {error}")
    for warning in plan.warnings:
        module.warn(warning)
    before, after = redact.pair(wish.path, plan.before or "", plan.after or "")
    result = {
        "changed": plan.changed,
        "actions": told(plan),
        "applied": plan.how,
        "restart_pending": plan.pending is not None,
        "diff": {
            "before_header": wish.path,
            "after_header": wish.path,
            "before": before,
            "after": after,
        },
    }
    if plan.pending is not None:
        result["restart_reason"] = plan.pending
    module.exit_json(**result)


if __name__ == "__main__":
    main()
