#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: checkpoint_info
short_description: List a host's checkpoints, what is under way, and what differs
version_added: "0.1.0"
description:
  - Lists the checkpoints that M(steadygpu.host.checkpoint) keeps, the open window, and what a
    restore has left undone.
  - Compares two of them, or one with what the host is now.
  - It waits for nobody, so it also answers while a restore is under way.
options:
  diff:
    description:
      - Compare two checkpoints.
    type: dict
    suboptions:
      from:
        description:
          - The earlier one. An id or its beginning, a label, V(@2026-12-01T03:00), or V(now).
          - V(before-change) is where the open window began, and without one the state before the
            last confirmed change.
        type: str
        default: before-change
      to:
        description:
          - The later one. V(now) looks at the host without saving anything.
        type: str
        default: now
  deadline_s:
    description:
      - Seconds that the driver, systemd, Docker and the package manager have for each answer, when
        the host is compared.
    type: float
    default: 20
  socket:
    description:
      - The unix socket of Docker.
    type: path
    default: /var/run/docker.sock
notes:
  - Needs root.
  - Secrets in files are never part of a difference. That one has changed is.
attributes:
  diff_mode:
    support: N/A
    details: It changes nothing.
extends_documentation_fragment:
  - steadygpu.host.attributes
seealso:
  - module: steadygpu.host.checkpoint
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: Read the checkpoints
  steadygpu.host.checkpoint_info:
  register: kept

- name: Say who changed the host last
  ansible.builtin.debug:
    msg: "{{ (kept.checkpoints | selectattr('labels', 'contains', 'stable') | first).who }}"

- name: Nothing has changed since the last confirmed change
  steadygpu.host.checkpoint_info:
    diff: {from: stable}
  register: since
  failed_when: not since.difference.empty
"""

RETURN = r"""
checkpoints:
  description: All checkpoints, the oldest first.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: Its name.
      type: str
      sample: 12-9f86d081
    sequence:
      description: It counts up, whatever the clock does.
      type: int
      sample: 12
    taken_at:
      description: When it was taken, in UTC by the host's clock.
      type: str
      sample: "2026-12-01T03:00:00Z"
    labels:
      description: Its labels.
      type: list
      elements: str
      sample: [stable]
    files:
      description: How many paths it knows.
      type: int
      sample: 64
    paths:
      description: Paths that the user added.
      type: list
      elements: str
    hostname:
      description: The host that it was taken of.
      type: str
    machine:
      description: That host's machine id.
      type: str
    who:
      description: Who took it. C(why), C(ticket), C(window) and C(what) are there as well.
      type: str
      sample: ada@desk
damaged:
  description: A message for every checkpoint that cannot be read.
  returned: always
  type: list
  elements: str
difference:
  description: What differs, with secrets hidden.
  returned: with O(diff)
  type: dict
  contains:
    before:
      description: The id that O(diff.from) names, or V(now).
      type: str
    after:
      description: The id that O(diff.to) names, or V(now).
      type: str
    empty:
      description: Whether nothing differs but what comes and goes by itself, such as memory in use.
      type: bool
    changes:
      description:
        - Each with C(part), C(subject), C(kind), C(before), C(after), C(lines) and C(counts), which
          is V(false) for what comes and goes by itself.
      type: list
      elements: dict
labels:
  description: The id of the checkpoint by label.
  returned: always
  type: dict
  sample: {stable: 12-9f86d081}
pending:
  description:
    - What the last restore left for later, each with C(subject), C(reason) and C(pending).
  returned: always
  type: list
  elements: dict
restore_unfinished:
  description:
    - Whether a restore was interrupted or is under way. The next run of
      M(steadygpu.host.checkpoint) with V(begin), V(confirm) or V(restore) ends it.
  returned: always
  type: bool
  sample: false
text:
  description: The difference for a person to read.
  returned: with O(diff)
  type: str
window:
  description: The open window as M(steadygpu.host.checkpoint) returns it, null when none is open.
  returned: always
  type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.rollback import codec, model, view
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.difference import (
    compare,
    show_text,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors import (
    LiveHost,
)


def listing(store: Store, host: LiveHost) -> dict[str, Any]:
    """All that is kept, and what is under way."""
    return {
        "checkpoints": [view.checkpoint(summary) for summary in store.summaries()],
        "damaged": store.damaged(),
        "labels": store.labels(),
        "window": view.window(store.window(), host.moment()),
        "restore_unfinished": store.restore_journal() is not None,
        "pending": [codec.left_to_json(one) for one in store.pending()],
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "diff": {
                "type": "dict",
                "options": {
                    "from": {"type": "str", "default": "before-change"},
                    "to": {"type": "str", "default": compare.NOW},
                },
            },
            "deadline_s": {"type": "float", "default": 20},
            "socket": {"type": "path", "default": "/var/run/docker.sock"},
        },
        supports_check_mode=True,
    )
    asked = module.params["diff"]
    store = Store()
    host = LiveHost(socket=module.params["socket"], deadline_s=module.params["deadline_s"])
    try:
        result = listing(store, host)
        if asked is not None:
            found = compare.compare(store, host, asked["from"], asked["to"])
            result["difference"] = view.difference(found)
            result["text"] = show_text.plain(found)
    except (model.RollbackError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
