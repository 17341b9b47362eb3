# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a command that we print may cost running jobs. Nobody shall learn it by pasting. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ENGINE_RESTART = (
    "ends running containers unless live-restore is on (docker info -f '{{.LiveRestoreEnabled}}')"
)
# Patterns of commands, and what each may cost; the first that matches speaks.
_COSTS = tuple(
    (re.compile(pattern), cost)
    for pattern, cost in (
        (r"\b(re)?boot\b|\bshutdown\b|\bpoweroff\b", "ends everything that runs on the host"),
        (
            r"\bsystemctl (--\S+ )*(restart|stop|try-restart) docker\b|\bservice docker (re)?st",
            _ENGINE_RESTART,
        ),
        (
            r"\bsystemctl (--\S+ )*(restart|stop) (containerd|k3s|k0s\S*|rke2\S*|kubelet)\b",
            "leaves running containers alone as a rule; drain a Kubernetes node first",
        ),
        (
            r"\bsystemctl (--\S+ )*(restart|stop) nvidia-fabricmanager\b",
            "ends every CUDA job of an NVSwitch host",
        ),
        (r"\bsystemctl (--user )?revert\b", "drops every drop-in of that unit, others' included"),
        (
            r"\bsystemctl daemon-(reload|reexec)\b",
            "takes the GPU from containers that the legacy hook gave it to; "
            "steadygpu check --host names them",
        ),
        (r"\b(modprobe -r|rmmod)\b.*\bnvidia", "needs every GPU idle: end the jobs first"),
        (
            r"\bnvidia-smi\b.*(\s-r\b|--gpu-reset)",
            "needs that GPU and its NVLink peers to be idle",
        ),
        (
            r"\bnvidia-smi mig\b|\bnvidia-smi\b.*-mig \d|\b(mig-parted|steadygpu mig) apply\b",
            "needs the GPUs that change to be idle",
        ),
        (r"\bsnap remove\b.*\bdocker\b", "removes that engine with its containers and images"),
        (r"\bdocker (container )?(rm|kill|stop|restart)\b", "ends that container"),
        (
            r"\bdocker( |-)compose\b.*\b(up|down|restart|stop)\b",
            "ends or recreates containers of that project",
        ),
        (
            r"\bdocker (system|image|volume|container|builder) prune\b",
            "deletes what nothing uses at this moment",
        ),
        (
            r"\b(apt|apt-get|dnf|yum|zypper)\b.*\b(install|upgrade|dist-upgrade|remove|purge|downgrade)"
            r"\b.*(docker|containerd|runc|nvidia|cuda)",
            "lets the packages' scripts reload systemd and restart services",
        ),
        (r"\bautoremove\b", "removes packages that nothing depends on, kernels included"),
        (r"\bkubectl\b.*\b(drain|delete|rollout restart)\b", "ends or moves pods"),
        (r"\b(setpci|echo 1 >.*/remove)\b", "acts on the bus at once: do it on an idle host"),
    )
)


def cost(command: str) -> str:
    """What running this line may cost somebody's jobs; "" when it costs nothing."""
    return next((told for pattern, told in _COSTS if pattern.search(command)), "")


def costs(commands: Iterable[str]) -> tuple[str, ...]:
    """``COMMAND`` and what it may cost as one sentence, each price told once."""
    told: dict[str, str] = {}
    for command in commands:
        price = cost(command)
        if price:
            told.setdefault(price, command)
    return tuple(f"{command} {price}" for price, command in told.items())
