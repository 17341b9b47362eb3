#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: agent_install
short_description: Install the steadygpu agent on a host, one whole generation at a time
version_added: "0.1.0"
description:
  - Unpacks and compiles the agent below C(LIBDIR/SHA256), points the link C(LIBDIR/current) at
    it by one rename, and writes the command C(BINDIR/steadygpu).
  - A run that is killed leaves the old generation or the new one in use, never half of one. The
    next run removes what was left behind.
  - The controller sends only the digest first. The file travels when the host does not have that
    generation, so a host that is right costs one round trip.
  - Every file of an installed generation is compared with the manifest. A damaged one is replaced.
  - Going back to a generation that is still on the host transfers nothing.
options:
  src:
    description:
      - The agent artifact on the controller, as C(make agent) builds it.
      - By default the one the collection carries in C(roles/agent/files/steadygpu.pyz).
    type: path
  libdir:
    description: Directory that holds the generations.
    type: path
    default: /usr/local/lib/steadygpu
  bindir:
    description:
      - Directory that gets the command C(steadygpu). A file of that name that this collection did
        not write is an error.
    type: path
    default: /usr/local/bin
  keep:
    description:
      - How many generations stay, the current one included. The one that was current before is the
        first of the others to stay.
    type: int
    default: 2
  state:
    description: V(absent) removes the command and every generation.
    type: str
    choices: [present, absent]
    default: present
  sha256:
    description: Digest of O(src). The action plugin sets it; a value given here is overwritten.
    type: str
  artifact:
    description: The transferred file on the host. The action plugin sets it; a value given here is
      overwritten.
    type: path
extends_documentation_fragment:
  - steadygpu.host.attributes
  - steadygpu.host.attributes.action
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: The agent of this collection is installed
  steadygpu.host.agent_install:

- name: An agent built from a checkout is installed
  steadygpu.host.agent_install:
    src: build/steadygpu.pyz
    keep: 3

- name: No trace of the agent is left
  steadygpu.host.agent_install:
    state: absent
"""

RETURN = r"""
actions:
  description: What was done, or in check mode would be done.
  returned: success
  type: list
  elements: str
  sample:
    - unpack generation 3f2c9a7be01d below /usr/local/lib/steadygpu
    - write /usr/local/bin/steadygpu
    - make 3f2c9a7be01d the current generation
generation:
  description: The generation that is wanted. The version is V(null) while it is not on the host.
  returned: O(state=present)
  type: dict
  sample: {sha256: 3f2c9a7be01d9c5e, version: 0.1.0}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils import generations


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "src": {"type": "path"},
            "libdir": {"type": "path", "default": "/usr/local/lib/steadygpu"},
            "bindir": {"type": "path", "default": "/usr/local/bin"},
            "keep": {"type": "int", "default": 2},
            "state": {"choices": ["present", "absent"], "default": "present"},
            "sha256": {"type": "str"},
            "artifact": {"type": "path"},
        },
        required_if=[("state", "present", ["sha256"])],
        supports_check_mode=True,
    )
    if module.params["keep"] < 1:
        module.fail_json(
            msg=f"keep is {module.params['keep']}; wanted is 1 or more: the current one stays"
        )
    layout = generations.Layout(module.params["libdir"], module.params["bindir"])
    try:
        if module.params["state"] == "absent":
            result = uninstall(layout, module.check_mode)
        else:
            result = install(
                layout,
                module.params["sha256"],
                module.params["keep"],
                module.params["artifact"],
                module.check_mode,
            )
    except (generations.GenerationError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


def install(
    layout: generations.Layout, digest: str, keep: int, artifact: str | None, check_mode: bool
) -> dict[str, object]:
    before = generations.read(layout)
    steps = generations.plan(before, layout, digest, keep)
    actions = generations.describe(steps, layout, digest)
    # The action plugin answers this key with the file and asks again.
    artifact_needed = steps.unpack and artifact is None and not check_mode
    if actions and not check_mode and not artifact_needed:
        generations.install(layout, digest, keep, artifact)
    return {
        "changed": bool(actions),
        "actions": actions,
        "artifact_needed": artifact_needed,
        "generation": {
            "sha256": digest,
            "version": generations.version(layout.generation(digest)),
        },
        "diff": generations.diff(before, steps, digest),
    }


def uninstall(layout: generations.Layout, check_mode: bool) -> dict[str, object]:
    before = generations.read(layout)
    steps = generations.plan_removal(before, layout)
    actions = generations.describe(steps, layout, "")
    if actions and not check_mode:
        generations.uninstall(layout)
    return {
        "changed": bool(actions),
        "actions": actions,
        "diff": generations.diff(before, steps, ""),
    }


if __name__ == "__main__":
    main()
