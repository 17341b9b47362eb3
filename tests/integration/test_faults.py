# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plant a fault, ask what it is, run the printed commands as they stand: the host is healthy."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import LabHost
from faults import FAULTS, Fault

BUSYBOX = "tar -C /usr -c bin/busybox | docker import - busybox >/dev/null"
GRANT = (Path(__file__).parent / "legacy_grant.py").read_text(encoding="utf-8")


def prepare(host: LabHost) -> None:
    """An image to run, and what stands in for the legacy hook."""
    host.sh(BUSYBOX)
    host.sh(f"printf %s {shlex.quote(GRANT)} >/root/legacy_grant.py")


def story(host: LabHost, fault: Fault) -> None:
    """One fault, from planting to health."""
    print(f"planting: {fault.name}")
    host.sh(fault.plant)
    commands = named(host, fault)
    assert commands, f"{fault.id} prints no command"
    # Their statuses are not asked: `steadygpu heal` says by one that there is something to heal.
    host.sh("\n".join(commands), check=False)
    host.sh(fault.healthy)


def named(host: LabHost, fault: Fault) -> list[str]:
    """The commands that are printed for the fault; fails where it is not named."""
    if not fault.says:
        found = answer(host, "check --host --format json")["findings"]
        rules = {finding["rule"]: finding["commands"] for finding in found}
        assert fault.id in rules, f"{fault.name}: {sorted(rules)}"
        return list(rules[fault.id])
    message = host.sh(f"({fault.says}) 2>&1", check=False)
    told = answer(host, "explain --json -", message)["explanations"]
    causes = [cause for one in told for cause in one["causes"] if cause["standing"] != "ruled out"]
    assert fault.id in [cause["id"] for cause in causes], f"{fault.name}: {message}\n{told}"
    return list(next(cause["commands"] for cause in causes if cause["id"] == fault.id))


def answer(host: LabHost, arguments: str, stdin: str = "") -> dict[str, Any]:
    """What ``steadygpu`` prints as JSON; a status of 1 only says that there are findings."""
    printed = host.sh(f"printf %s {shlex.quote(stdin)} | steadygpu {arguments}", check=False)
    found = json.loads(printed)
    assert isinstance(found, dict)
    return found


def test_the_faults_that_cost_a_night_are_named_and_their_printed_fix_heals(host):
    prepare(host)
    for fault in FAULTS:
        if not fault.sweep:
            story(host, fault)


@pytest.mark.sweep
def test_every_fault_that_the_lab_can_plant_is_named_and_healed(host):
    prepare(host)
    failed = {}
    for fault in FAULTS:
        try:
            story(host, fault)
        except AssertionError as error:
            failed[fault.name] = str(error)
            print(f"FAILED: {fault.name}: {error}")
    assert not failed
