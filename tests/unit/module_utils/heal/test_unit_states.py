# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.heal import unit_states
from ansible_collections.steadygpu.host.plugins.module_utils.heal.model import UnitState

SHOWN = """Id=docker.service
LoadState=loaded
ActiveState=active
UnitFileState=disabled
After=network.target containerd.service

Id=nvidia-cdi-refresh.path
LoadState=not-found
ActiveState=inactive
After=
"""
NAMES = ("docker.service", "nvidia-cdi-refresh.path")


@pytest.mark.parametrize(
    ("links", "enabled"), [("echo enabled", "enabled"), ("exit 1", "disabled")]
)
def test_units_are_read_with_their_links_as_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: str, enabled: str
) -> None:
    # After `systemctl enable --no-reload` systemd itself still says what was before.
    (tmp_path / "shown").write_text(SHOWN)
    script = tmp_path / "systemctl"
    asked = '[ "$*" != "is-enabled docker.service" ]'
    script.write_text(f"#!/bin/sh\n{asked} || {{ {links}; exit; }}\ncat {tmp_path}/shown\n")
    script.chmod(0o755)
    monkeypatch.setattr(process, "_SEARCH_PATH", f"{tmp_path}:/usr/bin:/bin")
    after = frozenset({"network.target", "containerd.service"})
    assert unit_states.read(NAMES) == {
        "docker.service": UnitState("loaded", enabled, "active", after),
        "nvidia-cdi-refresh.path": UnitState("not-found", "", "inactive", frozenset()),
    }


def test_without_systemd_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path))
    assert unit_states.read(NAMES) == {}
