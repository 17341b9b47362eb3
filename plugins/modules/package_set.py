#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: package_set
short_description: Bring a whole set of packages to exact versions and hold them
version_added: "0.1.0"
description:
  - Installs, upgrades or downgrades packages that belong together in one transaction, and holds
    them, so that neither an upgrade of the host nor a newer package in a repository moves them.
  - Asks the package manager first what it would do. It refuses what would change or remove
    packages outside the set, and whatever would touch the driver or the kernel, and names them.
  - Container engines run on. Maintainer scripts may not stop, start or restart them during this
    run, needrestart is suspended, and a new engine is not started. Which running engine still
    executes a former version is told in RV(restart_pending).
  - Refuses while a C(systemctl daemon-reload), which scripts of packages run, could take the GPU
    from a running container.
  - Waits for another package manager, and finishes what an interrupted C(dpkg) has left.
  - While the versions are as wanted the package manager is not started at all, whatever its
    repositories offer by now.
options:
  packages:
    description:
      - Versions by package name.
      - An exact version is written as the package manager writes it, such as
        C(5:28.5.2-1~debian.13~trixie), or C([EPOCH:]VERSION-RELEASE) for rpm.
      - With a C(*) in it the newest version that matches is installed, and an installed one that
        matches stays.
      - V(present) means whatever is installed, and the candidate where nothing is.
      - V(candidate) means the newest version that the package sources offer now.
      - Packages of the driver and the kernel can be held with V(present), but not changed.
      - When it is empty, the packages in O(files) with O(state=present), and all that this module
        brought with O(state=absent).
    type: dict
    default: {}
  state:
    description:
      - V(present) installs and holds.
      - V(absent) removes the packages that were not installed before this module installed them,
        and releases holds that it set. A package that was there before stays at its version, and
        configuration files stay. It is an error for an engine while there are containers.
    type: str
    choices: [present, absent]
    default: present
  hold:
    description:
      - Whether O(packages) are held afterwards. With V(false) only holds are released that this
        module set.
    type: bool
    default: true
  on_newer:
    description:
      - What to do about a package that is newer than wanted.
      - V(adopt) leaves the whole set at its versions when every package is at the wanted version
        or newer and somebody else brought it, such as the vendor of the machine's image. Packages
        that this module brought go down, and a set of which only some are newer is brought
        together.
      - V(downgrade) goes back to the wanted version.
      - V(refuse) fails and names the packages.
    type: str
    choices: [adopt, downgrade, refuse]
    default: adopt
  also_change:
    description:
      - Patterns of packages that may get another version although they are outside the set, such as
        V(libc6*), or in it and as wanted.
      - A new package that the set needs is always fine.
    type: list
    elements: str
    default: []
  also_remove:
    description:
      - Patterns of packages that may be removed.
      - Packages of an engine are not removed while there are containers.
    type: list
    elements: str
    default: []
  files:
    description:
      - Package files on the host, or directories of them. They count as offered beside the
        package sources, also as dependencies. Their signatures are not checked.
    type: list
    elements: path
    default: []
  offline:
    description:
      - Whether nothing but O(files) and what is installed may be used. No package source is asked.
    type: bool
    default: false
  options:
    description:
      - Further options of C(apt-get) or C(dnf).
    type: list
    elements: str
    default: []
  update_cache:
    description:
      - Whether to read the package lists anew when they do not have what is wanted, or name files
        that can no longer be downloaded.
    type: bool
    default: true
  guard_upgrades:
    description:
      - Whether to write C(/etc/needrestart/conf.d/steadygpu.conf), by which needrestart restarts
        neither engines nor NVIDIA's daemons, and C(/etc/apt/apt.conf.d/52steadygpu), by which
        unattended-upgrades upgrades neither engines nor the driver. Their security updates are
        then yours to install. On EL hosts there is no such file; holds do it.
      - O(state=absent) with empty O(packages) removes them.
    type: bool
    default: false
  lock_timeout_s:
    description:
      - Seconds to wait for another package manager.
    type: float
    default: 300
  deadline_s:
    description:
      - Seconds that the package manager has.
    type: float
    default: 1800
  socket:
    description:
      - The unix socket of Docker, to ask whom a change could hurt.
    type: path
    default: /var/run/docker.sock
extends_documentation_fragment:
  - steadygpu.host.attributes
attributes:
  diff_mode:
    details:
      - Shows versions and holds, not the files of packages.
notes:
  - On EL hosts the plugin C(versionlock) of C(dnf) must be installed for O(hold).
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: All packages of the toolkit have one version and stay there
  steadygpu.host.package_set:
    packages:
      nvidia-container-toolkit: 1.20.0-1
      nvidia-container-toolkit-base: 1.20.0-1
      libnvidia-container-tools: 1.20.0-1
      libnvidia-container1: 1.20.0-1

- name: The engine stays what it is, and nobody upgrades it behind us
  steadygpu.host.package_set:
    packages:
      docker.io: present
      containerd: present
      runc: present

- name: Docker from files, on a host without a network
  steadygpu.host.package_set:
    files: [/srv/packages]
    packages:
      docker-ce: 5:28.5.2-1~debian.13~trixie
      docker-ce-cli: 5:28.5.2-1~debian.13~trixie
      containerd.io: 1.7.*
    offline: true

- name: What this module brought is gone again
  steadygpu.host.package_set:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: [install runc 1.3.6-1 (was 1.1.15-1), hold runc]
packages:
  description:
    - C(before) and C(after), versions or null, and C(held), by name of the set.
    - In check mode C(after) is null where only newer package lists could tell.
  returned: success
  type: dict
  sample: {runc: {before: 1.1.15-1, after: 1.3.6-1, held: true}}
new:
  description: Packages outside the set that were installed because it needs them.
  returned: success
  type: list
  elements: str
  sample: [libseccomp2]
also_changed:
  description: Packages outside the set that got another version.
  returned: success
  type: list
  elements: str
  sample: []
also_removed:
  description: Packages that were not named and were removed.
  returned: success
  type: list
  elements: str
  sample: []
adopted:
  description: Whether newer versions of somebody else were left as they are.
  returned: success
  type: bool
  sample: false
restart_pending:
  description:
    - Units that run a program which another version has replaced now. They take it at their next
      restart.
  returned: success
  type: list
  elements: str
  sample: [containerd.service, docker.service]
restarted:
  description: Units that a maintainer script has restarted although that was forbidden.
  returned: success
  type: list
  elements: str
  sample: []
unknown_until_update:
  description:
    - Whether the package lists do not have what is wanted, and in check mode were not read anew.
  returned: success
  type: bool
  sample: false
refused:
  description: Whether it failed before anything was changed.
  returned: failure
  type: bool
  sample: true
would_change:
  description: The packages that the refusal is about, which would be changed.
  returned: failure
  type: list
  elements: str
  sample: [libc6]
would_remove:
  description: The packages that the refusal is about, which would be removed.
  returned: failure
  type: list
  elements: str
  sample: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import apply, plan
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import (
    FetchError,
    PackageError,
    RefusedError,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import CommandMissingError
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import by_key
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError


def wish_of(options: dict[str, Any]) -> Wish:
    """The options as a wish; Ansible's own types stay outside."""
    return Wish(
        packages={str(name): str(wanted) for name, wanted in options["packages"].items()},
        present=options["state"] == "present",
        hold=options["hold"],
        on_newer=options["on_newer"],
        also_change=tuple(map(str, options["also_change"])),
        also_remove=tuple(map(str, options["also_remove"])),
        files=tuple(map(str, options["files"])),
        offline=options["offline"],
        options=tuple(map(str, options["options"])),
        update_cache=options["update_cache"],
        guard_upgrades=options["guard_upgrades"],
        lock_timeout_s=options["lock_timeout_s"],
        deadline_s=options["deadline_s"],
    )


def result_of(outcome: apply.Outcome) -> dict[str, Any]:
    """What the module returns."""
    made = outcome.plan
    return {
        "changed": made.changed,
        "actions": plan.told(made),
        "packages": {
            name: {
                "before": made.before[name],
                "after": outcome.after[name],
                "held": made.will_hold(name),
            }
            for name in sorted(made.before)
        },
        "new": made.new,
        "also_changed": made.also_changed,
        "also_removed": made.also_removed,
        "adopted": made.adopted,
        "restart_pending": list(outcome.restart_pending),
        "restarted": list(outcome.restarted),
        "unknown_until_update": made.unknown,
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "hold": {"type": "bool", "default": True},
            "on_newer": {
                "type": "str",
                "choices": ["adopt", "downgrade", "refuse"],
                "default": "adopt",
            },
            "also_change": {"type": "list", "elements": "str", "default": []},
            "also_remove": {"type": "list", "elements": "str", "default": []},
            "files": {"type": "list", "elements": "path", "default": []},
            "offline": {"type": "bool", "default": False},
            "options": {"type": "list", "elements": "str", "default": []},
            "update_cache": {"type": "bool", "default": True},
            "guard_upgrades": {"type": "bool", "default": False},
            "lock_timeout_s": {"type": "float", "default": 300},
            "deadline_s": {"type": "float", "default": 1800},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    wish = wish_of(module.params)
    host = apply.Host(socket=module.params["socket"])
    try:
        act = apply.foresee if module.check_mode else apply.carry_out
        outcome = act(wish, host)
    except (PackageError, CommandMissingError, UnitError) as error:
        module.fail_json(
            # apt quotes addresses, with the password in them.
            msg=by_key.clean(str(error), ()),
            refused=isinstance(error, (RefusedError, FetchError)),
            would_change=list(getattr(error, "would_change", ())),
            would_remove=list(getattr(error, "would_remove", ())),
        )
    except OSError as error:
        module.fail_json(msg=f"the host's files could not be read or written: {error}")
    for note in outcome.plan.notes:
        module.warn(note)
    if outcome.restarted:
        module.warn(
            "a package's own script has restarted {} although that was forbidden to it".format(
                ", ".join(outcome.restarted)
            )
        )
    module.exit_json(**result_of(outcome), diff=apply.difference(outcome))


if __name__ == "__main__":
    main()
