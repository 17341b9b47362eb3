# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The system packages the lab needs on the machine it runs on."""

from __future__ import annotations

import os
import shutil
import subprocess

from .console import LabError, call, say, step

# gcc, libc6-dev and gnupg build the simulated GPUs (tests/simgpu), uidmap lets users who are
# not root build images.
PACKAGES = (
    "ca-certificates",
    "e2fsprogs",
    "gcc",
    "gnupg",
    "libc6-dev",
    "mmdebstrap",
    "openssh-client",
    "qemu-system-x86",
    "qemu-utils",
    "uidmap",
    "zstd",
)


def missing() -> list[str]:
    """The packages that are not installed. Raises LabError where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        raise LabError(
            "the lab builds Debian images with Debian's tools and this machine has no dpkg; "
            "run it on Debian or Ubuntu"
        )
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\\n", *PACKAGES],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    present: set[str] = set()
    for line in done.stdout.splitlines():
        status, _space, name = line.partition(" ")
        if status == "installed":
            present.add(name)
    return [name for name in PACKAGES if name not in present]


def install() -> None:
    """Install what is missing. Raises LabError when that takes root and we are not."""
    names = missing()
    if not names:
        say("system packages: all present")
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *names]
    if os.geteuid() != 0:
        raise LabError(
            "the lab needs system packages this machine lacks; as root, run:\n  "
            "apt-get update && " + " ".join(command)
        )
    environ = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    with step("installing system packages: " + " ".join(names)):
        call(["apt-get", "update", "-q"], "reading the package lists", environ)
        call(command, "installing system packages", environ)
