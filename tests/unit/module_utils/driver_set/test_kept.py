# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What was set stays visible afterwards, is finished after a kill, and goes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.driver_set import (
    daemon,
    look,
    manage,
    ready,
)
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.model import DriverError
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record, survey
from ansible_collections.steadygpu.host.tests.unit.module_utils.driver_set.driver_host import (
    KERNEL,
    NEW,
    OLD,
    DriverHost,
    absent,
    install,
    keep,
    verdicts,
)

ANEW = "update-initramfs -u -k all"
WANTS = "etc/systemd/system/multi-user.target.wants"
# As Ubuntu's package has it: udev starts it, and no GPU is kept open.
UBUNTU = """[Unit]
StopWhenUnneeded=true
[Service]
ExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose
"""


def with_nouveau(host: DriverHost) -> None:
    """Nouveau has the GPUs, and the initramfs is older than our file."""
    host.loads(None)
    host.write("proc/modules", "nouveau 1 0\n")
    host.has_initramfs("usr/lib/modules/nouveau.ko.xz")


def test_an_initramfs_that_a_killed_run_did_not_make_is_made_by_the_next(
    driven: DriverHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_nouveau(driven)

    def killed(*_anything: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ready.initramfs, "make", killed)
        with pytest.raises(KeyboardInterrupt):
            keep(driven)
    assert "nouveau" in driven.read(manage.MODPROBE)
    keep(driven)
    assert driven.ran == [ANEW]
    assert keep(driven).actions == []
    assert driven.ran == [ANEW]


def test_an_initramfs_that_could_not_be_made_is_an_error_until_it_is(driven: DriverHost) -> None:
    with_nouveau(driven)
    driven.fails[ANEW] = "No space left on device"
    for _time in range(2):
        with pytest.raises(DriverError, match="No space left on device"):
            keep(driven)
    driven.fails.clear()
    assert keep(driven).actions == [
        f"make the initramfs of every kernel anew without nouveau ({ANEW})"
    ]


def test_an_initramfs_that_cannot_be_looked_into_is_told(driven: DriverHost) -> None:
    with_nouveau(driven)
    (Path(driven.root) / f"boot/initrd.img-{KERNEL}").unlink()
    done = keep(driven)
    assert any("no initramfs of the running kernel" in text for text in done.warnings)


def test_check_mode_says_that_every_initramfs_is_made(driven: DriverHost) -> None:
    with_nouveau(driven)
    foreseen = keep(driven, check_mode=True)
    assert driven.ran == []
    assert foreseen.actions == keep(driven).actions


def test_an_initramfs_without_nouveau_is_looked_into_once(driven: DriverHost) -> None:
    with_nouveau(driven)
    keep(driven)
    # Loaded no longer; the file is touched, as by a way back.
    driven.loads(OLD)
    driven.write("proc/modules", "nvidia_uvm 1 0\nnvidia 2 1\n")
    driven.has_initramfs("usr/lib/modules/ext4.ko.xz")
    driven.ran.clear()
    assert keep(driven).actions == []
    kept = record.load("driver", driven.root)
    assert kept is not None
    assert kept.extra["initramfs"]
    assert driven.ran == []


def test_the_second_run_after_a_reboot_changes_nothing(driven: DriverHost) -> None:
    with_nouveau(driven)
    assert keep(driven).reboot_reasons
    driven.write("proc/sys/kernel/random/boot_id", "next-boot\n")
    driven.loads(OLD)
    driven.write("proc/modules", "nvidia_uvm 1 0\nnvidia 2 1\n")
    done = keep(driven)
    assert (done.actions, done.reboot_reasons) == ([], [])
    kept = record.load("driver", driven.root)
    assert kept is not None
    assert "reboot" not in kept.extra


def test_a_run_that_loads_the_module_is_the_last_that_changes(host: DriverHost) -> None:
    for name in ("nvidia-open-kernel-dkms", "nvidia-smi", "libcuda1"):
        host.machine.offers[name] = [f"{OLD}-1"]
    host.machine.offers.update({"nvidia-modprobe": ["570"], "nvidia-persistenced": ["535"]})
    install(host, version=OLD)
    host.loads(OLD)
    host.write("proc/modules", "nvidia_uvm 1 0\nnvidia 2 1\n")
    assert install(host, version=OLD).actions == []


def test_a_daemon_that_is_no_longer_asked_for_is_what_it_was(driven: DriverHost) -> None:
    driven.sees["persistence"] = "stopped"
    keep(driven, persistence=True)
    driven.sees["persistence"] = "running"
    driven.write(f"{WANTS}/x")
    (Path(driven.root) / WANTS / daemon.UNIT).symlink_to("/lib/x")
    driven.ran.clear()
    driven.fails[f"systemctl stop {daemon.UNIT}"] = "timed out"
    keep(driven)
    kept = record.load("driver", driven.root)
    assert kept is not None
    assert kept.extra[daemon.NOTED] == {"running": False, "enabled": False}
    driven.fails.clear()
    driven.ran.clear()
    keep(driven)
    assert driven.ran == [
        f"systemctl disable --no-reload {daemon.UNIT}",
        f"systemctl stop {daemon.UNIT}",
    ]
    kept = record.load("driver", driven.root)
    assert kept is not None
    assert daemon.NOTED not in kept.extra


def test_a_unit_that_keeps_no_gpu_open_is_left_alone(driven: DriverHost) -> None:
    driven.write(f"usr/lib/systemd/system/{daemon.UNIT}", UBUNTU)
    keep(driven)
    for _time in range(2):
        done = keep(driven, persistence=True)
        assert (done.actions, driven.ran) == ([], [])
        assert verdicts(done)["nvidia-persistenced"] == "unsupported"
    # A person's drop-in gives it the mode, and udev starts it.
    driven.write(
        f"etc/systemd/system/{daemon.UNIT}.d/mode.conf",
        "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced --persistence-mode\n",
    )
    driven.sees["persistence"], driven.mode = "running", True
    done = keep(driven, persistence=True)
    assert verdicts(done)["nvidia-persistenced"] == "effective"
    assert driven.ran == []


def test_a_daemon_that_runs_without_the_mode_is_not_what_was_asked(driven: DriverHost) -> None:
    driven.write(f"usr/lib/systemd/system/{daemon.UNIT}", "[Service]\nExecStart=x\n[Install]\n")
    driven.sees["persistence"], driven.mode = "running", False
    done = keep(driven, persistence=True)
    found = {one.name: one for one in done.settings}["nvidia-persistenced"]
    assert (found.verdict, found.effective) == ("differs", "running, persistence mode off")
    driven.mode = True
    assert verdicts(keep(driven, persistence=True))["nvidia-persistenced"] == "effective"


def test_the_mode_is_read_of_all_gpus() -> None:
    assert look.parse_persistence("Enabled\nEnabled\n") is True
    assert look.parse_persistence("Enabled\nDisabled\n") is False
    assert look.parse_persistence("[N/A]\nEnabled\n") is True
    assert look.parse_persistence("[N/A]\n") is None


def surveyed(host: DriverHost) -> dict[str, str]:
    """What a verification would see."""
    return {one.setting.name: one.setting.verdict for one in survey.survey(host.root)}


def test_what_changed_since_is_found_by_a_verification(driven: DriverHost) -> None:
    driven.machine.has(nvidia_fabricmanager=f"{OLD}-1")
    keep(driven)
    assert set(surveyed(driven).values()) == {"effective"}
    assert {"driver module", "libnvidia-ml", "driver packages"} <= set(surveyed(driven))
    driven.machine.held.clear()
    driven.machine.has(nvidia_fabricmanager=f"{NEW}-1")
    driven.has_library(NEW)
    driven.write("proc/modules", "nvidia 2 1\n")
    found = surveyed(driven)
    assert [found[name] for name in ("driver packages", "libnvidia-ml")] == ["differs"] * 2
    assert found["nvidia-uvm before the engines"] == "differs"
    # Without a switch a fabric manager means nothing.
    assert found["nvidia-fabricmanager"] == "inert"


def test_a_verification_knows_the_release_that_was_asked(driven: DriverHost) -> None:
    for name in ("nvidia-open-kernel-dkms", "nvidia-smi", "libcuda1"):
        driven.machine.offers[name] = [f"{NEW}-1"]
    install(driven, version=NEW)
    assert surveyed(driven)["driver module"] == "pending"
    driven.loads(NEW)
    driven.has_library(NEW)
    assert set(surveyed(driven).values()) == {"effective"}
    driven.has_kernel(module=OLD)
    driven.loads(OLD)
    assert surveyed(driven)["driver module"] == "differs"


def test_a_stopped_daemon_is_found_by_a_verification(driven: DriverHost) -> None:
    unit = f"usr/lib/systemd/system/{daemon.UNIT}"
    driven.write(unit, "[Service]\nExecStart=/usr/bin/nvidia-persistenced\n[Install]\n")
    keep(driven, persistence=True)
    assert surveyed(driven)["nvidia-persistenced"] == "differs"


def test_a_record_that_says_nonsense_fails_no_survey(driven: DriverHost) -> None:
    keep(driven)
    kept = record.load("driver", driven.root)
    assert kept is not None
    kept.extra["wish"] = {"version": 580, "mode": "install"}
    record.save(kept, driven.root)
    assert surveyed(driven)["driver"] == "differs"


SOURCE = "etc/apt/sources.list.d/steadygpu-driver.sources"
KEY = "etc/apt/keyrings/steadygpu-driver.asc"
UPLOADS = "/var/cache/steadygpu/driver"
LEFT = {"source": "driver", "uploads": UPLOADS}


def test_what_was_installed_from_goes_before_the_holds(
    driven: DriverHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(driven)
    for path in (SOURCE, KEY, f"{UPLOADS}/nvidia-smi.deb"):
        driven.write(path, "ours")

    def killed(*_anything: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(manage.holds, "hold", killed)
        with pytest.raises(KeyboardInterrupt):
            absent(driven, **LEFT)
    assert not any((Path(driven.root) / path).exists() for path in (SOURCE, KEY, UPLOADS[1:]))
    assert driven.machine.held
    absent(driven, **LEFT)
    assert driven.machine.held == set()
    assert absent(driven, **LEFT).actions == []


def test_a_driver_that_is_adopted_again_needs_no_source_of_ours(driven: DriverHost) -> None:
    driven.write(SOURCE, "ours")
    foreseen = keep(driven, check_mode=True, **LEFT)
    assert driven.read(SOURCE)
    done = keep(driven, **LEFT)
    assert foreseen.actions == done.actions
    assert f"remove /{SOURCE}" in done.actions
    assert driven.read(SOURCE) == ""
    assert keep(driven, **LEFT).actions == []


def test_where_something_is_installed_its_source_stays(driven: DriverHost) -> None:
    driven.write(SOURCE, "ours")
    install(driven, version=OLD, packages=("nvidia-open-kernel-dkms", "nvidia-smi"), **LEFT)
    assert driven.read(SOURCE) == "ours"
