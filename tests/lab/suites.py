# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Debian suites a lab host can run, and what each image holds."""

from __future__ import annotations

from dataclasses import dataclass

from .console import LabError

# Small on purpose: what Ansible, the kernel side of containers and the simulation need. A
# container engine is what the product installs, so it is not here.
BASE_PACKAGES = (
    "busybox-static",
    "ca-certificates",
    "dbus",
    "gpg",
    "initramfs-tools",
    "iproute2",
    "iptables",
    "kmod",
    "linux-image-cloud-amd64",
    "nftables",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "sudo",
    "systemd",
    "systemd-resolved",
    "systemd-sysv",
    "udev",
)


@dataclass(frozen=True)
class Suite:
    """One release: its packages and the kernel arguments it needs to boot under emulation."""

    name: str
    packages: tuple[str, ...]
    kernel_args: tuple[str, ...]


# Emulated time stamp counters drift and emulated CPUs miss their watchdog's deadline; Linux 7.2
# was seen to panic in early boot without these two.
_KERNEL_ARGS = ("tsc=reliable", "nowatchdog")

SUITES: dict[str, Suite] = {
    "trixie": Suite("trixie", BASE_PACKAGES, _KERNEL_ARGS),
    "forky": Suite("forky", BASE_PACKAGES, _KERNEL_ARGS),
    # The old engine (Docker 20.10) that preflight must refuse is a host's past, not our doing.
    "bookworm": Suite(
        "bookworm", (*BASE_PACKAGES, "containerd", "docker.io", "runc"), _KERNEL_ARGS
    ),
}


def suite(name: str) -> Suite:
    """The suite of that name. Raises LabError when the lab has no such suite."""
    try:
        return SUITES[name]
    except KeyError:
        raise LabError(
            "no suite {!r} in the lab; it has: {}".format(name, ", ".join(SUITES))
        ) from None
