# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host in a directory: its kernel, its boot loader, and programs that do as the real ones."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.boot.model import Machine
from ansible_collections.steadygpu.host.plugins.module_utils.process import Completed

RELEASE = "6.12.57+deb13-amd64"
GRUB_LINE = f"BOOT_IMAGE=/boot/vmlinuz-{RELEASE} root=UUID=0a ro quiet"


class Tree:
    """The host. ``ran`` are the programs that were started, but readers."""

    def __init__(self, root: Path, cmdline: str = GRUB_LINE, programs: Sequence[str] = ()) -> None:
        self.root = root
        self.programs = {"update-grub", "modprobe", *programs}
        self.ran: list[str] = []
        self.missing_modules: set[str] = set()
        self.initramfs: list[str] = []
        self.broken: set[str] = set()
        self.entries = [["ro", "crashkernel=1G"], ["ro", "crashkernel=1G"]]
        self.write("proc/cmdline", cmdline + "\n")
        self.write("proc/sys/kernel/osrelease", RELEASE + "\n")
        self.write("proc/modules", "")
        self.write(
            "etc/default/grub", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n'
        )
        self.write("boot/grub/grub.cfg", grub_config(["quiet"]))

    @property
    def machine(self) -> Machine:
        """What the code under test sees."""
        find = {name: f"/usr/sbin/{name}" for name in self.programs}.get
        return Machine(str(self.root), self.run, find)

    def write(self, path: str, text: str) -> Path:
        """Write one file."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place

    def read(self, path: str) -> str:
        """The text of one file, "" where there is none."""
        place = self.root / path.lstrip("/")
        return place.read_text(encoding="utf-8") if place.exists() else ""

    def loaded(self, module: str, **parameters: str) -> None:
        """Have a module in the kernel."""
        self.write(f"sys/module/{module}/initstate", "live\n")
        listed = self.read("proc/modules")
        self.write("proc/modules", f"{listed}{module} 16384 0 - Live 0x0\n")
        for name, value in parameters.items():
            self.write(f"sys/module/{module}/parameters/{name}", value + "\n")

    def boots(self, added: str = "") -> None:
        """The next boot, with what grub.cfg says."""
        line = self.read("boot/grub/grub.cfg").split("### END")[0].splitlines()
        kernel = [one for one in line if one.strip().startswith("linux") and "single" not in one]
        words = kernel[0].split()[1:]
        self.write("proc/cmdline", " ".join([f"BOOT_IMAGE={words[0]}", *words[1:], added]) + "\n")

    def run(self, argv: Sequence[str], **_more: Any) -> Completed:
        """What a program does."""
        name, rest = argv[0], list(argv[1:])
        if name in self.broken:
            return Completed(list(argv), 1, "", f"{name}: it is broken")
        if name == "modprobe" and rest[:1] == ["--dry-run"]:
            return Completed(list(argv), 1 if rest[-1] in self.missing_modules else 0, "", "")
        if name == "modinfo":
            known = "modeset:mode (int)\nmultipath:on (bool)\nio_timeout:s (uint)\n"
            return Completed(list(argv), 1 if rest[-1] == "nvidia" else 0, known, "")
        if name == "modprobe" and rest == ["--showconfig"]:
            # Of a softdep with both, kmod 34 prints no blank before "post:".
            text = self.read("etc/modprobe.d/steadygpu.conf").replace(" post:", "post:")
            return Completed(list(argv), 0, text, "")
        if name in ("lsinitramfs", "lsinitrd"):
            return Completed(list(argv), 0, "\n".join(self.initramfs), "")
        if name == "grubby" and rest == ["--info=ALL"]:
            return Completed(list(argv), 0, grubby_info(self.entries), "")
        self.ran.append(" ".join(argv))
        if name == "update-grub":
            self.write("boot/grub/grub.cfg", grub_config(self._grub_words()))
        elif name == "modprobe":
            self.loaded(rest[-1])
        elif name == "update-initramfs":
            self._make_initramfs()
        elif name == "grubby":
            self._grubby(rest)
        elif name == "kernel-install":
            options = self.read("etc/kernel/cmdline").strip()
            self.entry(rest[1], options)
        return Completed(list(argv), 0, "", "")

    def entry(self, version: str, options: str) -> None:
        """An entry of systemd-boot."""
        text = f"title Linux\nversion {version}\noptions {options}\nlinux /{version}/linux\n"
        self.write(f"efi/loader/entries/{version}.conf", text)

    def _grub_words(self) -> list[str]:
        value = ""
        paths = [self.root / "etc/default/grub"]
        paths += sorted((self.root / "etc/default/grub.d").glob("*.cfg"))
        for path in paths:
            for line in path.read_text(encoding="utf-8").splitlines():
                match = re.match(r"GRUB_CMDLINE_LINUX_DEFAULT=(.*)", line)
                if match:
                    text = shlex.split(match.group(1))[0]
                    value = text.replace("${GRUB_CMDLINE_LINUX_DEFAULT}", value)
        return value.split()

    def _make_initramfs(self) -> None:
        image = self.root / f"boot/initrd.img-{RELEASE}"
        image.write_text("packed", encoding="utf-8")
        ours = "etc/modprobe.d/steadygpu.conf"
        kept = [one for one in self.initramfs if one != ours]
        self.initramfs = kept + ([ours] if (self.root / ours).exists() else [])

    def _grubby(self, rest: Sequence[str]) -> None:
        given = dict(one.lstrip("-").split("=", 1) for one in rest)
        for entry in self.entries:
            for word in given.get("remove-args", "").split():
                if word in entry:
                    entry.remove(word)
            entry += [word for word in given.get("args", "").split() if word not in entry]

    def initramfs_of(self, *names: str, age_s: int = 1000) -> None:
        """Have an initramfs with these modules, made some time ago."""
        self.programs |= {"update-initramfs", "lsinitramfs"}
        self.initramfs = [f"usr/lib/modules/{RELEASE}/kernel/{name}.ko.xz" for name in names]
        image = self.write(f"boot/initrd.img-{RELEASE}", "packed")
        then = os.stat(image).st_mtime - age_s
        os.utime(image, (then, then))


def grub_config(words: Sequence[str]) -> str:
    """grub.cfg as Debian's grub-mkconfig makes it, shortened."""
    line = f"/boot/vmlinuz-{RELEASE} root=UUID=0a ro"
    return (
        "### BEGIN /etc/grub.d/10_linux ###\n"
        "menuentry 'Debian GNU/Linux' {\n"
        f"\tlinux\t{line}  {' '.join(words)}\n\tinitrd\t/boot/initrd.img-{RELEASE}\n}}\n"
        "menuentry 'Debian GNU/Linux (recovery mode)' {\n"
        f"\tlinux\t{line} single \n}}\n"
        "### END /etc/grub.d/10_linux ###\n"
        "### BEGIN /etc/grub.d/30_os-prober ###\n"
        "menuentry 'Another system' {\n\tlinux /vmlinuz root=/dev/sdb1\n}\n"
        "### END /etc/grub.d/30_os-prober ###\n"
    )


def grubby_info(entries: Sequence[Sequence[str]]) -> str:
    """The output of ``grubby --info=ALL``, shortened."""
    return "".join(
        f'index={number}\nkernel="/boot/vmlinuz-5.14.0-{number}.el9.x86_64"\n'
        f'args="{" ".join(entry)}"\nroot="/dev/mapper/rhel-root"\n'
        for number, entry in enumerate(entries)
    )


def snapshot(tree: Tree) -> dict[str, bytes]:
    """All files but what this program remembers."""
    return {
        str(path.relative_to(tree.root)): path.read_bytes()
        for path in sorted(tree.root.rglob("*"))
        if path.is_file() and "var/lib/steadygpu" not in str(path)
    }
