# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The start of a container fails beside the GPU: groups, words, buses, hooks, old Compose. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .accelerators import RENDER_GROUP

_CHECK = "steadygpu check FILE"

GROUP_ABSENT = Cause(
    id="group-name-not-in-image",
    title="The image has no group of that name",
    why="--group-add with a name is looked up in the image's /etc/group; render is in few images, "
    "and its number differs from host to host anyway.",
    proof="docker run --rm --entrypoint cat IMAGE /etc/group; getent group render video; stat -c "
    "'%g %n' /dev/dri/renderD* /dev/kfd",
    shows="no such name in the image",
    fix="Give the number of the host's group.",
    commands=(
        "docker run --group-add $(getent group render | cut -d: -f3) --device /dev/dri IMAGE",
    ),
    sources=("TilmanGriesel/chipper issue 101", "ROCm/ROCm-docker issue 90"),
    hints=(r"group",),
)

FLAG_BEHIND_IMAGE = Cause(
    id="docker-flag-behind-image",
    title="A flag of docker run stands behind the image",
    why="Everything behind the image's name is the container's command.",
    proof=_CHECK,
    shows="the flag behind the image",
    fix="Put flags before the image.",
    commands=("docker run --rm --gpus all IMAGE nvidia-smi",),
    sources=("Docker documentation, docker run",),
    hints=(r"--\w+",),
)

_NO_PROGRAM = Cause(
    id="command-not-in-image",
    title="The image has no such program",
    why="base images lack compilers and tools; nvidia-smi comes from the host with the capability "
    "utility only.",
    proof="docker run --rm --entrypoint sh IMAGE -c 'command -v PROGRAM'",
    shows="nothing",
    fix="Use an image that has it; for nvidia-smi ask for a GPU and the capability utility.",
    commands=("docker run --rm --gpus all IMAGE nvidia-smi",),
    sources=("NVIDIA Container Toolkit documentation, driver capabilities",),
)

COMPOSE_V1 = Cause(
    id="compose-v1-and-new-engine",
    title="docker-compose 1.x cannot read what a newer engine writes",
    why="Version 1 (Python) ended in 2023; Docker 25 and newer leave out ContainerConfig, which it "
    "reads when it makes a container anew.",
    proof="docker-compose version; docker compose version; docker version -f '{{.Server.Version}}'",
    shows="docker-compose 1.x",
    fix="Use docker compose (the plugin, version 2 or newer); remove the old containers once with "
    "docker compose down.",
    commands=("apt-get install docker-compose-plugin", "docker compose up -d"),
    sources=("docker/compose issue 11742", "Docker documentation, migrate to Compose V2"),
    hints=(r"ContainerConfig", r"1\.2\d", r"docker-compose"),
)

_FORMAT = Cause(
    id="compose-format-without-runtime",
    title="docker-compose 1.x takes runtime: in file format 2.3 and 2.4 only",
    why="Formats 3.x of version 1 have neither runtime nor device reservations; Compose 2 ignores "
    "the version key and takes both.",
    proof="docker-compose version; head -3 docker-compose.yml",
    shows="1.x and a version of 3.x",
    fix="Use docker compose (version 2 or newer) and remove the version key.",
    commands=("docker compose config --quiet",),
    sources=("docker/compose issue 6691",),
    hints=(r"runtime", r"1\.\d\d"),
)

_SYSTEMD_OLD = Cause(
    id="systemd-property-unknown",
    title="systemd does not know a property that the runtime sets",
    why="Old systemd releases (EL 7) lack TasksAccounting and others that the systemd cgroup "
    "driver uses.",
    proof="systemctl --version | head -1; docker info -f '{{.CgroupDriver}}'",
    shows="systemd 219 and the driver systemd",
    fix='"exec-opts": ["native.cgroupdriver=cgroupfs"] on that host, or upgrade it.',
    commands=("systemctl restart docker",),
    sources=("moby issue 35123",),
    hints=(r"propert",),
)

_HOOK_PATH = Cause(
    id="cdi-hook-missing",
    title="The hook that the CDI spec names is not there or does not run",
    why="A spec names nvidia-ctk or nvidia-cdi-hook by its path on the host that made it; a "
    "removed or moved toolkit, a driver container, or an old C library leave it useless.",
    proof="grep -hoE 'path: /\\S*(nvidia-ctk|nvidia-cdi-hook)' /etc/cdi/* /var/run/cdi/* | sort "
    "-u; nvidia-cdi-hook --version",
    shows="a path that does not exist, or a program that fails",
    fix="Install the toolkit of this host and write the spec anew (--nvidia-cdi-hook-path names "
    "another place).",
    commands=("nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",),
    sources=("NVIDIA/nvidia-container-toolkit docs, cdi generate",),
    hints=(r"nvidia-ctk|nvidia-cdi-hook", r"127|not found"),
)

_HOOK_1_17_0 = Cause(
    id="toolkit-hook-fails-1-17-0",
    title="Toolkit 1.17.0 refuses links that its own specs ask for",
    why="Its create-symlinks hook fails on paths that 1.17.1 accepts again.",
    proof="nvidia-ctk --version",
    shows="1.17.0",
    fix="Upgrade to 1.19.1 or newer and write the spec anew.",
    commands=("apt-get install --only-upgrade nvidia-container-toolkit-base",),
    sources=("cncf-tags/container-device-interface issue 239",),
    hints=(r"1\.17\.0", r"exit code: 1\b"),
    holds=holds.rules_out(holds.version("toolkit", "==1.17.0")),
)

_SPLIT = Cause(
    id="toolkit-packages-split",
    title="A pre-release of the toolkit owns files of its later packages",
    why="1.11.0 split nvidia-container-toolkit and -base; release candidates and distribution "
    "builds from before hold files of both.",
    proof="dpkg -S /usr/bin/nvidia-ctk; dpkg -l 'nvidia-container*' 'libnvidia-container*'",
    shows="an old version that owns the file",
    fix="Remove the old package, then install the whole set at one version.",
    commands=(
        "apt-get remove nvidia-container-toolkit",
        "apt-get install nvidia-container-toolkit nvidia-container-toolkit-base "
        "libnvidia-container-tools libnvidia-container1",
    ),
    sources=("NVIDIA/nvidia-container-toolkit issue 59",),
    hints=(r"overwrite",),
)

_NO_RUNC = Cause(
    id="low-level-runtime-missing",
    title="nvidia-container-runtime finds no runc",
    why="It starts the first of runtimes = [...] that is on the PATH it was given; engines of "
    "users, snaps and podman give it another PATH, and crun-only hosts have no runc.",
    proof="grep -n runtimes /etc/nvidia-container-runtime/config.toml; command -v runc crun",
    shows="no program of these names on that PATH",
    fix='Install runc, or write runtimes = ["crun", "/usr/bin/runc"] with whole paths.',
    commands=("apt-get install runc",),
    sources=("podman issue 5711", "NVIDIA Container Toolkit configuration"),
    hints=(r"find runc|low-level|runtime binary",),
)

_ROOTLESS_HOOK = Cause(
    id="rootless-needs-no-cgroups",
    title="A rootless engine may not change device rules",
    why="The hook writes them unless no-cgroups = true is set.",
    proof="podman info -f '{{.Host.Security.Rootless}}'; grep -n no-cgroups "
    "/etc/nvidia-container-runtime/config.toml",
    shows="true, and no-cgroups off",
    fix="Use CDI (--device nvidia.com/gpu=all), or no-cgroups = true for the rootless engine.",
    commands=("podman run --device nvidia.com/gpu=all IMAGE nvidia-smi",),
    sources=("NVIDIA Container Toolkit documentation, rootless",),
    hints=(r"rootless", r"podman"),
    holds=holds.rootless,
)

_BAD_NAME = Cause(
    id="gpu-index-absent",
    title="The request names a GPU in a form that the hook does not read",
    why="It takes all, void, none, indices, UUIDs, and GPU:device for MIG, separated by commas.",
    proof="nvidia-smi -L",
    shows="other names",
    fix="Use an index or UUID that nvidia-smi -L lists.",
    commands=("nvidia-smi -L",),
    sources=("libnvidia-container src/nvc_info.c",),
)

_USER = Cause(
    id="toolkit-config-user",
    title="The user that the toolkit's configuration names does not exist",
    why="nvidia-container-cli.user runs the driver's helper as that user; images of other "
    "distributions lack the group root:video.",
    proof="grep -n '^ *user' /etc/nvidia-container-runtime/config.toml; getent passwd; getent "
    "group video",
    shows="a name that getent does not list",
    fix="Remove the line, or name a user and group of this host.",
    commands=("sed -i 's/^ *user *=/#&/' /etc/nvidia-container-runtime/config.toml",),
    sources=("NVIDIA/libnvidia-container src/cli",),
)

_SHIM = Cause(
    id="shim-socket-left",
    title="The shim of a container that died is left over",
    why="After a crash of containerd or a hard reboot its socket in /run/containerd/s, or the shim "
    "itself, is still there.",
    proof="pgrep -af containerd-shim; ls -l /run/containerd/s; docker ps -a",
    shows="a shim without a running container",
    fix="End exactly that shim, remove its socket, and start the container; a restart of "
    "containerd with KillMode=process leaves other jobs alone.",
    commands=("pgrep -af containerd-shim",),
    sources=("containerd issue 3201",),
    hints=(r"socket|bind",),
)

SYMPTOMS = (
    Symptom(
        id="shim-socket",
        title="A shim's socket is taken",
        patterns=(r"(create new shim socket|failed to start shim).{0,160}address already in use",),
        causes=(_SHIM,),
        tell_apart="pgrep -af containerd-shim; ls -l /run/containerd/s; docker ps -a",
        sources=("containerd issue 3201",),
    ),
    Symptom(
        id="group-not-found",
        title="The engine does not find a group",
        patterns=(
            r"Unable to find group [\w-]{1,40}",
            r"no matching entries in group file",
        ),
        causes=(GROUP_ABSENT, RENDER_GROUP),
        tell_apart="docker run --rm --entrypoint cat IMAGE /etc/group; getent group render video",
        sources=("moby daemon/oci_linux.go",),
    ),
    Symptom(
        id="command-not-found",
        title="The container's command is not found",
        patterns=(
            r"exec: \"(?!nvidia|runc|crun)[^\"/]{1,60}\": executable file not found in \$PATH",
        ),
        causes=(FLAG_BEHIND_IMAGE, _NO_PROGRAM),
        tell_apart=_CHECK,
        sources=("opencontainers/runc libcontainer",),
    ),
    Symptom(
        id="low-level-runtime",
        title="The nvidia runtime finds no low-level runtime",
        patterns=(
            r"(find runc path|no runtime binary found|error locating runtime)",
            r"exec: \"(runc|crun)\": executable file not found",
        ),
        causes=(_NO_RUNC,),
        tell_apart="grep -n runtimes /etc/nvidia-container-runtime/config.toml; command -v runc "
        "crun",
        sources=("podman issue 5711",),
    ),
    Symptom(
        id="toolkit-files-owned",
        title="Two packages of the toolkit own the same file",
        patterns=(
            r"trying to overwrite \S{0,40}nvidia-c(tk|ontainer)\S{0,40} which is also in package",
        ),
        causes=(_SPLIT,),
        tell_apart="dpkg -S /usr/bin/nvidia-ctk; dpkg -l 'nvidia-container*'",
        sources=("NVIDIA/nvidia-container-toolkit issue 59",),
    ),
    Symptom(
        id="compose-containerconfig",
        title="docker-compose stops with ContainerConfig",
        patterns=(r"KeyError: .?ContainerConfig", r"'ContainerConfig'"),
        causes=(COMPOSE_V1,),
        tell_apart="docker-compose version; docker version -f '{{.Server.Version}}'",
        sources=("docker/compose issue 11742",),
    ),
    Symptom(
        id="compose-runtime-unsupported",
        title="docker-compose does not know runtime:",
        patterns=(
            r"Unsupported config option.{0,40}runtime",
            r"(contains )?unsupported option: .?runtime",
        ),
        causes=(_FORMAT,),
        tell_apart="docker-compose version; head -3 docker-compose.yml",
        sources=("docker/compose issue 6691",),
    ),
    Symptom(
        id="systemd-property",
        title="systemd does not take a property",
        patterns=(r"cannot set property \w{1,40}, or unknown property",),
        causes=(_SYSTEMD_OLD,),
        tell_apart="systemctl --version | head -1; docker info -f '{{.CgroupDriver}}'",
        sources=("moby issue 35123",),
    ),
    Symptom(
        id="cdi-hook-fails",
        title="A hook of the CDI spec fails",
        patterns=(
            r"error (running|executing) (createContainer|createRuntime|startContainer)? ?hook"
            r".{0,80}(127|nvidia-(ctk|cdi-hook))",
            r"nvidia-(ctk|cdi-hook)\S{0,3}:? .{0,40}(not found|no such file|GLIBC|shared librar)",
        ),
        causes=(_HOOK_PATH, _HOOK_1_17_0),
        tell_apart="grep -hoE 'path: /\\S*nvidia\\S*' /etc/cdi/* /var/run/cdi/* | sort -u; "
        "nvidia-cdi-hook --version",
        sources=("CDI SPEC.md, hooks",),
    ),
    Symptom(
        id="podman-hook-fails",
        title="podman's hook fails",
        patterns=(
            r"crun: error executing hook.{0,80}nvidia-container-(toolkit|runtime-hook)",
            r"error executing hook .{0,80}oci-nvidia-hook",
        ),
        causes=(_ROOTLESS_HOOK, _HOOK_PATH),
        tell_apart="podman info -f '{{.Host.Security.Rootless}}'; ls "
        "/usr/share/containers/oci/hooks.d; ls /etc/cdi /run/cdi",
        sources=("NVIDIA Container Toolkit documentation, podman",),
    ),
    Symptom(
        id="cli-input",
        title="nvidia-container-cli refuses its input",
        patterns=(r"nvidia-container-cli: input error", r"nvidia-container-cli: user error"),
        causes=(_BAD_NAME, _USER),
        tell_apart="nvidia-smi -L; grep -n '^ *user' /etc/nvidia-container-runtime/config.toml",
        sources=("NVIDIA/libnvidia-container src/cli",),
    ),
)
