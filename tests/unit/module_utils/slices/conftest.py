# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host of these tests has one slice and a pretended systemd."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.slices import (
    manage,
    reader,
    refusals,
    reload,
)

from .pretended import MACHINE, NAME, Systemd


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    """A systemd that all code of slices asks."""
    pretended = Systemd(tmp_path / NAME)
    monkeypatch.setattr(manage.units, "show", pretended.show)
    monkeypatch.setattr(manage.units, "act", pretended.act)
    monkeypatch.setattr(manage.units, "daemon_reload", pretended.daemon_reload)
    monkeypatch.setattr(manage, "run", pretended.run)
    monkeypatch.setattr(refusals, "run", pretended.run)
    monkeypatch.setattr(reload, "endangered", lambda: pretended.endangered)
    monkeypatch.setattr(reader, "memory_use", lambda _group: pretended.use)
    monkeypatch.setattr(reader, "task_use", lambda _group: pretended.tasks)
    monkeypatch.setattr(reader, "protection_above", lambda _group: pretended.above)
    monkeypatch.setattr(reader, "has_systemd", lambda: True)
    monkeypatch.setattr(reader, "cgroup_fault", lambda: None)
    monkeypatch.setattr(reader, "machine", lambda _settings: MACHINE)
    monkeypatch.setattr(reader, "slice_files", pretended.slice_files)
    monkeypatch.setattr(reader, "processes", lambda _group: pretended.inside)
    monkeypatch.setattr(reader, "drop_ins", lambda _name: {})
    monkeypatch.setattr(reader, "control_drop_ins", lambda _name: {})
    return pretended
