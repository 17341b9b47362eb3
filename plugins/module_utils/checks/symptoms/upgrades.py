# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Upgrades and ways back: what a new or older release leaves behind. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .causes import TOOLKIT_MIXED
from .containerd import CONTAINERD_OLD
from .engine import IMAGE_STORE, LIVE_RESTORE
from .packages import PARTIAL_DOWNGRADE

SWARM_LIVE = Cause(
    id="live-restore-and-swarm",
    title="live-restore and Swarm exclude each other",
    why="A node of a Swarm cannot keep containers over a restart of the daemon.",
    proof="docker info -f '{{.Swarm.LocalNodeState}} {{.LiveRestoreEnabled}}'",
    shows="active, and live-restore in daemon.json",
    fix="Leave the Swarm, or remove live-restore.",
    commands=("docker info -f '{{.Swarm.LocalNodeState}} {{.LiveRestoreEnabled}}'",),
    sources=("moby daemon/cluster",),
    hints=(r"swarm",),
)

CGROUP_V1_GONE = Cause(
    id="cgroup-v1-deprecated",
    title="The host uses control groups v1",
    why="New engines and kubelets call it deprecated or refuse it.",
    proof="stat -fc %T /sys/fs/cgroup; cat /proc/cmdline",
    shows="tmpfs",
    fix="Boot into v2 (remove systemd.unified_cgroup_hierarchy=0).",
    commands=("stat -fc %T /sys/fs/cgroup",),
    sources=("Docker release notes 29.0",),
    hints=(r"cgroup",),
)

CONFFILE = Cause(
    id="daemon-json-replaced",
    title="The upgrade replaced a configuration file",
    why="A package or a vendor's script wrote its own daemon.json, config.toml or unit; the old "
    "one lies "
    "beside it.",
    proof="find /etc -newermt '-2 days' -name '*.dpkg-*' -o -newermt '-2 days' -name '*.rpm*'; "
    "ls -l "
    "/etc/docker /etc/containerd /etc/nvidia-container-runtime",
    shows="a .dpkg-old, .dpkg-dist, .rpmnew or .rpmsave",
    fix="Merge the two, and restart what reads it.",
    commands=("find /etc -name '*.dpkg-*' -o -name '*.rpmnew' -o -name '*.rpmsave'",),
    sources=("dpkg(1), conffiles",),
    hints=(r"conffile|config|daemon\.json|overwritten",),
)

NEWER_STATE = Cause(
    id="engine-state-of-newer-release",
    title="The older engine does not read what the newer one wrote",
    why="The containerd image store, networks and the buildkit cache of a newer release are not "
    "understood by an older one.",
    proof="docker info -f '{{.Driver}} {{json .DriverStatus}}'; journalctl -u docker -n 30 "
    "--no-pager",
    shows="io.containerd.snapshotter.v1 before, overlay2 now",
    fix="Go back with the data-root of before (a snapshot), or export images first; set "
    "features.containerd-snapshotter as it was.",
    commands=("docker save -o images.tar $(docker image ls -q)",),
    sources=("Docker release notes 29.0",),
    hints=(r"downgrad|roll ?back|older",),
)

KEPT_OPEN = Cause(
    id="container-with-old-runtime",
    title="Containers from before the upgrade keep their old set-up",
    why="A container's hooks, mounts and device rules are those of its creation: a restart is "
    "not a "
    "recreate.",
    proof="docker inspect -f '{{.Created}} {{.HostConfig.Runtime}} {{json "
    ".HostConfig.DeviceRequests}}' "
    "CONTAINER",
    shows="a date before the upgrade",
    fix="Recreate them.",
    commands=("docker compose up -d --force-recreate",),
    sources=("moby daemon/create.go",),
    hints=(r"existing containers?|old containers?|recreate",),
)

SYMPTOMS = (
    Symptom(
        id="live-restore-swarm",
        title="live-restore is refused on a Swarm node",
        patterns=(r"live-restore.{0,60}(incompatible|not (supported|compatible)).{0,20}swarm",),
        causes=(SWARM_LIVE,),
        tell_apart="docker info -f '{{.Swarm.LocalNodeState}} {{.LiveRestoreEnabled}}'",
        sources=("moby daemon/cluster",),
    ),
    Symptom(
        id="after-downgrade",
        title="Something is lost or refused after a downgrade",
        patterns=(
            r"(downgrad\w+|roll(ed|ing)? "
            r"?back).{0,100}(lose|lost|loses|missing|gone|fail|refus|not read|error|"
            r"cannot|unmet|unreadable)",
            r"(not readable|unreadable|unsupported) after .{0,30}(downgrade|rollback)",
            r"images? missing (because|after)",
        ),
        causes=(NEWER_STATE, PARTIAL_DOWNGRADE, CONTAINERD_OLD, IMAGE_STORE, TOOLKIT_MIXED),
        tell_apart="grep -h -A3 Downgrade /var/log/apt/history.log | tail; docker info -f "
        "'{{.Driver}}'; "
        "grep -n ^version /etc/containerd/config.toml; dpkg -l 'nvidia-container*' "
        "'libnvidia-container*'",
        sources=("NVIDIA/nvidia-docker issue 1492",),
    ),
    Symptom(
        id="after-upgrade",
        title="GPU containers fail after an upgrade",
        patterns=(
            r"after (an? |the )?(upgrad\w+|updat\w+)( of| to)? "
            r".{0,40}(docker|containerd|toolkit|runc|compose|"
            r"operator).{0,120}(fail|no longer|broken|stop|lost|gone|refus|error|without)",
            r"(containers?|GPUs?).{0,60}(no longer|stopped) (work|start|see)\w* after "
            r".{0,40}(upgrad|updat)\w+",
        ),
        causes=(KEPT_OPEN, CONFFILE, TOOLKIT_MIXED, LIVE_RESTORE, IMAGE_STORE, CGROUP_V1_GONE),
        tell_apart="grep -h -A4 Start-Date /var/log/apt/history.log | tail -20; find /etc -name "
        "'*.dpkg-*'; docker version; nvidia-ctk --version; docker info -f '{{json .Runtimes}}'",
        sources=("Docker release notes 29.0",),
    ),
)
