# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Device nodes and vendors: what engines and hooks look for and do not find. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .cdi import CDI_OFF, EMPTY_EDITS, NO_SPEC
from .engine_gpu import AMD_ONLY, DESKTOP, NO_TOOLKIT
from .nvml_refused import NO_CARD

_VENDOR = (
    "lspci -nn | grep -iE 'vga|3d|display'; command -v nvidia-cdi-hook "
    "nvidia-container-runtime-hook amd-container-runtime; ls /etc/cdi /var/run/cdi"
)
_NODES = "ls -l /dev/nvidia* /dev/nvidia-caps; lsmod | grep nvidia; grep nvidia /proc/devices"

_NO_NODE = Cause(
    id="uvm-missing",
    title="The node does not exist yet",
    why="nvidia_uvm and nvidia_modeset and their nodes appear at first use (or by "
    "nvidia-modprobe); a headless boot has none of them, and a CDI spec or a --device line that "
    "names them fails.",
    proof=_NODES,
    shows="no such node, or a module that is not loaded",
    fix="Load the modules and make the nodes at boot, before the engine and the CDI refresh.",
    commands=(
        "nvidia-modprobe -u -c 0 -m",
        "printf 'nvidia\\nnvidia_uvm\\nnvidia_modeset\\n' >/etc/modules-load.d/nvidia.conf",
        "systemctl restart nvidia-cdi-refresh.service",
    ),
    sources=("nvidia-modprobe(1)", "NVIDIA/nvidia-container-toolkit issue 381"),
    hints=(r"nvidia-(uvm|modeset)",),
)

_SPEC_OF_OTHER_STATE = Cause(
    id="cdi-spec-driver-differs",
    title="The CDI spec was made when this node existed",
    why="A spec keeps the nodes of the moment: GPUs that were removed, MIG devices that are gone, "
    "modules that are not loaded now.",
    proof="grep -hn 'path: /dev' /etc/cdi/* /var/run/cdi/*; ls /dev/nvidia*",
    shows="paths in the spec that /dev does not have",
    fix="Load the missing module, or write the spec anew.",
    commands=("nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",),
    sources=("NVIDIA/nvidia-container-toolkit issue 692",),
    hints=(r"\bcdi\b", r"nvidia\d", r"/dev/dri/"),
)

_NOT_DISCOVERED = Cause(
    id="cdi-vendor-unknown",
    title="The engine finds neither a GPU vendor's hook nor its CDI spec",
    why="From Docker 29 on, --gpus asks for NVIDIA's hooks on dockerd's PATH first and then for "
    "nvidia.com or amd.com among the CDI specs. Intel cards have no part in it.",
    proof=_VENDOR,
    shows="no hook and no spec; or a card of another vendor",
    fix="With an NVIDIA card: install the toolkit, generate the spec, restart docker. Without one: "
    "drop --gpus (Intel: --device /dev/dri, AMD: --device /dev/kfd --device /dev/dri).",
    commands=(
        "apt-get install nvidia-container-toolkit",
        "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
        "systemctl restart docker",
    ),
    sources=("moby daemon/devices.go, devices_amd_linux.go", "ShaneIsrael/fireshare issue 689"),
    hints=(r"vendor", r"intel|i?GPU"),
)

_DEV_CHAR = Cause(
    id="operator-dev-char",
    title="The operator cannot make links in /dev/char for the driver's nodes",
    why="It makes them for the systemd cgroup driver. A driver installed on the host in another "
    "root, or a module that is not loaded, stops it.",
    proof="ls -l /dev/char | grep nvidia; grep nvidia /proc/devices; kubectl -n gpu-operator logs "
    "ds/nvidia-operator-validator -c driver-validation",
    shows="no links, or no nvidia in /proc/devices",
    fix="Load the driver; with CDI the links are not needed: set DISABLE_DEV_CHAR_SYMLINK_CREATION="
    "true for the validator.",
    commands=("nvidia-ctk system create-dev-char-symlinks --create-all",),
    sources=("NVIDIA/gpu-operator issue 430 and release notes 22.9.2",),
    hints=(r"symlink",),
)

_IMAGE_OLD_VERSION = Cause(
    id="driver-library-left-over",
    title="A library of the previous driver is left in the loader's cache or as a link",
    why="The hook takes names from the host's ldcache; a dangling link or a stale cache names a "
    "file that the upgrade has removed.",
    proof="ldconfig -p | grep -E 'nvidia|cuda'; find /usr/lib /usr/lib64 -xtype l -name "
    "'lib*nv*.so*'; cat /proc/driver/nvidia/version",
    shows="a version that is not the loaded driver's",
    fix="Remove dangling links and rebuild the cache; reinstall the driver's library package.",
    commands=("find /usr/lib /usr/lib64 -xtype l -name 'libnvidia-*' -delete", "ldconfig"),
    sources=("void-linux/void-packages issue 51704",),
    hints=(r"detection error", r"symlink|left"),
)

_CGROUP_LAYOUT = Cause(
    id="toolkit-without-cgroup-v2",
    title="The toolkit does not know this layout of control groups",
    why="libnvidia-container before 1.8 knows v1 only, and early releases trip over hybrid "
    "layouts (a net_cls hierarchy of a VPN beside v2).",
    proof="nvidia-container-cli --version; stat -fc %T /sys/fs/cgroup; cat /proc/self/cgroup",
    shows="cgroup2fs with an old release, or a line beside 0::",
    fix="Upgrade the toolkit; unmount the extra v1 hierarchy (/sys/fs/cgroup/net_cls).",
    commands=("apt-get install --only-upgrade nvidia-container-toolkit",),
    sources=("NVIDIA/libnvidia-container issues 111 and 150", "NVIDIA/nvidia-docker issue 1447"),
    hints=(r"devices (not found|subsys)", r"malformed", r"1\.[0-7]\.\d"),
    holds=holds.rules_out(holds.version("libnvidia_container", "<1.8.0")),
)

_GRES = Cause(
    id="slurm-gres-count",
    title="Slurm counts fewer GPUs on the node than its configuration says",
    why="slurmd started before the driver's nodes existed, a GPU fell off the bus, MIG changed the "
    "count, or gres.conf names files that are not there.",
    proof="slurmd -G; nvidia-smi -L; ls /dev/nvidia[0-9]*; sinfo -R",
    shows="another number, and a drained node",
    fix="Mend the GPU or gres.conf, start slurmd after the driver (After=nvidia-persistenced), "
    "then resume the node.",
    commands=("systemctl restart slurmd", "scontrol update nodename=NODE state=resume"),
    sources=("Slurm documentation, generic resources",),
    hints=(r"gres|count",),
)

_GDRDRV = Cause(
    id="gdrcopy-module-missing",
    title="The module gdrdrv is not loaded, or its node is not in the container",
    why="GDRCopy needs it on the host and /dev/gdrdrv in the container.",
    proof="lsmod | grep gdrdrv; ls -l /dev/gdrdrv",
    shows="nothing",
    fix="Install gdrdrv-dkms, load it, and give --device /dev/gdrdrv; UCX and NVSHMEM do without, "
    "slower.",
    commands=("modprobe gdrdrv", "docker run --gpus all --device /dev/gdrdrv IMAGE"),
    sources=("NVIDIA/gdrcopy README",),
    hints=(r"gdr",),
)

SYMPTOMS = (
    Symptom(
        id="slurm-gres",
        title="Slurm does not find the node's GPUs",
        patterns=(
            r"gres/gpu.{0,60}(count (reported )?lower|lower than configured|count changed)",
            r"(can.?t|unable to) (stat|open) gres\.conf|gres_plugin.{0,60}(fail|error)",
            r"fatal: .{0,60}gres.{0,60}/dev/nvidia",
        ),
        causes=(_GRES,),
        tell_apart="slurmd -G; nvidia-smi -L; sinfo -R",
        sources=("Slurm documentation, generic resources",),
    ),
    Symptom(
        id="gdrcopy",
        title="GDRCopy cannot be opened",
        patterns=(r"gdr_open.{0,20}fail", r"/dev/gdrdrv.{0,20}(no such|not found|denied)"),
        causes=(_GDRDRV,),
        tell_apart="lsmod | grep gdrdrv; ls -l /dev/gdrdrv",
        sources=("NVIDIA/gdrcopy README",),
    ),
    Symptom(
        id="gpu-vendor-not-found",
        title="The engine finds no GPU vendor",
        patterns=(
            r"failed to discover GPU vendor from CDI",
            r"no known GPU vendor found",
        ),
        causes=(_NOT_DISCOVERED, NO_TOOLKIT, NO_SPEC, NO_CARD, AMD_ONLY, DESKTOP),
        tell_apart=_VENDOR,
        sources=("moby daemon/devices.go",),
    ),
    Symptom(
        id="cdi-driver-not-registered",
        title="The engine has no CDI driver",
        patterns=(r"no CDI device driver registered",),
        causes=(CDI_OFF, NO_SPEC),
        tell_apart="docker info -f '{{json .CDISpecDirs}}'; grep -n cdi /etc/docker/daemon.json",
        sources=("moby daemon/devices_nvidia_linux.go",),
    ),
    Symptom(
        id="device-node-absent-at-start",
        title="A device node of the driver does not exist",
        patterns=(
            r"(cannot stat|failed to stat)[^.]{0,30}/dev/(nvidia|dri/)\S{0,40}",
            r"(nvidia-container-cli: )?mount error: stat failed: /dev/nvidia\S{0,40}",
            r"(stat|lstat|open) /dev/nvidia(-uvm|-uvm-tools|-modeset|ctl|\d+)\W{0,3} ?no such file",
        ),
        causes=(_NO_NODE, _SPEC_OF_OTHER_STATE),
        tell_apart=_NODES,
        sources=("nvidia-modprobe(1)",),
    ),
    Symptom(
        id="cdi-empty-edits",
        title="nvidia-ctk finds no device nodes for a GPU",
        patterns=(r"(failed to generate CDI spec.{0,120})?empty device edits",),
        causes=(EMPTY_EDITS,),
        tell_apart="ls -l /dev/nvidia*; nvidia-smi -L; systemctl status nvidia-cdi-refresh.service "
        "--no-pager",
        sources=("kaito-project/kaito issue 2326",),
    ),
    Symptom(
        id="operator-dev-char-links",
        title="The operator cannot make the /dev/char links",
        patterns=(
            r"failed to create symlinks? in /dev/char",
            r"symlinkCreation\w*.{0,30}fail",
            r"create device node \S{1,30}: failed to determine major",
            r"dev[-/ ]char[- ]symlinks?.{0,60}(fail|error)",
        ),
        causes=(_DEV_CHAR,),
        tell_apart="ls -l /dev/char | grep nvidia; grep nvidia /proc/devices",
        sources=("NVIDIA/gpu-operator issue 430",),
    ),
    Symptom(
        id="cli-detection-error",
        title="The hook is told of a library that is not there",
        patterns=(r"detection error: (open|stat|path|lstat)\S{0,20} ?(failed|error)?",),
        causes=(_IMAGE_OLD_VERSION,),
        tell_apart="ldconfig -p | grep -E 'nvidia|cuda'; cat /proc/driver/nvidia/version",
        sources=("void-linux/void-packages issue 51704",),
    ),
    Symptom(
        id="cli-cgroup-layout",
        title="The hook does not find the control group of devices",
        patterns=(
            r"(container error: )?cgroup subsystem devices not found",
            r"(container error: )?failed to get device cgroup (mount|root) path",
            r"malformed cgroup entry",
        ),
        causes=(_CGROUP_LAYOUT,),
        tell_apart="nvidia-container-cli --version; stat -fc %T /sys/fs/cgroup; cat "
        "/proc/self/cgroup",
        sources=("NVIDIA/libnvidia-container issues 111 and 150",),
    ),
)
