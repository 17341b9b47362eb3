# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pretended host with a driver, and specifications as nvidia-ctk writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
UUIDS = ("GPU-00000000-aaaa", "GPU-11111111-bbbb")


class FakeHost:
    """Two GPUs, driver 550.163.01, nvidia_uvm with the major 511."""

    def __init__(self, root: Path, driver: str = "550.163.01") -> None:
        self.root = root
        self.write("proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x  {driver}  R\n")
        self.write("proc/devices", "Character devices:\n195 nvidia\n511 nvidia-uvm\n")
        for minor, uuid in enumerate(UUIDS):
            self.gpu(minor, uuid)
        self.library(driver)
        for node in ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"):
            self.write(f"dev/{node}", "")
        self.write("usr/bin/nvidia-cdi-hook", "")

    def gpu(self, minor: int, uuid: str) -> None:
        """One GPU in the order of the bus."""
        text = f"Model: \t A100\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
        self.write(f"proc/driver/nvidia/gpus/0000:{minor + 1:02x}:00.0/information", text)

    def library(self, version: str) -> None:
        """The installed libraries are of this version."""
        directory = self.root / LIBRARIES.lstrip("/")
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        for name in ("libnvidia-ml", "libcuda"):
            (directory / f"{name}.so.{version}").write_text("")
        (directory / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{version}")

    def mig(self, minor: int, *computes: int) -> None:
        """The GPU instances of a GPU, each with so many compute instances."""
        base = f"proc/driver/nvidia/capabilities/gpu{minor}/mig"
        lines = []
        for number, count in enumerate(computes, 1):
            self.write(f"{base}/gi{number}/access", "")
            lines.append(f"gpu{minor}/gi{number}/access {10 * number}")
            for part in range(count):
                self.write(f"{base}/gi{number}/ci{part}/access", "")
                lines.append(f"gpu{minor}/gi{number}/ci{part}/access {10 * number + part + 1}")
        self.write("proc/driver/nvidia-caps/mig-minors", "\n".join(lines) + "\n")

    def write(self, path: str, text: str) -> None:
        """A file below the root."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def spec(
    names: Sequence[str] = ("0", "1", *UUIDS, "all"),
    driver: str = "550.163.01",
    nodes: Sequence[str] = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1"),
    version: str = "0.7.0",
) -> str:
    """A specification in the layout of nvidia-ctk 1.20."""
    lines = ["---", f"cdiVersion: {version}", "containerEdits:", "  deviceNodes:"]
    lines += [f"  - path: {node}" for node in nodes]
    lines += ["  env:", "  - NVIDIA_VISIBLE_DEVICES=void", "  hooks:"]
    lines += ["  - args:", "    - nvidia-cdi-hook", "    - update-ldcache"]
    lines += ["    hookName: createContainer", "    path: /usr/bin/nvidia-cdi-hook", "  mounts:"]
    for library in ("libcuda", "libnvidia-ml"):
        path = f"{LIBRARIES}/{library}.so.{driver}"
        lines += [f"  - containerPath: {path}", f"    hostPath: {path}", "    options:", "    - ro"]
    lines.append("devices:")
    for name in names:
        quoted = f'"{name}"' if name[0].isdigit() else name
        lines += ["- containerEdits:", "    deviceNodes:", "    - path: /dev/nvidia0"]
        lines.append(f"  name: {quoted}")
    return "\n".join([*lines, "kind: nvidia.com/gpu", ""])
