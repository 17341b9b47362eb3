# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.modules import runtime_facts


def test_facts_come_under_one_key_and_never_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"socket": str(tmp_path / "none.sock"), "packages": ["no-such-package"]}
    with patch_module_args(asked), pytest.raises(SystemExit) as ended:
        runtime_facts.main()
    result = json.loads(capsys.readouterr().out)
    assert (ended.value.code or 0, result["changed"]) == (0, False)
    facts = result["ansible_facts"]["gpu_host"]
    assert facts["schema"] == 1
    assert facts["docker"]["status"] != "running"
    assert "no-such-package" not in facts["packages"]["installed"]
