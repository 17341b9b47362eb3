#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: runtime_facts
short_description: Gather the container engine of a host as facts
version_added: "0.1.0"
description:
  - Reads the operating system, kernel, systemd, control groups, Docker, containerd, runc, the
    NVIDIA Container Toolkit, CDI specifications and the packages behind them, and stores them in
    C(ansible_facts['gpu_host']).
  - Needs nothing on the host but Python. Docker is asked over its socket, not through its CLI,
    and a stopped Docker is not started by asking.
  - What is missing or broken is a fact with a reason. The module does not fail for it.
  - Sections that M(steadygpu.host.gpu_facts) stored under the same key are kept.
options:
  packages:
    description:
      - Names of further packages to look up in the package database. Those of Docker, containerd,
        runc and the toolkit are always looked up.
    type: list
    elements: str
    default: []
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
extends_documentation_fragment:
  - steadygpu.host.attributes.facts
  - steadygpu.host.attributes.action
seealso:
  - module: steadygpu.host.gpu_facts
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: The engine is known
  steadygpu.host.runtime_facts:
    packages: [nvidia-driver-libs]

- name: Docker can inject CDI devices
  ansible.builtin.assert:
    that: ansible_facts['gpu_host'].docker.cdi.enabled
    fail_msg: "Docker is {{ ansible_facts['gpu_host'].docker.status }}, CDI is off"
"""

RETURN = r"""
ansible_facts:
  description: Facts to add to the host.
  returned: always
  type: dict
  contains:
    gpu_host:
      description:
        - All facts of this collection. M(steadygpu.host.gpu_facts) fills the other sections.
      returned: always
      type: dict
      contains:
        schema:
          description: Version of the shape. It is raised when a key changes its meaning.
          type: int
          sample: 1
        os:
          description: The operating system, its family, the machine and the module's Python.
          type: dict
          sample: {id: debian, version_id: "13", codename: trixie, family: debian}
        kernel:
          description: Release and command line of the running kernel.
          type: dict
          sample: {release: 6.12.57+deb13-cloud-amd64, cmdline: root=/dev/vda rw}
        systemd:
          description: Its major version, V(null) where it does not run.
          type: dict
          sample: {version: 257}
        cgroup:
          description: Version of the hierarchy and the controllers at its root.
          type: dict
          sample: {version: 2, controllers: [cpuset, cpu, io, memory, pids]}
        docker:
          description:
            - The daemon. C(status) is V(running), V(stopped), V(unreachable) or V(absent), and
              C(reason) says why it is not running.
            - C(flags) are those of the unit, with passwords as C(<redacted>). C(daemon_json) is the
              state of its configuration file, C(swarm) tells whether the host is a node of a Swarm.
            - C(restart_pending) and C(reload_pending) say what the running daemon takes
              only at its next restart, or by a reload.
          type: dict
          sample: {status: running, version: 26.1.5+dfsg1, live_restore: true}
        containerd:
          description: Version, and whether it is V(running), V(stopped) or V(absent).
          type: dict
          sample: {version: 1.7.24~ds1, status: running}
        runc:
          description: Version, V(null) where it is not installed.
          type: dict
          sample: {version: 1.1.15+ds1}
        toolkit:
          description: The NVIDIA Container Toolkit, its C(nvidia-ctk) and its configuration file.
          type: dict
          sample: {status: installed, version: 1.19.1, ctk: /usr/bin/nvidia-ctk}
        cdi:
          description: Every specification in the engine's directories, judged.
          type: dict
          sample: {specs: [{path: /var/run/cdi/nvidia.yaml, status: valid, kind: nvidia.com/gpu}]}
        packages:
          description: Installed packages of those asked for, with version and hold.
          type: dict
          sample: {manager: dpkg, installed: {runc: {version: 1.1.15+ds1-2, held: false}}}
        settings:
          description:
            - Who keeps settings on this host, as C(owners). These are roles of this collection by
              their short names. What they keep is read by M(steadygpu.host.host_settings_info).
          type: dict
          sample: {owners: [numa, slices]}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.engine.collect import collect
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import SCHEMA


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "list", "elements": "str", "default": []},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
            "deadline_s": {"type": "float", "default": 30},
        },
        supports_check_mode=True,
    )
    sections = collect(
        extra_packages=module.params["packages"],
        deadline_s=module.params["deadline_s"],
        socket_path=module.params["socket"],
    )
    facts = {"gpu_host": {"schema": SCHEMA, **sections}}
    module.exit_json(changed=False, ansible_facts=facts)


if __name__ == "__main__":
    main()
