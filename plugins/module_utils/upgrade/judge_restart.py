# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whom the change itself would cost something: packages' scripts, and starting daemons. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..engine import daemon_waiting
from ..versions import parse
from . import releases
from .model import ERROR, INFO, WARNING, Host, Item, Move, listed

# What systemd may do with the processes of a unit that stops, so that shims live on.
_SPARES = ("process", "none")
_UNITS = ("docker.service", "containerd.service")


def packages(host: Host) -> Iterator[Item]:
    """What the scripts of the packages do: all of them run a daemon-reload."""
    if host.endangered:
        yield Item(
            "daemon-reload-takes-gpu",
            ERROR,
            "The packages run systemctl daemon-reload, which may take GPUs away",
            listed(host.endangered),
            "Their GPU may have come from the legacy NVIDIA hook, behind the back of systemd.",
            "Create these containers anew with CDI devices (--device nvidia.com/gpu=…), or run "
            "again when they have ended.",
            releases.RELOAD_SOURCE,
        )


def engine(host: Host, move: Move) -> Iterator[Item]:
    """What a restart of dockerd ends."""
    if host.status == "unreachable":
        yield Item(
            "engine-unreachable",
            ERROR,
            "Docker does not answer",
            str(host.reason),
            "Nobody can say what a restart would end.",
            "See: journalctl -b -u docker.service",
            "docs/upgrades.md",
        )
        return
    running = [one.name for one in host.running]
    if running and host.in_swarm:
        yield Item(
            "swarm-node",
            ERROR,
            "A Swarm node cannot keep containers over a restart of Docker",
            f"a restart ends: {listed(running)}",
            "live-restore and Swarm exclude each other.",
            "Drain the node first: docker node update --availability drain NODE.",
            releases.LIVE_RESTORE_SOURCE,
        )
    elif running and not host.live_restore:
        yield Item(
            "live-restore-off",
            ERROR,
            "Without live-restore a restart of Docker ends every container",
            f"it would end: {listed(running)}",
            "The new release takes over only with a restart of the daemon.",
            "Set live-restore: true first (role engine). Docker takes it by reload, so that "
            "nothing ends. Or run again when these have ended.",
            releases.LIVE_RESTORE_SOURCE,
        )
    elif running and _majors_differ(move):
        seen = _carried(move)
        yield Item(
            "live-restore-over-releases",
            INFO if seen else WARNING,
            "Docker promises live-restore for patch releases only",
            f"{len(running)} running container(s) from {move.before.get('docker')} to "
            f"{move.after.get('docker')}; "
            + ("seen to work in our tests" if seen else "not tried by us"),
            "A daemon that cannot adopt a container leaves it running, and nothing manages it.",
            "Have a checkpoint of long jobs. The result is compared: process, access to the GPU.",
            releases.LIVE_RESTORE_SOURCE,
        )


def pending(host: Host) -> Iterator[Item]:
    """What a restart brings in force besides, and live-restore does not carry containers over."""
    if not host.running or host.config_fault:
        return
    wrong = daemon_waiting.in_waiting(host.config, host.info, host.flags, host.flags_known)
    unknown = daemon_waiting.untold(host.config, host.versions.get("docker", ""))
    if wrong:
        root = host.info.get("DockerRootDir")
        yield Item(
            "keys-in-waiting",
            ERROR,
            "A restart brings in force what the running daemon does not have of daemon.json",
            listed(wrong) + (f" (the data lies in {root})" if "data-root" in wrong else ""),
            "live-restore does not carry containers over a change of these, nor over their loss.",
            "Put back what the daemon runs with, or run again when no container runs.",
            releases.LIVE_RESTORE_SOURCE,
        )
    if unknown and host.config_newer:
        yield Item(
            "keys-maybe-in-waiting",
            WARNING,
            "daemon.json was written after the daemon had started",
            f"keys that live-restore does not carry containers over: {listed(unknown)}",
            "If one of them was changed since, containers are lost over the restart.",
            "See that they have been there since the daemon started.",
            releases.LIVE_RESTORE_SOURCE,
        )


def stopped(host: Host) -> Iterator[Item]:
    """Containers that a restart of dockerd starts, and those that nobody could look into."""
    waking = [one.name for one in host.containers if not one.running and one.restart == "always"]
    if waking:
        yield Item(
            "starts-with-daemon",
            WARNING,
            "Stopped containers start with the daemon",
            f"stopped, with restart policy always: {listed(waking)}",
            "This policy starts a container that was stopped by hand as soon as the daemon starts "
            "again. It may take GPUs that are free now.",
            "docker update --restart=unless-stopped NAME for those that shall stay down.",
            releases.RESTART_POLICY_SOURCE,
        )
    unknown = [one.name for one in host.containers if not one.looked_into]
    if unknown:
        yield Item(
            "not-looked-into",
            WARNING,
            "Docker did not describe all containers in time",
            listed(unknown),
            "Nothing is known of their GPUs, clients and restart policies.",
            "Run the plan again when the host is less busy.",
            "docs/upgrades.md",
        )


def units(host: Host) -> Iterator[Item]:
    """What systemd ends with the daemons: their shims, and units that are bound to them."""
    for name in _UNITS:
        daemon = host.docker if name == "docker.service" else host.containerd
        inside = sum(shim.unit == name for shim in host.shims)
        if inside and daemon.kill_mode not in _SPARES:
            yield Item(
                "kill-mode",
                ERROR,
                f"systemd kills the shims of containers when {name} stops",
                f"KillMode={daemon.kill_mode or 'control-group'} and {inside} shim(s) in {name}",
                "A shim that is killed takes its container with it.",
                f"Set KillMode=process for {name} (systemctl edit {name}).",
                "systemd.kill(5)",
            )
        if daemon.bound:
            yield Item(
                f"bound-to-{name.partition('.')[0]}",
                ERROR,
                f"systemd stops and starts other units with {name}",
                listed(daemon.bound),
                "They require it or are bound to it. What they run, jobs too, ends with it.",
                "Change Requires= and BindsTo= of these units to Wants=, stop them at a good "
                "time, or accept it when they may be restarted.",
                releases.UNIT_SOURCE,
            )


def _majors_differ(move: Move) -> bool:
    before, after = parse(move.before.get("docker")), parse(move.after.get("docker"))
    return before[:2] != after[:2]


def _carried(move: Move) -> bool:
    pair = {parse(move.before.get("docker")), parse(move.after.get("docker"))}
    return any(pair == {parse(one), parse(other)} for one, other in releases.CARRIED)
