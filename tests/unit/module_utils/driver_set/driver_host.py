# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with GPUs and a kernel below a scratch root, on the machine of ``package_sets``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import (
    Machine as BootMachine,
)
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set import (
    kernels,
    look,
    manage,
)
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.host import Host, Outcome
from ansible_collections.steadygpu.host.plugins.module_utils.driver_set.model import View, Wish
from ansible_collections.steadygpu.host.plugins.module_utils.package_sets import apt
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed
from ansible_collections.steadygpu.host.tests.unit.module_utils.package_sets.machine import (
    Machine,
    machine,
)

__all__ = ["machine"]

KERNEL = "6.12.9-amd64"
H100 = 0x2330
OLD = "550.163.01"
NEW = "580.95.05"
VERSION = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (root@host)\n"
)


@dataclass
class DriverHost(Host):
    """``sees`` changes what a look shows; ``ran`` are the programs that were run.

    A package ``…-dkms`` that is installed builds its module for the running kernel while
    ``builds`` is True.
    """

    machine: Machine
    root: str
    sees: dict[str, Any] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    fails: dict[str, str] = field(default_factory=dict)
    builds: bool = True
    initramfs: list[str] = field(default_factory=list)
    mode: bool | None = None

    def view(self) -> View:
        """The host with what a test wants to be seen."""
        return replace(look.view(self.root), **self.sees)

    def endangered(self) -> list[str]:
        """Those of the machine."""
        return self.machine.victims

    def boot_machine(self) -> BootMachine:
        """Its initramfs is made by ``update-initramfs``, and lists what ``initramfs`` says."""
        return BootMachine(self.root, self._makes, lambda name: f"/usr/sbin/{name}")

    def _makes(self, argv: Sequence[str], **_more: Any) -> Completed:
        line = " ".join(argv)
        if argv[0] == "lsinitramfs":
            return Completed(argv, 0, "\n".join(self.initramfs), "")
        self.ran.append(line)
        if line in self.fails:
            return Completed(argv, 1, "", self.fails[line])
        image = Path(self.root) / f"boot/initrd.img-{KERNEL}"
        image.write_text("new")
        return Completed(argv, 0, "", "")

    def has_initramfs(self, *paths: str) -> None:
        """One that is older than every file of ours, with these paths."""
        self.initramfs = list(paths)
        self.write(f"boot/initrd.img-{KERNEL}", "old")
        os.utime(Path(self.root) / f"boot/initrd.img-{KERNEL}", (1, 1))

    def persistence_mode(self, wish: Wish, view: View) -> bool | None:
        """What the driver would say."""
        return self.mode if wish.persistence is not None and view.loaded else None

    def run(self, argv: Sequence[str], _deadline_s: float = 300.0) -> str | None:
        """Note it."""
        line = " ".join(argv)
        self.ran.append(line)
        return self.fails.get(line)

    def write(self, path: str, text: str = "") -> None:
        """A file below the root."""
        place = Path(self.root) / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def read(self, path: str) -> str:
        """What a file below the root holds, "" without one."""
        place = Path(self.root) / path.lstrip("/")
        return place.read_text() if place.exists() else ""

    def has_kernel(self, release: str = KERNEL, headers: bool = True, module: str = "") -> None:
        """A kernel, with a module of this release of the driver."""
        base = f"lib/modules/{release}"
        files = ["kernel/fs/ext4/ext4.ko.xz", "kernel/drivers/platform/nvidia-wmi.ko"]
        if module:
            files += ["updates/dkms/nvidia.ko", "updates/dkms/nvidia-uvm.ko"]
            for name in files[-2:]:
                self.write(f"{base}/{name}", module)
        self.write(f"{base}/modules.dep", "".join(f"{name}:\n" for name in files))
        place = Path(self.root) / base / "build/Makefile"
        place.unlink(missing_ok=True)
        if headers:
            self.write(f"{base}/build/Makefile")

    def loads(self, release: str | None) -> None:
        """The kernel runs this release; None: no driver."""
        place = Path(self.root) / "proc/driver/nvidia/version"
        if release is None:
            place.unlink(missing_ok=True)
            return
        self.write("proc/driver/nvidia/version", VERSION.format(release))

    def has_library(self, release: str) -> None:
        """libnvidia-ml of this release."""
        directory = Path(self.root) / "usr/lib64"
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        (directory / f"libnvidia-ml.so.{release}").write_text("")
        (directory / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{release}")

    def has_card(self, device: int, address: str = "0000:23:00.0") -> None:
        """A GPU on the bus."""
        base = f"sys/bus/pci/devices/{address}"
        for name, text in (("vendor", "0x10de"), ("device", f"0x{device:04x}")):
            self.write(f"{base}/{name}", f"{text}\n")
        self.write(f"{base}/class", "0x030200\n")

    def answers(
        self,
        argv: Sequence[str],
        deadline_s: float = 30.0,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """In place of :func:`process.run` for apt."""
        before = self.machine.versions
        done = self.machine.run(argv, deadline_s, stdin, env)
        for name, version in self.machine.versions.items():
            if "dkms" in name and before.get(name) != version and self.builds:
                headers = (Path(self.root) / f"lib/modules/{KERNEL}/build/Makefile").exists()
                self.has_kernel(headers=headers, module=version.partition("-")[0])
        return done


@pytest.fixture
def host(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> DriverHost:
    """A Debian host with an H100, kernel and headers, without a driver."""
    made = DriverHost(machine, str(machine.root))
    monkeypatch.setattr(apt, "run", made.answers)

    def modinfo(argv: Sequence[str], _deadline_s: float = 10.0) -> Completed:
        text = made.read(argv[-1])
        return Completed(argv, 0 if text else 1, text, "")

    monkeypatch.setattr(kernels, "run", modinfo)
    monkeypatch.setattr(look, "_holders", lambda _proc, _root: [])
    # Paths below the root are given to modinfo as the host sees them.
    made.write("etc/os-release", 'ID=debian\nPRETTY_NAME="Debian 13"\n')
    made.write("proc/sys/kernel/osrelease", f"{KERNEL}\n")
    made.write("proc/sys/kernel/random/boot_id", "this-boot\n")
    made.write("proc/modules", "")
    made.write("sys/firmware/acpi/x")
    made.has_kernel()
    made.has_card(H100)
    return made


@pytest.fixture
def driven(host: DriverHost) -> DriverHost:
    """The host with a driver that somebody installed from packages."""
    host.machine.has(
        nvidia_open_kernel_dkms=f"{OLD}-1",
        nvidia_smi=f"{OLD}-1",
        libcuda1=f"{OLD}-1",
        nvidia_persistenced="535.171.04-1",
        nvidia_modprobe="570.133.07-1",
        nvidia_container_toolkit="1.20.0-1",
    )
    host.has_kernel(module=OLD)
    host.loads(OLD)
    host.has_library(OLD)
    host.write("proc/modules", "nvidia_uvm 1 0\nnvidia 2 1\n")
    return host


def keep(host: DriverHost, check_mode: bool = False, **options: Any) -> Outcome:
    """Adopt, or what the options say."""
    return manage.keep(Wish(**options), host, check_mode)


def install(host: DriverHost, check_mode: bool = False, **options: Any) -> Outcome:
    """Install."""
    return keep(host, check_mode, mode="install", **options)


def absent(host: DriverHost, **options: Any) -> Outcome:
    """Take back what is ours."""
    return manage.absent(Wish(**options), host, check_mode=False)


def verdicts(outcome: Outcome) -> dict[str, str]:
    """The verdict of each setting by name."""
    return {setting.name: setting.verdict for setting in outcome.settings}
