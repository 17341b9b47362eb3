# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The running GPU containers of a host, and which of their devices the kernel still lets them open.

No engine is asked and no process enters a container: its OCI bundle says what was ordered, its
``/dev`` what is there, and the kernel's own device programs what may be opened.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from .. import cgroups
from ..hardware import files
from ..hardware.nodes import parse_majors
from ..mig import capabilities
from ..rollback.observation import device_rules
from . import device_program, given, kernel_filter
from .model import DeviceNode, GpuContainer

# A container has a dozen nodes in its /dev; one that has the host's has hundreds.
_MOST_NODES = 4000
_MOST_NAMES = 50_000
# Below /dev, and of no device: their files may be many, and no node in them can be opened.
_NO_DEVICES = ("shm", "mqueue", "hugepages")
# File systems that may keep a reader waiting for ever.
_SLOW = ("fuse", "nfs", "cifs", "smb3", "9p", "ceph", "lustre", "gpfs", "beegfs")
_TOOLKIT = "etc/nvidia-container-runtime/config.toml"
_ENVIRONMENT_REFUSED = re.compile(
    r"^\s*accept-nvidia-visible-devices-envvar-when-unprivileged\s*=\s*false\b", re.MULTILINE
)


def read(
    gpu: Mapping[str, Any], names: Mapping[str, str], root: str = "/", deadline_s: float = 20.0
) -> tuple[GpuContainer, ...]:
    """Every running container that was given GPUs and is not privileged, by name.

    ``gpu`` is that section of the facts, ``names`` maps Docker's ids to names. A privileged
    container may open everything and loses nothing.
    """
    majors = parse_majors(files.text(os.path.join(root, "proc/devices")))
    numbers = device_rules.nvidia_majors(files.text(os.path.join(root, "proc/devices")))
    caps = {
        (one.gpu, one.instance, one.compute): number
        for one, number in capabilities.read(root).items()
    }
    found = [
        one
        for one in device_rules.running(root)
        if device_rules.has_gpu(one.spec, numbers) and not _allows_everything(one.spec)
    ]
    scopes = {one.id: _own_scope(one) for one in found}
    shown = device_rules.of_scopes([scope for scope in scopes.values() if scope], deadline_s)
    refused = bool(_ENVIRONMENT_REFUSED.search(files.text(os.path.join(root, _TOOLKIT))))
    told = [
        _look(
            one,
            names.get(one.id, one.id[:12]),
            gpu,
            majors,
            caps,
            scopes[one.id],
            tuple(line[len("systemd ") :] for line in shown.get(scopes[one.id] or "", [])),
            refused,
            root,
        )
        for one in found
    ]
    return tuple(sorted(told, key=lambda one: one.name))


def _look(
    running: device_rules.Running,
    name: str,
    gpu: Mapping[str, Any],
    majors: Mapping[str, int],
    caps: Mapping[tuple[int, int, int | None], int],
    scope: str | None,
    allowed: tuple[str, ...],
    environment_refused: bool,
    root: str,
) -> GpuContainer:
    by_spec = given.ordered(running.spec)
    environment = (running.spec.get("process") or {}).get("env") or []
    request = given.asked(environment) if given.has_hook(running.spec) else ""
    container = GpuContainer(
        id=running.id,
        name=name,
        namespace=running.namespace,
        pid=running.pid,
        group=running.group,
        scope=scope,
        by_hook=bool(request),
        allowed=allowed,
    )
    if request and environment_refused:
        # Then mounts say which GPUs it has, and its environment may say what it likes.
        return _unclear(container, "the toolkit does not take its NVIDIA_VISIBLE_DEVICES")
    try:
        wanted = by_spec | given.of_request(request, gpu, majors, caps)
        there = set(_nodes(running.pid, root))
        ordered = given.ruled(running.spec)
        return _judge(container, wanted & there, there | ordered, root)
    except given.UnclearError as error:
        return _unclear(container, str(error))
    except (OSError, kernel_filter.FilterError, device_program.UnknownProgramError) as error:
        return _unclear(container, f"its device rules cannot be read: {error}")


def _own_scope(running: device_rules.Running) -> str | None:
    """The scope that Docker made for this container.

    Its processes may live in a group below, whose name is the container's own choice.
    """
    name = f"docker-{running.id}.scope"
    return name if name in running.group.split("/") else None


def _judge(
    container: GpuContainer,
    wanted: frozenset[DeviceNode],
    there: set[DeviceNode],
    root: str,
) -> GpuContainer:
    programs = kernel_filter.programs(cgroups.directory(container.group, root))

    def may(node: DeviceNode) -> bool:
        kind = device_program.BLOCK if node.kind == "b" else device_program.CHARACTER
        both = device_program.READ | device_program.WRITE
        return device_program.allows(programs, kind, node.major, node.minor, both)

    lost = tuple(sorted(node for node in wanted if not may(node)))
    numbers = {(node.kind, node.major, node.minor) for node in wanted}
    rest = {node for node in there if (node.kind, node.major, node.minor) not in numbers}
    others = tuple(sorted(node for node in rest if may(node)))
    barred = tuple(node.path for node in lost if not _slice_allows(container, node, root))
    return _with(
        container,
        given=tuple(sorted(wanted)),
        lost=lost,
        others=others,
        barred=barred,
        decided=_decided(container.scope, lost, root),
    )


def _decided(scope: str | None, lost: tuple[DeviceNode, ...], root: str) -> str:
    """What ``systemctl set-property`` (also that of a ``docker update``) leaves behind.

    A drop-in that names all that was lost is that of a former repair.
    """
    for directory in ("run", "etc"):
        folder = f"{directory}/systemd/system.control/{scope}.d"
        for name in ("50-DeviceAllow.conf", "50-DevicePolicy.conf"):
            path = os.path.join(root, folder, name)
            if lost and os.path.exists(path):
                words = files.text(path).replace("=", " ").split()
                if not all(given.host_path(node) in words for node in lost):
                    return f"/{folder}/{name}"
    return ""


def _slice_allows(container: GpuContainer, node: DeviceNode, root: str) -> bool:
    """Do the groups above the container's scope let this device be opened?"""
    above, found, _below = container.group.partition(f"/{container.scope}")
    if not found:
        return True
    programs = kernel_filter.programs(cgroups.directory(above, root))
    kind = device_program.BLOCK if node.kind == "b" else device_program.CHARACTER
    both = device_program.READ | device_program.WRITE
    return device_program.allows(programs, kind, node.major, node.minor, both)


def again(container: GpuContainer, root: str = "/") -> GpuContainer:
    """The same container after a repair: what it may open now. Raises nothing."""
    try:
        if cgroups.of_process(container.pid, root) != container.group:
            return _unclear(container, "it has ended, or was started anew")
        there = {*_nodes(container.pid, root), *container.others}
        return _judge(container, frozenset(container.given), there, root)
    except (OSError, kernel_filter.FilterError, device_program.UnknownProgramError) as error:
        return _unclear(container, f"its device rules cannot be read: {error}")


def _nodes(pid: int, root: str) -> Iterator[DeviceNode]:
    """The device nodes in a container's ``/dev``, by the paths it sees. Raises OSError."""
    top = os.path.join(root, "proc", str(pid), "root/dev")
    slow = {os.path.normpath(f"{top}/../{point}") for point in _slow_mounts(pid, root)}
    seen = names_seen = 0
    for directory, below, names in os.walk(top, onerror=_raise):
        below[:] = [
            name
            for name in below
            if os.path.normpath(os.path.join(directory, name)) not in slow
            and not (directory == top and name in _NO_DEVICES)
        ]
        names_seen += len(names) + len(below)
        if names_seen > _MOST_NAMES:
            raise OSError(0, f"more than {_MOST_NAMES} names in its /dev")
        for name in names:
            path = os.path.join(directory, name)
            if os.path.normpath(path) in slow:
                continue
            try:
                status = os.lstat(path)
            except OSError:
                continue
            kind = "c" if stat.S_ISCHR(status.st_mode) else "b"
            if kind == "b" and not stat.S_ISBLK(status.st_mode):
                continue
            seen += 1
            if seen > _MOST_NODES:
                raise OSError(0, f"more than {_MOST_NODES} device nodes in its /dev")
            shown = "/dev/" + os.path.relpath(path, top)
            number = status.st_rdev
            yield DeviceNode(shown, kind, os.major(number), os.minor(number))


def _slow_mounts(pid: int, root: str) -> Iterator[str]:
    """Where, as the container sees it, file systems are mounted that may not answer."""
    for line in files.text(os.path.join(root, "proc", str(pid), "mountinfo")).splitlines():
        before, _dash, after = line.partition(" - ")
        fields, kind = before.split(), after.split(" ", 1)[0]
        if len(fields) > 4 and kind.startswith(_SLOW):
            yield fields[4].replace("\\040", " ")


def _raise(error: OSError) -> None:
    raise error


def _allows_everything(spec: Mapping[str, Any]) -> bool:
    """Does the specification allow every device (``--privileged``)?"""
    linux = spec.get("linux") or {}
    rules = (linux.get("resources") or {}).get("devices") or []
    return any(
        rule.get("allow")
        and rule.get("major") in (None, -1)
        and rule.get("type") in (None, "", "a")
        and {"r", "w"} <= set(rule.get("access") or "rwm")
        for rule in rules
    )


def _unclear(container: GpuContainer, why: str) -> GpuContainer:
    return _with(container, given=(), lost=(), others=(), unclear=why)


def _with(container: GpuContainer, **changes: Any) -> GpuContainer:
    return GpuContainer(**{**vars(container), **changes})
