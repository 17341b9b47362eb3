# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A systemd unit of ours that runs at every boot: written and enabled, or removed.

Never with a daemon-reload, which ``systemctl enable`` adds: a reload can take the GPU from
containers of the legacy hook, and the next boot reads the unit anyway.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import vouched
from .atomic import fsync_directory, read_text

# What such a unit runs; the role ``agent`` installs it.
COMMAND = "/usr/local/bin/steadygpu"
# Who starts containers. Names that are not on the host are no error in Before=.
ENGINES = (
    "docker.service containerd.service podman.service podman-restart.service crio.service "
    "kubelet.service k3s.service k3s-agent.service rke2-server.service rke2-agent.service "
    "snap.docker.dockerd.service snap.microk8s.daemon-containerd.service lxc.service "
    "incus.service snap.lxd.daemon.service"
)
_DIRECTORY = "/etc/systemd/system"


class ForeignUnitError(Exception):
    """A unit of that name is somebody else's, or masked. The message says what to do."""


@dataclass(frozen=True)
class BootUnit:
    """``text`` begins with a comment of its own, by which the unit is known to be ours."""

    name: str
    text: str

    @property
    def path(self) -> str:
        """Where systemd reads it."""
        return f"{_DIRECTORY}/{self.name}"

    @property
    def link(self) -> str:
        """What enables it."""
        return f"{_DIRECTORY}/multi-user.target.wants/{self.name}"


def refuse_foreign(unit: BootUnit, root: str = "/") -> None:
    """Raises ForeignUnitError where the unit must not be written, and OSError."""
    if _is_foreign(unit, root):
        raise ForeignUnitError(
            f"{unit.path} is not of steadygpu.host, or is masked, and was left alone; move it "
            f"away (systemctl unmask {unit.name})"
        )


def install(unit: BootUnit, check_mode: bool, root: str = "/") -> list[str]:
    """Write and enable it. Returns the actions; raises ForeignUnitError and OSError."""
    refuse_foreign(unit, root)
    actions = []
    if read_text(_below(root, unit.path)) != unit.text:
        actions.append(f"write {unit.path}")
        if not check_mode:
            vouched.write(_below(root, unit.path), unit.text, mode=0o644, root=root)
    if not os.path.islink(_below(root, unit.link)):
        actions.append(f"enable {unit.name}")
        if not check_mode:
            _enable(unit, root)
    return actions


def remove(unit: BootUnit, check_mode: bool, root: str = "/") -> list[str]:
    """Disable and delete it, if it is ours. Returns the actions; raises OSError."""
    if _is_foreign(unit, root):
        return []
    actions = []
    if os.path.islink(_below(root, unit.link)):
        actions.append(f"disable {unit.name}")
        if not check_mode:
            vouched.remove(_below(root, unit.link), root)
    if os.path.exists(_below(root, unit.path)):
        actions.append(f"remove {unit.path}")
        if not check_mode:
            vouched.remove(_below(root, unit.path), root)
    return actions


def is_ours(unit: BootUnit, root: str = "/") -> bool:
    """Is it there, and not somebody else's? Raises OSError."""
    return os.path.lexists(_below(root, unit.path)) and not _is_foreign(unit, root)


def _is_foreign(unit: BootUnit, root: str) -> bool:
    path = _below(root, unit.path)
    # A link is a mask (to /dev/null) or an administrator's own; writing would go through it.
    if os.path.islink(path):
        return True
    text = read_text(path)
    return text is not None and text.partition("\n")[0] != unit.text.partition("\n")[0]


def _enable(unit: BootUnit, root: str) -> None:
    link = _below(root, unit.link)
    os.makedirs(os.path.dirname(link), mode=0o755, exist_ok=True)
    vouched.vouch_digest(link, f"link:{unit.path}", root)
    os.symlink(unit.path, link)
    fsync_directory(os.path.dirname(link))


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))
