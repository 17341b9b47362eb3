# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compose: what it refuses, and what it silently does otherwise. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .causes import PRIVILEGED_SEES_ALL
from .cuda_run import COUNT_IS_INDEX_0
from .engine_gpu import NO_TOOLKIT

_CHECK = ("docker compose config --quiet", "steadygpu check compose.yaml")

CAPABILITIES = Cause(
    id="gpu-capabilities-missing",
    title="The device reservation has no capabilities",
    why="capabilities is mandatory; without it the deployment fails.",
    proof="docker compose config | grep -A8 devices",
    shows="a reservation without capabilities",
    fix="Add capabilities: [gpu].",
    commands=_CHECK,
    sources=("docker/docs PR 12315", "compose-spec, deploy"),
    cases=("CO-002",),
    hints=(r"capabilit\w*.{0,40}(required|missing|must)", r"Error on deployment"),
)

OLD_COMPOSE = Cause(
    id="compose-reservation-too-old",
    title="This Compose does not know the key",
    why="Device reservations came with Compose 1.28, gpus: with 2.30; docker-compose 1 does not "
    "know "
    "files without version: and merges them with its old schemas.",
    proof="docker compose version; docker-compose --version",
    shows="an older release, or docker-compose 1",
    fix="Use Compose 2 (docker compose), and drop version: from the file.",
    commands=("apt-get install docker-compose-plugin || apt-get install docker-compose",),
    sources=("Compose release notes 1.28 and 2.30",),
    hints=(r"additional propert|unsupported config|does not match|unknown property",),
)

BAD_YAML = Cause(
    id="compose-invalid",
    title="The file is not valid YAML, or a key stands in the wrong place",
    why="Tabs, a wrong indentation, a key given twice, or deploy: outside a service.",
    proof="docker compose config --quiet",
    shows="the line",
    fix="Correct the place that is named.",
    commands=_CHECK,
    sources=("compose-spec schema",),
    hints=(r"yaml", r"line \d+", r"already defined|duplicate"),
)

UNSET = Cause(
    id="compose-variable-unset",
    title="A variable of the file is not set",
    why="It becomes an empty text, or stops Compose where the file says that it is required.",
    proof="docker compose config --variables; ls -l .env",
    shows="no value",
    fix="Set it in .env or in the shell, or give it a default: ${NAME:-value}.",
    commands=("docker compose config --variables",),
    sources=("compose-spec, interpolation",),
    hints=(r"variable is not set|is missing a value|required variable",),
)

TYPE = Cause(
    id="compose-wrong-type",
    title="A value has the wrong type",
    why="A number where a text is wanted, a text where a list is wanted, or true unquoted in "
    "environment.",
    proof="docker compose config --quiet",
    shows="the key",
    fix="Quote the value, or write the list.",
    commands=_CHECK,
    sources=("compose-spec schema",),
    hints=(r"must be an? (string|mapping|list|array|number)|contains an invalid type",),
)

_PORT = Cause(
    id="port-in-use",
    title="Another program has the port",
    why="A container or a service of the host listens on it.",
    proof="ss -ltnp | grep PORT; docker ps --format '{{.Names}} {{.Ports}}'",
    shows="its owner",
    fix="Choose another port or end the other one.",
    commands=("ss -ltnp",),
    sources=("Docker documentation, published ports",),
)

_NAME = Cause(
    id="container-name-taken",
    title="A container of that name exists",
    why="container_name or --name is unique on a host; a stopped one counts.",
    proof="docker ps -a --filter name=NAME",
    shows="it",
    fix="Remove or rename the old one.",
    commands=("docker rename OLD NEW",),
    sources=("moby daemon/names.go",),
)

_ENV_ISOLATION = Cause(
    id="cuda-visible-devices-isolation",
    title="CUDA_VISIBLE_DEVICES does not isolate",
    why="It only filters what a well-behaved process enumerates; the nodes are all there.",
    proof="docker exec CONTAINER ls /dev | grep nvidia",
    shows="every /dev/nvidiaN",
    fix="--gpus '\"device=0,1\"', device_ids or --device nvidia.com/gpu=0 where isolation is "
    "meant.",
    commands=("docker run --gpus '\"device=0,1\"' IMAGE",),
    sources=("NVIDIA/nvidia-docker issue 764",),
    cases=("CO-009",),
    hints=(r"CUDA_VISIBLE_DEVICES",),
)

_NONE_GIVES_ALL = Cause(
    id="visible-none-gives-all",
    title="NVIDIA_VISIBLE_DEVICES=none gives all GPUs in jit-cdi mode of toolkit 1.18.1",
    why="Injection was not skipped for the value none; 1.19.0 has the fix.",
    proof="nvidia-ctk --version; docker exec CONTAINER env | grep VISIBLE",
    shows="1.18.x, and none",
    fix="Upgrade to 1.19.1 or newer; void (or --runtime=runc) keeps GPUs out meanwhile.",
    commands=("apt-get install --only-upgrade nvidia-container-toolkit",),
    sources=("NVIDIA/nvidia-container-toolkit issue 1555, PR 1562",),
    cases=("TK-010",),
    hints=(r"\bnone\b", r"1\.18", r"none was requested"),
)

_BOTH_WAYS = Cause(
    id="runtime-and-reservation",
    title="runtime: nvidia and a device reservation inject the same GPUs",
    why="It works and is redundant; with the runtime in mode cdi and a toolkit before 1.18 the "
    "second "
    "way fails.",
    proof="docker compose config | grep -E 'runtime|devices' -A6",
    shows="both",
    fix="Keep one.",
    commands=("docker compose config",),
    sources=("jellyfin/jellyfin.org docs nvidia.md",),
    cases=("CO-010",),
    hints=(r"two mechanisms",),
)

_SWARM = Cause(
    id="swarm-resource-toolkit",
    title="The toolkit does not read Swarm's variable",
    why="swarm-resource in its config.toml must name the variable of the generic resource, and "
    "jit-cdi honours it from 1.19 only.",
    proof="grep -n swarm-resource /etc/nvidia-container-runtime/config.toml; nvidia-ctk --version; "
    "docker info -f '{{json .GenericResources}}'",
    shows="no swarm-resource, or a toolkit before 1.19 in mode auto",
    fix='swarm-resource = "DOCKER_RESOURCE_NVIDIA-GPU" with whole UUIDs in node-generic-resources, '
    "toolkit 1.19.1 or newer (or mode legacy).",
    commands=(
        "nvidia-ctk config --set swarm-resource=DOCKER_RESOURCE_NVIDIA-GPU --in-place",
        "systemctl restart docker",
    ),
    sources=("NVIDIA/nvidia-container-toolkit issues 1599 and 57",),
    cases=("RT-029",),
    hints=(r"swarm|replica|service",),
)

_SWARM_DEPLOY = Cause(
    id="swarm-ignores-devices",
    title="Swarm has no --gpus, devices or runtime",
    why="docker stack and docker service ignore or refuse them; the daemon's default-runtime "
    "applies.",
    proof="docker info -f '{{.Swarm.LocalNodeState}} {{.DefaultRuntime}}'",
    shows="active, and runc",
    fix="Make nvidia the default-runtime of the workers and use generic resources.",
    commands=("docker service create --generic-resource NVIDIA-GPU=1 IMAGE",),
    sources=("seen on Docker 26.1.5 in a Swarm",),
    hints=(r"stack|service create|swarm",),
)

SYMPTOMS = (
    Symptom(
        id="compose-refuses-file",
        title="Compose refuses the file",
        patterns=(
            r"Ignoring unsupported options: ?\w+",
            r"device_ids.{0,40}(must be|string|type)",
            r"(Some services|services) .{0,60}use the .?deploy.? key, which will be ignored",
            r"invalid device request",
            r"validating \S{1,80}: ",
            r"additional propert(y|ies) .{0,60}(not allowed|is not allowed)",
            r"Additional properties are not allowed",
            r"Unsupported config option for services",
            r"services\.\S{1,80} (must be|contains|additional|is invalid)",
            r"The Compose file .{0,40}is invalid",
            r"yaml: (line \d+|unmarshal errors|mapping|did not)",
            r"Error on deployment of the service",
            r"invalid value for .?count|count.{0,30}(the )?only value allowed is .?all",
            r"invalid (count|gpus) value",
            r"Top level object in .{0,40}needs to be an object",
        ),
        causes=(OLD_COMPOSE, CAPABILITIES, BAD_YAML, TYPE),
        tell_apart="docker compose version; docker compose config --quiet; steadygpu check "
        "compose.yaml",
        sources=("compose-spec schema",),
        cases=("CO-002",),
    ),
    Symptom(
        id="compose-variable",
        title="A variable of the Compose file is not set",
        patterns=(
            r"variable is not set\. Defaulting to a blank string",
            r"required variable \S{1,80} is missing a value",
            r"invalid interpolation format",
        ),
        causes=(UNSET,),
        tell_apart="docker compose config --variables; ls -la .env",
        sources=("compose-spec, interpolation",),
    ),
    Symptom(
        id="all-gpus-visible",
        title="A container sees every GPU",
        patterns=(
            r"Container (still )?(sees|has access to) (every|all) GPUs?",
            r"sees all (the )?GPUs",
            r"Device nodes of GPUs are present although none was requested",
            r"(GPU )?(selection|isolation) (has no effect|is ignored|does not work)",
            r"NVIDIA_VISIBLE_DEVICES.{0,60}(ignored|no effect|all GPUs|not (honou?red|respected))",
            r"/dev/nvidia\d.{0,40}although",
        ),
        causes=(PRIVILEGED_SEES_ALL, _ENV_ISOLATION, _NONE_GIVES_ALL),
        tell_apart="docker inspect -f '{{.HostConfig.Privileged}} {{.Config.Env}}' CONTAINER; "
        "docker "
        "exec CONTAINER ls /dev | grep nvidia; nvidia-ctk --version",
        sources=("NVIDIA/nvidia-docker issue 764",),
        cases=("CO-004", "CO-009", "TK-010"),
    ),
    Symptom(
        id="gpu-injected-twice",
        title="Two mechanisms inject the same GPUs",
        patterns=(r"two mechanisms inject the same GPUs",),
        normal="runtime: nvidia together with a device reservation works: the same GPUs are given "
        "twice. Keep one of them for clarity; only the runtime in plain cdi mode with a toolkit "
        "before 1.18 makes the second way fail.",
        sources=("jellyfin/jellyfin.org docs nvidia.md",),
        cases=("CO-010",),
    ),
    Symptom(
        id="swarm-replicas-same-gpu",
        title="Swarm replicas see the same GPU, or all",
        patterns=(
            r"(service )?replicas? (sees?|gets?|use|have|on) (the )?(same|all|GPU 0|every)",
            r"(swarm|stack|service "
            r"create).{0,120}(same|all|no|unsupported).{0,20}(GPU|devices|runtime)",
            r"node-generic-resources.{0,80}(ignored|no effect)",
            r"insufficient resources on \d+ node",
            r"DOCKER_RESOURCE_\S{1,80}",
        ),
        causes=(_SWARM, _SWARM_DEPLOY, COUNT_IS_INDEX_0),
        tell_apart="docker info -f '{{.Swarm.LocalNodeState}} {{.DefaultRuntime}} {{json "
        ".GenericResources}}'; grep -n swarm-resource /etc/nvidia-container-runtime/config.toml; "
        "nvidia-ctk --version",
        sources=("NVIDIA/nvidia-container-toolkit issue 1599",),
        cases=("RT-029",),
    ),
    Symptom(
        id="port-in-use",
        title="A port is in use",
        patterns=(
            r"port is already allocated|(tcp|udp|port|proxy)\b.{0,80}address already in use",
            r"Bind for \S{1,80} failed",
        ),
        causes=(_PORT,),
        tell_apart="ss -ltnp; docker ps --format '{{.Names}} {{.Ports}}'",
        sources=("Docker documentation, published ports",),
    ),
    Symptom(
        id="container-name-taken",
        title="The container's name is taken",
        patterns=(r"The container name \S{1,80} is already in use",),
        causes=(_NAME,),
        tell_apart="docker ps -a",
        sources=("moby daemon/names.go",),
    ),
    Symptom(
        id="device-path-missing",
        title="A device that the container asks for is not there",
        patterns=(
            r"error gathering device information while adding custom device \"?/dev/",
            r"no such device or address.{0,40}/dev/",
            r"(stat|lstat) /dev/(dri|kfd|infiniband|accel)\S{0,80}: no such file",
        ),
        causes=(
            Cause(
                id="device-node-absent",
                title="The host has no such device node",
                why="The card or its driver is missing, or card and render numbers are others here "
                "(renderD128 and renderD129 depend on the order of probing).",
                proof="ls -l /dev/dri/by-path /dev/kfd /dev/infiniband /dev/nvidia*; lspci -nnk",
                shows="other names, or nothing",
                fix="Name what is there; use /dev/dri as a whole, by-path names or CDI.",
                commands=("ls -l /dev/dri/by-path",),
                sources=("kernel DRM documentation",),
                hints=(r"renderD\d+|card\d",),
            ),
            NO_TOOLKIT,
        ),
        tell_apart="ls -l /dev/dri/by-path /dev/kfd /dev/infiniband /dev/nvidia*; lspci -nnk | "
        "grep -A3 "
        "-iE 'vga|3d|display'",
        sources=("moby daemon/oci_linux.go",),
    ),
)
