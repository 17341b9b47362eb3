# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a host has to reboot, for what it is never rebooted again, and whose work it would end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.boot import at_risk, reboot
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Holder
from ansible_collections.steadygpu.host.plugins.module_utils.rollback import scope
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record
from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
    BOOT_PARAMETER,
    SettingsError,
    Target,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.record import Former, Record

PENDING = "boot parameter iommu=pt: wanted iommu=pt, and it acts after a boot"
DRIVER = "the driver on the disk is 570.1, the loaded one 550.2"


class Boots:
    """A host that can be rebooted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.count = 0
        (root / "proc/sys/kernel/random").mkdir(parents=True)
        self.boot()

    def boot(self, cmdline: str = "ro") -> None:
        """Another boot."""
        self.count += 1
        (self.root / "proc/sys/kernel/random/boot_id").write_text(f"boot-{self.count}\n")
        (self.root / "proc/cmdline").write_text(cmdline + "\n")

    def keeps(self, *words: str, **extra: Any) -> None:
        """A record of an owner."""
        targets = [Target(f"boot parameter {word}", BOOT_PARAMETER, "", word) for word in words]
        formers = tuple(Former(target, None) for target in targets)
        record.save(Record("kernel", formers, (), extra), str(self.root))

    def look(self, *told: str) -> reboot.Verdict:
        """What the module sees."""
        return reboot.look(told, str(self.root))

    def begin(self, *told: str) -> None:
        """What the module does before the reboot."""
        reboot.begin(self.look(*told), str(self.root))


@pytest.fixture
def host(tmp_path: Path) -> Boots:
    return Boots(tmp_path)


def test_complaints_26_and_27_nothing_waits_nothing_to_reboot_for(host: Boots) -> None:
    assert host.look().reasons == ()
    host.keeps("ro")
    assert host.look().reasons == ()


def test_complaint_26_only_what_differs_from_the_loaded_is_a_reason(host: Boots) -> None:
    host.keeps("iommu=pt", "ro")
    assert host.look(DRIVER).reasons == (DRIVER, PENDING)
    host.boot("ro iommu=pt")
    assert host.look().reasons == ()


def test_complaint_28_no_second_reboot_for_the_same_reason(host: Boots) -> None:
    host.keeps("iommu=pt")
    host.begin()
    assert host.look().reasons == (PENDING,)  # It has not happened yet.
    host.boot()
    seen = host.look()
    assert (seen.reasons, seen.in_vain) == ((), (PENDING,))
    # Another reason is one, and does not make the first forgotten.
    assert host.look(DRIVER).reasons == (DRIVER,)
    host.begin(DRIVER)
    host.boot()
    assert host.look(DRIVER).in_vain == (DRIVER, PENDING)


def test_a_reason_that_was_cured_may_come_again(host: Boots) -> None:
    host.keeps("iommu=pt")
    host.begin()
    host.boot("ro iommu=pt")
    reboot.forget_cured(host.look(), str(host.root))
    assert not (host.root / reboot.MEMORY.lstrip("/")).exists()
    host.boot("ro")
    assert host.look().reasons == (PENDING,)


def test_complaint_28_an_undone_change_does_not_take_the_memory_with_it(host: Boots) -> None:
    assert scope.area_of(reboot.MEMORY, scope.areas()) is None
    host.keeps("iommu=pt")
    host.begin()
    host.boot()
    reboot.forget_cured(host.look(), str(host.root))
    # The run fails, and its window is undone: nothing waits any more, and nothing was cured.
    record.forget("kernel", str(host.root))
    reboot.forget_cured(host.look(), str(host.root))
    host.keeps("iommu=pt")
    assert host.look().in_vain == (PENDING,)
    host.boot("ro iommu=pt")
    reboot.forget_cured(host.look(), str(host.root))
    host.boot("ro")
    assert host.look().reasons == (PENDING,)


def test_what_was_begun_is_not_forgotten_before_the_boot(host: Boots) -> None:
    host.keeps("iommu=pt")
    host.begin()
    reboot.forget_cured(host.look(), str(host.root))
    host.boot()
    assert host.look().in_vain == (PENDING,)


def test_a_reason_of_an_owner_holds_in_the_boot_in_which_it_arose(host: Boots) -> None:
    host.keeps(reboot=[{"reason": DRIVER, "boot_id": "boot-1"}])
    assert host.look().reasons == (DRIVER,)
    host.boot()
    assert host.look().reasons == ()


def test_complaint_28_a_reason_of_an_owner_that_has_not_looked_since_is_not_cured(
    host: Boots,
) -> None:
    host.keeps(reboot=[{"reason": DRIVER, "boot_id": "boot-1"}])
    host.begin()
    host.boot()
    seen = host.look()
    assert (seen.reasons, seen.undecided) == ((), (DRIVER,))
    reboot.forget_cured(seen, str(host.root))
    # The next run of the owner finds that the old one was loaded again.
    host.keeps(reboot=[{"reason": DRIVER, "boot_id": "boot-2"}])
    assert (host.look().reasons, host.look().in_vain) == ((), (DRIVER,))
    # And one day that it was not: then the reason may come again.
    host.keeps()
    host.boot()
    reboot.forget_cured(host.look(), str(host.root))
    host.keeps(reboot=[{"reason": DRIVER, "boot_id": "boot-3"}])
    assert host.look().reasons == (DRIVER,)


def test_packages_of_others_are_told_and_are_no_reason(host: Boots) -> None:
    (host.root / "run").mkdir()
    (host.root / "run/reboot-required.pkgs").write_text("linux-base\nlibc6\nlinux-base\n")
    seen = host.look()
    assert (seen.reasons, seen.others) == ((), ("libc6", "linux-base"))


def test_a_memory_that_cannot_be_read_is_an_error_with_a_way_out(host: Boots) -> None:
    path = host.root / reboot.MEMORY.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(SettingsError, match="remove it"):
        host.look()


def container(name: str, policy: str | None) -> dict[str, Any]:
    return {"Id": name * 8, "Name": f"/{name}", "HostConfig": {"RestartPolicy": {"Name": policy}}}


def test_containers_that_docker_starts_again_lose_nothing_for_good() -> None:
    running = [
        container("web", "always"),
        container("api", "unless-stopped"),
        container("train", "no"),
        container("trial", None),
        container("job", "on-failure"),
    ]
    holders = [
        Holder(10, "python", "container", container="web" * 8),
        Holder(11, "python", "container", container="pod" * 8),
        Holder(12, "python", "process"),
        Holder(13, "nvidia-persiste", "persistence"),
        Holder(14, "nv-hostengine", "dcgm"),
    ]
    assert at_risk.lost(running, holders) == [
        "container train (restart policy no)",
        "container trial (restart policy no)",
        "container job (restart policy on-failure)",
        "process 11 python in container podpodpodpod, which holds a GPU",
        "process 12 python, which holds a GPU",
    ]
