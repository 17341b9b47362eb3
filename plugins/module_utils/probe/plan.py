# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The probe's containers and their image, as the Engine API wants them. Pure.

Nothing is pulled: the image holds empty directories and the links of a merged /usr, and
the host's own /usr is mounted into it read-only.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from typing import Any

LABEL = "steadygpu.probe"
IMAGE_REPOSITORY = "steadygpu/probe"
NAME_PREFIX = "steadygpu-probe-"

# A probe whose controller was killed ends, and is removed by the engine, after this time.
_LIFETIME_S = 900
_LINKS = ("bin", "lib", "lib64", "sbin")
_DIRECTORIES = ("usr", "proc", "dev", "sys", "tmp", "etc")

# The proof of denial is an open() after a mknod that worked, so that one capability stays.
_CAPABILITY = "MKNOD"


def image_tar() -> bytes:
    """The root file system of the image; the same bytes on every run and every host."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in _DIRECTORIES:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name in _LINKS:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, "usr/" + name
            archive.addfile(entry)
    return buffer.getvalue()


def image_tag(tar: bytes) -> str:
    """A tag that names the content, so that a leftover image is known to be the same."""
    return hashlib.sha256(tar).hexdigest()[:12]


def container(
    image: str, device: str | None = None, cgroup_parent: str | None = None
) -> dict[str, Any]:
    """The body of ``POST /containers/create`` for one probe.

    ``device`` is a CDI name; ``cgroup_parent`` a slice name (systemd driver) or a cgroup
    path (cgroupfs driver).
    """
    host: dict[str, Any] = {
        "AutoRemove": True,
        "Binds": ["/usr:/usr:ro"],
        "CapDrop": ["ALL"],
        "CapAdd": [_CAPABILITY],
        "NetworkMode": "none",
        "PidsLimit": 64,
        "ReadonlyRootfs": True,
        "SecurityOpt": ["no-new-privileges"],
    }
    if cgroup_parent:
        host["CgroupParent"] = cgroup_parent
    if device:
        host["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": [device]}]
    return {
        "Image": image,
        "Cmd": ["/usr/bin/sleep", str(_LIFETIME_S)],
        "Env": ["LC_ALL=C", "PATH=/usr/sbin:/usr/bin"],
        "Labels": {LABEL: "1"},
        "WorkingDir": "/",
        "HostConfig": host,
    }


# A change of limits of a running container, small and real: what an operator might do.
UPDATE: dict[str, Any] = {"PidsLimit": 48}


def gpu_of(device: str) -> int | str | None:
    """The index or the UUID of the GPU in a CDI name; None when the name has neither.

    ``nvidia.com/gpu=0`` is index 0, and so is its MIG device ``nvidia.com/gpu=0:1``.
    """
    match = re.fullmatch(r"[^=]+=(?:([0-9]+)(?::[0-9]+)?|(GPU-[0-9a-f-]+))", device)
    if match is None:
        return None
    return match.group(2) or int(match.group(1))
