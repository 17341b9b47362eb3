# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


class ModuleDocFragment:
    # What a module that changes a host promises. A module that promises less says so in its own
    # `attributes`, which win key by key.
    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: Can run in C(check_mode) and say what it would change, without changing it.
    support: full
  diff_mode:
    description: Says in diff mode what changed, or in check mode would change.
    support: full
  idempotent:
    description: Run again with the same options, it reports C(changed=false).
    support: full
  platform:
    description: Hosts that it can run on.
    support: full
    platforms: linux
  action_group:
    description:
      - Use C(group/steadygpu.host.all) in C(module_defaults) to set options for every module.
    support: full
    membership:
      - steadygpu.host.all
"""

    # What a module that only reads promises.
    FACTS = r"""
attributes:
  check_mode:
    description: It only reads, so it does the same in C(check_mode).
    support: full
  diff_mode:
    description: It changes nothing that a diff could show.
    support: N/A
  facts:
    description: Returns an C(ansible_facts) dictionary that becomes facts of the host.
    support: full
  idempotent:
    description: It changes nothing, so it may run as often as wanted.
    support: full
  platform:
    description: Hosts that it can run on.
    support: full
    platforms: linux
  action_group:
    description:
      - Use C(group/steadygpu.host.all) in C(module_defaults) to set options for every module.
    support: full
    membership:
      - steadygpu.host.all
"""

    # In addition, for a module whose work begins on the controller.
    ACTION = r"""
attributes:
  action:
    description: Has an action plugin of the same name, so part of it runs on the controller.
    support: full
"""
