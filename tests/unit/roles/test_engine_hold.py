# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The packages of an engine are the same for whoever holds, keeps and moves them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import plan
from ansible_collections.steadygpu.host.plugins.module_utils.upgrade import wanted

VARIABLES = Path(__file__).resolve().parents[3] / "roles" / "engine" / "vars" / "main.yml"


def test_complaint_29_the_role_holds_every_package_that_migrate_moves() -> None:
    variables: Any = yaml.safe_load(VARIABLES.read_text(encoding="utf-8"))
    held = set(re.findall(r"'([^']+)'", variables["__engine_installed"]))
    assert set(wanted.NAMES) - held == set()


def test_complaint_39_no_package_of_an_engine_is_removed_while_there_are_containers() -> None:
    assert plan.engines_removed(wanted.NAMES) == sorted(wanted.NAMES)
