# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Role ``slices`` and the key of Docker that role ``engine`` may keep."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2


def test_the_role_says_that_the_engine_keeps_it() -> None:
    tasks = (Path(__file__).parents[3] / "roles/slices/tasks/main.yml").read_text()
    (said,) = re.findall(r'docker_parent_elsewhere: "\{\{ (.+) \}\}"', tasks)
    expression = jinja2.Environment(autoescape=True).compile_expression(said)
    assert expression(engine_config={"cgroup-parent": "a.slice"})
    assert not expression(engine_config={"debug": True})
    assert not expression()
