# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the next boot has, on a real host: parameters, modules, ACS, and when it is rebooted."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import LabHost

# Long, and not measured on a quiet machine yet.
pytestmark = pytest.mark.sweep

# GRUB did not start this machine. With this line in place of its own it looks as if.
BY_GRUB = (
    "sed 's,^,BOOT_IMAGE=/boot/vmlinuz ,' /proc/cmdline > /root/cmdline && "
    "mount --bind /root/cmdline /proc/cmdline"
)
GRUB = (
    "apt-get install -y --no-install-recommends grub2-common grub-common && mkdir -p /boot/grub && "
    "update-grub"
)
# A lab host is started without GRUB, so what was read of its entry is given by hand.
BOOTED = "sed -i 's,$, iommu=pt,' /root/cmdline"


def verdicts(answer: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["verdict"] for one in answer["settings"]}


def test_modules_act_at_once_and_what_cannot_act_says_so(host: LabHost) -> None:
    host.module("kernel_boot", {"state": "absent"})
    before = host.sh("cat /proc/cmdline; ls /etc/modprobe.d /etc/modules-load.d")
    wish = {
        "parameters": ["iommu=pt"],
        "modules": ["loop"],
        "module_options": {"loop": {"max_loop": 4}},
        "softdeps": {"nvidia": {"pre": ["i2c-core"], "post": ["nvidia-uvm"]}},
    }
    host.sh("rmmod loop || true")
    done = host.module("kernel_boot", wish)
    assert verdicts(done) == {
        "boot parameter iommu=pt": "unsupported",
        "module loop": "effective",
        "loop option max_loop": "effective",
    }, done
    assert not host.module("kernel_boot", wish)["changed"]
    refused = host.module("pcie_acs", {"bridges": ["gpus"]})
    assert "ACS is what keeps virtual machines apart" in refused["msg"]
    waits = host.module("reboot_needed", {"reasons": ["a firmware waits for it"]})
    assert waits["reasons"] == ["a firmware waits for it"]
    assert not host.module("kernel_boot", {"state": "absent"}).get("failed")
    assert host.sh("cat /proc/cmdline; ls /etc/modprobe.d /etc/modules-load.d") == before


def test_complaint_28_grub_gets_a_parameter_and_the_host_one_reboot(host: LabHost) -> None:
    host.sh(f"({GRUB}) >/root/grub.log 2>&1 || (cat /root/grub.log; false)")
    host.sh(BY_GRUB)
    before = host.sh("grep -v '^#' /boot/grub/grub.cfg | md5sum")
    asked = [
        "-e",
        '{"kernel_enabled": true, "kernel_parameters": ["iommu=pt"], "reboot_allowed": null}',
    ]
    run = host.play(*asked)
    assert run.rc != 0
    assert "Set reboot_allowed: true to reboot once" in run.output
    assert host.sh("grep -c 'iommu=pt' /boot/grub/grub.cfg") != "0"
    boot = host.sh("cat /proc/sys/kernel/random/boot_id")
    asked[1] = asked[1].replace("null", "true")
    # The lab starts its kernel without GRUB, so the parameter is not there after the reboot.
    run = host.play(*asked)
    assert run.rc != 0
    assert "was rebooted, and this still waits for a boot" in run.output
    second = host.sh("cat /proc/sys/kernel/random/boot_id")
    assert second != boot
    host.sh(BY_GRUB)
    run = host.play(*asked)
    assert host.sh("cat /proc/sys/kernel/random/boot_id") == second, "it was rebooted again"
    host.sh(BOOTED)
    run = host.play(*asked)
    assert run.rc == 0, run.output
    run = host.play("-e", '{"kernel_enabled": false, "reboot_allowed": false}')
    assert run.rc == 0, run.output
    assert host.sh("grep -v '^#' /boot/grub/grub.cfg | md5sum") == before
