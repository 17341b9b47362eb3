#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_driver
short_description: Adopt or install the NVIDIA driver, keep it at one release, ready before engines
version_added: "0.1.0"
description:
  - Adopts the driver that is there, whoever installed it, or brings all its packages to one exact
    release, with the fabric manager and IMEX where they are installed or named.
  - Holds the packages, has C(nvidia-uvm) loaded at boot before any engine starts, keeps nouveau
    out, and runs the persistence daemon where that is asked.
  - Refuses before anything is changed while somebody has a GPU, where the firmware would not let
    the kernel load the new module (Secure Boot), where the running kernel has no headers and none
    are offered, where a GPU does not work with these modules or this branch, and where packages of
    two releases, another kernel or changes beyond the driver would come of it. It names them.
  - Never reboots and never unloads a module. What only a reboot makes true is in
    RV(reboot_reasons), which the role P(steadygpu.host.reboot#role) acts on.
options:
  mode:
    description:
      - V(adopt) changes no package. It fails where a fabric manager of another release than the
        driver keeps every CUDA program from starting, and else reports.
      - V(install) brings O(packages) to O(version). It is built for apt, and refused with dnf.
    type: str
    choices: [adopt, install]
    default: adopt
  state:
    description:
      - V(absent) releases the holds, removes the files and undoes what was done to the persistence
        daemon, as far as it was this module. Packages stay, since jobs run on them.
    type: str
    choices: [present, absent]
    default: present
  version:
    description:
      - A release such as V(580.95.05), or the whole version of a package such as
        V(580.95.05-1).
      - Without one, what is installed is right, and the newest release that all packages are
        offered in is brought where something is missing.
    type: str
  packages:
    description:
      - The packages of the driver, and no others. Installed ones that have to be of one release go
        along.
      - When it is empty, on Debian those of the distribution for a host without a desktop.
        Elsewhere they must be named.
    type: list
    elements: str
    default: []
  flavour:
    description:
      - The kernel modules. V(auto) means the open ones, unless a GPU is older than Turing.
      - The open ones need Turing or newer; Grace Hopper and Blackwell need the open ones.
    type: str
    choices: [auto, open, proprietary]
    default: auto
  hold:
    description:
      - Whether the driver's packages are held. On an image that the machine's vendor maintains
        (DGX OS) nothing is held.
      - Where the modules come ready made for one kernel after the other (C(linux-modules-nvidia-*)
        on Ubuntu) the packages that bring a newer kernel are held with them.
    type: bool
    default: true
  uvm:
    description:
      - Whether C(nvidia-uvm) is loaded at boot, before any engine, and with the driver where that
        is loaded later. Without it CUDA fails while C(nvidia-smi) works.
    type: bool
    default: true
  nouveau_off:
    description:
      - Whether nouveau is kept from loading, with an initramfs without it where it is loaded now.
        Only where an NVIDIA module could take its place.
    type: bool
    default: true
  persistence:
    description:
      - Whether C(nvidia-persistenced) runs, now and at boot, so that persistence mode is on.
      - Without a value it is left alone, and brought back to what it was where this module had
        changed it.
      - A unit that starts it with C(--no-persistence-mode), as Ubuntu's does, is left alone and
        reported as V(unsupported).
    type: bool
  files:
    description:
      - Package files on the host, or directories of them, that count as offered beside the package
        sources. Their signatures are not checked.
    type: list
    elements: path
    default: []
  offline:
    description:
      - Whether nothing but O(files) and what is installed may be used.
    type: bool
    default: false
  options:
    description:
      - Further options of C(apt-get).
    type: list
    elements: str
    default: []
  also_change:
    description:
      - Patterns of packages outside the driver that may get another version.
    type: list
    elements: str
    default: []
  update_cache:
    description:
      - Whether to read the package lists anew when they do not have what is wanted.
    type: bool
    default: true
  source:
    description:
      - The name of the entry of M(steadygpu.host.apt_source) that the packages came from. Where
        nothing is installed it goes, with its key, before a hold is released.
    type: str
    default: ""
  uploads:
    description:
      - A directory of package files that were copied for O(mode=install). Where nothing is
        installed it goes.
    type: path
  lock_timeout_s:
    description:
      - Seconds to wait for another package manager.
    type: float
    default: 300
  deadline_s:
    description:
      - Seconds that the package manager has, which builds the module as well.
    type: float
    default: 3600
  socket:
    description:
      - The unix socket of Docker, to ask whom a change could hurt.
    type: path
    default: /var/run/docker.sock
extends_documentation_fragment:
  - steadygpu.host.attributes
notes:
  - On EL hosts the plugin C(versionlock) of C(dnf) must be installed for O(hold); without it, and
    with dnf 5, the hold is reported as V(unsupported).
attributes:
  diff_mode:
    details:
      - Shows versions of packages and files of this module, not the files of packages.
seealso:
  - module: steadygpu.host.package_set
  - module: steadygpu.host.gpu_facts
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: The driver stays what it is
  steadygpu.host.gpu_driver:

- name: All of the driver is of one release, on Ubuntu with NVSwitches
  steadygpu.host.gpu_driver:
    mode: install
    version: 580.95.05
    packages:
      - nvidia-dkms-580-open
      - nvidia-headless-no-dkms-580-open
      - nvidia-utils-580
      - nvidia-fabricmanager-580
    persistence: true

- name: What this module set is taken back
  steadygpu.host.gpu_driver:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, for a person to read.
  returned: success
  type: list
  elements: str
  sample: [install nvidia-smi 550.163.01-2, hold nvidia-smi]
settings:
  description:
    - Every setting as the machine has it, with C(name), C(wanted), C(effective), C(verdict),
      C(reason) and C(source). A verdict is V(effective), V(differs), V(inert), V(unsupported) or
      V(pending), which a reboot makes effective.
  returned: success
  type: list
  elements: dict
  sample:
    - name: driver module
      wanted: 580.95.05
      effective: 550.163.01
      verdict: pending
      reason: the new module is loaded at the next boot
      source: /proc/driver/nvidia/version
reboot_reasons:
  description: Why only a reboot makes what is installed the driver that runs.
  returned: success
  type: list
  elements: str
  sample: [the kernel runs driver 550.163.01 and 580.95.05 is installed]
driver:
  description:
    - The driver now. C(installed), C(loaded) and C(library) are releases or null, C(flavour) the
      kernel modules that are loaded, C(origin) is V(packages), V(runfile), V(container),
      V(unknown) or V(none), C(wanted_flavour) what fits the GPUs or was asked.
  returned: success
  type: dict
  sample:
    installed: 550.163.01
    loaded: 550.163.01
    library: 550.163.01
    flavour: open
    wanted_flavour: open
    origin: packages
    secure_boot: disabled
packages:
  description: The installed packages of the driver, with C(version) and C(held), by name.
  returned: success
  type: dict
  sample: {nvidia-smi: {version: 550.163.01-2, held: true}}
dkms:
  description: Modules of DKMS, with C(name), C(version), C(kernel) and C(state).
  returned: success
  type: list
  elements: dict
  sample: [{name: nvidia, version: 550.163.01, kernel: 6.12.0-1-amd64, state: installed}]
kernels:
  description:
    - The kernels of the host, with C(release), C(running), C(headers) and C(module), the path of
      the driver's module or null.
  returned: success
  type: list
  elements: dict
  sample:
    - release: 6.12.0-1-amd64
      running: true
      headers: true
      module: /lib/modules/6.12.0-1-amd64/updates/dkms/nvidia.ko
refused:
  description: Whether it failed before anything was changed.
  returned: failure
  type: bool
  sample: true
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.driver_set import host, manage
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.model import (
    DriverError,
    DriverRefusedError,
    View,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import (
    FetchError,
    PackageError,
    RefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.process import CommandMissingError
from ansible_collections.steadygpu.host.plugins.module_utils.secrets import by_key
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import SettingsError
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError

_NOTHING_CHANGED = (DriverRefusedError, RefusedError, FetchError)


def wish_of(options: dict[str, Any]) -> Wish:
    """The options as a wish; Ansible's own types stay outside."""
    return Wish(
        mode=str(options["mode"]),
        version=str(options["version"]) if options["version"] else None,
        packages=tuple(map(str, options["packages"])),
        flavour=str(options["flavour"]),
        hold=options["hold"],
        uvm=options["uvm"],
        nouveau_off=options["nouveau_off"],
        persistence=options["persistence"],
        files=tuple(map(str, options["files"])),
        offline=options["offline"],
        options=tuple(map(str, options["options"])),
        also_change=tuple(map(str, options["also_change"])),
        update_cache=options["update_cache"],
        source=str(options["source"]),
        uploads=str(options["uploads"] or ""),
        lock_timeout_s=options["lock_timeout_s"],
        deadline_s=options["deadline_s"],
    )


def shown(view: View, flavour: str) -> dict[str, Any]:
    """The parts of the result that describe the host."""
    there = view.installed.packages
    return {
        "driver": {
            "installed": view.release,
            "loaded": view.loaded,
            "library": view.library,
            "flavour": view.flavour,
            "wanted_flavour": flavour,
            "origin": view.origin,
            "secure_boot": view.secure_boot,
        },
        "packages": {
            name: {"version": version, "held": there[name].held}
            for name, version in view.versions.items()
        },
        "dkms": [build.as_dict() for build in view.builds],
        "kernels": [
            {
                "release": kernel.release,
                "running": kernel.running,
                "headers": kernel.headers,
                "module": kernel.path,
            }
            for kernel in view.kernels
        ],
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "choices": ["adopt", "install"], "default": "adopt"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "version": {"type": "str"},
            "packages": {"type": "list", "elements": "str", "default": []},
            "flavour": {
                "type": "str",
                "choices": ["auto", "open", "proprietary"],
                "default": "auto",
            },
            "hold": {"type": "bool", "default": True},
            "uvm": {"type": "bool", "default": True},
            "nouveau_off": {"type": "bool", "default": True},
            "persistence": {"type": "bool"},
            "files": {"type": "list", "elements": "path", "default": []},
            "offline": {"type": "bool", "default": False},
            "options": {"type": "list", "elements": "str", "default": []},
            "also_change": {"type": "list", "elements": "str", "default": []},
            "update_cache": {"type": "bool", "default": True},
            "source": {"type": "str", "default": ""},
            "uploads": {"type": "path"},
            "lock_timeout_s": {"type": "float", "default": 300},
            "deadline_s": {"type": "float", "default": 3600},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    machine = host.Host(socket=module.params["socket"])
    try:
        change = manage.absent if module.params["state"] == "absent" else manage.keep
        done = change(wish_of(module.params), machine, module.check_mode)
    except (DriverError, PackageError, SettingsError, CommandMissingError, UnitError) as error:
        # apt quotes addresses, with the password in them.
        module.fail_json(
            msg=by_key.clean(str(error), ()), refused=isinstance(error, _NOTHING_CHANGED)
        )
    except OSError as error:
        module.fail_json(msg=f"the host's files could not be read or written: {error}")
    for text in done.warnings:
        module.warn(text)
    module.exit_json(
        changed=bool(done.actions),
        actions=done.actions,
        settings=[setting.as_dict() for setting in done.settings],
        reboot_reasons=done.reboot_reasons,
        diff=done.diff,
        **shown(done.view, done.flavour),
    )


if __name__ == "__main__":
    main()
