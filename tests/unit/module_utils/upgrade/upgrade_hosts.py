# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts to plan for, and what package sources were seen to have (Debian, December 2026)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.upgrade.model import (
    Container,
    Daemon,
    Host,
    Move,
)

TRIXIE = {
    "docker.io": "26.1.5+dfsg1-9+deb13u1+b1",
    "docker-cli": "26.1.5+dfsg1-9+deb13u1+b1",
    "containerd": "1.7.24~ds1-6+deb13u1",
    "runc": "1.1.15+ds1-2+b4",
}
FORKY = {
    "docker.io": "28.5.2+dfsg4-5",
    "docker-cli": "28.5.2+dfsg4-5",
    "containerd": "2.1.9+ds1-5",
    "runc": "1.3.6+ds1-1",
}
MADISON = "\n".join(
    f"{name:>10} | {version} | http://mirror.example.com/debian {suite}/main amd64 Packages"
    for suite, versions in (("forky", FORKY), ("trixie", TRIXIE))
    for name, version in versions.items()
)
RUNNING = {"docker": "26.1.5+dfsg1", "containerd": "1.7.24~ds1", "runc": "1.1.15+ds1"}

JOB = Container("c0ffee", "trainer", running=True, pid=4711, gpus="cdi", runtime="runc")


def host(**changes: Any) -> Host:
    """A Debian 13 host with a training job, live-restore and CDI."""
    return replace(
        Host(
            versions=RUNNING,
            installed=TRIXIE,
            os="debian 13",
            docker=Daemon(there=True, active=True, pid=100, kill_mode="process"),
            containerd=Daemon(there=True, active=True, pid=90, kill_mode="process"),
            config={"live-restore": True, "features": {"cdi": True}},
            info={"LiveRestoreEnabled": True, "Driver": "overlay2"},
            containers=(JOB,),
            cgroup_version=2,
        ),
        **changes,
    )


def move(docker: tuple[str, str], containerd: tuple[str, str] = ("", "")) -> Move:
    """From one release of each to another."""
    return Move(
        {"docker": docker[0], "containerd": containerd[0]},
        {"docker": docker[1], "containerd": containerd[1]},
    )
