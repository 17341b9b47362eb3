# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVML and nvidia-smi say when they get no GPU. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

_CTK_48 = "NVIDIA/nvidia-container-toolkit issue 48"

LOST_TO_RELOAD = Cause(
    id="gpus-flag-and-systemd-reload",
    title="The hook's device rules were dropped by a systemd reload",
    why="--gpus (before Docker 29.2) and the legacy runtime mode change the container's device "
    "rules behind systemd's back. With the systemd cgroup driver, daemon-reload makes systemd "
    "write the rules it knows, and the GPU is not among them.",
    proof="systemctl show -p DeviceAllow docker-$(docker inspect -f '{{.Id}}' CONTAINER).scope",
    shows="a DeviceAllow without /dev/nvidia* (or char-nvidia*) while `nvidia-smi` works on the "
    "host: the scope was never told of the GPU",
    fix="Give the GPU back with `steadygpu heal`, then recreate the container with CDI "
    "(--device nvidia.com/gpu=all), with --runtime=nvidia and toolkit 1.18 or newer, or with "
    "explicit --device flags.",
    commands=("steadygpu heal", "steadygpu heal --apply"),
    sources=(_CTK_48, "NVIDIA/nvidia-container-toolkit issue 1744"),
    cases=("CG-001", "CG-002"),
    hints=(
        r"daemon-reload",
        r"\bsystemd\b",
        r"DeviceAllow",
        r"--gpus",
        r"after (a while|some time)",
    ),
    holds=holds.hook_loses_devices,
)

LOST_TO_UPDATE = Cause(
    id="docker-update-loses-gpu",
    title="docker update rewrote the device rules",
    why="A change of a container's resources makes the runtime write all control group settings "
    "from a spec that does not hold what the hook had added.",
    proof="docker events --since 24h --until 0s --filter event=update --filter type=container",
    shows="an update event of the container before the GPU was lost",
    fix="Recreate the container with the new limits; give it the GPU by CDI or --device, whose "
    "rules survive an update.",
    commands=("steadygpu heal", "steadygpu heal --apply"),
    sources=("NVIDIA/nvidia-docker issues 515 and 1469",),
    cases=("CG-003",),
    hints=(r"docker update", r"podman update"),
    holds=holds.rules_out(holds.hook_containers),
)

LOST_TO_CPU_MANAGER = Cause(
    id="kubelet-static-cpu-manager",
    title="The kubelet's static CPU manager rewrote the device rules",
    why="It updates containers periodically, and each update drops device nodes that are not part "
    "of the container's spec.",
    proof="grep -n cpuManagerPolicy /var/lib/kubelet/config.yaml",
    shows="cpuManagerPolicy: static, and a device plugin that runs without PASS_DEVICE_SPECS=true",
    fix="Run the device plugin with PASS_DEVICE_SPECS=true (compatWithCPUManager in its Helm "
    "chart), or with DEVICE_LIST_STRATEGY=cdi-cri.",
    commands=(
        "kubectl -n kube-system set env ds/nvidia-device-plugin-daemonset PASS_DEVICE_SPECS=true",
    ),
    sources=("NVIDIA/nvidia-docker issue 966", "NVIDIA/k8s-device-plugin issue 145"),
    cases=("CG-004",),
    hints=(r"kubelet", r"cpuManagerPolicy", r"\bpods?\b"),
)

NO_CGROUPS = Cause(
    id="no-cgroups-rootful",
    title="no-cgroups = true in the toolkit's configuration",
    why="The hook then grants no device rules. The setting is meant for rootless engines only.",
    proof="grep -n no-cgroups /etc/nvidia-container-runtime/config.toml",
    shows="no-cgroups = true without # before it, and every container fails from its start",
    fix="Set no-cgroups = false; give rootless engines their own configuration file, or CDI.",
    commands=("nvidia-ctk config --set nvidia-container-cli.no-cgroups=false --in-place",),
    sources=("NVIDIA/nvidia-container-toolkit issues 381 and 580",),
    cases=("CG-007",),
    hints=(r"no-cgroups", r"every (rootful )?container", r"from the start"),
    holds=holds.text_has("/etc/nvidia-container-runtime/config.toml", "no-cgroups=true"),
)

DEV_CHAR = Cause(
    id="dev-char-symlinks",
    title="/dev/char has no links for the NVIDIA nodes",
    why="systemd looks devices up through /dev/char/MAJOR:MINOR, and the NVIDIA driver makes no "
    "such links. They are necessary for some versions of runc and never sufficient: a runtime "
    "that does not tell systemd of the device loses it all the same.",
    proof="ls -l /dev/char | grep nvidia",
    shows="nothing: the links are missing. With links, look at the other causes",
    fix="Make the links at boot with a udev rule, and prefer CDI, which needs none "
    "with a current runc.",
    commands=("nvidia-ctk system create-dev-char-symlinks --create-all",),
    sources=(_CTK_48, "NVIDIA/nvidia-container-toolkit issue 538"),
    cases=("CG-001", "CG-005"),
    hints=(r"/dev/char", r"symlinks?"),
)

RUNC_RULES = Cause(
    id="runc-device-rules-late",
    title="This runc sets the device rules wrongly",
    why="runc 1.1.3 to 1.1.6 skip rules for nodes that do not exist yet, and releases before 1.2.5 "
    "set unit properties in an order that makes rules wait for a reload.",
    proof="runc --version",
    shows="1.1.3 to 1.1.6, or 1.2.0 to 1.2.4",
    fix="Upgrade runc to 1.2.8, 1.3.3, 1.4.0 or newer, which are the floors of its security fixes.",
    sources=("runc CHANGELOG 1.1.7 and 1.2.5",),
    cases=("RC-001", "RC-002"),
    hints=(r"runc[^a-z]{1,14}1\.(1\.[3-6]|2\.[0-4])\b",),
    holds=holds.rules_out(holds.version("runc", "<1.2.5")),
)

_OUTER = Cause(
    id="outer-container-denies-device",
    title="An outer container or the VM's host denies the device",
    why="In LXC (Proxmox, Incus) the outer container needs device rules of its own, and the major "
    "of nvidia-uvm changes with kernel and driver.",
    proof="systemd-detect-virt -c; ls -l /dev/nvidia*; grep -E 'nvidia' /proc/devices",
    shows="lxc, and majors of /dev/nvidia* that the outer container's rules do not list",
    fix="Allow the majors of `grep nvidia /proc/devices` in the outer container "
    "(lxc.cgroup2.devices.allow: c MAJOR:* rwm) and restart it.",
    sources=("kernel cgroup-v2 documentation, device controller",),
    hints=(r"\blxc\b", r"proxmox", r"incus"),
)

_SICK = Cause(
    id="gpu-error",
    title="The GPU itself is lost or the driver hangs",
    why="A GPU that fell off the bus or a dead GSP fails for the host and for every container.",
    proof="nvidia-smi -L; dmesg | grep -E 'NVRM|Xid' | tail",
    shows="nvidia-smi fails on the host too, and the kernel log has an Xid (79, 119, 154, …)",
    fix="Drain the host and follow the Xid's action; see `steadygpu explain` with that line.",
    commands=("dmesg | grep -E 'NVRM|Xid' | tail",),
    sources=("NVIDIA Xid documentation",),
    hints=(r"\bXid\b", r"fallen off", r"on the host too"),
    holds=holds.gpu_error,
)

_RECREATED_NODES = Cause(
    id="device-numbers-changed",
    title="The driver was reloaded while the container ran",
    why="Device numbers and rules are those of the container's start. A reloaded driver, or a new "
    "major of nvidia-uvm or nvidia-caps, leaves it with nodes of nothing.",
    proof="docker exec CONTAINER ls -l /dev/nvidiactl /dev/nvidia-uvm; ls -l /dev/nvidiactl "
    "/dev/nvidia-uvm; grep nvidia /proc/devices",
    shows="other major numbers inside than on the host",
    fix="Recreate the container; regenerate the CDI spec first.",
    commands=("nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",),
    sources=("NVIDIA/nvidia-container-toolkit issues 169 and 1934",),
    hints=(r"driver (was )?(upgraded|reloaded|updated)", r"rmmod", r"suspend"),
)

_TELL = (
    "C=CONTAINER; docker inspect -f '{{.HostConfig.Runtime}} {{json "
    ".HostConfig.DeviceRequests}}' $C"
    "; systemctl show -p DeviceAllow docker-$(docker inspect -f '{{.Id}}' $C).scope; "
    "docker exec $C sh -c 'ls -l /dev/nvidia*; cat </dev/nvidiactl'; ls /dev/char -l | grep nvid; "
    "grep no-cgroups /etc/nvidia-container-runtime/config.toml; runc --version; nvidia-smi -L"
)

REBOOT_OR_RELOAD = (
    "systemctl stop nvidia-persistenced",
    "modprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia",
    "modprobe nvidia",
    "nvidia-modprobe -c 0 -u",
)

MODULE_STALE = Cause(
    id="driver-library-mismatch",
    title="The driver's packages were updated and the old kernel module is still loaded",
    why="The module in the kernel and the libraries must be of exactly one release, all three "
    "parts of the number.",
    proof="cat /proc/driver/nvidia/version; ls -l /usr/lib/*/libnvidia-ml.so.* "
    "/usr/lib64/libnvidia-ml.so.*",
    shows="a kernel module of another release than the library files",
    fix="Reboot, or stop every GPU client and reload the modules. In a play: reboot before any "
    "client of the driver is started.",
    commands=REBOOT_OR_RELOAD,
    sources=("NVIDIA/nvidia-container-toolkit issue 394", "NVIDIA/nvidia-docker issue 1451"),
    cases=("DR-002", "PA-013"),
    hints=(r"API mismatch", r"\b(was |were )?(just )?(updated|upgraded)\b"),
    holds=holds.driver_status("mismatch"),
)

UNATTENDED = Cause(
    id="unattended-driver-upgrades",
    title="Unattended upgrades replaced the driver under running jobs",
    why="A minor driver update is installed without anybody asking; nothing reloads the module.",
    proof="grep -h nvidia /var/log/apt/history.log /var/log/unattended-upgrades/*.log | tail",
    shows="an upgrade of nvidia or libnvidia packages at the time of the fault",
    fix="Put nvidia-, libnvidia- and cuda- into Unattended-Upgrade::Package-Blacklist or hold the "
    "packages, and upgrade drivers together with a reboot.",
    commands=("apt-mark hold $(dpkg-query -W -f '${Package}\\n' '*nvidia*' | grep -v container)",),
    sources=("oddmario/NVIDIA-Ubuntu-Driver-Guide issue 4",),
    cases=("DR-003",),
    hints=(r"unattended", r"out of the blue", r"suddenly", r"overnight"),
    holds=holds.confirms(holds.both(holds.unattended, holds.driver_status("mismatch"))),
)

IMAGE_DRIVER = Cause(
    id="image-ships-driver",
    title="The image brings driver libraries of its own",
    why="The loader in the container prefers the image's libnvidia-ml or libcuda over the mounted "
    "ones of the host.",
    proof='docker run --rm --entrypoint sh IMAGE -c \'find / -xdev -name "libnvidia-*.so.*" -o '
    '-xdev -name "libcuda.so.*" | grep -v compat\'',
    shows="driver libraries in the image itself, started without a GPU",
    fix="Do not install driver packages in images: remove libnvidia-* and libcuda* from it.",
    sources=("k4yt3x/video2x issue 1226", "NVIDIA/libnvidia-container issue 266"),
    cases=("DR-004",),
    hints=(r"only in(side)? (the |a )?container", r"in the image", r"libnvidia_ml_in_image"),
)

PATCH_LEVEL = Cause(
    id="module-patch-level",
    title="Module and libraries differ in the last number only",
    why="570.124.06 and 570.124.04 are two drivers. It happens with modules built by hand, such as "
    "patched open modules.",
    proof="cat /proc/driver/nvidia/version; nvidia-smi --version",
    shows="the same first two numbers and another third one",
    fix="Install the user space of exactly the module's release, without its modules "
    "(.run with --no-kernel-modules).",
    sources=("tinygrad/open-gpu-kernel-modules issue 47",),
    cases=("DR-005",),
    hints=(r"patched", r"p2p", r"open modules?", r"NVML library version: \d+\.\d+(?!\.?\d)"),
)

SYMPTOMS = (
    Symptom(
        id="nvml-unknown-error",
        title="NVML: Unknown Error",
        patterns=(
            r"Failed to initialize NVML: Unknown Error",
            r"nvml[^.]{0,40}: ?(\()?Unknown Error",
            r"NVMLError_Unknown",
            r"lo(st|ses) (the |its |their )?(GPUs?|device) access",
            r"GPUs? (dis|vanish)[a-z]* (from|in|inside) (a |the )?running container",
            r"(open|opening)( of)? /dev/nvidiactl[^.]{0,40}(EPERM|operation not permitted)",
        ),
        causes=(
            LOST_TO_RELOAD,
            LOST_TO_UPDATE,
            NO_CGROUPS,
            LOST_TO_CPU_MANAGER,
            RUNC_RULES,
            DEV_CHAR,
            _RECREATED_NODES,
            _OUTER,
            _SICK,
        ),
        tell_apart=_TELL,
        sources=(_CTK_48,),
        cases=("CG-001", "CG-002", "CG-003", "CG-004", "CG-005", "CG-007"),
    ),
    Symptom(
        id="nvml-version-mismatch",
        title="Driver and library are of two releases",
        patterns=(
            r"driver/library version mismatch",
            r"NVRM: API mismatch",
            r"nvml.{0,40}lib_?rm_?version_?mismatch",
            r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH.{0,200}API mismatch",
            r"API mismatch: (the|this) (client|NVIDIA|API)",
            r"(Task )?.?Enable NVIDIA Persistence Daemon.? fails after",
        ),
        causes=(MODULE_STALE, UNATTENDED, IMAGE_DRIVER, PATCH_LEVEL),
        tell_apart="cat /proc/driver/nvidia/version; nvidia-smi --version; ls -l "
        "/usr/lib/*/libnvidia-ml.so.* /usr/lib64/libnvidia-ml.so.* 2>/dev/null; "
        "grep -h -i nvidia /var/log/apt/history.log | tail -3",
        sources=("NVIDIA/nvidia-docker issue 1451",),
        cases=("DR-002", "DR-003", "DR-004", "DR-005", "PA-013"),
    ),
)
