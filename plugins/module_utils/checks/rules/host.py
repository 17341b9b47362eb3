# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine of a live host: containers and their GPUs, what it reads, who can reach it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from ...versions import at_least
from ..host import HostView
from ..inside import entries, inside, mapping, text_at, words
from ..model import Hit, Severity
from ..place import place
from ..registry import rule

# Where nvidia-cdi-refresh writes.
_REFRESHED = ("/var/run/cdi/nvidia.yaml", "/run/cdi/nvidia.yaml")


@rule(
    "container-will-lose-gpu",
    "A running container will lose its GPU when systemd applies its units again",
    Severity.WARNING,
    reads=HostView,
    reason="The hook allows the devices behind the back of the engine. With the systemd cgroup "
    "driver a daemon-reload, docker update or set-property brings back the rules of the unit, "
    "which do not have them: Failed to initialize NVML: Unknown Error. Only a new container "
    "recovers by itself.",
    fix="Recreate it with --device nvidia.com/gpu=… (CDI) when its job is done; until then avoid "
    "systemctl daemon-reload and docker update.",
    sources=(
        "NVIDIA container toolkit documentation, troubleshooting",
        "seen on Docker 26.1.5 and 28.5.2",
    ),
    cases=("CG-001",),
)
def container_will_lose_gpu(host: HostView, known: HostView) -> Iterator[Hit]:
    """For what runs now; not with cgroupfs, where systemd does not interfere."""
    if host.cgroup_driver != "systemd":
        return
    for container in entries(host.evidence, "containers"):
        if container.get("gpus") == "hook" and not container.get("lost"):
            name = container.get("name") or str(container.get("id"))[:12]
            yield Hit(
                at=place(host),
                seen=f"container {name} got its GPU from the hook, and the engine uses the "
                "systemd cgroup driver",
            )


@rule(
    "container-lost-gpu",
    "A running container has lost its GPU",
    Severity.ERROR,
    reads=HostView,
    reason="The device rules of its control group no longer allow the nodes that it was given: "
    "Failed to initialize NVML: Unknown Error.",
    fix="Give the nodes back without a restart as below (steadygpu heal does it), and recreate "
    "the container with CDI when its job is done.",
    sources=("seen on Docker 26.1.5 and 28.5.2", "systemd.resource-control(5) DeviceAllow="),
    cases=("CG-001",),
)
def container_lost_gpu(host: HostView, known: HostView) -> Iterator[Hit]:
    """``lost`` has the nodes that were given and are refused now."""
    for container in entries(host.evidence, "containers"):
        lost = words(container, "lost")
        if lost:
            name = container.get("name") or str(container.get("id"))[:12]
            allow = " ".join(f"'DeviceAllow={node} rwm'" for node in lost)
            unit = f"docker-{container.get('id')}.scope"
            yield Hit(
                at=place(host),
                seen=f"container {name} is refused {', '.join(lost)}",
                commands=(f"systemctl set-property --runtime {unit} {allow}",),
            )


@rule(
    "engine-listens-without-tls",
    "Docker's API is open to the network without TLS",
    Severity.ERROR,
    reads=HostView,
    reason="Who reaches this port is root on the host.",
    fix="Remove the tcp:// host and use ssh:// from clients, or set up TLS with client "
    "certificates on port 2376.",
    sources=("Docker documentation, protect the Docker daemon socket",),
    told_by=("docker-api-without-tls", "dockerd-host-without-tls"),
)
def engine_listens_without_tls(host: HostView, known: HostView) -> Iterator[Hit]:
    """Sockets of dockerd's own, but for those of a Swarm, unless it verifies clients."""
    flags = mapping(host.facts, "docker", "flags")
    keys = words(host.facts, "docker", "daemon_json", "keys")
    if "--tlsverify" in flags or "tlsverify" in keys:
        return
    for listener in entries(host.evidence, "listeners"):
        address = str(listener.get("address") or "")
        port = address.rpartition(":")[2]
        if listener.get("process") == "dockerd" and port == "2375":
            yield Hit(at=place(host), seen=f"dockerd listens on {address}")


@rule(
    "daemon-json-not-loaded",
    "The engine has not read its daemon.json again",
    Severity.ERROR,
    reads=HostView,
    reason="daemon.json has runtimes or a default runtime that the running engine does not: "
    "unknown or invalid runtime name. It reads them at SIGHUP and at start.",
    fix="Reload the engine: containers go on. Where that changes nothing, another engine (a snap, "
    "a rootless one, Docker Desktop) answers.",
    sources=("moby daemon/reload.go",),
    cases=("RT-003",),
)
def daemon_json_not_loaded(host: HostView, known: HostView) -> Iterator[Hit]:
    """The file's text is in the evidence; what cannot be read is another rule's matter."""
    config = _config(host)
    if host.runtimes is None or not config:
        return
    wanted = config.get("runtimes")
    missing = sorted(set(wanted) - host.runtimes) if isinstance(wanted, dict) else []
    default = config.get("default-runtime")
    seen = []
    if missing:
        seen.append(f"the engine does not know the runtime {', '.join(missing)}")
    if isinstance(default, str) and host.default_runtime not in (None, default):
        seen.append(f"its default runtime is {host.default_runtime}, not {default}")
    if seen:
        yield Hit(
            at=place(host),
            seen=" and ".join(seen),
            commands=("systemctl reload docker", "docker info --format '{{json .Runtimes}}'"),
        )


def _config(host: HostView) -> Mapping[str, Any]:
    path = inside(host.facts, "docker", "daemon_json", "path") or "/etc/docker/daemon.json"
    text = text_at(host.evidence, str(path))
    try:
        config = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


@rule(
    "cdi-device-twice",
    "Two CDI specs name the same device",
    Severity.ERROR,
    reads=HostView,
    reason="An engine resolves neither of two devices of one name in one directory; nvidia-ctk "
    "cdi list then shows none of them, with success.",
    fix="Move the spec away that is not refreshed any more: engines read only .json and .yaml.",
    sources=("CDI pkg/cdi/cache.go", "seen with nvidia-ctk 1.20.0"),
)
def cdi_device_twice(host: HostView, known: HostView) -> Iterator[Hit]:
    """The facts give a valid spec a reason where another file names its device."""
    for spec in entries(host.facts, "cdi", "specs"):
        reason = str(spec.get("reason") or "")
        path = str(spec.get("path") or "")
        if spec.get("status") == "valid" and " is also in " in reason:
            # Of the two the one that nvidia-cdi-refresh keeps is right; nothing is deleted.
            stale = path not in _REFRESHED and any(kept in reason for kept in _REFRESHED)
            commands = (f"mv {shlex.quote(path)} {shlex.quote(path)}.off",) if stale else ()
            yield Hit(at=place(host), seen=f"{path}: {reason}", commands=commands)


@rule(
    "cdi-refresh-off",
    "Nothing refreshes the CDI spec after a driver upgrade",
    Severity.INFO,
    reads=HostView,
    reason="The toolkit since 1.18 brings nvidia-cdi-refresh, which writes the spec at boot and "
    "when the driver changes. A spec of the old driver names files that are gone.",
    fix="Enable the units, or generate the spec yourself after each driver upgrade.",
    sources=("NVIDIA container toolkit documentation, CDI support",),
)
def cdi_refresh_off(host: HostView, known: HostView) -> Iterator[Hit]:
    """Installed, and disabled by somebody."""
    state = inside(host.evidence, "units", "nvidia-cdi-refresh.path")
    if state in ("disabled", "masked") and at_least(host.version("toolkit"), "1.18"):
        yield Hit(
            at=place(host),
            seen=f"nvidia-cdi-refresh.path is {state}",
            commands=("systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service",),
        )


@rule(
    "snap-docker",
    "Docker is installed as a snap",
    Severity.WARNING,
    reads=HostView,
    reason="The snap is confined: it does not see the toolkit's programs of the host and does not "
    'read /etc/docker/daemon.json, so that --gpus answers: could not select device driver "".',
    fix="Remove the snap and install the distribution's or Docker's own packages.",
    sources=("docker-snap README",),
    cases=("TK-002",),
)
def snap_docker(host: HostView, known: HostView) -> Iterator[Hit]:
    """Alone, or beside a packaged engine, where the client may talk to the wrong one."""
    path = inside(host.evidence, "programs", "snap_docker")
    if path and (host.gpus or host.vendors):
        both = any(name in host.packages for name in ("docker-ce", "docker.io"))
        yield Hit(
            at=place(host),
            seen=f"{path} is there" + (", beside a packaged engine" if both else ""),
            commands=("docker info --format '{{.DockerRootDir}}'", "snap remove docker"),
        )


@rule(
    "podman-as-docker",
    "The command docker is Podman",
    Severity.INFO,
    reads=HostView,
    reason="podman-docker stands in for Docker: --gpus means CDI there, and without a CDI spec it "
    "answers: unresolvable CDI devices nvidia.com/gpu=all.",
    fix="Generate the CDI spec, and give engines by name in scripts.",
    sources=("podman-docker package", "podman run --gpus"),
    cases=("TK-042",),
)
def podman_as_docker(host: HostView, known: HostView) -> Iterator[Hit]:
    """A warning where there are GPUs and no CDI devices."""
    if inside(host.evidence, "podman_docker") is not True:
        return
    bare = bool(host.gpus) and not host.cdi_devices
    yield Hit(
        at=place(host),
        seen="the package podman-docker is installed"
        + (", and no CDI spec names a GPU" if bare else ""),
        severity=Severity.WARNING if bare else None,
        commands=("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",) if bare else (),
    )


@rule(
    "rootless-engine",
    "A rootless engine reads its own daemon.json",
    Severity.INFO,
    reads=HostView,
    reason="A rootless Docker reads ~/.config/docker/daemon.json and not /etc/docker/daemon.json: "
    "runtimes defined there are unknown to it.",
    fix="nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json, "
    "no-cgroups=true in the toolkit's configuration, and systemctl --user restart docker.",
    sources=("Docker documentation, rootless mode",),
    cases=("RT-004",),
)
def rootless_engine(host: HostView, known: HostView) -> Iterator[Hit]:
    """Where the engine in question is known to be rootless."""
    if host.rootless:
        yield Hit(at=place(host), seen="the engine is rootless")


@rule(
    "amd-behind-nvidia",
    "--gpus never reaches the AMD GPUs of this host",
    Severity.INFO,
    reads=HostView,
    reason="Docker registers AMD's driver for --gpus only where it finds no helper of NVIDIA's.",
    fix="Ask for them by name: --device amd.com/gpu=all, or --device /dev/kfd --device /dev/dri.",
    sources=("moby daemon/devices_amd_linux.go",),
    cases=("RT-026",),
)
def amd_behind_nvidia(host: HostView, known: HostView) -> Iterator[Hit]:
    """Both vendors on one bus."""
    if {"nvidia", "amd"} <= host.vendors:
        yield Hit(at=place(host), seen="the host has GPUs of NVIDIA and of AMD")


@rule(
    "toolkit-absent",
    "Docker has no way to give GPUs to containers on this host",
    Severity.INFO,
    reads=HostView,
    reason="The engine runs, and there is neither the NVIDIA Container Toolkit nor a CDI spec: "
    'could not select device driver "" with capabilities: [[gpu]].',
    fix="Install the toolkit, then restart Docker, which looks for the hook only when it starts.",
    sources=("moby daemon/nvidia_linux.go",),
    cases=("TK-001",),
)
def toolkit_absent(host: HostView, known: HostView) -> Iterator[Hit]:
    """An info: the host may just not be provisioned yet."""
    running = inside(host.facts, "docker", "status") == "running"
    absent = inside(host.facts, "toolkit", "status") == "absent"
    if running and absent and host.gpus and not host.cdi_devices and host.hook_on_path is False:
        yield Hit(at=place(host), seen="no toolkit, no CDI spec, and GPUs on the bus")
