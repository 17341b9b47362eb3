# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jinja face of module_utils/checks/output/fleet_html.py."""

from __future__ import annotations

DOCUMENTATION = r"""
name: checks_page
short_description: The checks of many hosts as one HTML page
version_added: "0.1.0"
author: steadygpu.host contributors (@steadygpu)
description:
  - Makes one page of what M(steadygpu.host.check) returned on each host. The page needs nothing
    else and loads nothing.
positional: []
options:
  _input:
    description:
      - One dictionary a host with C(name), and C(result), what M(steadygpu.host.check) returned,
        undefined or V(none) for a host that was not checked. Then C(reason) says why.
    type: list
    elements: dict
    required: true
  made:
    description: A line that says when and for whom the page was made.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Keep the page on the controller
  ansible.builtin.copy:
    content: "{{ [{'name': inventory_hostname, 'result': checks}] | steadygpu.host.checks_page }}"
    dest: "{{ playbook_dir }}/checks.html"
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description: The text of the page.
  type: str
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from ansible.errors import AnsibleFilterError

from ansible_collections.steadygpu.host.plugins.module_utils.checks.output.fleet_html import (
    HostChecks,
    page,
)


def checks_page(hosts: Sequence[Mapping[str, Any]], made: str = "") -> str:
    """See the documentation above; raises AnsibleFilterError for what is no list of hosts."""
    plain = json.loads(json.dumps(hosts))  # core >= 2.19 hands tagged types to filters
    try:
        return page([_host(entry) for entry in plain], str(made))
    except (KeyError, TypeError, AttributeError) as wrong:
        raise AnsibleFilterError(
            f"checks_page: {wrong!r}; wanted is a list of dictionaries with name and result"
        ) from wrong


def _host(entry: Mapping[str, Any]) -> HostChecks:
    result = entry.get("result") or {}
    if "findings" not in result:
        reason = entry.get("reason") or result.get("msg") or "no result"
        return HostChecks(str(entry["name"]), reason=str(reason))
    return HostChecks(
        name=str(entry["name"]),
        findings=result["findings"],
        unusable=result.get("unusable") or [],
        about=str(result.get("about") or ""),
    )


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name to function."""
        return {"checks_page": checks_page}
