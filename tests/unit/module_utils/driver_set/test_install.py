# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driver comes whole, to a host and GPUs that it fits, and while nobody has one."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.driver_set import manage
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.model import (
    DriverError,
    DriverRefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.tables import Card
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import apt
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import RefusedError
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record
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

PASCAL = 0x1B38
GH200 = 0x2342
B200 = 0x2901
DEBIAN = ("nvidia-open-kernel-dkms", "nvidia-smi", "libcuda1")


def offers(host: DriverHost, *releases: str, names: tuple[str, ...] = DEBIAN) -> None:
    """The sources have these releases, the newest first."""
    host.machine.offers.update({name: [f"{one}-1" for one in releases] for name in names})
    loose = {"nvidia-modprobe": ["570.133.07-1"], "nvidia-persistenced": ["535.171.04-1"]}
    host.machine.offers.update(loose)


def refusal(host: DriverHost, **options: object) -> str:
    """Why it is refused; nothing may have happened by then."""
    with pytest.raises((DriverRefusedError, RefusedError)) as caught:
        install(host, **options)
    assert host.machine.transactions() == []
    assert host.machine.held == set()
    assert record.load("driver", host.root) is None
    return str(caught.value)


def test_a_driver_comes_with_everything_that_belongs_to_it(host: DriverHost) -> None:
    offers(host, NEW, OLD)
    foreseen = install(host, check_mode=True, version=OLD)
    assert host.machine.versions == {}
    done = install(host, version=OLD)
    assert foreseen.actions == done.actions
    assert host.machine.versions == {
        "libcuda1": f"{OLD}-1",
        "nvidia-modprobe": "570.133.07-1",
        "nvidia-open-kernel-dkms": f"{OLD}-1",
        "nvidia-persistenced": "535.171.04-1",
        "nvidia-smi": f"{OLD}-1",
    }
    assert host.machine.held == set(host.machine.versions)
    assert done.view.on_disk == OLD
    assert host.ran == ["modprobe nvidia", "modprobe nvidia-uvm"]
    assert "blacklist nouveau" in host.read(manage.MODPROBE)
    again = install(host, version=OLD)
    assert [one for one in again.actions if not one.startswith("load ")] == []


def test_complaint_21_the_version_is_that_of_every_package(driven: DriverHost) -> None:
    offers(driven, "590.44.01", NEW, OLD)
    done = install(driven, version=NEW)
    assert [driven.machine.versions[name] for name in DEBIAN] == [f"{NEW}-1"] * 3
    assert done.reboot_reasons == [f"the kernel runs driver {OLD}, and {NEW} is installed"]
    assert verdicts(done)["driver module"] == "pending"
    pin = driven.read(manage.PIN)
    assert "Pin: version /^([0-9]+:)?580[.]95[.]05([^0-9.]|$)/" in pin
    assert "nvidia-[!c]*" in pin
    assert driven.ran == []


def test_complaint_21_what_cannot_be_solved_is_said_in_the_words_of_apt(
    driven: DriverHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(driven, NEW, OLD)

    def broken(*_anything: object) -> None:
        raise RefusedError("apt-get install cannot be done: you have held broken packages.")

    monkeypatch.setattr(apt.Apt, "solve", broken)
    assert "held broken packages" in refusal(driven, version=NEW)


def test_complaint_22_a_release_that_nobody_offers_is_named_with_what_there_is(
    driven: DriverHost,
) -> None:
    offers(driven, OLD)
    said = refusal(driven, version="999.10")
    assert f"nvidia-smi 999.10 (there is {OLD})" in said
    assert len(driven.machine.ran("apt-get -q")) == 1


def test_complaint_22_packages_that_are_not_known_here_must_be_named(host: DriverHost) -> None:
    host.sees["os"] = dataclasses.replace(host.view().os, id="ubuntu", name="Ubuntu 26.04")
    assert "Ubuntu 26.04 is not known here: name them in packages" in refusal(host)


def test_complaint_23_headers_of_the_running_kernel_come_along(host: DriverHost) -> None:
    host.has_kernel(headers=False)
    offers(host, OLD)
    assert f"install linux-headers-{KERNEL}" in refusal(host, version=OLD)
    host.machine.offers[f"linux-headers-{KERNEL}"] = ["6.12.9-1"]
    install(host, version=OLD)
    assert f"linux-headers-{KERNEL}" in host.machine.versions


def test_complaint_23_a_module_that_was_not_built_is_an_error(host: DriverHost) -> None:
    offers(host, OLD)
    host.builds = False
    host.write(f"var/lib/dkms/nvidia/{OLD}/build/make.log")
    host.write(f"var/lib/dkms/nvidia/{OLD}/source/dkms.conf")
    with pytest.raises(DriverError, match="DKMS has built no module") as caught:
        install(host, version=OLD)
    assert f"/var/lib/dkms/nvidia/{OLD}/build/make.log" in str(caught.value)


def test_complaint_20_the_fabric_manager_goes_along(driven: DriverHost) -> None:
    driven.machine.has(nvidia_fabricmanager=f"{OLD}-1", nvidia_imex=f"{OLD}-1")
    driven.sees["nvswitches"] = 4
    offers(driven, NEW, OLD, names=(*DEBIAN, "nvidia-fabricmanager", "nvidia-imex"))
    install(driven, version=NEW)
    assert driven.machine.versions["nvidia-fabricmanager"] == f"{NEW}-1"
    assert driven.machine.versions["nvidia-imex"] == f"{NEW}-1"


def test_complaint_20_a_fabric_manager_that_would_stay_behind_is_refused(
    driven: DriverHost,
) -> None:
    driven.machine.has(nvidia_fabricmanager=f"{OLD}-1")
    offers(driven, NEW, OLD)
    said = refusal(driven, version=NEW)
    assert f"nvidia-fabricmanager ({OLD}) would not be of release {NEW}" in said


def test_complaint_30_secure_boot_stops_before_any_change(host: DriverHost) -> None:
    offers(host, OLD)
    host.sees.update(secure_boot="enabled", key_enrolled=False)
    assert "mokutil --import /var/lib/dkms/mok.pub" in refusal(host, version=OLD)
    host.sees.update(key_enrolled=None)
    assert "the list of enrolled keys cannot be read" in refusal(host, version=OLD)
    host.sees.update(key_enrolled=True)
    assert install(host, version=OLD).actions


def test_complaint_30_modules_that_the_distribution_signed_are_fine(host: DriverHost) -> None:
    host.sees.update(secure_boot="enabled", key_enrolled=False)
    name = "linux-modules-nvidia-580-open-generic"
    offers(host, NEW, names=("nvidia-utils-580",))
    host.machine.offers[name] = ["6.8.0-60.63"]
    install(host, version=NEW, packages=(name, "nvidia-utils-580"))
    assert host.machine.versions[name] == "6.8.0-60.63"


def test_complaint_36_a_second_run_with_a_newer_repository_changes_nothing(
    driven: DriverHost,
) -> None:
    offers(driven, NEW, OLD)
    packages = DEBIAN
    install(driven, packages=packages, version=OLD)
    driven.machine.offers["nvidia-smi"] = ["600.1.1-1", f"{NEW}-1", f"{OLD}-1"]
    for options in ({"version": OLD}, {}):
        assert install(driven, packages=packages, **options).actions == []
    assert driven.machine.transactions() == []


def test_without_a_version_the_newest_release_of_all_packages_comes(host: DriverHost) -> None:
    offers(host, NEW, OLD)
    host.machine.offers["nvidia-smi"] = ["590.44.01-1", f"{NEW}-1"]
    install(host)
    assert [host.machine.versions[name] for name in DEBIAN] == [f"{NEW}-1"] * 3


def test_nothing_is_changed_while_somebody_has_a_gpu(driven: DriverHost) -> None:
    offers(driven, NEW, OLD)
    driven.sees["holders"] = ("GPU 0: python3 (process 4711 of container 0123456789ab)",)
    said = refusal(driven, version=NEW)
    assert "python3 (process 4711 of container 0123456789ab)" in said
    # What is there already costs nobody anything.
    assert install(driven, version=OLD, packages=DEBIAN).view.on_disk == OLD


def test_a_job_that_began_while_another_package_manager_was_waited_for_counts(
    driven: DriverHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(driven, NEW, OLD)

    def begins(*_anything: object) -> None:
        driven.sees["holders"] = ("GPU 0: python3 (process 4711)",)

    monkeypatch.setattr(manage.managers, "wait_until_free", begins)
    assert "python3 (process 4711)" in refusal(driven, version=NEW)


def test_containers_of_the_legacy_hook_are_not_put_at_risk(driven: DriverHost) -> None:
    offers(driven, NEW, OLD)
    driven.machine.victims = ["notebook"]
    assert "notebook" in refusal(driven, version=NEW)


def test_another_kernel_is_refused(driven: DriverHost) -> None:
    offers(driven, NEW, OLD)
    driven.machine.brings = {"linux-image-6.13-amd64": "6.13"}
    assert "another kernel (linux-image-6.13-amd64)" in refusal(driven, version=NEW)


def test_what_is_not_the_driver_stays(driven: DriverHost) -> None:
    driven.machine.has(libc6="2.41")
    offers(driven, NEW, OLD)
    driven.machine.brings = {"libc6": "2.42"}
    assert "libc6 to 2.42" in refusal(driven, version=NEW)
    driven.machine.brings = {}
    driven.machine.drops = ["xorg"]
    assert "it would remove xorg" in refusal(driven, version=NEW)
    driven.machine.drops = []
    driven.machine.brings = {"libc6": "2.42"}
    install(driven, version=NEW, also_change=("libc6*",))
    assert driven.machine.versions["libc6"] == "2.42"


def test_lists_that_are_too_old_are_read_anew_and_check_mode_says_so(host: DriverHost) -> None:
    offers(host, OLD)
    host.machine.updated = dict(host.machine.offers)
    host.machine.offers = {}
    foreseen = install(host, check_mode=True, version=OLD)
    assert foreseen.actions[0].startswith("read the package lists anew first")
    assert f"install nvidia-smi {OLD}" in foreseen.actions
    install(host, version=OLD)
    assert host.machine.versions["nvidia-smi"] == f"{OLD}-1"


@pytest.mark.parametrize(
    ("device", "options", "words"),
    [
        (PASCAL, {"flavour": "open", "version": OLD}, "has no GSP"),
        (PASCAL, {"version": "590.44.01"}, "was supported up to branch 580"),
        (B200, {"flavour": "proprietary", "version": NEW}, "works with the open modules alone"),
        (GH200, {"flavour": "proprietary", "version": NEW}, "works with the open modules alone"),
        (B200, {"version": OLD}, "needs branch 570 or newer"),
    ],
    ids=["dr_012", "dr_013", "blackwell_closed", "grace_hopper_closed", "blackwell_old"],
)
def test_a_gpu_gets_no_driver_that_it_cannot_use(
    host: DriverHost, device: int, options: dict[str, str], words: str
) -> None:
    host.sees["cards"] = (Card("0000:23:00.0", device),)
    assert words in refusal(host, **options)


@pytest.mark.parametrize(
    ("device", "package"),
    [(PASCAL, "nvidia-dkms-580-open"), (B200, "linux-modules-nvidia-580-generic")],
)
def test_the_packages_that_were_named_tell_the_modules(
    host: DriverHost, device: int, package: str
) -> None:
    host.sees["cards"] = (Card("0000:23:00.0", device),)
    said = refusal(host, version=NEW, packages=(package,))
    assert "want flavour" in said


def test_a_host_with_an_old_gpu_gets_the_closed_modules(host: DriverHost) -> None:
    host.sees["cards"] = (Card("0000:23:00.0", PASCAL), Card("0000:43:00.0", 0x2330))
    offers(host, OLD, names=("nvidia-kernel-dkms", "nvidia-smi", "libcuda1"))
    done = install(host, version=OLD)
    assert done.flavour == "proprietary"
    assert "nvidia-kernel-dkms" in host.machine.versions


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("usr/bin/nvidia-uninstall", "nvidia-uninstall"),
        ("run/nvidia/driver/usr/bin/x", "GPU Operator"),
        ("etc/dgx-release", "the vendor's way"),
    ],
)
def test_the_driver_of_somebody_else_is_not_touched(
    host: DriverHost, path: str, words: str
) -> None:
    host.loads(OLD)
    host.write(path, 'DGX_PRETTY_NAME="DGX OS"\n')
    offers(host, NEW)
    assert words in refusal(host, version=NEW)


def test_a_run_that_was_killed_in_apt_is_finished_by_the_next(
    driven: DriverHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers(driven, NEW, OLD)

    def killed(*_anything: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(apt.Apt, "do", killed)
        with pytest.raises(KeyboardInterrupt):
            install(driven, version=NEW)
    assert driven.read(manage.PIN)
    install(driven, version=NEW)
    assert driven.machine.versions["nvidia-smi"] == f"{NEW}-1"
    assert driven.machine.held >= set(DEBIAN)
    done = absent(driven)
    assert (driven.machine.held, driven.read(manage.PIN)) == (set(), "")
    assert any(f"stay at {NEW}" in text for text in done.warnings)


def test_a_driver_that_was_installed_is_adopted_with_its_pin(driven: DriverHost) -> None:
    offers(driven, NEW, OLD)
    install(driven, version=NEW)
    pin = driven.read(manage.PIN)
    assert keep(driven).actions == []
    assert driven.read(manage.PIN) == pin


def test_a_version_that_is_none_is_refused(driven: DriverHost) -> None:
    assert "newest is no version of a driver" in refusal(driven, version="newest")


def test_without_a_package_database_nothing_is_installed(
    host: DriverHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.sees["installed"] = dataclasses.replace(host.view().installed, manager=None)
    assert "neither dpkg nor rpm" in refusal(host, version=OLD)
