# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Docker engine: it does not start, it refuses a client, it forgets containers. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .engine_gpu import BAD_JSON, DESKTOP, SNAP

VALIDATE = "dockerd --validate --config-file /etc/docker/daemon.json"

JOURNAL = "journalctl -u docker -n 30 --no-pager"

OLD_CLIENT = Cause(
    id="docker-api-minimum",
    title="The client speaks an API version that this daemon no longer takes",
    why="Docker 29.0 raised its minimum to 1.44; from 29.3 it is 1.40 again. Clients that do not "
    "negotiate (older Traefik, Portainer, Watchtower, docker-py, Testcontainers) fail.",
    proof="docker version -f '{{.Server.APIVersion}} {{.Server.MinAPIVersion}}'; echo "
    "$DOCKER_API_VERSION",
    shows="a minimum above the version in the message",
    fix="Upgrade the client; set DOCKER_API_VERSION=1.44 where it can speak that; for a while "
    "lower "
    "the minimum (min-api-version in daemon.json, or DOCKER_MIN_API_VERSION).",
    commands=(
        "mkdir -p /etc/systemd/system/docker.service.d",
        "printf '[Service]\\nEnvironment=DOCKER_MIN_API_VERSION=1.24\\n' "
        ">/etc/systemd/system/docker.service.d/min-api.conf",
        "systemctl daemon-reload",
        "systemctl restart docker",
    ),
    sources=("traefik/traefik issue 12253", "moby daemon/config/config.go", "Docker 29.3 notes"),
    cases=("RT-022",),
    hints=(r"too old", r"docker\W{1,3}29", r"min_api"),
    holds=holds.rules_out(holds.version("docker", ">=29.0")),
)

NEW_CLIENT = Cause(
    id="api-above-maximum",
    title="The client is newer than the daemon",
    why="DOCKER_API_VERSION is set by hand, or a library asks for more than the daemon speaks.",
    proof="docker version -f '{{.Client.APIVersion}} {{.Server.APIVersion}}'; echo "
    "$DOCKER_API_VERSION",
    shows="a client version above the server's",
    fix="Unset DOCKER_API_VERSION (clients negotiate), or upgrade the daemon.",
    commands=("unset DOCKER_API_VERSION",),
    sources=("moby api/common.go",),
    hints=(r"too new",),
)

FLAG_AND_FILE = Cause(
    id="daemon-flag-and-file",
    title="A setting stands in daemon.json and in the unit's flags",
    why="dockerd refuses to start when the same directive comes from both; Debian's and Docker's "
    "unit already have -H fd://, old instructions added --add-runtime in a drop-in.",
    proof="systemctl cat docker | grep -A1 ExecStart; cat /etc/docker/daemon.json; " + JOURNAL,
    shows="hosts, runtimes or another setting on both sides",
    fix="Keep it in one place: remove the drop-in (or the key), reload systemd, restart docker.",
    commands=("systemctl revert docker", "systemctl daemon-reload", "systemctl restart docker"),
    sources=("NVIDIA/nvidia-container-toolkit issue 631", "NVIDIA/nvidia-docker issue 712"),
    cases=("RT-009",),
    hints=(r"drop-?in", r"override", r"flag and in the configuration file", r"hosts"),
)

UNKNOWN_KEY = Cause(
    id="daemon-unknown-key",
    title="daemon.json has a key that dockerd does not know",
    why="Invented keys, or keys that a release has removed (graph, cluster-store, "
    "storage drivers that are gone) stop the daemon.",
    proof=VALIDATE,
    shows="the directives don't match any configuration option",
    fix="Remove the key; steadygpu check names the substitute.",
    commands=("steadygpu check /etc/docker/daemon.json", "systemctl restart docker"),
    sources=("moby daemon/config/config.go",),
    hints=(r"match any configuration option", r"graph", r"unknown"),
)

UNKNOWN_FLAG = Cause(
    id="dockerd-unknown-flag",
    title="The unit gives dockerd a flag that does not exist",
    why="--ai-scheduler, --feature-gates, --gpu-manager and the like were never flags of dockerd; "
    "others were removed. The unit then restarts in a loop.",
    proof="systemctl cat docker | grep -A3 ExecStart; " + JOURNAL,
    shows="unknown flag",
    fix="Remove the flag from the unit or drop-in, reload systemd, start docker.",
    commands=(
        "systemctl revert docker",
        "systemctl daemon-reload",
        "systemctl reset-failed docker",
        "systemctl start docker",
    ),
    sources=("moby cmd/dockerd", "seen on Docker 26.1.5 and 28.5.2"),
    hints=(
        r"unknown flag",
        r"--(ai|gpu|feature)",
    ),
)

INVENTED_RUN_FLAG = Cause(
    id="unknown-flag",
    title="docker run has no such flag",
    why="--io-weight, --memory-bandwidth, --gpu-memory and --cpu-burst are in articles, not in "
    "Docker; others came with a later release than this client.",
    proof="docker run --help | grep -- FLAG; docker version",
    shows="nothing",
    fix="steadygpu check - with the line names what does exist (--blkio-weight, resctrl, MIG or "
    "memory limits of the driver).",
    commands=("docker run --help",),
    sources=("cli cli/command/container/opts.go", "seen on Docker 26.1.5 and 28.5.2"),
    hints=(r"--(io-weight|io-max|memory-bandwidth|gpu-memory\S{0,80}|cpu-burst)",),
)

RESERVED_RUNC = Cause(
    id="runtime-name-reserved",
    title="The runtime name runc is reserved",
    why="runc is built in and cannot be defined again.",
    proof="grep -A6 runtimes /etc/docker/daemon.json",
    shows='"runc": under runtimes',
    fix="Register another name and set default-runtime to it.",
    commands=("steadygpu check /etc/docker/daemon.json",),
    sources=("docker/for-linux issue 144", "moby daemon/runtime_unix.go"),
    cases=("RT-011",),
    hints=(r"reserved",),
)

CLOBBERED = Cause(
    id="daemon-json-replaced",
    title="A tool or play wrote daemon.json anew",
    why="Copying or templating the whole file drops what was in it; older nvidia-ctk replaces the "
    "map features when CDI is switched on.",
    proof="ls -l /etc/docker/; git -C /etc log -p -1 docker/daemon.json 2>/dev/null; docker info "
    "-f "
    "'{{.DockerRootDir}} {{.Driver}}'",
    shows="only the nvidia runtime, and another root directory or storage driver than before",
    fix="Merge instead of write: steadygpu.host.docker_daemon or nvidia-ctk runtime configure, and "
    "compare before and after. Put lost keys (data-root, features) back.",
    commands=(VALIDATE, "systemctl restart docker"),
    sources=(
        "NVIDIA/ansible-role-nvidia-docker issue 9",
        "NVIDIA/nvidia-container-toolkit PR 2049",
    ),
    cases=("RT-007", "RT-008"),
    hints=(r"features", r"play|ansible|role", r"earlier settings", r"snapshotter|images seem"),
)

IMAGE_STORE = Cause(
    id="image-store-changed",
    title="The engine looks into another store",
    why="features.containerd-snapshotter, data-root or the storage driver changed; images and "
    "containers of the other store are hidden, not lost.",
    proof="docker info -f '{{.Driver}} {{json .DriverStatus}} {{.DockerRootDir}}'; ls "
    "/var/lib/docker /var/lib/containerd",
    shows="another driver or directory than before",
    fix="Put the setting back and restart docker, or pull and import again. Docker 29 uses the "
    "containerd store on fresh installations only.",
    commands=("systemctl restart docker",),
    sources=("Docker release notes 29.0", "moby daemon/config"),
    cases=("RT-008",),
    hints=(r"vanish|gone|disappear", r"snapshotter", r"data-root"),
)

LIVE_RESTORE = Cause(
    id="live-restore-limits",
    title="live-restore does not carry containers over a large jump",
    why="It is for restarts of the daemon and patch releases. A restart of containerd, a jump over "
    "releases or a driver change may lose or orphan them.",
    proof="docker ps -a; ctr -n moby tasks ls; grep -h docker /var/log/apt/history.log | tail -2",
    shows="tasks in containerd that docker does not list as running",
    fix="Stop GPU containers before upgrades that cross releases, and start them after.",
    commands=("docker ps -aq --filter status=exited",),
    sources=("docker/for-linux issue 129", "containerd issue 6534"),
    cases=("RT-027",),
    hints=(r"live-?restore", r"upgrad", r"containerd"),
)

SYMPTOMS = (
    Symptom(
        id="docker-api-version",
        title="Client and daemon do not agree on an API version",
        patterns=(
            r"client version \S{1,80} is too (old|new)",
            r"Minimum supported API version is",
            r"Maximum supported API version is",
        ),
        causes=(OLD_CLIENT, NEW_CLIENT),
        tell_apart="docker version; echo $DOCKER_API_VERSION",
        sources=("moby api/common.go",),
        cases=("RT-022",),
    ),
    Symptom(
        id="dockerd-config-refused",
        title="dockerd refuses its configuration",
        patterns=(
            r"unable to configure the Docker daemon with file",
            r"directives (are specified both as a flag and in the configuration file|don.?t "
            r"match any "
            r"configuration option)",
            r"conflicting options?.{0,60}daemon\.json",
            r"docker (fails to start|does not start).{0,80}(daemon\.json|configure|drop-?in)",
            r"ignores daemon\.json",
            r"invalid character .{1,20} (looking for|after|in) .{0,60}",
            r"failed to (load|parse) .{0,30}daemon\.json",
        ),
        causes=(FLAG_AND_FILE, BAD_JSON, UNKNOWN_KEY),
        tell_apart=f"{VALIDATE}; systemctl cat docker | grep -A1 ExecStart; {JOURNAL}",
        sources=("moby daemon/config/config.go",),
        cases=("RT-009",),
    ),
    Symptom(
        id="unknown-flag",
        title="A flag is not known",
        patterns=(
            r"unknown (shorthand )?flag: ?(?!--gpus)\S{1,80}",
            r"flag provided but not defined",
        ),
        causes=(INVENTED_RUN_FLAG, UNKNOWN_FLAG),
        tell_apart="docker version; systemctl cat docker | grep -A3 ExecStart; docker run --help",
        sources=("seen on Docker 26.1.5 and 28.5.2",),
    ),
    Symptom(
        id="runtime-reserved",
        title="The runtime name is reserved",
        patterns=(r"runtime name .?runc.? is reserved",),
        causes=(RESERVED_RUNC,),
        tell_apart="grep -A6 runtimes /etc/docker/daemon.json",
        sources=("moby daemon/runtime_unix.go",),
        cases=("RT-011",),
    ),
    Symptom(
        id="daemon-settings-lost",
        title="Settings of the daemon are gone after a tool ran",
        patterns=(
            r"(earlier|previous|other) settings (are|were) (gone|lost|overwritten)",
            r"only features\.cdi is left",
            r"(daemon\.json|features).{0,80}(overwritten|replaced|clobbered|lost|dropped)",
            r"settings.{0,40}gone after the play",
        ),
        causes=(CLOBBERED,),
        tell_apart="cat /etc/docker/daemon.json; docker info -f '{{.DockerRootDir}} {{.Driver}}'",
        sources=("NVIDIA/ansible-role-nvidia-docker issue 9",),
        cases=("RT-007", "RT-008"),
    ),
    Symptom(
        id="images-vanished",
        title="Images and containers seem to have vanished",
        patterns=(
            r"images missing|containerd image store",
            r"(images?|containers?|volumes?) (seem to |have |are "
            r")?(vanish(ed)?|disappear(ed)?|all gone)",
            r"running containers (are|were) (gone|lost|unmanaged)",
            r"loses containers",
        ),
        causes=(IMAGE_STORE, LIVE_RESTORE, CLOBBERED, SNAP, DESKTOP),
        tell_apart="docker info -f '{{.Driver}} {{.DockerRootDir}} {{.LiveRestoreEnabled}}'; "
        "docker "
        "context ls; ls /var/lib/docker /var/lib/containerd",
        sources=("Docker release notes 29.0",),
        cases=("RT-008", "RT-027"),
    ),
)
