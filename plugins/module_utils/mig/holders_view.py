# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who stands in the way of a MIG change, and by which handle they could be stopped.

Finding them is ``hardware.holders``; here they get names, owners and the instances they
may use, and are held against a plan. Where not every process can be looked at, that itself is
in the way: nobody can say then that a GPU is free.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import cgroups, units
from ..atomic import read_text
from ..engine.docker_api import DockerClient
from ..hardware import holders
from ..hardware.model import Holder
from . import capabilities, containers
from .model import Plan
from .nvml_mig import Reading

_CAP_NODE = re.compile(r"/dev/nvidia-caps/nvidia-cap(\d+)$")
# linux/proc_ns.h, PROC_PID_INIT_INO: the namespace in which every process can be seen.
_HOST_PIDS = "pid:[4026531836]"
_DRM = "nvidia_drm"
_DRM_ADVICE = (
    "modeset is on (/sys/module/nvidia_drm/parameters/modeset), which blocks the reset that a "
    "mode change needs; on a compute-only host load it with modeset=0, or allow module:nvidia_drm"
)
_KINDS = {
    "persistence": "persistence daemon",
    "dcgm": "DCGM",
    "display": "display",
    "granted": "may open it at any time",
}


@dataclass(frozen=True)
class Blocker:
    """One holder of one GPU.

    ``kind`` as in ``hardware.holders``, or ``module``, or ``unseen`` for processes that could
    not be looked at. ``owner`` is what a stop set calls it: ``dcgm.service``,
    ``container:NAME``, ``module:nvidia_drm``; None for a process that belongs to none of these.
    ``instances`` are the GPU instances it uses or may use, None for the whole GPU or when that
    is not known.
    """

    gpu_index: int
    gpu_uuid: str
    name: str
    kind: str
    pid: int | None = None
    owner: str | None = None
    container: str | None = None
    instances: frozenset[int] | None = None

    @property
    def text(self) -> str:
        """One line for a person, without the GPU."""
        if self.kind == "module":
            return f"kernel module {self.name}: {_DRM_ADVICE}"
        if self.kind == "unseen":
            return self.name
        parts = [f"{self.name} (pid {self.pid})"]
        if self.container:
            parts.append(f"in container {self.container}")
        elif self.owner:
            parts.append(f"of {self.owner}")
        what = _KINDS.get(self.kind)
        return " ".join(parts) + (f": {what}" if what else "")

    def as_dict(self) -> dict[str, object]:
        """For a module's result."""
        return {
            "gpu": self.gpu_index,
            "uuid": self.gpu_uuid,
            "pid": self.pid,
            "name": self.name,
            "kind": self.kind,
            "owner": self.owner,
            "container": self.container,
            "gpu_instances": sorted(self.instances) if self.instances is not None else None,
        }


def find(reading: Reading, client: DockerClient, root: str = "/") -> tuple[Blocker, ...]:
    """Every holder of every GPU but this process, by GPU index and pid.

    Docker is asked for names only.
    """
    minors = {gpu.minor: gpu.layout.index for gpu in reading.gpus}
    caps = {cap: (one.gpu, one.instance) for one, cap in capabilities.read(root).items()}
    sight = holders.look(minors, root)
    unseen = why_unseen(sight.complete, root)
    names = _Names(client)
    blockers = []
    for gpu in reading.gpus:
        by_nvml: dict[int, set[int | None]] = {}
        for pid, instance in gpu.processes:
            by_nvml.setdefault(pid, set()).add(instance)
        on_gpu = sight.holders.get(gpu.layout.index, [])
        # NVML may see one whose open node was not found, such as one of a private mount.
        more = sorted(set(by_nvml) - {holder.pid for holder in on_gpu})
        for holder in [*on_gpu, *(holders.describe(pid, root) for pid in more)]:
            if holder.pid == os.getpid():
                continue  # the NVML child that asks right before it changes something
            container = names.of(holder.container)
            blockers.append(
                Blocker(
                    gpu_index=gpu.layout.index,
                    gpu_uuid=gpu.layout.uuid,
                    name=holder.name,
                    kind=holder.kind,
                    pid=holder.pid,
                    owner=f"container:{container}" if container else _unit(holder, root),
                    container=container,
                    instances=_instances(holder.pid, gpu.minor, caps, by_nvml, root),
                )
            )
        if gpu.ampere and _modeset(root):
            owner = f"module:{_DRM}"
            blockers.append(Blocker(gpu.layout.index, gpu.layout.uuid, _DRM, "module", owner=owner))
        if unseen:
            blockers.append(Blocker(gpu.layout.index, gpu.layout.uuid, unseen, "unseen"))
    return tuple(sorted(blockers, key=lambda one: (one.gpu_index, one.pid or 0)))


def why_unseen(complete: bool, root: str = "/") -> str | None:
    """Why some process may hold a GPU without being seen; None when all can be seen."""
    if not complete:
        return "processes that could not be looked at: run this as root, with CAP_SYS_PTRACE"
    try:
        namespace = os.readlink(os.path.join(root, "proc/self/ns/pid"))
    except OSError:
        return "processes that could not be looked at: /proc is not mounted"
    if namespace != _HOST_PIDS:
        return (
            f"processes outside of this PID namespace ({namespace}), which cannot be seen from "
            "it: run this on the host, or in a container with the host's PID namespace"
        )
    return None


def blocking(plan: Plan, blockers: Sequence[Blocker]) -> list[Blocker]:
    """Those that this plan would disturb, or that would make it fail. Pure.

    A mode change needs the GPU without any client. To destroy an instance, that instance
    must be unused; a client of which only the GPU is known counts as using it, except for
    the persistence daemon, which opens GPUs and uses no instance. Creating on a GPU in MIG
    mode disturbs nobody.
    """
    of_gpu = [blocker for blocker in blockers if blocker.gpu_uuid == plan.gpu.uuid]
    if plan.changes_mode:
        return of_gpu
    destroyed = {
        step.instance.id
        for step in plan.steps
        if step.verb.startswith("destroy") and step.instance is not None
    }
    if not destroyed:
        return []
    return [
        blocker
        for blocker in of_gpu
        if blocker.kind not in ("module", "persistence")
        and (blocker.instances is None or blocker.instances & destroyed)
    ]


def refusal(pairs: Sequence[tuple[Plan, Sequence[Blocker]]]) -> str:
    """The words for plans with somebody in their way: every GPU, every holder, what to do."""
    lines = []
    stoppable = []
    for plan, blockers in pairs:
        what = "a change of MIG mode" if plan.changes_mode else "destroying instances"
        lines.append(f"GPU {plan.gpu.index} ({plan.gpu.uuid}) is in use; {what} needs it free of:")
        lines.extend(f"  {blocker.text}" for blocker in blockers)
        stoppable += [
            blocker.owner
            for blocker in blockers
            if blocker.owner and blocker.kind in ("persistence", "dcgm", "module")
        ]
    advice = "End these first"
    if stoppable:
        advice += ", or allow services to be stopped and started again: stop: [{}]".format(
            ", ".join(sorted(set(stoppable)))
        )
    return "\n".join([*lines, advice])


def _instances(
    pid: int,
    minor: int,
    caps: Mapping[int, tuple[int, int]],
    by_nvml: Mapping[int, set[int | None]],
    root: str,
) -> frozenset[int] | None:
    """The GPU instances this process uses or may use at any time; None when nothing tells.

    All sources count together: a job that computes on one instance may have been given more.
    """
    if None in by_nvml.get(pid, ()):
        return None
    seen = _open_caps(pid, root) | _granted_caps(pid, root)
    mine = {caps[cap][1] for cap in seen if cap in caps and caps[cap][0] == minor}
    mine.update(one for one in by_nvml.get(pid, ()) if one is not None)
    return frozenset(mine) or None


def _open_caps(pid: int, root: str) -> set[int]:
    directory = os.path.join(root, f"proc/{pid}/fd")
    found = set()
    for name in _names_in(directory):
        try:
            match = _CAP_NODE.search(os.readlink(os.path.join(directory, name)))
        except OSError:
            continue
        if match:
            found.add(int(match.group(1)))
    return found


def _granted_caps(pid: int, root: str) -> set[int]:
    """The capability nodes in a container's own /dev; of the host's /dev none counts."""
    own = os.path.join(root, f"proc/{pid}/root/dev/nvidia-caps")
    try:
        if os.path.samefile(own, os.path.join(root, "dev/nvidia-caps")):
            return set()
    except OSError:
        pass
    matches = (_CAP_NODE.search(f"/dev/nvidia-caps/{name}") for name in _names_in(own))
    return {int(match.group(1)) for match in matches if match}


def _names_in(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _unit(holder: Holder, root: str) -> str | None:
    """The systemd service that a process outside of containers belongs to.

    A display server runs in its user's session, not in the display manager's service.
    """
    group = cgroups.of_process(holder.pid, root) or ""
    services = [part for part in group.split("/") if part.endswith(".service")]
    if services and not services[0].startswith("user@"):
        return services[-1]
    if holder.kind == "display":
        shown = units.show("display-manager.service", ("Id", "ActiveState"))
        return shown.get("Id") if shown.get("ActiveState") == "active" else None
    return None


def _modeset(root: str) -> bool:
    text = read_text(os.path.join(root, "sys/module/nvidia_drm/parameters/modeset")) or ""
    return text.strip() == "Y"


class _Names:
    """Container names by id; Docker is asked once, and only when there is a container."""

    def __init__(self, client: DockerClient) -> None:
        self._client = client
        self._listed: dict[str, str] | None = None

    def of(self, container: str | None) -> str | None:
        """The name Docker knows the id by, else the id, shortened when it is one of 64 digits."""
        if container is None:
            return None
        if self._listed is None:
            self._listed = containers.names(self._client)
        return self._listed.get(container, container[:12] if len(container) == 64 else container)
