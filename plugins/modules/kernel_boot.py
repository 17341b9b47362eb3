#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kernel_boot
short_description: Give the kernel parameters and modules, and say when they act
version_added: "0.1.0"
description:
  - Adds parameters to the kernel's command line through the boot loader that started this host,
    loads modules, keeps others away, and gives modules their options. What is written is looked for
    in what the boot loader will read, and each setting is read back from the running kernel.
  - What acts only at the next boot is V(pending) in RV(settings), never taken for done. It reboots
    nothing; the role P(steadygpu.host.reboot#role) does.
  - What others configured stays. A parameter of theirs with another value is an error that names
    the file. A parameter that costs a GPU host more than it gives, such as C(pci=nomsi) or
    C(cgroup_disable=memory), is refused.
  - The options are the whole of what is kept. What is no longer named is taken away.
options:
  state:
    description:
      - V(present) keeps what the options say, V(absent) takes away all that this module keeps.
    type: str
    choices: [present, absent]
    default: present
  parameters:
    description:
      - Parameters of the kernel, each one word such as V(iommu=pt).
      - With GRUB on Debian and Ubuntu they are in a drop-in, and not in the recovery entries. With
        grubby (RHEL) and systemd-boot they are added to every entry.
      - A host whose parameters come from elsewhere (a hypervisor, the network) is left as it is,
        and they are V(unsupported) with the reason.
    type: list
    elements: str
    default: []
  modules:
    description:
      - Modules to load now and at each boot.
      - One that is no longer named stays loaded until the next boot, since it cannot be seen who
        relies on it by then.
    type: list
    elements: str
    default: []
  blacklist:
    description:
      - Modules that no device may load by itself, such as V(nouveau). One that is loaded stays
        until the next boot.
      - Refused for the driver of the GPUs, and for what this host has its disks, its network or a
        mounted file system from.
    type: list
    elements: str
    default: []
  module_options:
    description:
      - Options of modules, module name to a dictionary of option and value, as in
        C(modprobe.d). A value of V(null) writes the name alone.
      - A loaded module keeps what it has until it is loaded anew.
    type: dict
    default: {}
  softdeps:
    description:
      - Modules that are to be loaded with others, module name to a dictionary with the lists C(pre)
        and C(post).
    type: dict
    default: {}
  initramfs:
    description:
      - Whether the initramfs is made anew after a change of blacklist, options or softdeps. With
        V(auto) only where one of these modules, or a former state of the file, is inside.
    type: str
    choices: [auto, always, never]
    default: auto
notes:
  - Modules of this collection write files of their own only. A file of the same name that
    somebody else wrote is an error.
extends_documentation_fragment:
  - steadygpu.host.attributes
seealso:
  - module: steadygpu.host.pcie_acs
  - module: steadygpu.host.reboot_needed
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: GPUs reach each other and the network without translation, and nouveau stays away
  steadygpu.host.kernel_boot:
    parameters: [iommu=pt]
    blacklist: [nouveau]
    module_options:
      nouveau: {modeset: 0}

- name: Nothing of ours is in the next boot
  steadygpu.host.kernel_boot:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done, in order.
  returned: always
  type: list
  elements: str
  sample: ["write /etc/default/grub.d/zz-steadygpu.cfg", "run update-grub"]
loader:
  description: What started this kernel, V(none) where it cannot be told anything.
  returned: always
  type: str
  sample: grub
settings:
  description:
    - Each setting with what is wanted, what the running kernel has, and the verdict V(effective),
      V(pending), V(differs) or V(unsupported) with the reason.
  returned: always
  type: list
  elements: dict
  sample:
    - name: boot parameter iommu=pt
      wanted: iommu=pt
      effective: not given
      verdict: pending
      reason: "the running kernel was started without it: it acts after a reboot"
      source: /proc/cmdline
reboot_needed:
  description: Whether a setting waits for the next boot.
  returned: always
  type: bool
  sample: true
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.boot.manage import ensure
from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import (
    BootError,
    Softdep,
    Wish,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
    PENDING,
    SettingsError,
)


def wish_of(params: dict[str, Any]) -> Wish:
    """The options of the task. Raises BootError for what has the wrong form."""
    if params["state"] == "absent":
        return Wish()
    options = {}
    for module, given in params["module_options"].items():
        if not isinstance(given, dict):
            raise BootError(f"module_options of {module}: wanted a dictionary of option and value")
        options[module] = tuple((str(key), _value(value)) for key, value in given.items())
    softdeps = {}
    for module, given in params["softdeps"].items():
        if not isinstance(given, dict) or set(given) - {"pre", "post"}:
            raise BootError(f"softdeps of {module}: wanted a dictionary with pre and post")
        softdeps[module] = Softdep(_names(given.get("pre")), _names(given.get("post")))
    return Wish(
        parameters=tuple(dict.fromkeys(params["parameters"])),
        modules=tuple(dict.fromkeys(params["modules"])),
        blacklist=tuple(dict.fromkeys(params["blacklist"])),
        options=options,
        softdeps=softdeps,
        initramfs=params["initramfs"],
    )


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(value.split()) if isinstance(value, str) else tuple(str(one) for one in value)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "parameters": {"type": "list", "elements": "str", "default": []},
            "modules": {"type": "list", "elements": "str", "default": []},
            "blacklist": {"type": "list", "elements": "str", "default": []},
            "module_options": {"type": "dict", "default": {}},
            "softdeps": {"type": "dict", "default": {}},
            "initramfs": {
                "type": "str",
                "choices": ["auto", "always", "never"],
                "default": "auto",
            },
        },
        supports_check_mode=True,
    )
    try:
        outcome = ensure(wish_of(module.params), module.check_mode)
    except (BootError, SettingsError) as error:
        module.fail_json(msg=str(error))
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=bool(outcome.actions),
        actions=outcome.actions,
        diff=outcome.diff,
        loader=outcome.loader,
        settings=[setting.as_dict() for setting in outcome.settings],
        reboot_needed=any(setting.verdict == PENDING for setting in outcome.settings),
    )


if __name__ == "__main__":
    main()
