# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver that is there stays as it is; one that comes is built, pinned and held."""

from __future__ import annotations

import pytest
import standin_driver

# Long, and not measured on a quiet machine yet.
pytestmark = pytest.mark.sweep

LOADED = "550.163.01"
NEW = "580.95.05"
PACKAGES = ["nvidia-open-kernel-dkms", "nvidia-fabricmanager", "nvidia-smi"]


def verdicts(result):
    assert not result.get("failed"), result
    return {one["name"]: one["verdict"] for one in result["settings"]}


def install(host, release, **options):
    wanted = {
        "mode": "install",
        "version": release,
        "packages": PACKAGES,
        "files": [standin_driver.DIRECTORY],
    }
    return host.module("gpu_driver", {**wanted, **options})


def test_a_driver_of_somebody_else_is_adopted_and_read_back(host):
    result = host.module("gpu_driver")
    assert set(verdicts(result).values()) == {"effective"}
    assert (result["changed"], result["driver"]["loaded"]) == (False, LOADED)
    host.sh("simgpu fail wrong_library")
    result = host.module("gpu_driver")
    assert verdicts(result)["libnvidia-ml"] == "differs"
    assert (result["changed"], result["reboot_reasons"]) == (False, [])
    assert host.sh("test ! -e /var/lib/steadygpu/owned/settings-driver.json && echo none") == "none"


def test_a_driver_is_built_pinned_held_and_waits_for_a_reboot(host):
    for release in (LOADED, NEW):
        host.sh(standin_driver.script(release))
    # Complaint 23: without headers there would be no module, so they come along.
    assert host.sh("ls -d /lib/modules/$(uname -r)/build || echo none").endswith("none")
    result = install(host, LOADED)
    assert not result.get("failed"), result
    kernel = host.sh("uname -r")
    assert host.sh("modinfo -F version nvidia") == LOADED
    assert {
        "name": "nvidia",
        "version": LOADED,
        "kernel": kernel,
        "state": "installed",
    } in result["dkms"]
    assert set(verdicts(result).values()) == {"effective"}
    assert result["reboot_reasons"] == []
    assert host.sh("apt-mark showhold | grep ^nvidia").split() == sorted(PACKAGES)
    assert "1001" in host.sh("apt-cache policy nvidia-smi")
    assert not install(host, LOADED)["changed"]

    # A running job is not worth a driver.
    host.sh("systemd-run --quiet --unit job simgpu hold 0; sleep 3")
    refused = install(host, NEW)
    assert refused["refused"], refused
    assert "GPU 0" in refused["msg"]
    assert host.sh("modinfo -F version nvidia") == LOADED
    host.sh("systemctl stop job")

    result = install(host, NEW)
    assert not result.get("failed"), result
    assert host.sh("modinfo -F version nvidia") == NEW
    assert result["reboot_reasons"] == [f"the kernel runs driver {LOADED}, and {NEW} is installed"]
    assert verdicts(result)["driver module"] == "pending"
    # Complaint 20: the fabric manager is of the same release, without being asked.
    assert result["packages"]["nvidia-fabricmanager"] == {"version": f"{NEW}-1", "held": True}

    result = host.module("gpu_driver", {"state": "absent"})
    assert not result.get("failed"), result
    assert host.sh("apt-mark showhold | grep -c ^nvidia || true") == "0"
    assert host.sh("ls /etc/modprobe.d/*steadygpu-driver* 2>/dev/null | wc -l") == "0"


def test_debians_own_userland_is_installed_and_the_absent_gpu_is_said(host):
    host.sh("simgpu unload")
    host.sh("sed -i 's/ main$/ main contrib non-free non-free-firmware/' /etc/apt/sources.list")
    # Three times in one transaction, for minutes each under emulation.
    host.sh("sed -i s/initramfs=yes/initramfs=no/ /etc/initramfs-tools/update-initramfs.conf")
    packages = {"mode": "install", "packages": ["nvidia-smi", "libnvidia-ml1"]}
    result = host.module("gpu_driver", packages)
    assert verdicts(result)["driver module"] == "inert"
    assert "no NVIDIA GPU is on the bus" in result["settings"][0]["reason"]
    assert host.sh("nvidia-smi > /dev/null 2>&1; echo $?") == "9"
    assert host.sh("apt-mark showhold | grep -x nvidia-smi") == "nvidia-smi"
    assert not host.module("gpu_driver", packages)["changed"]


def test_a_module_that_does_not_compile_is_an_error_with_its_log(host):
    host.sh(standin_driver.script(LOADED, broken=True))
    result = install(host, LOADED)
    assert result["failed"]
    assert f"/var/lib/dkms/nvidia/{LOADED}/build/make.log" in result["msg"]
