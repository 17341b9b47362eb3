# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver that is there stays, is held, and is ready before engines start."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.driver_set import manage
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.model import (
    DriverRefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.tables import Card
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.host_model import (
    FabricManager,
)
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import apt
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record
from ansible_collections.steadygpu.host.tests.unit.module_utils.driver_set.driver_host import (
    KERNEL,
    NEW,
    OLD,
    DriverHost,
    absent,
    keep,
    verdicts,
)


def files_of(host: DriverHost) -> str:
    """All that the module may write but the ledger."""
    paths = (manage.MODPROBE, manage.MODULES_LOAD, manage.PIN, record.path_of("driver"))
    return "".join(map(host.read, paths))


def test_a_host_without_a_driver_is_left_alone(host: DriverHost) -> None:
    done = keep(host)
    assert (done.actions, files_of(host)) == ([], "")
    assert verdicts(done)["driver module"] == "differs"
    assert host.ran == []


def test_a_bare_machine_has_nothing_to_drive(host: DriverHost) -> None:
    host.sees["cards"] = ()
    host.machine.has(nvidia_smi=f"{OLD}-1")
    host.has_library(OLD)
    done = keep(host)
    assert verdicts(done)["driver module"] == "inert"
    assert "no NVIDIA GPU" in done.settings[0].reason


def test_a_driver_without_packages_is_reported_and_costs_nothing(host: DriverHost) -> None:
    host.loads(OLD)
    host.has_library(OLD)
    host.sees["modules"] = {"nvidia_uvm": True}
    done = keep(host)
    assert done.actions == []
    assert set(verdicts(done).values()) == {"effective"}
    assert done.view.origin == "unknown"


def test_packages_are_held_and_uvm_comes_before_the_engines(driven: DriverHost) -> None:
    foreseen = keep(driven, check_mode=True)
    assert files_of(driven) == ""
    done = keep(driven)
    assert foreseen.actions == done.actions
    assert driven.machine.held == {
        "libcuda1",
        "nvidia-modprobe",
        "nvidia-open-kernel-dkms",
        "nvidia-persistenced",
        "nvidia-smi",
    }
    assert driven.read(manage.MODULES_LOAD).splitlines()[1:] == ["nvidia-uvm"]
    assert "softdep nvidia post: nvidia-uvm" in driven.read(manage.MODPROBE)
    assert "nouveau" not in driven.read(manage.MODPROBE)
    assert set(verdicts(done).values()) == {"effective"}
    assert driven.machine.transactions() == []
    assert keep(driven).actions == []


def test_what_is_set_is_taken_back_and_only_that(driven: DriverHost) -> None:
    driven.machine.has(held=True, nvidia_smi=f"{OLD}-1")
    keep(driven)
    done = absent(driven)
    assert driven.machine.held == {"nvidia-smi"}
    assert files_of(driven) == ""
    assert any("no longer hold" in action for action in done.actions)
    assert absent(driven).actions == []


def test_holds_are_released_where_they_are_no_longer_wanted(driven: DriverHost) -> None:
    keep(driven)
    done = keep(driven, hold=False)
    assert driven.machine.held == set()
    assert f"no longer hold {', '.join(sorted(driven.view().versions))}" in done.actions
    assert keep(driven, hold=False).actions == []


def test_a_killed_run_is_finished_and_its_holds_stay_ours(
    driven: DriverHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_anything: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(apt.Apt, "hold", killed)
        with pytest.raises(KeyboardInterrupt):
            keep(driven)
    known = record.load("driver", driven.root)
    assert known is not None
    assert known.extra["holds"] == sorted(driven.view().versions)
    keep(driven)
    absent(driven)
    assert driven.machine.held == set()
    assert files_of(driven) == ""


def test_nothing_is_held_on_an_image_of_the_vendor(driven: DriverHost) -> None:
    driven.sees["os"] = dataclasses.replace(driven.view().os, vendor_image="DGX OS 7.2")
    done = keep(driven)
    assert driven.machine.held == set()
    assert verdicts(done)["driver packages"] == "inert"


def test_complaint_20_a_fabric_manager_of_another_release_is_refused(driven: DriverHost) -> None:
    driven.machine.has(nvidia_fabricmanager_550=f"{NEW}-1")
    driven.sees["nvswitches"] = 4
    driven.sees["fabric_manager"] = FabricManager("running", NEW)
    with pytest.raises(DriverRefusedError, match=f"nvidia-fabricmanager-550 is {NEW}"):
        keep(driven)
    assert driven.machine.held == set()
    assert files_of(driven) == ""


def test_dr_008_a_fabric_manager_without_a_switch_means_nothing(driven: DriverHost) -> None:
    driven.machine.has(nvidia_fabricmanager_550=f"{NEW}-1")
    done = keep(driven)
    assert verdicts(done)["nvidia-fabricmanager-550"] == "inert"


def test_complaint_20_imex_has_to_be_of_the_release(driven: DriverHost) -> None:
    driven.machine.has(nvidia_imex=f"{NEW}-1")
    with pytest.raises(DriverRefusedError, match="IMEX needs one release"):
        keep(driven)


def test_complaint_23_a_kernel_that_would_boot_without_a_driver_is_told(
    driven: DriverHost,
) -> None:
    driven.has_kernel("6.12.12-amd64", headers=False)
    done = keep(driven)
    assert any(text.startswith("6.12.12-amd64 is installed as well") for text in done.warnings)


def test_complaint_24_nouveau_is_kept_out_from_the_next_boot_on(driven: DriverHost) -> None:
    driven.loads(None)
    driven.write("proc/modules", "nouveau 1 0\n")
    driven.has_initramfs("usr/lib/modules/nouveau.ko.xz")
    done = keep(driven)
    assert driven.read(manage.MODPROBE).splitlines()[1:3] == [
        "blacklist nouveau",
        "options nouveau modeset=0",
    ]
    assert driven.ran == ["update-initramfs -u -k all"]
    assert done.reboot_reasons == ["nouveau has the GPUs until the next boot"]
    assert verdicts(done)["nouveau"] == "pending"
    known = record.load("driver", driven.root)
    assert known is not None
    assert known.extra["reboot"] == [{"reason": done.reboot_reasons[0], "boot_id": "this-boot"}]
    assert keep(driven).actions == []
    # The next boot.
    driven.loads(OLD)
    driven.write("proc/modules", "nvidia_uvm 1 0\nnvidia 2 1\n")
    done = keep(driven)
    assert done.reboot_reasons == []
    assert "nouveau" in driven.read(manage.MODPROBE)


def test_dr_015_nouveau_stays_where_nothing_could_take_its_place(host: DriverHost) -> None:
    host.write("proc/modules", "nouveau 1 0\n")
    done = keep(host)
    assert (done.actions, verdicts(done)["nouveau"]) == ([], "inert")


def test_complaint_26_a_reboot_waits_only_while_loaded_differs(driven: DriverHost) -> None:
    driven.has_kernel(module=NEW)
    driven.has_library(NEW)
    for name in ("nvidia-open-kernel-dkms", "nvidia-smi", "libcuda1"):
        driven.machine.has(**{name: f"{NEW}-1"})
    done = keep(driven)
    assert done.reboot_reasons == [f"the kernel runs driver {OLD}, and {NEW} is installed"]
    found = verdicts(done)
    assert (found["driver module"], found["libnvidia-ml"]) == ("pending", "pending")
    driven.loads(NEW)
    assert keep(driven).reboot_reasons == []


def test_complaint_29_a_reboot_does_not_mend_a_library_of_another_release(
    driven: DriverHost,
) -> None:
    driven.has_library(NEW)
    done = keep(driven)
    assert done.reboot_reasons == []
    assert verdicts(done)["libnvidia-ml"] == "differs"
    assert any("a reboot does not mend that" in text for text in done.warnings)


def test_dr_001_uvm_is_loaded_where_cuda_lacks_it(driven: DriverHost) -> None:
    driven.write("proc/modules", "nvidia 2 1\n")
    done = keep(driven)
    assert driven.ran == ["modprobe nvidia-uvm"]
    assert "load nvidia-uvm" in done.actions


def test_uvm_of_another_release_than_the_loaded_module_waits(driven: DriverHost) -> None:
    driven.write("proc/modules", "nvidia 2 1\n")
    driven.has_kernel(module=NEW)
    done = keep(driven)
    assert driven.ran == []
    assert verdicts(done)["nvidia-uvm before the engines"] == "pending"


def test_gpus_that_virtual_machines_have_need_no_module(driven: DriverHost) -> None:
    driven.loads(None)
    driven.sees["cards"] = (Card("0000:23:00.0", 0x2330, "vfio-pci"),)
    assert verdicts(keep(driven))["driver module"] == "inert"


@pytest.mark.parametrize(
    ("path", "origin"),
    [("usr/bin/nvidia-uninstall", "runfile"), ("run/nvidia/driver/usr/bin/x", "container")],
)
def test_a_driver_of_no_package_is_told(host: DriverHost, path: str, origin: str) -> None:
    host.loads(OLD)
    host.write(path)
    done = keep(host)
    assert done.view.origin == origin
    assert any("no package of it can be held" in text for text in done.warnings)


def test_the_daemon_is_started_and_taken_back(driven: DriverHost) -> None:
    driven.sees["persistence"] = "stopped"
    done = keep(driven, persistence=True)
    assert driven.ran == [
        "systemctl enable --no-reload nvidia-persistenced.service",
        "systemctl start nvidia-persistenced.service",
    ]
    assert verdicts(done)["nvidia-persistenced"] == "differs"
    driven.sees["persistence"] = "running"
    driven.write("etc/systemd/system/multi-user.target.wants/x")
    wants = f"{driven.root}/etc/systemd/system/multi-user.target.wants"
    (driven.machine.root / wants / "nvidia-persistenced.service").symlink_to("/lib/x")
    driven.ran.clear()
    assert keep(driven, persistence=True).actions == []
    absent(driven)
    assert driven.ran == [
        "systemctl disable --no-reload nvidia-persistenced.service",
        "systemctl stop nvidia-persistenced.service",
    ]


def test_a_daemon_that_is_not_here_is_unsupported(driven: DriverHost) -> None:
    done = keep(driven, persistence=True)
    assert verdicts(done)["nvidia-persistenced"] == "unsupported"
    assert driven.ran == []


def test_the_running_kernel_is_the_one_that_counts(driven: DriverHost) -> None:
    view = driven.view()
    assert view.on_disk == OLD
    assert view.running is not None
    assert view.running.path == f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko"
