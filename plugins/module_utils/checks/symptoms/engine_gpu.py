# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the engines say when they cannot give a container its GPU. Data."""

from __future__ import annotations

from dataclasses import replace

from ..explain import Cause, Symptom
from . import holds
from .cdi import NO_SPEC
from .nvml_refused import NO_CARD

_RUNTIMES = "docker info -f '{{json .Runtimes}} {{.DefaultRuntime}} {{.DockerRootDir}}'"
_CONFIGURE = "nvidia-ctk runtime configure --runtime=docker"

NO_TOOLKIT = Cause(
    id="toolkit-absent",
    title="The toolkit is missing, or docker was not restarted after its installation",
    why="dockerd registers the driver behind --gpus once at its start, when it finds "
    "nvidia-container-runtime-hook (or from 29.2 nvidia-cdi-hook) on its PATH.",
    proof="command -v nvidia-container-runtime-hook nvidia-cdi-hook; systemctl show -p "
    "ActiveEnterTimestamp docker",
    shows="no such program, or a docker that was started before the toolkit was installed",
    fix="Install nvidia-container-toolkit and restart docker.",
    commands=("apt-get install nvidia-container-toolkit", "systemctl restart docker"),
    sources=("NVIDIA/nvidia-docker issues 1034 and 1243", "moby daemon/devices_nvidia_linux.go"),
    cases=("TK-001",),
    hints=(
        r"hook_on_path|not (installed|restarted)|nvidia-container-toolkit (is )?(missing|absent)",
    ),
    holds=holds.hook_missing,
)

SNAP = Cause(
    id="snap-docker",
    title="The client talks to a Docker from a snap",
    why="The snap's confinement hides the host's hook and it does not read "
    "/etc/docker/daemon.json. Often a package engine is installed beside it.",
    proof="readlink -f $(command -v docker); docker info -f '{{.DockerRootDir}}'; snap list docker",
    shows="/snap/…, and a root below /var/snap/docker",
    fix="Remove the snap and install the distribution's or Docker's own packages.",
    commands=("snap remove docker", "apt-get install docker.io", "systemctl restart docker"),
    sources=("NVIDIA/nvidia-docker issues 1642 and 1637",),
    cases=("TK-002",),
    hints=(r"\bsnap\b", r"/var/snap"),
)

AMD_ONLY = Cause(
    id="gpus-on-amd-host",
    title="--gpus on a host with AMD cards only",
    why="Docker before 28.3 knows NVIDIA alone behind --gpus; newer ones need AMD's container "
    "toolkit (amd-container-runtime, or from 29.3 a CDI spec).",
    proof="lspci -nn | grep -iE 'vga|3d|display'; docker version -f '{{.Server.Version}}'; command "
    "-v amd-container-runtime",
    shows="only AMD cards, and an older engine or no AMD toolkit",
    fix="Pass the nodes: --device=/dev/kfd --device=/dev/dri, or install AMD's container toolkit "
    "and use --device amd.com/gpu=all.",
    commands=("docker run --rm --device=/dev/kfd --device=/dev/dri IMAGE rocminfo",),
    sources=("moby PR 49952",),
    cases=("AI-007",),
    hints=(r"\bamd\b", r"rocm", r"radeon"),
    holds=holds.only_vendor("amd"),
)

DESKTOP = Cause(
    id="docker-desktop-context",
    title="The client talks to Docker Desktop, not to the engine of this host",
    why="Docker Desktop for Linux runs its engine in a VM that has no GPU; it installs a context "
    "of "
    "its own and makes it current.",
    proof="docker context ls; docker info -f '{{.OperatingSystem}}'",
    shows="desktop-linux with a star; Docker Desktop",
    fix="Use the host's engine.",
    commands=("docker context use default",),
    sources=("ROCm/container-toolkit issue 86",),
    cases=("AI-003",),
    hints=(r"desktop",),
)

_ROOTLESS_DAEMON = Cause(
    id="rootless-engine",
    title="A rootless daemon reads another configuration file",
    why="It uses ~/.config/docker/daemon.json and the user's own unit.",
    proof="echo $DOCKER_HOST; docker info -f '{{.SecurityOptions}}'; cat "
    "~/.config/docker/daemon.json",
    shows="name=rootless, and no nvidia runtime in that file",
    fix="Configure that file and restart the user's daemon.",
    commands=(
        f"{_CONFIGURE} --config=$HOME/.config/docker/daemon.json",
        "systemctl --user restart docker",
        "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",
    ),
    sources=("NVIDIA-ISAAC-ROS/isaac_ros_visual_slam issue 132",),
    cases=("RT-004",),
    hints=(r"rootless", r"/run/user/", r"\.config/docker"),
    holds=holds.rules_out(holds.rootless),
)

_NOT_RESTARTED = Cause(
    id="daemon-json-not-loaded",
    title="daemon.json has the runtime and the running daemon does not",
    why="The daemon was not restarted (or reloaded) after the edit, or another daemon answers.",
    proof=f"grep -A3 runtimes /etc/docker/daemon.json; {_RUNTIMES}",
    shows="nvidia in the file and only runc in the daemon",
    fix="Restart docker and compare again. If it still differs, a snap, rootless or Desktop daemon "
    "is answering.",
    commands=(
        "dockerd --validate --config-file /etc/docker/daemon.json",
        "systemctl restart docker",
    ),
    sources=("NVIDIA-AI-IOT/live-vlm-webui issue 28",),
    cases=("RT-003",),
    hints=(r"docker_info_|edited|not restarted|right, but",),
)

NOT_DEFINED = Cause(
    id="runtime-not-defined",
    title="No runtime of that name is defined",
    why="runtimes.nvidia is missing in the daemon's configuration, or default-runtime names one "
    "that is not there.",
    proof=f"{_RUNTIMES}; cat /etc/docker/daemon.json",
    shows="no nvidia among the runtimes",
    fix="Define it and restart docker; or leave --runtime and use CDI.",
    commands=(_CONFIGURE, "systemctl restart docker"),
    sources=("NVIDIA/nvidia-docker issue 1795",),
    cases=("RT-002",),
    holds=holds.runtime_missing("nvidia"),
)

BAD_JSON = Cause(
    id="daemon-json-syntax",
    title="daemon.json is not valid JSON",
    why="A stray or missing brace, a comma too many, or a comment: the daemon does not start, or "
    "runs on with what it had.",
    proof="dockerd --validate --config-file /etc/docker/daemon.json; journalctl -u docker -n 20 "
    "--no-pager",
    shows="a parse error",
    fix="Correct the place that `steadygpu check` names.",
    commands=("steadygpu check /etc/docker/daemon.json",),
    sources=("NVIDIA/nvidia-docker issue 542",),
    cases=("RT-001",),
    hints=(r"invalid character|unexpected (end|token)|parse error|not valid json",),
)

_HOOK_GONE = Cause(
    id="runtime-binary-missing",
    title="The runtime's program is not where the configuration says",
    why="The toolkit was removed, renamed or moved (nvidia-docker2 is gone since 1.15), or PATH of "
    "the daemon lacks its directory.",
    proof="grep -A4 nvidia /etc/docker/daemon.json; command -v nvidia-container-runtime",
    shows="a path that does not exist",
    fix="Install nvidia-container-toolkit and configure it again.",
    commands=("apt-get install nvidia-container-toolkit", _CONFIGURE, "systemctl restart docker"),
    sources=("NVIDIA Container Toolkit release notes 1.15",),
    hints=(r"executable file not found", r"no such file"),
)

_AMD_FALLBACK = Cause(
    id="nvidia-hooks-missing-amd-driver-answers",
    title="Only the AMD driver is registered behind --gpus",
    why="Neither nvidia-cdi-hook nor nvidia-container-runtime-hook is on dockerd's PATH, so AMD's "
    "driver answers to the capability gpu and finds no AMD spec.",
    proof="command -v nvidia-cdi-hook nvidia-container-runtime-hook; ls /etc/cdi /var/run/cdi",
    shows="no such program while a spec of NVIDIA is there",
    fix="Install or repair the NVIDIA toolkit for this daemon, generate the spec, restart docker.",
    commands=(
        "apt-get install nvidia-container-toolkit",
        "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",
        "systemctl restart docker",
    ),
    sources=("games-on-whales/wolf issue 386", "moby daemon/devices_amd_linux.go"),
    cases=("RT-025",),
    hints=(r"nvidia",),
    holds=holds.rules_out(holds.hook_missing),
)

_MIXED = Cause(
    id="amd-behind-nvidia",
    title="--gpus reaches the NVIDIA cards only on a host with both vendors",
    why="The AMD driver is registered only when no helper of NVIDIA is found.",
    proof="lspci -nn | grep -iE 'vga|3d|display'; command -v nvidia-cdi-hook "
    "nvidia-container-runtime-hook amd-container-runtime",
    shows="cards and helpers of both vendors",
    fix="Ask for AMD cards by name.",
    commands=(
        "docker run --rm --device amd.com/gpu=all IMAGE rocminfo",
        "docker run --rm --device=/dev/kfd --device=/dev/dri IMAGE rocminfo",
    ),
    sources=("moby PR 49952",),
    cases=("RT-026",),
    hints=(r"\bamd\b", r"rocm"),
    holds=holds.rules_out(holds.mixed_vendors),
)

_BAD_GPUS = Cause(
    id="gpus-bad-value",
    title="The value of --gpus is not what Docker reads",
    why="It is one line of CSV: a list of devices needs quotes inside the quotes, and only driver, "
    "count, device, capabilities and options are keys.",
    proof="printf '%s\\n' \"$GPUS\"; steadygpu check -",
    shows="a list without inner quotes, or a key that does not exist",
    fix="Write --gpus '\"device=0,1\"'. Limits of GPU memory are no part of it.",
    commands=("docker run --rm --gpus '\"device=0,1\"' IMAGE nvidia-smi -L",),
    sources=("cli opts/gpus.go",),
    hints=(r"unexpected key", r"invalid argument"),
)

_COUNT_AND_IDS = Cause(
    id="count-and-device-ids",
    title="A request has both a count and device ids",
    why="The two exclude each other. On the command line an unquoted list such as device=0,1 makes "
    "the 1 a count.",
    proof="docker compose config | grep -A8 devices",
    shows="count and device_ids in one entry, or --gpus device=0,1 without inner quotes",
    fix="Keep device_ids, or count.",
    commands=("docker compose config --quiet",),
    sources=("NVIDIA/nvidia-docker issue 1026", "compose-spec/compose-go PR 689"),
    cases=("CO-001",),
    hints=(r"compose", r"device_ids", r"device=\d,"),
)

_DRIVER_NAME = Cause(
    id="device-driver-unknown",
    title="The reservation names a driver that does not exist",
    why="Docker knows nvidia, cdi and (for a request without a name) AMD; the name of a runtime or "
    "package is none of them.",
    proof="docker compose config | grep -n driver",
    shows="another name",
    fix="driver: nvidia, or driver: cdi with device_ids: [nvidia.com/gpu=all].",
    commands=("docker compose config --quiet",),
    sources=("moby daemon/devices.go",),
)

_OLD_CLI = Cause(
    id="engine-too-old-for-gpus",
    title="The client or daemon is older than --gpus",
    why="--gpus came with Docker 19.03 and API 1.40; Compose knows device reservations from 1.28.",
    proof="docker version; docker compose version",
    shows="an older release, or podman before 5",
    fix="Upgrade; with an old engine use --runtime=nvidia.",
    commands=("docker version",),
    sources=("Docker release notes 19.03",),
    hints=(r"unknown flag", r"1\.40"),
)

SYMPTOMS = (
    Symptom(
        id="compose-driver-name",
        title="A device request names a driver that the engine does not have",
        patterns=(
            r"could not select device driver \W{1,2}(?!(nvidia|cdi|amd)\b(?!-))[a-z][\w.-]{1,40}",
        ),
        causes=(_DRIVER_NAME,),
        tell_apart="docker compose config | grep -B2 -A4 driver",
        sources=("moby daemon/devices.go",),
    ),
    Symptom(
        id="could-not-select-device-driver",
        title="No device driver for the capability gpu",
        patterns=(
            r"could not select device driver (?!.{1,2}cdi)",
            r"linux runtime spec devices: could not select device driver",
        ),
        causes=(NO_TOOLKIT, NO_CARD, SNAP, AMD_ONLY, DESKTOP),
        tell_apart="lspci -nn | grep -iE 'vga|3d|display'; command -v "
        "nvidia-container-runtime-hook; "
        "readlink -f $(command -v docker); docker context ls; " + _RUNTIMES,
        sources=("moby daemon/devices_nvidia_linux.go",),
        cases=("AI-007", "TK-001", "TK-002", "TK-003"),
    ),
    Symptom(
        id="unknown-runtime",
        title="The engine does not know the runtime",
        patterns=(
            r"unknown or invalid runtime name",
            r"Unknown runtime specified",
            r"default[- ]runtime .{0,40}(not (found|defined|configured)|does not exist)",
            r"specified default runtime .{0,60}does not exist",
            r"runtime \"?nvidia\"? (is )?not (found|installed|configured)",
            r"invalid runtime name: ?nvidia",
        ),
        causes=(NOT_DEFINED, _NOT_RESTARTED, _ROOTLESS_DAEMON, BAD_JSON, SNAP, DESKTOP),
        tell_apart=f"{_RUNTIMES}; docker context ls; cat /etc/docker/daemon.json; dockerd "
        "--validate --config-file /etc/docker/daemon.json",
        sources=("moby daemon/runtime_unix.go",),
        cases=("RT-001", "RT-002", "RT-003", "RT-004"),
    ),
    Symptom(
        id="runtime-program-missing",
        title="The runtime's program cannot be started",
        patterns=(
            r"nvidia-container-runtime did not terminate successfully",
            r"unable to retrieve OCI runtime error",
            r"exec: \"?\S{0,80}nvidia-container-(runtime|toolkit|runtime-hook)\S{0,80}: "
            r".{0,40}not found",
            r"nvidia-container-(runtime|toolkit|runtime-hook|cli)\S{0,80}: (executable file "
            r"|command )?"
            r"(not found|no such file)",
            r"error running (prestart )?hook.{0,80}nvidia\S{0,80}.{0,40}no such file",
            r"fork/exec \S{0,80}nvidia\S{0,80}: (no such file|permission denied)",
        ),
        causes=(_HOOK_GONE,),
        tell_apart="grep -A4 nvidia /etc/docker/daemon.json; command -v nvidia-container-runtime "
        "nvidia-container-runtime-hook nvidia-container-cli",
        sources=("NVIDIA Container Toolkit release notes 1.15",),
    ),
    Symptom(
        id="amd-cdi-spec-not-found",
        title="AMD CDI spec not found",
        patterns=(r"AMD CDI spec not found",),
        causes=(_AMD_FALLBACK, replace(AMD_ONLY, hints=(r"rocm", r"radeon|instinct"))),
        tell_apart="lspci -nn | grep -iE 'vga|3d|display'; command -v nvidia-cdi-hook "
        "nvidia-container-runtime-hook amd-container-runtime; ls /etc/cdi /var/run/cdi",
        sources=("moby daemon/devices_amd_linux.go",),
        cases=("RT-025",),
    ),
    Symptom(
        id="amd-not-injected",
        title="--gpus does not give the AMD cards",
        patterns=(
            r"AMD (devices?|GPUs?|cards?) (are|is) not (injected|passed|visible)",
            r"--gpus .{0,40}(never reaches|does not (reach|give|pass)).{0,30}AMD",
        ),
        causes=(_MIXED, AMD_ONLY),
        tell_apart="lspci -nn | grep -iE 'vga|3d|display'; command -v nvidia-cdi-hook "
        "amd-container-runtime; docker version -f '{{.Server.Version}}'",
        sources=("moby PR 49952",),
        cases=("RT-026",),
    ),
    Symptom(
        id="gpus-flag-refused",
        title="Docker refuses the value of --gpus",
        patterns=(
            r"invalid argument .{1,80} for .{0,3}--gpus",
            r"unexpected key .{1,30} in .{0,60}",
            r"cannot set both Count and DeviceIDs",
            r"\"?count\"? and \"?device_ids\"? (attributes )?are exclusive",
            r"gpu request key .{1,20} can be specified only once",
            r"failed to parse device request",
        ),
        causes=(_COUNT_AND_IDS, _BAD_GPUS),
        tell_apart="docker compose config | grep -A8 devices",
        sources=("cli opts/gpus.go", "moby daemon/devices_nvidia_linux.go"),
        cases=("CO-001",),
    ),
    Symptom(
        id="gpus-flag-unknown",
        title="The flag --gpus is not known",
        patterns=(
            r"unknown flag: --gpus",
            r"\"gpu request\" requires API version 1\.40",
            r"requires API version 1\.40",
        ),
        causes=(_OLD_CLI,),
        tell_apart="docker version; readlink -f $(command -v docker)",
        sources=("Docker release notes 19.03",),
    ),
    Symptom(
        id="podman-emulates-docker",
        title="docker is podman here",
        patterns=(r"Emulate Docker CLI using podman",),
        causes=(NO_SPEC,),
        tell_apart="docker --version; readlink -f $(command -v docker); ls /etc/cdi /run/cdi",
        sources=("warmshao/FasterLivePortrait issue 116",),
        cases=("TK-042",),
    ),
)
