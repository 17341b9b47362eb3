# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import Setting
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import Found
from ansible_collections.steadygpu.host.plugins.modules import host_settings_info


def test_it_tells_of_all_and_names_what_differs_and_fails_for_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [
        Found("numa", Setting("kernel.numa_balancing", "0", "0", "effective")),
        Found("numa", Setting("pages", "512", None, "differs", "no such node")),
    ]
    monkeypatch.setattr(host_settings_info, "survey", lambda: found)
    with patch_module_args({}), pytest.raises(SystemExit) as ended:
        host_settings_info.main()
    result = json.loads(capsys.readouterr().out)
    assert (ended.value.code or 0, result["changed"]) == (0, False)
    assert [one["owner"] for one in result["settings"]] == ["numa", "numa"]
    assert result["differing"] == ["pages (role numa) is unknown, wanted 512; no such node"]
