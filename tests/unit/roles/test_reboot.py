# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role ``reboot`` decides from what its module saw. Its variables are evaluated alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

ROLE = Path(__file__).resolve().parents[3] / "roles" / "reboot"
WAITS = {"needed": True, "reasons": ["iommu=pt waits"], "in_vain": [], "lost": [], "others": []}
LOST = {**WAITS, "lost": ["container train (restart policy no)"]}
CALM = {**WAITS, "needed": False, "reasons": []}


def trusted(value: Any) -> Any:
    """Values of a role's files, which may be templates."""
    if isinstance(value, dict):
        return {key: trusted(one) for key, one in value.items()}
    return trust_as_template(value) if isinstance(value, str) else value


def decided(name: str, seen: dict[str, Any] | None = None, **given: Any) -> Any:
    """A private variable of the role, on a host with these facts and variables."""
    variables: dict[str, Any] = {}
    for file in ("defaults", "vars"):
        text = (ROLE / file / "main.yml").read_text(encoding="utf-8")
        variables.update(trusted(yaml.safe_load(text)))
    variables["ansible_facts"] = {"gpu_host": given.pop("facts", {})}
    if seen is not None:
        variables["__reboot_seen"] = seen
    variables.update(given)
    return Templar(DataLoader(), variables).template(trust_as_template("{{ " + name + " }}"))


@pytest.mark.parametrize(
    ("seen", "given", "goes", "stops"),
    [
        (WAITS, {"reboot_allowed": True}, True, True),
        (WAITS, {"reboot_allowed": None}, False, True),
        (WAITS, {"reboot_allowed": False}, False, False),
        # Complaint 25: the machine that the play runs on.
        (WAITS, {"reboot_allowed": True, "ansible_connection": "local"}, False, True),
        # Complaints 26 and 27: without a reason nothing, whatever was allowed.
        (CALM, {"reboot_allowed": True}, False, False),
        (CALM, {"reboot_allowed": None}, False, False),
        (None, {"reboot_allowed": True}, False, False),
        # Nobody's running work.
        (LOST, {"reboot_allowed": True}, False, True),
        (LOST, {"reboot_allowed": True, "reboot_over_running_containers": True}, True, True),
    ],
)
def test_complaints_25_26_27_when_it_reboots_and_when_it_stops(
    seen: dict[str, Any] | None, given: dict[str, Any], goes: bool, stops: bool
) -> None:
    assert (decided("__reboot_goes", seen, **given), decided("__reboot_stops", seen, **given)) == (
        goes,
        stops,
    )


def test_a_host_that_keeps_nothing_is_not_asked() -> None:
    assert decided("__reboot_worth_a_look", facts={"settings": {"owners": []}}) is False
    assert decided("__reboot_worth_a_look", facts={"settings": {"owners": ["kernel"]}}) is True


def test_complaint_29_a_driver_whose_library_is_another_is_a_reason() -> None:
    facts = {"gpu": {"driver": {"status": "mismatch", "reason": "module 1 and library 2 differ"}}}
    assert decided("__reboot_told", facts=facts) == ["module 1 and library 2 differ"]
    assert decided("__reboot_worth_a_look", facts=facts) is True
