# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``steadygpu settings``: what a person sees, and the exit status a script relies on."""

from __future__ import annotations

import argparse
import json

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.settings import survey
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import Setting
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import Found
from steadygpu_agent import settings

GOOD = Found("numa", Setting("kernel.numa_balancing", "0", "0", "effective", "", "/proc/x"))
INERT = Found("io", Setting("vda io.weight", "500", None, "inert", "no disk has iocost"))
DRIFTED = Found("numa", Setting("pages", "512", "64", "differs", "/sys/pages holds another value"))


def run(monkeypatch: pytest.MonkeyPatch, found: list[Found], *words: str) -> int:
    monkeypatch.setattr(survey, "survey", lambda: found)
    parser = argparse.ArgumentParser()
    settings.register(parser.add_subparsers())
    arguments = parser.parse_args(["settings", *words])
    status: int = arguments.run(arguments)
    return status


def test_only_what_differs_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, [GOOD, GOOD, INERT]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ROLE  SETTING                WANTED  EFFECTIVE  VERDICT",
        "numa  kernel.numa_balancing  0       0          effective",
        "io    vda io.weight          500     -          inert",
        "",
        "vda io.weight: no disk has iocost",
    ]
    assert run(monkeypatch, [GOOD, DRIFTED]) == 1
    assert "pages: /sys/pages holds another value" in capsys.readouterr().out


def test_a_host_without_settings_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, []) == 0
    assert capsys.readouterr().out == "no settings are kept on this host\n"


def test_json_has_every_setting_with_its_owner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, [GOOD, DRIFTED], "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [(one["owner"], one["verdict"]) for one in told] == [
        ("numa", "effective"),
        ("numa", "differs"),
    ]
