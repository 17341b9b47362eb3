# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No task of a role makes systemd reload: that takes GPUs from containers of the legacy hook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
FILES = sorted([*ROLES.glob("*/tasks/**/*.yml"), *ROLES.glob("*/handlers/**/*.yml")])
BLOCKS = ("block", "rescue", "always")


def tasks_in(node: Any) -> Iterator[dict[str, Any]]:
    """All tasks of a file, those of blocks too."""
    for task in node or []:
        yield task
        for key in BLOCKS:
            yield from tasks_in(task.get(key))


def reloads(task: dict[str, Any]) -> bool:
    """Does it end in a daemon-reload?

    ``systemctl enable`` does, by itself and by update-rc.d where there is an init script as well.
    """
    for name, arguments in task.items():
        module, told = name.rpartition(".")[2], json.dumps(arguments)
        if module in ("service", "systemd", "systemd_service", "sysvinit"):
            return bool(re.search(r"\b(enabled|masked|daemon_reload|daemon_reexec)\b", told))
        if module in ("command", "shell") and "systemctl" in told:
            switches = re.search(r"\b(re)?(en|dis)able\b|\b(un)?mask\b|\bpreset\b", told)
            quiet = "--no-reload" in told and "SYSTEMCTL_SKIP_SYSV" in task.get("environment", {})
            return "daemon-re" in told or bool(switches and not quiet)
    return False


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROLES)))
def test_complaint_11_no_task_reloads_systemd(file: Path) -> None:
    tasks = list(tasks_in(yaml.safe_load(file.read_text(encoding="utf-8"))))
    assert tasks
    assert [task.get("name") for task in tasks if reloads(task)] == []


QUIET = {"SYSTEMCTL_SKIP_SYSV": "1"}


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ({"ansible.builtin.systemd_service": {"name": "docker", "enabled": True}}, True),
        ({"ansible.builtin.systemd": {"daemon_reload": True}}, True),
        ({"ansible.builtin.service": "name=docker enabled=yes"}, True),
        ({"ansible.builtin.systemd_service": {"name": "docker", "state": "started"}}, False),
        ({"ansible.builtin.command": "systemctl daemon-reload"}, True),
        ({"ansible.builtin.command": {"argv": ["systemctl", "enable", "docker"]}}, True),
        ({"ansible.builtin.command": "systemctl enable --no-reload docker"}, True),
        (
            {
                "ansible.builtin.command": "systemctl enable --no-reload docker",
                "environment": QUIET,
            },
            False,
        ),
        ({"ansible.builtin.command": "systemctl is-active docker"}, False),
    ],
)
def test_what_counts_as_a_reload(task: dict[str, Any], found: bool) -> None:
    assert reloads({"name": "a task", **task}) is found
