# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that is kept on a host is found and read back, whoever keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.settings.apply import Keeper
from ansible_collections.steadygpu.host.plugins.module_utils.settings.files import header
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import Target
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import (
    owners,
    survey,
)

PAGES = Target("hugepages node 0", "number", "/sys/pages", "512")
SLICE = """# Managed by steadygpu.host.systemd_slice: changes made here are lost at the next run.
[Unit]
Description=x

[Slice]
CPUWeight=200
IOWeight=300
MemoryMax=8G
TasksMax=512
"""


def write(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    write(tmp_path, "sys/pages", "8\n")
    write(tmp_path, "proc/meminfo", "MemTotal: 2000000 kB\nSwapTotal: 0 kB\n")
    write(tmp_path, "proc/sys/kernel/pid_max", "32768\n")
    write(tmp_path, "proc/sys/kernel/threads-max", "15000\n")
    return tmp_path


def lines(root: Path) -> list[tuple[str, str, str | None, str]]:
    found = survey(str(root))
    return [
        (one.owner, one.setting.name, one.setting.effective, one.setting.verdict) for one in found
    ]


def test_a_bare_host_keeps_nothing(tmp_path: Path) -> None:
    assert (owners(str(tmp_path)), survey(str(tmp_path))) == ([], [])


def test_drift_by_hand_is_found_and_said_and_repaired_by_the_next_run(host: Path) -> None:
    root = str(host)
    Keeper("numa", root=root).keep([PAGES])
    assert (owners(root), lines(host)) == (
        ["numa"],
        [("numa", "hugepages node 0", "512", "effective")],
    )
    write(host, "sys/pages", "64\n")
    assert lines(host) == [("numa", "hugepages node 0", "64", "differs")]
    assert survey(root)[0].said == (
        "hugepages node 0 (role numa) is 64, wanted 512; /sys/pages holds another value"
    )
    Keeper("numa", root=root).keep([PAGES])
    assert lines(host) == [("numa", "hugepages node 0", "512", "effective")]


def test_a_setting_whose_place_is_gone_is_missed_until_the_role_has_seen_it(host: Path) -> None:
    Keeper("numa", root=str(host)).keep([PAGES])
    (host / "sys/pages").unlink()
    assert lines(host) == [("numa", "hugepages node 0", None, "differs")]
    assert "/sys/pages is gone" in survey(str(host))[0].setting.reason
    Keeper("numa", root=str(host)).keep([PAGES])
    assert lines(host) == [("numa", "hugepages node 0", None, "unsupported")]


def test_a_file_that_somebody_removed_is_missed(host: Path) -> None:
    path = "/etc/sysctl.d/90-steadygpu-numa.conf"
    Keeper("numa", root=str(host)).keep([PAGES], {path: header("numa") + "x = 1\n"})
    (host / path.lstrip("/")).unlink()
    assert lines(host)[1:] == [("numa", path, "absent", "differs")]


def test_a_value_that_another_file_takes_back_at_the_next_boot_is_found(host: Path) -> None:
    path = "/etc/sysctl.d/60-steadygpu-numa.conf"
    write(host, "proc/sys/kernel/numa_balancing", "1\n")
    balancing = Target("kernel.numa_balancing", "sysctl", "kernel.numa_balancing", "0")
    text = header("numa") + "kernel.numa_balancing = 0\n"
    Keeper("numa", root=str(host)).keep([balancing], {path: text})
    assert lines(host) == [("numa", "kernel.numa_balancing", "0", "effective")]
    write(host, "etc/sysctl.d/99-later.conf", "kernel.numa_balancing = 1\n")
    (found,) = survey(str(host))
    assert found.setting.verdict == "differs"
    assert "99-later.conf is read after" in found.setting.reason


def test_a_damaged_record_differs_and_hides_no_other(host: Path) -> None:
    Keeper("numa", root=str(host)).keep([PAGES])
    write(host, "var/lib/steadygpu/owned/settings-io.json", "{")
    found = lines(host)
    assert found[0] == ("io", "record of io", None, "differs")
    assert found[1][0] == "numa"


def slice_on(host: Path, **files: str) -> None:
    write(host, "etc/systemd/system/ai-workload.slice", SLICE)
    write(host, "etc/systemd/system/theirs.slice", "[Slice]\nTasksMax=1\n")
    write(host, "sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n")
    for name, text in files.items():
        path = f"sys/fs/cgroup/ai.slice/ai-workload.slice/{name.replace('_', '.')}"
        write(host, path, text + "\n")


def test_a_slice_is_read_back_from_its_cgroup(host: Path) -> None:
    slice_on(host, cpu_weight="200", memory_max="8589934592", pids_max="500", io_weight="x")
    assert owners(str(host)) == ["slices"]
    assert sorted(lines(host)) == [
        ("slices", "ai-workload.slice CPUWeight", "200", "effective"),
        ("slices", "ai-workload.slice IOWeight", "none", "inert"),
        ("slices", "ai-workload.slice MemoryMax", "8G", "effective"),
        ("slices", "ai-workload.slice TasksMax", "500", "differs"),
    ]


def test_an_administrators_drop_in_wins_and_is_named(host: Path) -> None:
    slice_on(host, cpu_weight="200", memory_max="1024", pids_max="512")
    write(host, "etc/systemd/system/ai-workload.slice.d/mine.conf", "[Slice]\nMemoryMax=1024\n")
    (memory,) = (one.setting for one in survey(str(host)) if "MemoryMax" in one.setting.name)
    assert (memory.verdict, memory.effective) == ("inert", "1K")
    assert "mine.conf sets MemoryMax=1024" in memory.reason


def test_a_slice_that_nobody_uses_after_a_boot_is_no_fault(host: Path) -> None:
    slice_on(host)
    assert {verdict for _owner, _name, _seen, verdict in lines(host)} == {"inert"}
