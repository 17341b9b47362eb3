# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configuration files that decide how a GPU container host behaves, with their texts."""

from __future__ import annotations

import glob
import os
import stat

# Where to look, in the order in which a person would. Each is a glob pattern.
PATTERNS = (
    "/etc/docker/daemon.json",
    "/root/.config/docker/daemon.json",
    "/home/*/.config/docker/daemon.json",
    "/etc/systemd/system/docker.service",
    "/etc/systemd/system/docker.service.d/*.conf",
    "/run/systemd/system/docker.service.d/*.conf",
    "/etc/systemd/system/containerd.service",
    "/etc/systemd/system/containerd.service.d/*.conf",
    "/etc/systemd/system/*.slice",
    "/etc/systemd/system/*.slice.d/*.conf",
    "/etc/containerd/config.toml",
    "/etc/containerd/conf.d/*.toml",
    "/etc/containerd/config.d/*.toml",
    "/etc/nvidia-container-runtime/config.toml",
    "/home/*/.config/nvidia-container-runtime/config.toml",
    "/etc/cdi/*.yaml",
    "/etc/cdi/*.json",
    "/run/cdi/*.yaml",
    "/run/cdi/*.json",
    "/etc/sysctl.conf",
    "/etc/sysctl.d/*.conf",
    "/etc/default/irqbalance",
    "/etc/sysconfig/irqbalance",
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/*.list",
    "/etc/apt/sources.list.d/*.sources",
    "/proc/cmdline",
)

# What the readers take (trees/yaml_tree.py says why); no such file is longer on a sound host.
LIMIT_BYTES = 2 * 1024 * 1024
_LIMIT_FILES = 500
_PIECE = 256 * 1024
_LIMIT_TOTAL = 32 * 1024 * 1024


def read_texts(root: str = "/") -> tuple[dict[str, str], dict[str, str]]:
    """Path to text, and path to the reason why a file that is there was not read.

    Bytes that are not UTF-8 become U+FFFD: a reader will say that they are wrong.
    """
    texts: dict[str, str] = {}
    left_out: dict[str, str] = {}
    total = 0
    for path in _paths(root):
        shown = "/" + os.path.relpath(path, root)
        if len(texts) + len(left_out) >= _LIMIT_FILES or total >= _LIMIT_TOTAL:
            mib = _LIMIT_TOTAL // (1024 * 1024)
            said = f"the rest was left out: more than {_LIMIT_FILES} files or {mib} MiB"
            left_out[shown] = said
            break
        try:
            texts[shown] = _read(path)
            total += len(texts[shown])
        except OSError as error:
            left_out[shown] = error.strerror or str(error)
    return texts, left_out


def _paths(root: str) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for pattern in PATTERNS:
        for path in sorted(glob.glob(os.path.join(root, pattern.lstrip("/")))):
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                found.append(path)
    return found


def _read(path: str) -> str:
    data = read_regular(path)
    if len(data) > LIMIT_BYTES:
        raise OSError(0, f"longer than {LIMIT_BYTES} bytes")
    return data.decode("utf-8", "replace")


def read_regular(path: str) -> bytes:
    """A regular file's bytes, one more than the limit at most. Never waits for a writer of a pipe.

    Raises OSError, also for what is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as handle:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        data = b""
        while len(data) <= LIMIT_BYTES:
            # In pieces: for one of /proc/sys the kernel sets aside as much as is asked for.
            piece: bytes | None = handle.read(_PIECE)
            if piece is None:  # One that would have to be waited for, such as /proc/kmsg.
                raise OSError(0, "gives no answer")
            if not piece:
                break
            data += piece
    return data[: LIMIT_BYTES + 1]


def text(path: str) -> str:
    """A file's text, 2 MiB of it at most; "" where it cannot be read or is none, or has gone."""
    try:
        return read_regular(path)[:LIMIT_BYTES].decode("utf-8", "replace")
    except OSError:
        return ""
