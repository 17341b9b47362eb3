# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nvidia-container-cli and the toolkit's hook and runtime say when they refuse. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .causes import CUDA_TOO_NEW, TOOLKIT_MIXED
from .cgroups import DRIVERS_DIFFER
from .mig_names import OLD_UUID, UUID_GONE
from .nvml_refused import NOT_LOADED

_CONFIG = "/etc/nvidia-container-runtime/config.toml"
_LDCONFIG_PROOF = f"grep -n ldconfig {_CONFIG}; ls -l /sbin/ldconfig*; file /sbin/ldconfig"

LDCONFIG_REAL = Cause(
    id="ldconfig-real-elsewhere",
    title="ldconfig.real is configured and this distribution has none",
    why="Only Ubuntu and older Debian have /sbin/ldconfig.real; a configuration file was carried "
    "over from there.",
    proof=_LDCONFIG_PROOF,
    shows='ldconfig = "@/sbin/ldconfig.real" and no such file',
    fix='Write ldconfig = "@/sbin/ldconfig"; install ldconfig on minimal hosts. From 1.15.0 the '
    "toolkit finds the right one by itself.",
    commands=("nvidia-ctk config --set nvidia-container-cli.ldconfig=@/sbin/ldconfig --in-place",),
    sources=("NVIDIA/nvidia-container-toolkit CHANGELOG 1.15.0-rc.1", "OE4T/meta-tegra PR 1427"),
    cases=("TK-004",),
    hints=(r"ldconfig\.real", r"no such file"),
)

LDCONFIG_WRAPPER = Cause(
    id="ldconfig-is-a-wrapper",
    title="/sbin/ldconfig is a shell wrapper that cannot run in the container's root",
    why="On Ubuntu and older Debian the real program is /sbin/ldconfig.real.",
    proof=_LDCONFIG_PROOF,
    shows="a shell script, and ldconfig.real beside it",
    fix='Write ldconfig = "@/sbin/ldconfig.real", or upgrade the toolkit, which picks it itself.',
    commands=(
        "nvidia-ctk config --set nvidia-container-cli.ldconfig=@/sbin/ldconfig.real --in-place",
    ),
    sources=("NVIDIA/nvidia-docker issue 587",),
    cases=("TK-005",),
    hints=(r"\b127\b", r"debian|ubuntu"),
)

LDCONFIG_SIGNAL = Cause(
    id="toolkit-ldconfig-killed",
    title="libnvidia-container before 1.18 cannot run this host's ldconfig",
    why="The way it ran ldconfig broke with a new glibc and kernel; 1.18.0 has the fix.",
    proof="nvidia-container-cli --version; ldd --version | head -1; uname -r",
    shows="a toolkit before 1.18.0 on a rolling or very new distribution",
    fix="Upgrade the toolkit to 1.19.1 or newer; CDI mode needs no ldconfig of this kind "
    "meanwhile.",
    sources=("NVIDIA/nvidia-container-toolkit issue 1246",),
    cases=("TK-008",),
    hints=(r"signal 9", r"arch", r"1\.17\."),
    holds=holds.version("toolkit", "<1.18.0"),
)

LDCONFIG_NOT_HOST = Cause(
    id="ldconfig-of-the-container",
    title="The ldconfig value has no leading @",
    why="Without @ the container's own ldconfig would run, which a hostile image controls. From "
    "1.17.3 the toolkit refuses it; older ones leave the driver libraries out of the cache.",
    proof=f"grep -n ldconfig {_CONFIG}",
    shows="a value that starts with / and not with @",
    fix="Write @ before the path. features.allow-ldconfig-from-container weakens isolation.",
    commands=("nvidia-ctk config --set nvidia-container-cli.ldconfig=@/sbin/ldconfig --in-place",),
    sources=("NVIDIA/nvidia-container-toolkit PR 812", "NVIDIA/nvidia-docker issue 1424"),
    cases=("TK-006", "TK-007"),
    hints=(r"host-relative", r"'@'", r"cache"),
)

HOOK_IN_CDI_MODE = Cause(
    id="gpus-in-cdi-mode",
    title="The configuration says cdi and the container was started with --gpus",
    why="--gpus (before Docker 29.2) and a Compose reservation call the hook directly, which "
    "refuses to work in mode cdi before toolkit 1.18.",
    proof=f"grep -n '^ *mode' {_CONFIG}; nvidia-ctk --version; docker version",
    shows='mode = "cdi" and a toolkit before 1.18',
    fix="Start with --runtime=nvidia or --device nvidia.com/gpu=all (in Compose: runtime: nvidia, "
    "or driver: cdi with device_ids [nvidia.com/gpu=all]), or upgrade the toolkit.",
    commands=("nvidia-ctk config --set nvidia-container-runtime.mode=auto --in-place",),
    sources=("dstackai/dstack issue 2306", "NVIDIA/nvidia-container-toolkit CHANGELOG 1.18.0-rc.1"),
    cases=("TK-009", "TK-037"),
    hints=(r"--gpus", r"mode .?cdi", r"deploy"),
    holds=holds.rules_out(holds.toolkit_mode("cdi")),
)

_STALE_PROC = Cause(
    id="driver-upgraded-engine-running",
    title="The driver was upgraded while the engine kept running",
    why="State of the old driver below /proc/driver/nvidia is still referenced.",
    proof="ls /proc/driver/nvidia; cat /proc/driver/nvidia/version; systemctl status docker "
    "nvidia-persistenced --no-pager",
    shows="missing entries, or a version other than the installed packages'",
    fix="Stop the GPU containers, reload the modules or reboot, then restart docker.",
    commands=("systemctl restart nvidia-persistenced", "systemctl restart docker"),
    sources=("NVIDIA/nvidia-container-toolkit issue 169",),
    cases=("RT-028",),
    hints=(r"upgrad", r"/proc/driver/nvidia"),
)

_FILE_IN_IMAGE = Cause(
    id="image-ships-driver",
    title="The image has a driver file where the toolkit wants to mount one",
    why="Driver libraries or programs were installed in the image, or a container with a GPU was "
    "committed.",
    proof='docker run --rm --entrypoint sh IMAGE -c \'find / -xdev -name "libnvidia-*" -o -xdev '
    '-name "libcuda.so*" -o -xdev -name nvidia-smi\'',
    shows="such files without a GPU in the container",
    fix="Remove the driver from the image; only the CUDA toolkit belongs there.",
    sources=("NVIDIA/libnvidia-container issue 266",),
    hints=(r"file exists", r"commit"),
)

_CGROUP_MOUNT = Cause(
    id="toolkit-without-cgroup-v2",
    title="libnvidia-container is too old for control groups v2",
    why="Before 1.8.0 it looked for the v1 device controller, which v2 does not have.",
    proof="stat -fc %T /sys/fs/cgroup; nvidia-container-cli --version",
    shows="cgroup2fs, and a version before 1.8.0",
    fix="Upgrade the toolkit to 1.19.1 or newer. no-cgroups = true is no fix for a rootful engine.",
    sources=("NVIDIA/libnvidia-container issue 111", "NVIDIA/nvidia-docker issue 1447"),
    hints=(r"cgroup ?v?2", r"debian 11|ubuntu 2[12]|fedora|bullseye"),
    holds=holds.both(holds.cgroup_version("2"), holds.version("toolkit", "<1.8.0")),
)

_CGROUP_ROOTLESS = Cause(
    id="rootless-needs-no-cgroups",
    title="A rootless engine may not change device rules",
    why="Loading the BPF program of a device filter needs root in the first user name space.",
    proof=f"docker info -f '{{{{.SecurityOptions}}}}'; grep -n no-cgroups {_CONFIG}",
    shows="name=rootless, and no-cgroups not true",
    fix="Use CDI (--device nvidia.com/gpu=all), or no-cgroups = true in a configuration file that "
    "only the rootless engine reads.",
    commands=("nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",),
    sources=("NVIDIA/nvidia-docker issue 1688", "NVIDIA Container Toolkit install guide, rootless"),
    hints=(r"rootless", r"podman", r"operation not permitted", r"permission denied"),
    holds=holds.rules_out(holds.rootless),
)

_CGROUP_NESTED = Cause(
    id="outer-container-denies-device",
    title="The engine runs in an unprivileged outer container",
    why="In LXC and the like the kernel refuses the BPF program of a device filter.",
    proof="systemd-detect-virt -c",
    shows="lxc or another container",
    fix="Set no-cgroups = true inside the outer container (the outer one makes the rules), or use "
    "CDI; give the nodes to the outer container.",
    commands=("nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",),
    sources=("NVIDIA/libnvidia-container issue 176",),
    hints=(r"\blxc\b", r"proxmox", r"incus", r"nested"),
)

_BPF_REFUSED = Cause(
    id="device-filter-rejected",
    title="The kernel rejects the hook's device filter",
    why="Old libnvidia-container builds a BPF program that some kernels do not accept, and "
    "lockdown (Secure Boot) or vm.overcommit may refuse it.",
    proof="nvidia-container-cli --version; uname -r; cat /sys/kernel/security/lockdown",
    shows="an old toolkit, or lockdown [integrity] or [confidentiality]",
    fix="Upgrade the toolkit, or leave the hook: CDI lets runc make the rules.",
    commands=("nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",),
    sources=("NVIDIA/libnvidia-container issues 209 and 256",),
    hints=(r"load program", r"invalid argument", r"new device filter"),
)

_UNKNOWN_ID = Cause(
    id="gpu-index-absent",
    title="The request names a GPU that is not there",
    why="An index beyond the last GPU, a UUID of another host, a MIG device that was destroyed, or "
    "a whole list taken as one id for want of quotes.",
    proof="nvidia-smi -L",
    shows="no GPU or MIG device of that index or UUID",
    fix="Name one that nvidia-smi -L lists. A list needs both quotes: --gpus '\"device=0,1\"'.",
    commands=("nvidia-smi -L",),
    sources=("NVIDIA/libnvidia-container src/nvc_info.c", "cli opts/gpus.go"),
    cases=("CO-008",),
    hints=(r"unknown device", r"index"),
)

_HOOK_SYMBOL = Cause(
    id="driver-library-broken",
    title="The host's driver libraries are incomplete or stale in the loader cache",
    why="nvidia-container-cli loads libnvidia-ml.so.1 and libcuda.so.1 of the host; one is "
    "missing, "
    "empty, or of another architecture.",
    proof="ldconfig -p | grep -E 'libcuda.so.1|libnvidia-ml.so.1'; ls -lL "
    "/usr/lib/*/libnvidia-ml.so.1",
    shows="no entry, or a file of 0 bytes",
    fix="Reinstall the driver's compute package of the loaded version and run ldconfig. On WSL the "
    "libraries come from Windows: no Linux driver may be installed there.",
    commands=("ldconfig",),
    sources=("NVIDIA/nvidia-docker issues 1163 and 1393",),
    hints=(r"load library failed", r"0 bytes", r"wsl"),
)

_EMPTY_LIBRARY = Cause(
    id="driver-libraries-empty",
    title="Driver files of 0 bytes were left by an interrupted or mixed installation",
    why="The hook mounts what the loader cache lists, whether it is whole or not.",
    proof="find /usr/lib /usr/lib64 -name 'lib*nvidia*.so*' -size 0",
    shows="files of 0 bytes",
    fix="Remove them, reinstall the driver packages, run ldconfig.",
    commands=("ldconfig",),
    sources=("NVIDIA/nvidia-docker issue 1163",),
)

SYMPTOMS = (
    Symptom(
        id="cli-ldcache",
        title="The toolkit cannot refresh the container's library cache",
        patterns=(
            r"ldcache error",
            r"ldconfig(\.real)? (failed with error code|terminated with signal)",
            r"value .{0,60}is not host-relative",
            r"libnvidia-ml.{0,60}(not in the|missing from the) (library )?cache",
            r"cannot find libnvidia-ml",
            r"ldconfig value",
        ),
        causes=(LDCONFIG_REAL, LDCONFIG_WRAPPER, LDCONFIG_SIGNAL, LDCONFIG_NOT_HOST),
        tell_apart=f"{_LDCONFIG_PROOF}; nvidia-container-cli --version",
        sources=("NVIDIA/nvidia-container-toolkit CHANGELOG",),
        cases=("TK-004", "TK-005", "TK-006", "TK-007", "TK-008"),
    ),
    Symptom(
        id="cli-hook-in-cdi-mode",
        title="The hook was called directly in CDI mode",
        patterns=(r"invoking the NVIDIA Container Runtime Hook directly",),
        causes=(HOOK_IN_CDI_MODE,),
        tell_apart=f"grep -n '^ *mode' {_CONFIG}; nvidia-ctk --version; docker version -f "
        "'{{.Server.Version}}'",
        sources=("NVIDIA/nvidia-container-toolkit CHANGELOG 1.18.0-rc.1",),
        cases=("TK-009", "TK-037"),
    ),
    Symptom(
        id="cli-requirement",
        title="The image wants a newer driver",
        patterns=(
            r"unsatisfied condition: ?(cuda|driver|brand|arch)",
            r"requirement error: ?(unsatisfied|invalid)",
            r"please update your driver to a newer version, or use an earlier cuda container",
        ),
        causes=(CUDA_TOO_NEW,),
        tell_apart="nvidia-smi --version; docker image inspect -f '{{.Config.Env}}' IMAGE | tr ' ' "
        "'\\n' | grep NVIDIA_REQUIRE",
        sources=("NVIDIA/nvidia-container-toolkit issue 152",),
        cases=("TK-014",),
    ),
    Symptom(
        id="cli-mount-driver-state",
        title="The hook cannot mount a file of the driver",
        patterns=(
            r"mount error: (mount operation failed|stat failed|file creation failed|open failed)"
            r"(?!: /(sys/fs/cgroup|dev/))",
            r"/proc/driver/nvidia/\S{0,80} ?: no such file",
            r"nvidia-container-cli: mount error"
            r"(?!: failed to add device rules|: (open|stat) failed: /(sys/fs/cgroup|dev/))",
        ),
        causes=(_FILE_IN_IMAGE, _STALE_PROC, _EMPTY_LIBRARY),
        tell_apart="cat /proc/driver/nvidia/version; nvidia-smi -L; docker run --rm --entrypoint "
        "sh "
        "IMAGE -c 'find / -xdev -name \"libnvidia-*\"'",
        sources=("NVIDIA/nvidia-container-toolkit issue 169",),
        cases=("RT-028",),
    ),
    Symptom(
        id="cli-device-rules",
        title="The hook cannot add device rules",
        patterns=(
            r"failed to write [abc] \d+:\S{1,80} \w+ to devices\.allow",
            r"devices\.allow.{0,40}(not permitted|no such)",
            r"capability change failed: operation not permitted",
            r"open failed: /proc/sys/kernel/\S{1,80}: permission denied",
            r"failed to add device rules",
            r"(nvidia-container-cli: )?mount error: open failed: /sys/fs/cgroup/",
            r"bpf_prog_query\(BPF_CGROUP_DEVICE\)",
            r"cgroup subsystem devices not found",
            r"unable to find any existing device filters",
            r"container error: cgroup",
        ),
        causes=(_CGROUP_ROOTLESS, _CGROUP_MOUNT, _CGROUP_NESTED, _BPF_REFUSED, DRIVERS_DIFFER),
        tell_apart="stat -fc %T /sys/fs/cgroup; nvidia-container-cli --version; docker info -f "
        f"'{{{{.SecurityOptions}}}}'; systemd-detect-virt -c; grep -n no-cgroups {_CONFIG}",
        sources=("NVIDIA/nvidia-docker issue 1688", "NVIDIA/libnvidia-container issue 111"),
    ),
    Symptom(
        id="cli-unknown-device",
        title="The requested GPU is unknown",
        patterns=(
            r"nvidia-container-cli: device error: .{0,60}unknown device",
            r"\bunknown device( id)?\b",
            r"device error: (\S{1,80}: )?(invalid|unknown)",
        ),
        causes=(UUID_GONE, _UNKNOWN_ID, OLD_UUID),
        tell_apart="nvidia-smi -L",
        sources=("NVIDIA/libnvidia-container src/nvc_info.c",),
        cases=("CO-008",),
    ),
    Symptom(
        id="cli-load-library",
        title="The toolkit cannot load the driver's library",
        patterns=(
            r"Failed to detect NVIDIA driver version",
            r"could not (find|locate|load) (the )?(driver|nvidia) librar",
            r"load library failed: lib(nvidia-ml|cuda)\S{0,80}",
            r"initialization error: (driver error: )?load library failed",
            r"could not load NVML library",
            r"error creating detector: .{0,40}nvml",
        ),
        causes=(_HOOK_SYMBOL, NOT_LOADED),
        tell_apart="ldconfig -p | grep -E 'libcuda|libnvidia-ml'; nvidia-smi -L; lsmod | grep "
        "nvidia",
        sources=("NVIDIA/nvidia-docker issue 1163",),
    ),
    Symptom(
        id="toolkit-mixed-set",
        title="The toolkit's packages do not belong together",
        patterns=(
            r"nvidia-container-(cli|toolkit|runtime)[^.]{0,60}(unrecognized|unknown) (option|flag)",
            r"symbol lookup error: [^ ]*nvidia-container",
            r"undefined symbol: nvc_",
            r"without any GPU or the hook fails after a partial upgrade",
            r"(partial|half) (upgrade|downgrade).{0,60}(toolkit|nvidia-container|libnvidia)",
            r"libnvidia-container1? .{0,40}(but .{0,20} is (to be )?installed|Depends)",
        ),
        causes=(TOOLKIT_MIXED,),
        tell_apart="dpkg -l 'nvidia-container*' 'libnvidia-container*' || rpm -qa "
        "'*nvidia-container*'",
        sources=("NVIDIA/nvidia-container-toolkit issue 1091",),
        cases=("TK-018", "RB-001"),
    ),
)
