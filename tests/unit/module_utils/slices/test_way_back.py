# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run that fails leaves limits as they were."""

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.slices import (
    manage,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.manage import (
    ensure_present,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.model import SliceError, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)

from .pretended import GROUP, NAME, Systemd


def test_a_limit_that_was_reset_comes_back_when_the_run_fails(systemd: Systemd) -> None:
    directory = str(systemd.path.parent)
    ensure_present(
        Wish(NAME, "x", parse_properties({"MemoryMax": "1G", "TasksMax": 512}), directory), False
    )
    systemd.stubborn = "512"
    with pytest.raises(SliceError, match="as it was before"):
        ensure_present(Wish(NAME, "x", parse_properties({"TasksMax": 600}), directory), False)
    assert systemd.kernel["MemoryMax"] == "1G"
    assert systemd.kernel["TasksMax"] == "512"


def test_a_burst_that_made_way_comes_back_when_the_run_fails(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = str(systemd.path.parent)
    systemd.more_files = {"cpu.max": "300000 100000"}
    ensure_present(Wish(NAME, "x", parse_properties({"CPUQuota": "300%"}), directory), False)
    back: list[tuple[str, int | None, str]] = []
    monkeypatch.setattr(manage.guard, "clear_if_above", lambda *_group: 250000)
    monkeypatch.setattr(
        manage.guard,
        "put_back",
        lambda group, former: back.append((group, former, systemd.kernel["CPUQuota"])),
    )
    # The kernel goes on with the old quota, so the run fails.
    with pytest.raises(SliceError, match="CPUQuota: seen 300%"):
        ensure_present(Wish(NAME, "x", parse_properties({"CPUQuota": "200%"}), directory), False)
    assert back == [(GROUP, 250000, "300%")]
