# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change of the engine means for containers with GPUs. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from . import releases
from .model import BY_CDI, BY_FLAG, ERROR, INFO, WARNING, Host, Item, Move, listed


def cdi(host: Host, move: Move) -> Iterator[Item]:
    """Whether the engine injects CDI devices, by default and when it starts."""
    wanted = host.feature("cdi")
    holders = [one.name for one in host.containers if one.gpus == BY_CDI]
    if move.loses("docker", releases.CDI_SINCE) and holders:
        yield Item(
            "cdi-unknown",
            ERROR,
            "Docker before 25.0 has no CDI",
            f"containers with CDI devices: {listed(holders)}",
            "They run on and could not be started again.",
            "Stay at 25.0 or newer, or create them anew with --gpus.",
            releases.CDI_SOURCE,
            releases.CDI_SINCE,
        )
    elif move.loses("docker", releases.CDI_DEFAULT) and wanted is None:
        yield Item(
            "cdi-off-by-default",
            ERROR if holders else WARNING,
            "CDI is off by default before 28.2",
            f"containers with CDI devices: {listed(holders)}"
            if holders
            else "features.cdi is not set",
            "Containers with CDI devices run on and could not be started again.",
            "Set features.cdi: true in daemon.json first; the newer daemon takes it as it is.",
            releases.CDI_SOURCE,
            releases.CDI_DEFAULT,
        )
    elif move.gains("docker", releases.CDI_DEFAULT) and wanted is not True:
        off = wanted is False or host.config.get("cdi-spec-dirs") == [""]
        yield Item(
            "cdi-stays-off" if off else "cdi-on-by-default",
            INFO,
            "CDI stays off, as daemon.json says" if off else "CDI is on by default from 28.2 on",
            "features.cdi is false" if off else "features.cdi is not set",
            "--device nvidia.com/gpu=… is served wherever a specification lies in /etc/cdi or "
            "/var/run/cdi.",
            "Nothing; features.cdi: false keeps it off.",
            releases.CDI_SOURCE,
            releases.CDI_DEFAULT,
        )
    if move.loses("docker", releases.CDI_RESTARTS):
        starting = [
            one.name
            for one in host.containers
            if one.gpus == BY_CDI and one.restart not in ("", "no")
        ]
        if starting:
            yield Item(
                "cdi-restart-policy",
                WARNING,
                "Docker before 28.2 does not start containers with CDI devices when it starts",
                f"with a restart policy and CDI devices: {listed(starting)}",
                "live-restore keeps those that run now. After a reboot they stay down: could not "
                'select device driver "cdi".',
                "Start them by a unit of your own after docker.service.",
                releases.CDI_RESTARTS_SOURCE,
                releases.CDI_RESTARTS,
            )


def gpus_flag(host: Host, move: Move) -> Iterator[Item]:
    """What serves ``--gpus``: the hook, or CDI."""
    users = [one.name for one in host.containers if one.gpus == BY_FLAG]
    cdi_hook = host.programs.get("nvidia-cdi-hook", False)
    hook = host.programs.get("nvidia-container-runtime-hook", False)
    if move.gains("docker", releases.GPUS_BY_CDI) and cdi_hook:
        bare = not host.cdi_devices
        yield Item(
            "gpus-by-cdi",
            WARNING if users and bare else INFO,
            "--gpus is served by CDI from 29.2 on where nvidia-cdi-hook is installed",
            f"containers with --gpus: {listed(users)}" if users else "no container uses --gpus",
            "Started again, they get their GPUs by CDI: rules that a daemon-reload does not take "
            "away. Without a specification Docker falls back to the hook.",
            "Make a specification (role toolkit)." if bare else "Nothing.",
            releases.GPUS_SOURCE,
            releases.GPUS_BY_CDI,
        )
    by_hook = move.loses("docker", releases.GPUS_BY_CDI)
    if users and not hook and (by_hook or not cdi_hook):
        yield Item(
            "gpus-hook-missing",
            ERROR if by_hook else WARNING,
            "--gpus needs NVIDIA's hook on the daemon's path when it starts",
            f"no nvidia-container-runtime-hook; containers with --gpus: {listed(users)}",
            "They could not be started again: could not select device driver.",
            "Install the toolkit first (role toolkit).",
            releases.GPUS_SOURCE,
            releases.GPUS_BY_CDI if by_hook else "",
        )
