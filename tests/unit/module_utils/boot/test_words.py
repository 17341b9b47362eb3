# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a kernel command line, and those that are never written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.boot import refused, words


def test_blanks_in_quotes_part_nothing() -> None:
    line = 'BOOT_IMAGE=/vmlinuz ro dyndbg="file a +p; file b +p" iommu=pt'
    assert words.split(line) == [
        "BOOT_IMAGE=/vmlinuz",
        "ro",
        'dyndbg="file a +p; file b +p"',
        "iommu=pt",
    ]


@given(st.lists(st.from_regex(r"[a-z][a-z_.-]{0,8}(=[A-Za-z0-9,.:/-]{0,8})?", fullmatch=True)))
def test_words_that_are_allowed_come_back_from_a_line(given_words: list[str]) -> None:
    assert [word for word in given_words if words.fault(word)] == []
    assert words.split(" ".join(given_words)) == given_words


@pytest.mark.parametrize(
    "word", ["", "=pt", "a b", "x=$(reboot)", 'x="y"', "a;b", "x=`id`", "a\nb"]
)
def test_what_a_shell_or_a_boot_script_would_run_is_no_parameter(word: str) -> None:
    assert words.fault(word)


def test_one_parameter_has_one_value_unless_each_counts() -> None:
    others = ["iommu=off", "console=tty0", "intel_iommu=on", "mitigations=auto"]
    wanted = ["iommu=pt", "console=ttyS0", "intel-iommu=on", "pci=realloc", "quiet"]
    assert words.conflicts(wanted, others) == [
        ("iommu=pt", "iommu=off"),
        ("intel-iommu=on", "intel_iommu=on"),
    ]


def test_rows_12_and_14_are_refused_with_reason_way_out_and_source() -> None:
    found = refused.faults(["pci=nomsi", "cgroup_disable=memory"])
    assert len(found) == 2
    assert [word in found[0] for word in ("NVMe", "pcie_acs", "Source: kernel")] == [True] * 3
    assert [word in found[1] for word in ("kubelet", "MIG")] == [True] * 2


@pytest.mark.parametrize(
    "word",
    [
        "pci=realloc,nomsi",
        "cgroup_disable=io,pids",
        "systemd.unified_cgroup_hierarchy=0",
        "systemd.unified_cgroup_hierarchy=false",
        "systemd.legacy_systemd_cgroup_controller=1",
        "hugepagesz=1G",
        "hugepages=16",
        "pcie_acs_override=downstream,multifunction",
        "nokaslr",
        "numa=off",
        "acpi=off",
        "swapaccount=1",
        "root=/dev/sda1",
        "init=/bin/sh",
        "systemd.unit=rescue.target",
        "single",
    ],
)
def test_what_costs_a_gpu_host_is_refused(word: str) -> None:
    assert len(refused.faults([word])) == 1


@pytest.mark.parametrize(
    "word",
    [
        "iommu=pt",
        "pci=realloc",
        "systemd.unified_cgroup_hierarchy=1",
        "modprobe.blacklist=nouveau",
        "default_hugepagesz=1G",
        "numa_balancing=disable",
        "nvidia.NVreg_EnableGpuFirmware=1",
        "cgroup_enable=memory",
    ],
)
def test_what_helps_or_harms_nobody_is_not_refused(word: str) -> None:
    assert refused.faults([word]) == []
    assert words.fault(word) == ""
