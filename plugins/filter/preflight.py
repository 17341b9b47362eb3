# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jinja face of module_utils/checks/preflight.py."""

from __future__ import annotations

DOCUMENTATION = r"""
name: preflight
short_description: What stands in the way of provisioning a GPU host
version_added: "0.1.0"
author: steadygpu.host contributors (@steadygpu)
description:
  - Judges the facts of a host and returns every obstacle at once, errors first.
positional: []
options:
  _input:
    description: C(ansible_facts['gpu_host']) with the sections of both facts modules.
    type: dict
    required: true
  require_gpu:
    description: Whether a host without a usable driver is an error or only a warning.
    type: bool
    default: true
  toolkit_version:
    description: The version of the NVIDIA Container Toolkit that is about to be installed.
    type: str
  live_restore:
    description: Whether Docker is about to get C(live-restore).
    type: bool
    default: false
  engine_from_distribution:
    description: Whether a missing engine would come from the distribution's own packages.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Show what stands in the way
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_host'] | steadygpu.host.preflight }}"
"""

RETURN = r"""
_value:
  description:
    - Findings, each with the keys C(id), C(severity) (V(error) or V(warning)), C(title),
      C(seen), C(wanted) and C(fix).
  type: list
  elements: dict
"""

import json
from collections.abc import Mapping
from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ansible_collections.steadygpu.host.plugins.module_utils.checks.preflight import (
    Wishes,
    findings,
)


def preflight(gpu_host: Mapping[str, Any], **wishes: Any) -> list[dict[str, str]]:
    """See the documentation above; raises AnsibleFilterError when facts are missing."""
    plain = json.loads(json.dumps(gpu_host))  # core >= 2.19 hands tagged types to filters
    try:
        return findings(plain, Wishes(**wishes))
    except KeyError as missing:
        raise AnsibleFilterError(
            f"gpu_host has no section {missing}: run steadygpu.host.gpu_facts and "
            "steadygpu.host.runtime_facts on this host first"
        ) from missing
    except TypeError as wrong:
        raise AnsibleFilterError(f"preflight: {wrong}") from wrong


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"preflight": preflight}
