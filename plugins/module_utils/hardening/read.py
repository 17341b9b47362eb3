# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read what the hardening judges: containers, the engine's word, the toolkit's file, SELinux."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..engine.docker import read_docker
from ..engine.docker_api import DEFAULT_SOCKET, DockerClient, EngineError, EngineUnreachableError
from ..engine.services import read_services
from ..hardware import files
from ..heal import given
from ..probe.legacy import uses_legacy_hook
from ..process import CommandMissingError, run
from ..rollback.observation import device_rules
from .model import Bundle, HardeningError, Host, Wish, allows_everything, mapping

_NO_GPU = ("", "void", "none")
_TOOLKIT = "etc/nvidia-container-runtime/config.toml"
_REFUSED = re.compile(
    r"^\s*accept-nvidia-visible-devices-envvar-when-unprivileged\s*=\s*false\b", re.MULTILINE
)
# Of Kubernetes: the runtime's own annotation has the pod's name.
_NAMES = ("io.kubernetes.container.name", "io.kubernetes.cri.container-name", "io.podman.name")


def read(
    wish: Wish, socket: str = DEFAULT_SOCKET, deadline_s: float = 60.0, root: str = "/"
) -> Host:
    """What this host is. Raises HardeningError where a question that decides has no answer."""
    client = DockerClient(socket)
    docker = read_docker(read_services(["docker.service"])["docker.service"], client, root)
    running = docker.status == "running"
    listed = []
    try:
        listed = client.containers(include_stopped=True) if running else []
        asking = (
            _asking(client, listed, docker.info, deadline_s)
            if running and wish.env_injection is False
            else {}
        )
    except (EngineError, EngineUnreachableError, TimeoutError) as error:
        raise HardeningError(
            f"Docker did not say which containers it has ({error}), so who would lose a GPU is not "
            "known; look at the engine and run again"
        ) from error
    names = {str(one["Id"]): str((one.get("Names") or [""])[0]).lstrip("/") for one in listed}
    alive = device_rules.running(root)
    if wish.env_injection is False:
        others = [one for one in alive if one.id not in names]
        asking = {**asking, **{_name(one, names): True for one in others if _by_variable(one)}}
    return Host(
        bundles=_bundles(alive, names, root),
        docker=docker.status,
        reason=docker.reason or "",
        security_options=tuple(docker.info.get("SecurityOptions") or ()) if running else None,
        asking=asking,
        envvar_off=bool(_REFUSED.search(files.text(os.path.join(root, _TOOLKIT)))),
        selinux=_selinux(root),
        selinux_modules=_modules() if wish.selinux_type and _selinux(root) != "disabled" else None,
    )


def _bundles(
    alive: Sequence[device_rules.Running], names: Mapping[str, str], root: str
) -> tuple[Bundle, ...]:
    majors = device_rules.nvidia_majors(files.text(os.path.join(root, "proc/devices")))
    found = [
        Bundle(one.id, _name(one, names), one.spec)
        for one in alive
        # A privileged container has every GPU, whether it asked for one or not.
        if device_rules.has_gpu(one.spec, majors) or allows_everything(one.spec)
    ]
    return tuple(sorted(found, key=lambda bundle: bundle.name))


def _name(one: device_rules.Running, names: Mapping[str, str]) -> str:
    told = [str(one.annotations[key]) for key in _NAMES if key in one.annotations]
    return names.get(one.id) or (told[0] if told else one.id[:12])


def _by_variable(one: device_rules.Running) -> bool:
    """May a container of another engine have its GPU by the variable? A doubt counts as yes.

    NVIDIA's runtime leaves nodes in the specification as the engine does, so they prove nothing;
    runc without the hook does not read the variable.
    """
    process = mapping(one.spec.get("process"))
    if given.asked(process.get("env") or []) in _NO_GPU:
        return False
    bounding = mapping(process.get("capabilities")).get("bounding") or []
    if "CAP_SYS_ADMIN" in bounding:
        return False
    return not one.runtime or "nvidia" in one.runtime or "nvidia" in str(one.spec.get("hooks"))


def _asking(
    client: DockerClient,
    listed: Sequence[Mapping[str, Any]],
    info: Mapping[str, Any],
    deadline_s: float,
) -> dict[str, bool]:
    """Containers that get a GPU by the variable, and may not once only privileged ones do."""
    end = time.monotonic() + deadline_s
    default, runtimes = str(info.get("DefaultRuntime") or "runc"), info.get("Runtimes") or {}
    found = {}
    for one in listed:
        if time.monotonic() > end:
            raise TimeoutError(f"{len(listed)} containers took longer than {deadline_s:g} s")
        try:
            inspected = client.inspect(str(one["Id"]))
        except EngineError as error:
            if error.status == 404:  # It was removed in the meantime.
                continue
            raise
        host = inspected.get("HostConfig") or {}
        added = {str(cap).upper().removeprefix("CAP_") for cap in host.get("CapAdd") or []}
        # The hook takes a container for privileged that has CAP_SYS_ADMIN.
        privileged = host.get("Privileged") or added & {"SYS_ADMIN", "ALL"}
        if not privileged and uses_legacy_hook(inspected, default, runtimes):
            name = str(inspected.get("Name") or one["Id"]).lstrip("/")
            found[name] = bool((inspected.get("State") or {}).get("Running"))
    return found


def _selinux(root: str) -> str:
    enforce = files.text(os.path.join(root, "sys/fs/selinux/enforce"))
    return {"1": "enforcing", "0": "permissive"}.get(enforce, "disabled")


def _modules() -> tuple[str, ...] | None:
    try:
        done = run(["semodule", "-l"], deadline_s=60.0)
    except CommandMissingError:
        return None
    if not done.ok:
        return None
    return tuple(line.split()[0] for line in done.stdout.splitlines() if line.split())
