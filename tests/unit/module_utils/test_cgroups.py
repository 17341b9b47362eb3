# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

from ansible_collections.steadygpu.host.plugins.module_utils.cgroups import (
    CgroupInfo,
    of_process,
    read_cgroups,
    read_files,
)


def test_the_unified_hierarchy_is_version_2(tmp_path: Path) -> None:
    group = tmp_path / "sys/fs/cgroup/ai.slice/ai-workload.slice"
    group.mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpuset cpu io memory\n")
    (group / "cpu.max").write_text("200000 100000\n")
    root = str(tmp_path)
    assert read_cgroups(root) == CgroupInfo(2, ["cpuset", "cpu", "io", "memory"])
    assert read_files("/ai.slice/ai-workload.slice", ["cpu.max", "gpu.max"], root) == {
        "cpu.max": "200000 100000",
        "gpu.max": None,
    }


def test_a_hybrid_host_is_version_1(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup/unified").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/unified/cgroup.controllers").write_text("")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cgroups").write_text(
        "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t9\t1\nrdma\t0\t1\t0\n"
    )
    assert read_cgroups(str(tmp_path)) == CgroupInfo(1, ["memory"])


def test_no_hierarchy_at_all(tmp_path: Path) -> None:
    assert read_cgroups(str(tmp_path)) == CgroupInfo(None, [])


def test_the_group_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text("0::/system.slice/docker-1.scope\n")
    assert of_process(7, str(tmp_path)) == "/system.slice/docker-1.scope"
    assert of_process(8, str(tmp_path)) is None
