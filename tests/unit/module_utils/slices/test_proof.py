# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The slices of a host read from files alone, as `verify` and the agent do."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.slices.proof import place, prove
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.unit_text import render

NAME = "ai-workload.slice"
GROUP = "sys/fs/cgroup/ai.slice/ai-workload.slice"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    settings = parse_properties(
        {
            "TasksMax": 512,
            "IOWeight": 50,
            "MemoryLow": "1G",
            "IOReadBandwidthMax": ["/dev/vda 5M"],
        }
    )
    files = {
        f"etc/systemd/system/{NAME}": render("x", settings.values()),
        "etc/systemd/system/other.slice": "[Slice]\nTasksMax=3\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu io memory pids\n",
        "sys/fs/cgroup/ai.slice/memory.low": "0\n",
        GROUP + "/pids.max": "512\n",
        GROUP + "/io.weight": "default 50\n",
        GROUP + "/io.max": "",
        GROUP + "/memory.low": "1073741824\n",
        "proc/meminfo": "MemTotal: 2097152 kB\n",
        "dev/vda": "",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_a_name_with_dashes_nests() -> None:
    assert place("ai-workload.slice") == "/ai.slice/ai-workload.slice"
    assert place("a-b-c.slice") == "/a.slice/a-b.slice/a-b-c.slice"
    assert place("gpu.slice") == "/gpu.slice"


def test_every_property_has_a_verdict_with_its_source(root: Path) -> None:
    found = {one.name: one for one in prove(str(root))}
    assert set(found) == {
        f"{NAME} {key}" for key in ("TasksMax", "IOWeight", "MemoryLow", "IOReadBandwidthMax")
    }
    tasks = found[f"{NAME} TasksMax"]
    assert (tasks.wanted, tasks.effective, tasks.verdict) == ("512", "512", "effective")
    assert tasks.source == f"/{GROUP}/pids.max"
    assert found[f"{NAME} IOWeight"].verdict == "inert"
    assert "bfq" in found[f"{NAME} IOWeight"].reason
    assert found[f"{NAME} MemoryLow"].verdict == "inert"
    assert found[f"{NAME} IOReadBandwidthMax"].verdict == "differs"


def test_a_value_changed_by_hand_differs(root: Path) -> None:
    (root / GROUP / "pids.max").write_text("max\n")
    found = {one.name: one for one in prove(str(root))}
    assert found[f"{NAME} TasksMax"].verdict == "differs"
    assert found[f"{NAME} TasksMax"].effective == "infinity"


def test_a_drop_in_of_somebody_else_is_what_wins(root: Path) -> None:
    drop_in = root / "etc/systemd/system" / (NAME + ".d") / "mine.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Slice]\nTasksMax=7\n")
    (root / GROUP / "pids.max").write_text("7\n")
    found = {one.name: one for one in prove(str(root))}
    assert found[f"{NAME} TasksMax"].verdict == "inert"
    assert "mine.conf sets TasksMax=7" in found[f"{NAME} TasksMax"].reason


def test_a_slice_that_is_not_active_and_a_host_with_cgroup_v1_say_so(root: Path) -> None:
    for path in (root / GROUP).iterdir():
        path.unlink()
    (root / GROUP).rmdir()
    assert {one.verdict for one in prove(str(root))} == {"inert"}
    assert "systemd starts it" in prove(str(root))[0].reason
    (root / "sys/fs/cgroup/cgroup.controllers").unlink()
    assert {one.verdict for one in prove(str(root))} == {"unsupported"}
    assert "unified" in prove(str(root))[0].reason
