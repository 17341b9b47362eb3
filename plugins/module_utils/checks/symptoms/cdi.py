# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What engines and nvidia-ctk say of CDI devices and specs. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

_LIST = "nvidia-ctk cdi list; ls -l /etc/cdi /var/run/cdi; docker info -f '{{json .CDISpecDirs}}'"
_GENERATE = "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml"

NO_SPEC = Cause(
    id="cdi-spec-missing",
    title="There is no CDI spec for this device on the host",
    why="The name resolves only when a spec file in a directory that the engine searches has it. "
    "podman's docker emulation turns --gpus into CDI names, too.",
    proof=_LIST,
    shows="no file, or none with kind nvidia.com/gpu",
    fix="Generate the spec; toolkit 1.18 and newer have nvidia-cdi-refresh, which keeps it fresh.",
    commands=(
        _GENERATE,
        "systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service",
    ),
    sources=("NVIDIA Container Toolkit CDI documentation", "warmshao/FasterLivePortrait issue 116"),
    cases=("TK-042",),
    hints=(
        r"emulat\w*",
        r"never generated|no spec",
        r"(specs?|spec_?files|discovered_?devices)\W{1,5}\[\W{0,3}\]",
        r"specs?\W{1,4}(none|absent|missing)",
    ),
    holds=holds.no_cdi_devices,
)

SPEC_ELSEWHERE = Cause(
    id="cdi-spec-dirs",
    title="The spec lies in a directory that this engine does not search",
    why="Engines search /etc/cdi and /var/run/cdi (/run/cdi) unless told otherwise; older podman "
    "searches /etc/cdi only, a rootless engine its own directories too.",
    proof="ls -l /etc/cdi /run/cdi $HOME/.config/cdi; podman info -f json | grep -i cdi; docker "
    "info "
    "-f '{{json .CDISpecDirs}}'",
    shows="a spec file outside the listed directories",
    fix="Name the directory: --cdi-spec-dir=/run/cdi, cdi_spec_dirs in containers.conf, "
    "cdi-spec-dirs in daemon.json; or write the spec to /etc/cdi.",
    commands=("nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",),
    sources=("NixOS/nixpkgs issue 420638",),
    cases=("TK-040",),
    hints=(r"spec[-_ ]dirs?", r"(?<!/var)/run/cdi", r"nixos"),
)

CDI_OFF = Cause(
    id="cdi-not-enabled",
    title="CDI is switched off in the engine",
    why="Docker 25 to 28.1 need features.cdi=true (or cdi-spec-dirs), containerd 1.7 needs "
    "enable_cdi = true. The driver for it is registered only when dockerd starts.",
    proof="docker info -f '{{json .CDISpecDirs}}'; grep -n cdi /etc/docker/daemon.json "
    "/etc/containerd/config.toml",
    shows="[] or null: no directory is searched",
    fix='Add "features": {"cdi": true} to daemon.json (keep the other features) and restart '
    "docker; "
    "in containerd 1.7 set enable_cdi = true.",
    commands=("systemctl restart docker",),
    sources=("moby daemon/cdi.go", "containerd docs/cri/config.md"),
    hints=(
        r"could not select device driver .?.?cdi",
        r"docker 2[5-7]",
        r"not enabled",
        r"features",
    ),
    holds=holds.cdi_off,
)

MIG_NOT_IN_SPEC = Cause(
    id="cdi-lacks-mig-devices",
    title="The spec was written before the MIG devices existed",
    why="MIG devices created or destroyed later are not in it, and nothing notices by itself.",
    proof="nvidia-smi -L | grep MIG; nvidia-ctk cdi list",
    shows="MIG UUIDs that the list does not have",
    fix="Regenerate the spec after every change of MIG devices.",
    commands=(_GENERATE, "systemctl restart nvidia-cdi-refresh.service"),
    sources=("Project-HAMi/HAMi issue 1903", "NVIDIA/nvidia-container-toolkit issue 1828"),
    cases=("MG-008",),
    hints=(r"gpu=MIG-", r"MIG-[0-9a-f]{6}"),
    holds=holds.mig_not_in_cdi,
)

_PARENT_OF_MIG = Cause(
    id="count-on-mig-host",
    title="A count or index asks for whole GPUs on a host in MIG mode",
    why="--gpus 1 becomes index 0, which is the parent of MIG devices: CUDA cannot use it and some "
    "specs do not name it.",
    proof="nvidia-smi -L",
    shows="MIG devices below GPU 0",
    fix="Ask for a MIG device by UUID or place: --device nvidia.com/gpu=0:0.",
    commands=("docker run --rm --device nvidia.com/gpu=0:0 IMAGE nvidia-smi -L",),
    sources=("NVIDIA/nvidia-container-toolkit issue 1828",),
    cases=("MG-012",),
    hints=(r"gpu=\d .{0,30}(fails|parent)", r"parent GPU", r"\bMIG\b"),
    holds=holds.rules_out(holds.mig_on),
)

CLASH = Cause(
    id="cdi-device-twice",
    title="Two spec files name the same devices",
    why="A file in /etc/cdi by hand and one in /var/run/cdi by nvidia-cdi-refresh or the operator: "
    "engines drop devices that two files of one priority claim, nvidia-ctk then lists none.",
    proof="nvidia-ctk cdi list; ls -l /etc/cdi /var/run/cdi",
    shows="a warning of conflicts and 0 devices, with two NVIDIA files",
    fix="Keep the refreshed file and remove the one made by hand.",
    commands=("rm /etc/cdi/nvidia.yaml",),
    sources=("CDI pkg/cdi cache", "seen with nvidia-ctk 1.20.0"),
    hints=(r"conflict", r"two spec", r"/etc/cdi.{0,80}/var/run/cdi"),
)

VENDOR_NAME = Cause(
    id="cdi-management-name",
    title="The name asks for a GPU in the management class",
    why="management.nvidia.com/gpu (and k8s.device-plugin.nvidia.com/gpu) are other kinds than "
    "nvidia.com/gpu: the first has only the device all, and the second is written by the device "
    "plugin.",
    proof="nvidia-ctk cdi list",
    shows="only management.nvidia.com/gpu=all, or no k8s.device-plugin.nvidia.com kind",
    fix="Leave runtimeClassName nvidia-cdi away from pods that the device plugin serves by CDI, "
    "let "
    "the plugin write its own spec, or use one mode for the whole node pool.",
    commands=("kubectl -n gpu-operator rollout restart ds/nvidia-device-plugin-daemonset",),
    sources=(
        "NVIDIA/nvidia-container-toolkit issues 1239 and 1895",
        "NVIDIA/gpu-operator issue 2115",
    ),
    cases=("TK-043",),
    hints=(r"management\.nvidia\.com", r"k8s\.device-plugin", r"operator", r"runtimeclass"),
)

STALE = Cause(
    id="cdi-spec-driver-differs",
    title="The spec names libraries of the previous driver",
    why="A spec lists versioned files. A driver upgrade replaces them and nothing rewrites the "
    "spec.",
    proof="cat /proc/driver/nvidia/version; grep -ho 'libcuda.so.[0-9.]*' /etc/cdi/*.yaml "
    "/var/run/cdi/*.yaml | sort -u",
    shows="another version in the spec than the loaded driver's",
    fix="Regenerate it after each driver upgrade; enable nvidia-cdi-refresh (toolkit 1.18 and "
    "newer).",
    commands=(
        _GENERATE,
        "systemctl enable --now nvidia-cdi-refresh.path nvidia-cdi-refresh.service",
    ),
    sources=("NVIDIA/nvidia-container-toolkit issues 450 and 692", "podman issue 23935"),
    cases=("TK-029",),
    hints=(r"\.so\.\d{3}\.\d+", r"upgrade", r"no such file"),
)

GIDS = Cause(
    id="cdi-spec-newer-than-engine",
    title="The spec is newer than what this engine reads",
    why="Toolkit 1.19 writes CDI 0.7.0 with additionalGids; docker before 26.1, containerd before "
    "1.7.16, podman before 5.1 and CRI-O before 1.30 refuse the whole file.",
    proof="grep -n -E 'cdiVersion|additionalGids' /etc/cdi/*.yaml /var/run/cdi/*.yaml; docker "
    "version; podman --version",
    shows="cdiVersion 0.7.0 and an older engine",
    fix="Upgrade the engine, or generate the spec without that field.",
    commands=(
        "nvidia-ctk cdi generate --feature-flag no-additional-gids-for-device-nodes "
        "--output=/etc/cdi/nvidia.yaml",
    ),
    sources=(
        "NVIDIA/nvidia-container-toolkit issues 1860 and 1940",
        "toolkit release notes 1.19.1",
    ),
    hints=(r"additionalGids", r"unknown field", r"podman[^a-z]{0,12}4\.", r"0\.7\.0", r"1\.19"),
    holds=holds.confirms(
        holds.both(holds.version("toolkit", ">=1.19.1"), holds.version("podman", "<5.1"))
    ),
)

OLD_NAMES = Cause(
    id="cdi-engine-too-old",
    title="The engine is too old for CDI",
    why="podman reads CDI from 4.1, Docker from 25, containerd from 1.7, nerdctl from 2.0.",
    proof="docker version; podman --version; containerd --version",
    shows="an older release, which takes the name for a path",
    fix="Upgrade the engine, or use the nvidia runtime in mode cdi.",
    commands=("docker version",),
    sources=("NVIDIA Container Toolkit CDI documentation", "moby release notes 25.0"),
    hints=(r"no such file", r"stat nvidia\.com", r"gathering device information"),
    holds=holds.version("docker", "<25.0"),
)

_MIG_EMPTY = Cause(
    id="mig-without-devices",
    title="MIG is on and no MIG device has been created",
    why="Between enabling MIG and creating devices there is nothing a spec could describe; the "
    "failed unit is expected then.",
    proof="nvidia-smi -L; nvidia-smi --query-gpu=index,mig.mode.current,mig.mode.pending "
    "--format=csv",
    shows="Enabled, and no MIG lines below the GPU",
    fix="Create the MIG devices, then run the refresh again.",
    commands=("steadygpu mig apply LAYOUT", "systemctl restart nvidia-cdi-refresh.service"),
    sources=("Azure/AgentBaker PR 8736",),
    cases=("MG-006",),
    hints=(r"\bmig\b",),
    holds=holds.mig_without_devices,
)

_LIBRARY_PATH = Cause(
    id="cdi-generate-library-path",
    title="The driver's libraries lie where nvidia-ctk does not look",
    why="Only the default library directories below the driver root are searched; some hosts (COS, "
    "Flatcar, NixOS, /opt) have the driver elsewhere.",
    proof="ldconfig -p | grep libcuda.so.1; find / -xdev -name 'libcuda.so.*' 2>/dev/null",
    shows="libcuda in a directory of its own, such as /var/lib/nvidia/lib64",
    fix="Add --library-search-path=DIRECTORY or --driver-root=ROOT to nvidia-ctk cdi generate.",
    commands=(
        "nvidia-ctk cdi generate --library-search-path=/var/lib/nvidia/lib64 "
        "--output=/var/run/cdi/nvidia.yaml",
    ),
    sources=("NVIDIA/nvidia-container-toolkit issue 735",),
    cases=("TK-030",),
    hints=(r"libcuda", r"library", r"/var/lib/nvidia", r"non-standard"),
)

_NO_DRIVER = Cause(
    id="driver-not-loaded",
    title="The driver was not ready when the spec was made",
    why="nvidia-ctk asks NVML; without a loaded driver it fails, or writes a spec without devices.",
    proof="nvidia-smi -L; systemctl status nvidia-cdi-refresh.service --no-pager",
    shows="nvidia-smi fails too",
    fix="Load the driver first, then run the refresh again.",
    commands=("modprobe nvidia", "systemctl restart nvidia-cdi-refresh.service"),
    sources=("NVIDIA/nvidia-container-toolkit issue 63",),
    hints=(r"nvml", r"driver not loaded"),
    holds=holds.rules_out(holds.driver_status("not_loaded", "absent", "mismatch")),
)


EMPTY_EDITS = Cause(
    id="cdi-generate-no-nodes",
    title="The GPU's device nodes were not there when the spec was made",
    why="nvidia-ctk sees the GPU by NVML and finds no /dev/nvidiaN for it (driver container, wrong "
    "--dev-root, or nodes not made yet): an entry without nodes is refused.",
    proof="ls -l /dev/nvidia*; nvidia-smi -L; nvidia-ctk --debug cdi generate >/dev/null",
    shows="GPUs in nvidia-smi and no /dev/nvidiaN",
    fix="Make the nodes (nvidia-modprobe, or nvidia-smi once as root), name the right --dev-root, "
    "and generate again; as a stopgap the runtime's mode legacy works.",
    commands=("nvidia-modprobe -c 0 -u", "systemctl restart nvidia-cdi-refresh.service"),
    sources=("kaito-project/kaito issue 2326",),
    hints=(r"empty device edits|invalid device",),
)

_UNREADABLE = Cause(
    id="cdi-spec-unreadable",
    title="The spec can be read by root only",
    why="nvidia-ctk before 1.14 wrote it with mode 0600; a rootless engine runs as the user and "
    "sees no device in it.",
    proof="ls -l /etc/cdi /var/run/cdi",
    shows="-rw------- root",
    fix="Make it readable, or write it anew with a newer toolkit.",
    commands=("chmod 644 /etc/cdi/nvidia.yaml",),
    sources=("podman issue 17539", "NVIDIA/nvidia-container-toolkit issue 63"),
    hints=(r"works (with sudo|as root)|not (in|as) (rootless|root)", r"0?600\b", r"rootless"),
)

_ROOTLESS_DAEMON = Cause(
    id="cdi-off-in-rootless-daemon",
    title="The rootless daemon has a configuration of its own, without CDI",
    why="It reads ~/.config/docker/daemon.json; features.cdi and cdi-spec-dirs of "
    "/etc/docker/daemon.json do not count there.",
    proof="docker info -f '{{json .CDISpecDirs}} {{.SecurityOptions}}'; cat "
    "~/.config/docker/daemon.json",
    shows="rootless, and no directories",
    fix='Write "features": {"cdi": true} (and cdi-spec-dirs) into ~/.config/docker/daemon.json and '
    "restart it.",
    commands=("systemctl --user restart docker",),
    sources=("NVIDIA/nvidia-container-toolkit issue 434",),
    hints=(r"rootless docker|docker.?rootless", r"rootful"),
)

_PODMAN_SOCKET = Cause(
    id="podman-without-cdi-driver",
    title="podman's Docker API does not take the driver cdi",
    why="docker-compose against podman's socket sends a device request with the driver cdi, which "
    "podman refuses.",
    proof="docker version -f '{{json .Server.Components}}'; echo $DOCKER_HOST",
    shows="Podman Engine",
    fix="Write the device as one: devices: [nvidia.com/gpu=all]; or use podman compose of a newer "
    "release.",
    commands=("podman run --device nvidia.com/gpu=all IMAGE nvidia-smi",),
    sources=("podman issue 19338",),
    hints=(r"podman.{0,60}(sock|compose|API)|(sock|compose|API).{0,60}podman", r"driver.{0,4}cdi"),
)

SYMPTOMS = (
    Symptom(
        id="cdi-unresolvable",
        title="A CDI device does not resolve",
        patterns=(
            r"unresolvable CDI devices?",
            r"CDI device injection failed",
            r"failed to inject CDI devices",
            r"CDI resolution of \S{1,80} fails",
            r"could not select device driver .{1,2}cdi",
            r"Could not resolve the following CDI devices",
            r"no CDI devices? found",
            r"Found 0 CDI devices",
            r"CDI .{0,30}(feature|support) is not enabled",
        ),
        causes=(
            NO_SPEC,
            CDI_OFF,
            SPEC_ELSEWHERE,
            MIG_NOT_IN_SPEC,
            GIDS,
            CLASH,
            VENDOR_NAME,
            _UNREADABLE,
            _ROOTLESS_DAEMON,
            _PODMAN_SOCKET,
            _PARENT_OF_MIG,
            STALE,
        ),
        tell_apart=f"{_LIST}; nvidia-smi -L; grep -hn -E 'cdiVersion|^kind|name:' /etc/cdi/* "
        "/var/run/cdi/*; docker version -f '{{.Server.Version}}'",
        sources=("CDI SPEC.md",),
        cases=("MG-008", "MG-012", "TK-040", "TK-042", "TK-043"),
    ),
    Symptom(
        id="cdi-spec-invalid",
        title="An engine cannot read a CDI spec",
        patterns=(
            r"unknown field .{0,2}(additionalGids|hostPath|intelRdt|netDevices)",
            r"failed to (parse|load|unmarshal) CDI Spec",
            r"(invalid|unsupported|unknown) (CDI )?(spec )?(\"?cdi)?Version",
            r"invalid CDI (spec|device|vendor|class|qualifier)",
            r"conflicting device .{0,60}specs?",
            r"the spec version must be at least|invalid (device )?name \S{1,40}, should start with",
            r"CDI registry has errors",
        ),
        causes=(GIDS, CLASH, OLD_NAMES),
        tell_apart=f"{_LIST}; grep -hn cdiVersion /etc/cdi/* /var/run/cdi/*; docker version -f "
        "'{{.Server.Version}}'; podman --version",
        sources=("NVIDIA/nvidia-container-toolkit issue 1860",),
    ),
    Symptom(
        id="cdi-spec-stale-file",
        title="A file that the CDI spec names does not exist",
        patterns=(
            r"error stat'?ing file .{0,120}\.so",
            r"(stat|lstat|open|mount|statfs) "
            r"\S{0,80}lib(nvidia|cuda|EGL_nvidia|GLX_nvidia|nvcuvid|nvoptix)"
            r"\S{0,80}: no such file",
            r"mounting .{0,160}lib(nvidia|cuda|EGL|GLX)\S{0,80}.{0,200}no such file",
            r"lib(nvidia|EGL_nvidia|cuda)\S{0,80}\.so\.\d+[.\d]* ?: ?no such file",
        ),
        causes=(STALE,),
        tell_apart="cat /proc/driver/nvidia/version; grep -ho 'libcuda.so.[0-9.]*' /etc/cdi/* "
        "/var/run/cdi/* | sort -u; ls -l /dev/nvidia*",
        sources=("NVIDIA/nvidia-container-toolkit issue 450",),
        cases=("TK-029",),
    ),
    Symptom(
        id="cdi-name-taken-for-path",
        title="The engine takes a CDI name for a path",
        patterns=(
            r"(stat|lstat) \S{0,80}nvidia\.com/gpu=\S{0,80}: no such file",
            r"gathering device information while adding custom device "
            r"\"?\S{0,80}(nvidia|amd|intel)\.com/",
            r"bad (format for path|mode specified): ?\"?nvidia\.com",
            r"nvidia\.com/gpu=\S{1,40} .{0,40}gathering device information",
            r"\"?nvidia\.com/gpu=\S{0,80} is not an absolute path",
        ),
        causes=(OLD_NAMES, CDI_OFF),
        tell_apart="docker version; docker info -f '{{json .CDISpecDirs}}'; podman --version",
        sources=("moby release notes 25.0",),
    ),
    Symptom(
        id="cdi-generate-fails",
        title="nvidia-ctk cdi generate fails or writes too little",
        patterns=(
            r"nvidia-ctk cdi generate (exits|fails)",
            r"nvidia-cdi-refresh(\.service)? (has )?failed",
            r"failed to generate CDI spec",
            r"Generation fails or the spec lacks libcuda",
            r"failed to (create|get) (edits|device spec|CDI) ?.{0,60}(generat|MIG|common|driver)",
            r"failed to locate lib(cuda|nvidia)",
            r"Could not locate lib(cuda|nvidia)\S{0,80}",
            r"(spec|CDI).{0,40}lacks? (libcuda|the core GL|libraries)",
            r"pattern libcuda\.so\S{0,80} not found",
        ),
        causes=(_MIG_EMPTY, _LIBRARY_PATH, _NO_DRIVER, EMPTY_EDITS),
        tell_apart="nvidia-smi -L; ldconfig -p | grep libcuda; nvidia-ctk --debug cdi generate "
        "--output=/tmp/cdi-trial.yaml 2>&1 | tail",
        sources=("NVIDIA/nvidia-container-toolkit issue 735",),
        cases=("MG-006", "TK-030"),
    ),
)
