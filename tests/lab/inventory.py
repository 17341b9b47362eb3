# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The running lab hosts as an Ansible inventory."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from .cache import Cache
from .host import Hosts
from .ssh import Keys

# Comma-separated names: a Molecule scenario sees its own hosts and no others.
NAMES_VARIABLE = "STEADYGPU_LAB_HOSTS"
GROUP = "gpu_hosts"


def inventory(cache: Cache, hosts: Hosts, environ: Mapping[str, str]) -> dict[str, Any]:
    """What ``ansible-inventory --list`` expects of a script. No host: an empty group."""
    wanted = {name.strip() for name in environ.get(NAMES_VARIABLE, "").split(",") if name.strip()}
    running = [e for e in hosts.running() if not wanted or e.manifest["name"] in wanted]
    keys = Keys.of(cache) if running else None
    hostvars = {
        entry.manifest["name"]: variables(entry.manifest, keys) for entry in running if keys
    }
    return {GROUP: {"hosts": sorted(hostvars)}, "_meta": {"hostvars": hostvars}}


def variables(manifest: Mapping[str, Any], keys: Keys) -> dict[str, Any]:
    """The connection variables of one host, and what it is a lab of."""
    return {
        "ansible_host": "127.0.0.1",
        "ansible_port": manifest["port"],
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(keys.user),
        "ansible_ssh_common_args": shlex.join(keys.options()),
        "ansible_python_interpreter": "/usr/bin/python3",
        "lab_suite": manifest["suite"],
        "lab_profile": manifest.get("profile"),
    }
