# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fabric manager, the persistence daemon and Secure Boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import secure_boot, services
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.host_model import (
    FabricManager,
)

UNIT = "usr/lib/systemd/system/nvidia-fabricmanager.service"
GROUP = "system.slice/nvidia-fabricmanager.service/cgroup.procs"
VARIABLE = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def test_dr_007_nvswitches_and_no_fabric_manager(host):
    found = services.read_fabric_manager(4, "550.163.01", host.root)
    assert found.status == "absent"
    assert "4 NVSwitches" in (found.reason or "")
    assert "802" in (found.reason or "")


@pytest.mark.parametrize("nvswitches", [None, 0])
def test_dr_008_without_nvswitch_a_dead_fabric_manager_is_no_fault(host, nvswitches):
    host.write(UNIT, "[Service]\n")
    found = services.read_fabric_manager(nvswitches, "550.163.01", host.root)
    assert found == FabricManager("stopped", version=None, reason=None)


@pytest.mark.parametrize("hierarchy", ["sys/fs/cgroup", "sys/fs/cgroup/systemd"])
def test_a_fabric_manager_that_runs(host, hierarchy):
    host.write(UNIT, "[Service]\n")
    host.write(f"{hierarchy}/{GROUP}", "812\n")
    assert services.read_fabric_manager(6, None, host.root) == FabricManager("running")


def test_the_group_of_a_stopped_unit_is_empty(host):
    host.write(UNIT, "[Service]\n")
    host.write(f"sys/fs/cgroup/{GROUP}", "")
    assert services.read_fabric_manager(6, None, host.root).status == "stopped"


def test_a_persistence_daemon_that_no_unit_started(host):
    host.write("run/nvidia-persistenced/nvidia-persistenced.pid", "733\n")
    assert services.read_persistence_daemon(host.root).status == "absent"
    host.write("proc/733/comm", "nvidia-persiste\n")
    assert services.read_persistence_daemon(host.root).status == "running"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x06\x00\x00\x00\x01", "enabled"),
        (b"\x06\x00\x00\x00\x00", "disabled"),
        (b"\x06\x00", "unknown"),
    ],
)
def test_secure_boot(host, content, said):
    host.write(VARIABLE, "")
    Path(host.root, VARIABLE).write_bytes(content)
    assert secure_boot.read(host.root) == said


def test_secure_boot_without_uefi_and_where_nothing_can_be_seen(host):
    assert secure_boot.read(host.root) == "unknown"
    Path(host.root, "sys/firmware").mkdir(parents=True)
    assert secure_boot.read(host.root) == "unknown"
    host.write("sys/firmware/dmi/tables/DMI", "")
    assert secure_boot.read(host.root) == "disabled"
    host.write("sys/firmware/efi/fw_platform_size", "64\n")
    assert secure_boot.read(host.root) == "unknown"
