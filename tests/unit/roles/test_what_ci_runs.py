# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Molecule's scenarios and the integration stories run: check mode first, and every role."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[3]
SCENARIOS = sorted(path.parent for path in CHECKOUT.glob("molecule/*/molecule.yml"))
ROLES = sorted(path.parent.parent.name for path in CHECKOUT.glob("roles/*/meta/main.yml"))
# In site.yml they do nothing unless somebody asks for something, with one of these variables.
ASKED_BY = {
    "containerd": ("containerd_config", "containerd_cdi", "containerd_nri", "containerd_runtimes"),
    "mig": ("mig_layout",),
    "runtimes": ("runtimes_config", "runtimes_routes"),
    "slices": ("slices_units",),
}


def texts(*patterns: str) -> str:
    """The files that the patterns name, one after the other."""
    found = sorted(path for pattern in patterns for path in CHECKOUT.glob(pattern))
    assert found
    return "\n".join(path.read_text(encoding="utf-8") for path in found)


RUN = texts("molecule/**/*.yml", "tests/integration/*.py")


def sequence(file: Path) -> list[str]:
    """The steps of ``molecule test``."""
    config: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    return list(map(str, config["scenario"]["test_sequence"]))


def roles_in(text: str) -> set[str]:
    """The roles of this collection that a text runs."""
    return set(re.findall(r"\b(?:role|name): steadygpu\.host\.(\w+)", text))


def roles_run() -> set[str]:
    """The roles that CI runs: by itself, by playbooks, and those that these depend on."""
    playbooks = set(re.findall(r"import_playbook: steadygpu\.host\.(\w+)", RUN))
    playbooks |= set(re.findall(r"playbooks/(\w+)\.yml", RUN))
    there = [f"playbooks/{name}.yml" for name in sorted(playbooks)]
    found = roles_in(RUN) | roles_in(texts(*there))
    needed = [roles_in(texts(f"roles/{name}/meta/main.yml")) for name in sorted(found)]
    return found.union(*needed)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.name)
def test_complaint_34_35_every_scenario_goes_through_check_mode_first(scenario: Path) -> None:
    steps = sequence(scenario / "molecule.yml")
    wanted = ["check", "converge", "idempotence", "verify"]
    assert [step for step in steps if step in wanted] == wanted


def test_complaint_34_check_mode_runs_on_a_bare_host() -> None:
    default = CHECKOUT / "molecule" / "default"
    steps = sequence(default / "molecule.yml")
    assert not (default / "prepare.yml").exists()
    assert steps[steps.index("create") + 1] == "check"
    assert "prepare" not in steps


def test_complaint_40_ci_runs_every_role() -> None:
    assert len(ROLES) >= len(ASKED_BY)
    assert set(ROLES) - roles_run() == set()


@pytest.mark.parametrize("role", sorted(ASKED_BY))
def test_complaint_40_a_role_that_is_idle_unasked_is_asked_for_something(role: str) -> None:
    asked = RUN + texts("inventories/lab/group_vars/*.yml")
    variables = "|".join(ASKED_BY[role])
    assert role in ROLES
    # With a value on its own lines or behind it, in YAML or as JSON.
    assert re.search(rf"\b(?:{variables})\"?:(?!\s*(?:\[\]|\{{\}}|\"\"))", asked)
