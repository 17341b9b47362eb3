# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is held together, and what is not held because nobody could."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.driver_set import look, names
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.model import (
    DriverRefusedError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import dnf
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets.model import PackageError
from ansible_collections.steadygpu.host.plugins.module_utils.settings import record
from ansible_collections.steadygpu.host.tests.unit.module_utils.driver_set.driver_host import (
    NEW,
    OLD,
    DriverHost,
    absent,
    install,
    keep,
    verdicts,
)

PREBUILT = "linux-modules-nvidia-580-server-open-generic-hwe-24.04"
OF_KERNEL = "linux-modules-nvidia-580-server-open-6.8.0-60-generic"
KERNEL_METAS = {
    "linux-generic-hwe-24.04",
    "linux-headers-generic-hwe-24.04",
    "linux-image-generic-hwe-24.04",
    "linux-image-virtual-hwe-24.04",
}


def ubuntu(host: DriverHost) -> None:
    """Signed modules that come with each kernel."""
    versions = dict.fromkeys(KERNEL_METAS, "6.8.0-60.63")
    versions.update({PREBUILT: "6.8.0-60.63+1", OF_KERNEL: "6.8.0-60.63+1"})
    versions.update({"linux-image-6.8.0-60-generic": "6.8.0-60.63"})
    versions.update({"nvidia-utils-580-server": f"{NEW}-0ubuntu1", "vim": "9"})
    for name, version in versions.items():
        host.machine.has(**{name: version})
    host.has_kernel(module=NEW)
    host.loads(NEW)
    host.write("proc/modules", "nvidia_uvm 1 0\nnvidia 2 1\n")


def test_a_kernel_that_would_come_without_its_module_is_held_with_it(host: DriverHost) -> None:
    ubuntu(host)
    done = keep(host)
    assert host.machine.held == {PREBUILT, "nvidia-utils-580-server", *KERNEL_METAS}
    assert any("boot without GPUs" in text for text in done.warnings)
    assert verdicts(done)["driver packages"] == "effective"
    again = keep(host)
    assert (again.actions, again.warnings) == ([], [])
    keep(host, hold=False)
    assert host.machine.held == set()


def test_holds_of_the_kernel_go_where_modules_are_built_here(host: DriverHost) -> None:
    ubuntu(host)
    keep(host)
    host.machine.has(**{"nvidia-dkms-580-server-open": f"{NEW}-0ubuntu1"})
    keep(host)
    assert host.machine.held == {
        PREBUILT,
        "nvidia-dkms-580-server-open",
        "nvidia-utils-580-server",
    }
    absent(host)
    assert host.machine.held == set()


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("linux-modules-nvidia-580-generic", True),
        ("linux-modules-nvidia-580-6.8.0-60-generic", False),
        ("linux-objects-nvidia-580-6.8.0-60-generic", False),
        ("linux-signatures-nvidia-6.8.0-60-generic", False),
        ("kmod-nvidia-580.95.05-5.14.0-503.11.1", False),
        ("kmod-nvidia-open-dkms", True),
        ("kmod-nvidia", True),
        ("linux-generic", False),
        ("nvidia-utils-580", True),
    ],
)
def test_what_belongs_to_one_kernel_is_free(name: str, held: bool) -> None:
    assert names.to_hold([name]) == ([name] if held else [])


def test_packages_that_are_no_driver_are_refused_before_anything(host: DriverHost) -> None:
    host.machine.offers.update({"dkms": ["3.2"], "nvidia-smi": [f"{NEW}-1"]})
    with pytest.raises(DriverRefusedError, match="dkms is no package of the driver"):
        install(host, version=NEW, packages=("nvidia-smi", "dkms"))
    assert host.machine.transactions() == []


def on_rpm(host: DriverHost, can_hold: bool) -> None:
    """The host, as dnf has it."""
    host.sees["installed"] = dataclasses.replace(host.view().installed, manager="rpm")
    host.sees["can_hold"] = can_hold


def test_without_the_plugin_for_holds_nothing_is_done_and_it_is_said(driven: DriverHost) -> None:
    on_rpm(driven, can_hold=False)
    done = keep(driven)
    assert not any("hold" in action for action in done.actions)
    assert not any("held" in text for text in done.warnings)
    assert verdicts(done)["driver packages"] == "unsupported"
    kept = record.load("driver", driven.root)
    assert kept is not None
    assert "holds" not in kept.extra
    assert keep(driven).actions == []
    with pytest.raises(DriverRefusedError, match="not built for dnf"):
        keep(driven, mode="install", version=NEW, packages=("nvidia-driver-cuda",))


def test_a_hold_that_failed_is_no_action_and_not_ours(
    driven: DriverHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_rpm(driven, can_hold=True)

    def fails(_self: dnf.Dnf, _packages: Mapping[str, bool]) -> None:
        raise PackageError("dnf versionlock add failed: No such command")

    monkeypatch.setattr(dnf.Dnf, "hold", fails)
    done = keep(driven)
    assert any("No such command" in text for text in done.warnings)
    kept = record.load("driver", driven.root)
    assert kept is not None
    assert "holds" not in kept.extra
    assert keep(driven).actions == []


def test_the_locks_of_dnf_4_need_its_plugin_and_those_of_dnf_5_are_not_read(
    tmp_path: Path,
) -> None:
    root = str(tmp_path)
    assert look.can_hold("dpkg", root)
    assert not look.can_hold("rpm", root)
    plugin = tmp_path / "usr/lib/python3.9/site-packages/dnf-plugins/versionlock.py"
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    (tmp_path / "usr/bin").mkdir()
    program = tmp_path / "usr/bin/dnf"
    program.symlink_to("dnf-3")
    assert look.can_hold("rpm", root)
    program.unlink()
    program.symlink_to("dnf5")
    assert not look.can_hold("rpm", root)


def test_packages_of_an_old_release_that_are_held_stay_so(driven: DriverHost) -> None:
    driven.machine.has(held=True, nvidia_smi=f"{OLD}-1")
    keep(driven)
    keep(driven, hold=False)
    assert driven.machine.held == {"nvidia-smi"}
