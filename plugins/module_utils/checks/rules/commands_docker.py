# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on commands of docker other than run, and on what stands before them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..documents.commands import CommandLine, Variable
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule

_LOST = "NVIDIA Container Toolkit documentation, troubleshooting: containers losing access to GPUs"

_LIMITS = [
    "blkio-weight",
    "cpu-period",
    "cpu-quota",
    "cpu-rt-period",
    "cpu-rt-runtime",
    "cpu-shares",
    "cpus",
    "cpuset-cpus",
    "cpuset-mems",
    "memory",
    "memory-reservation",
    "memory-swap",
    "pids-limit",
]
_CONTAINER_VARIABLE = re.compile(
    r"(CUDA_VISIBLE_DEVICES|NVIDIA_(VISIBLE_DEVICES|DRIVER_CAPABILITIES)|NCCL_\w+"
    r"|ROCR_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|HABANA_VISIBLE_DEVICES|TORCH_NCCL_\w+)$"
)
_LOOPBACK = ("127.", "localhost", "[::1]")


@rule(
    "docker-update-loses-gpu",
    "docker update can take the GPU away",
    Severity.INFO,
    reads=CommandLine,
    reason="The hook behind --gpus and the nvidia runtime opens the GPUs in the container's cgroup "
    "without the engine knowing. docker update writes the cgroup anew from the engine's own list, "
    "and the container sees 'Failed to initialize NVML: Unknown Error'.",
    fix="Make the container anew with the new limits, or give it its GPUs by CDI (--device "
    "nvidia.com/gpu=0) before updating it.",
    sources=(_LOST, "NVIDIA/nvidia-docker issue 1469", "seen on Docker 26.1.5 and 28.5.2"),
    cases=("CG-003",),
    row="P17",
)
def docker_update_loses_gpu(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """An error where the container is known to have its GPUs by the hook, else a note."""
    if line.name != "docker" or line.sub[-1:] != ("update",) or len(line.sub) > 2:
        return
    if line.sub[0] not in ("update", "container") or not any(line.last(flag) for flag in _LIMITS):
        return
    names = [given.value for given in line.args]
    known = [c for c in _containers(host) if c.get("name") in names or _is_id(c, names)]
    if known and not any(c.get("gpus") == "hook" for c in known):
        return
    severity = Severity.ERROR if known else None
    said = " ".join(names) or "a container"
    flags = ", ".join(f"--{flag}" for flag in _LIMITS if line.last(flag))
    assumed = () if known else ("the container has GPUs, and not by CDI",)
    yield Hit(line.at, f"{flags} of {said} is changed while it runs.", "", (), severity, assumed)


def _containers(host: HostView) -> list[Mapping[str, Any]]:
    found = host.evidence.get("containers")
    return [c for c in found if isinstance(c, Mapping)] if isinstance(found, list) else []


def _is_id(container: Mapping[str, Any], names: list[str]) -> bool:
    full = str(container.get("id", ""))
    return any(len(name) >= 8 and full.startswith(name) for name in names)


@rule(
    "reload-loses-gpu",
    "Containers of this host lose their GPUs by this command",
    Severity.ERROR,
    reads=CommandLine,
    reason="With the systemd cgroup driver, daemon-reload and set-property write the devices of "
    "running containers anew, without the GPUs that the hook opened.",
    fix="Make those containers anew with their GPUs by CDI (--device nvidia.com/gpu=0) first.",
    sources=(_LOST, "seen with systemd 257 and 262"),
    row="P17",
)
def reload_loses_gpu(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Exact where the containers are known; else where the toolkit is known to use its hook."""
    if line.name != "systemctl" or host.cgroup_driver == "cgroupfs":
        return
    scope = line.starts("set-property") and "docker-" in line.text()
    if not (line.starts("daemon-reload") or scope):
        return
    names = [str(c.get("name")) for c in _containers(host) if _by_hook(c)]
    if names:
        yield Hit(line.at, f"Running with GPUs by the hook: {', '.join(names)}.")
    elif host.toolkit_mode == "legacy" and host.cgroup_driver == "systemd" and not _known(host):
        seen = "The toolkit gives GPUs by its hook here, and the cgroup driver is systemd."
        yield Hit(line.at, seen, severity=Severity.WARNING)


def _known(host: HostView) -> bool:
    return isinstance(host.evidence.get("containers"), list)


def _by_hook(container: Mapping[str, Any]) -> bool:
    return container.get("gpus") == "hook" and bool(container.get("running"))


@rule(
    "docker-restart-ends-containers",
    "Restarting Docker ends every container of this host",
    Severity.WARNING,
    reads=CommandLine,
    reason="Without live-restore dockerd stops all containers when it stops.",
    fix='Set "live-restore": true in daemon.json and reload dockerd (systemctl reload docker) '
    "before restarting it.",
    sources=("docs.docker.com, live restore",),
)
def docker_restart_ends_containers(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Only where live-restore is known to be off, and not where nothing is known to run."""
    running = [str(c.get("name")) for c in _containers(host) if c.get("running")]
    if host.live_restore is not False or (_known(host) and not running):
        return
    words = [given.value.replace(".service", "") for given in line.args]
    stops = line.name in ("systemctl", "service") and ("restart" in words or "stop" in words)
    if stops and "docker" in words:
        said = f" Running now: {', '.join(running)}." if running else ""
        yield Hit(line.at, f"docker is restarted, and live-restore is off.{said}")


@rule(
    "gpus-flag-elsewhere",
    "This docker command has no --gpus",
    Severity.ERROR,
    reads=CommandLine,
    reason="GPUs are given when a container is made: only docker run and docker create have "
    "--gpus. Another command ends with 'unknown flag'.",
    fix="Make the container anew with --gpus; in Compose write a device reservation; in Swarm use "
    "--generic-resource.",
    sources=("docker/cli cli/command/container/{exec,start,update}.go, cli/command/service",),
)
def gpus_flag_elsewhere(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Where the flag stands before any word that is none, so that it is docker's own."""
    if line.name not in ("docker", "docker-compose"):
        return
    sub = line.sub if line.name == "docker" else ("compose", *(a.value for a in line.args[:1]))
    where = {
        ("start",): "docker start",
        ("restart",): "docker restart",
        ("exec",): "docker exec",
        ("update",): "docker update",
        ("build",): "docker build",
        ("compose", "up"): "docker compose up",
    }.get(sub)
    if where is None:
        return
    behind = False
    for word in line.words:
        if word.value == sub[-1]:
            behind = True
        elif behind and word.value.partition("=")[0] == "--gpus":
            yield Hit(word.at, f"{where} has no --gpus.")
            return
        elif behind and not word.value.startswith("-") and sub != ("update",):
            return


@rule(
    "service-create-no-gpus",
    "docker service create has no such flag",
    Severity.ERROR,
    reads=CommandLine,
    reason="Swarm knows no devices: service create has no --gpus, --device, --runtime and "
    "--cgroup-parent, and ends with 'unknown flag'.",
    fix='Write "node-generic-resources": ["NVIDIA-GPU=GPU-…"] in daemon.json of the workers, make '
    "the nvidia runtime their default, and use --generic-resource NVIDIA-GPU=1.",
    sources=("docker/cli cli/command/service/{create,opts}.go", "seen on Docker 28.5.2"),
)
def service_create_no_gpus(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Those that people carry over from docker run."""
    if line.sub != ("service", "create"):
        return
    for given in line.unknown:
        name = given.spelled.lstrip("-")
        if name in ("gpus", "device", "runtime", "cgroup-parent", "privileged", "shm-size", "cpus"):
            fix = {
                "cpus": "Use --limit-cpu.",
                "shm-size": "Use --mount type=tmpfs,target=/dev/shm,tmpfs-size=….",
                "privileged": "Swarm has no privileged services; use --cap-add.",
            }.get(name, "")
            yield Hit(given.at, f"{given.spelled} is not a flag of docker service create.", fix)


@rule(
    "docker-stats-gpu",
    "docker stats shows no GPUs",
    Severity.ERROR,
    reads=CommandLine,
    reason="docker stats has CPU, memory, network, block IO and PIDs; a template that names "
    "another field fails.",
    fix="Join the processes of nvidia-smi --query-compute-apps=pid,used_memory with the "
    "containers' cgroups, or use dcgm-exporter.",
    sources=("docker/cli cli/command/container/formatter_stats.go",),
    row="8",
)
def docker_stats_gpu(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A format with a GPU field, or a search for one in its output."""
    if line.name == "docker" and line.sub[-1:] == ("stats",):
        given = line.option("--format")
        if given and re.search(r"\.\w*GPU", given.value, re.IGNORECASE):
            yield Hit(given.at, f"The format asks for a field that is not there: {given.value}")
    searched = line.name in ("grep", "awk") and line.piped[:2] == ("docker", "stats")
    if searched and re.search(r"gpu\s*%|gpu_?perc", line.text(), re.IGNORECASE):
        yield Hit(line.at, "A GPU column is looked for in the output of docker stats.")


@rule(
    "binding-around-docker",
    "It binds the docker command, not the container",
    Severity.WARNING,
    reads=CommandLine,
    reason="The container is started by dockerd and containerd, not by the docker command: what "
    "numactl, taskset, chrt or a systemd-run unit sets for that command ends with it.",
    fix="Give the limits to the container: --cpuset-cpus and --cpuset-mems (or --memory, --cpus, "
    "--cgroup-parent a slice).",
    sources=("moby daemon/start.go", "numactl(8), taskset(1)"),
    row="98",
)
def binding_around_docker(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """For run, create, start and compose up of docker; podman's containers are its children."""
    starts = (("run",), ("start",), ("container", "run"), ("compose", "up"), ("compose", "run"))
    if line.name not in ("docker", "docker-compose") or (
        line.name == "docker" and line.sub not in starts
    ):
        return
    for words in line.wrappers:
        name = words[0].value.rpartition("/")[2]
        text = " ".join(word.value for word in words)
        limits = re.search(r"(Memory|CPU|IO|AllowedCPUs|Slice|NUMA)\w*=|--slice", text)
        if name in ("numactl", "taskset", "chrt") or (name == "systemd-run" and limits):
            yield Hit(words[0].at, f"{text} stands before the docker command.")


@rule(
    "variable-for-docker-not-container",
    "The variable is set for the docker command, not in the container",
    Severity.WARNING,
    reads=CommandLine,
    reason="A container has the variables of its image and those given with -e, not those of the "
    "docker command.",
    fix="Write it as -e NAME=value after docker run.",
    sources=("docs.docker.com, docker container run --env",),
)
def variable_for_docker_not_container(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Unless the run line passes it on: -e NAME, or a file of variables."""
    if line.name != "docker" or line.sub not in (("run",), ("container", "run")):
        return
    words = [word.value for word in line.words]
    for name, given in line.env.items():
        passed = any(name in word for word in words) or "--env-file" in " ".join(words)
        if _CONTAINER_VARIABLE.match(name) and not passed:
            seen = f"{name} is set before docker run and not given to the container."
            yield Hit(given.at, seen, fix=f"Write -e {name}={given.value} behind docker run.")


@rule(
    "docker-command-without-tls",
    "An engine is used over plain TCP",
    Severity.WARNING,
    reads=CommandLine,
    reason="An engine that answers on tcp:// without TLS makes everybody who reaches it root on "
    "its host, and what passes can be read and changed.",
    fix="Use -H ssh://user@host, or TLS on 2376 with --tlsverify.",
    sources=("docs.docker.com, Protect the Docker daemon socket",),
)
def docker_command_without_tls(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """``docker -H tcp://…``; a note where the name may be a container next to it."""
    if line.name != "docker" or line.has("--tlsverify", "--tls", "--tlscacert"):
        return
    before = []
    for word in line.words:
        if line.sub and word.value == line.sub[0]:
            break
        before.append(word)
    for place, word in enumerate(before):
        flag, equals, value = word.value.partition("=")
        if flag in ("-H", "--host"):
            told = value if equals else "".join(w.value for w in before[place + 1 : place + 2])
            yield from _plain(Given(told, word.at, flag), f"{flag} {told}")


@rule(
    "docker-host-variable-without-tls",
    "DOCKER_HOST points to an engine over plain TCP",
    Severity.WARNING,
    reads=Variable,
    reason="An engine that answers on tcp:// without TLS makes everybody who reaches it root on "
    "its host, and what passes can be read and changed.",
    fix="Use DOCKER_HOST=ssh://user@host, or TLS on 2376 with DOCKER_TLS_VERIFY=1.",
    sources=("docs.docker.com, Protect the Docker daemon socket",),
)
def docker_host_variable_without_tls(variable: Variable, host: HostView) -> Iterator[Hit]:
    """A note where the name may be a container next to it, as in CI."""
    if variable.name == "DOCKER_HOST":
        given = Given(variable.value, variable.at)
        yield from _plain(given, f"DOCKER_HOST={variable.value}")


def _plain(given: Given, seen: str) -> Iterator[Hit]:
    match = re.fullmatch(r"tcp://([^/:]+|\[.+\])(?::(\d+))?/?", given.value.strip("\"'"))
    if match is None or match.group(1).startswith(_LOOPBACK) or match.group(2) == "2376":
        return
    machine = re.fullmatch(r"\d+(\.\d+){3}|[\w-]+(\.[\w-]+)+", match.group(1))
    severity = None if machine and "$" not in given.value else Severity.INFO
    yield Hit(given.at, f"{seen} names no TLS.", severity=severity)


@rule(
    "cgroup-parent-holds-processes",
    "The slice of the container must hold no processes of its own",
    Severity.INFO,
    reads=CommandLine,
    reason="On cgroup v2 a group holds either processes or groups with limits: controllers cannot "
    "be switched on in a slice whose group has processes directly in it ('device or resource "
    "busy').",
    fix="Give the containers a slice of their own below it, for example "
    "--cgroup-parent=app-containers.slice.",
    sources=("kernel admin-guide/cgroup-v2.rst, No Internal Process Constraint",),
    cases=("SY-003",),
)
def cgroup_parent_holds_processes(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A note: whether it holds processes is not to be seen here; a warning where it is said."""
    if line.name != "docker" or line.sub[-1:] not in (("run",), ("create",)):
        return
    given = line.option("--cgroup-parent")
    if given and given.value.endswith(".slice"):
        said = re.search(r"(holds?|has|contains?|with) .{0,20}process", line.comment)
        severity = Severity.WARNING if said else None
        yield Hit(given.at, f"Containers go into {given.value}.", severity=severity)
