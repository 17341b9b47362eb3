# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""nvidia-smi finds no driver, no device, or may not open it. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds

SELINUX = Cause(
    id="selinux-denies-gpu",
    title="SELinux does not let the container use the NVIDIA nodes",
    why="container_t may use xserver_misc_device_t only with a current container-selinux and its "
    "boolean, which is off by default.",
    proof="ausearch -m avc -ts recent | grep -i nvidia; getsebool container_use_xserver_devices",
    shows="an AVC denial of container_t on /dev/nvidia*, and the boolean off or unknown",
    fix="Update container-selinux and switch the boolean on, or run with "
    "--security-opt label=type:nvidia_container_t where that module is installed. label=disable "
    "works and is blunt.",
    commands=("setsebool -P container_use_xserver_devices on",),
    sources=("containers/container-selinux PR 306", "fedora-selinux/selinux-policy issue 1695"),
    cases=("TK-034",),
    hints=(r"avc:? ", r"selinux", r"container_t", r"podman"),
    holds=holds.rules_out(holds.selinux_enforcing),
)

_NODE_MODE = Cause(
    id="device-node-permissions",
    title="The mode or group of the device nodes shuts the user out",
    why="NVreg_DeviceFileMode/GID, a udev rule or a job scheduler restrict /dev/nvidia*.",
    proof="ls -l /dev/nvidia*; id",
    shows="nodes without rw for others, and a user who is not in their group",
    fix="Add the user to the group of the nodes, or restore mode 0666 (NVreg_DeviceFileMode=0666).",
    commands=("usermod -aG video USER",),
    sources=("NVIDIA driver README, NVreg_DeviceFileMode",),
    hints=(r"non-?root", r"\bvideo\b", r"udev"),
)

_ROOTLESS_GROUPS = Cause(
    id="rootless-keep-groups",
    title="A rootless container lost the user's extra groups",
    why="Supplementary groups are not mapped into the user name space unless asked for.",
    proof="podman run --rm --device nvidia.com/gpu=all IMAGE sh -c 'id; ls -ln /dev/nvidia*'",
    shows="nodes of group nobody (65534)",
    fix="Use --group-add keep-groups (crun), or open the nodes to others.",
    sources=("podman-run(1), --group-add keep-groups",),
    hints=(r"rootless", r"keep-groups"),
)

NOT_LOADED = Cause(
    id="driver-not-loaded",
    title="The kernel module is not loaded, or was not built for this kernel",
    why="After a kernel update DKMS may have built nothing for the kernel that was booted.",
    proof="uname -r; lsmod | grep nvidia; dkms status; modinfo -n nvidia",
    shows="no nvidia in lsmod, and no module for this kernel in dkms status",
    fix="Install the headers of the running kernel and build the module, or boot the kernel it was "
    "built for; keep that kernel installed as fallback.",
    commands=("apt-get install linux-headers-$(uname -r)", "dkms autoinstall", "modprobe nvidia"),
    sources=("zen-kernel/zen-kernel issue 305", "NVIDIA/ansible-role-nvidia-driver issue 20"),
    cases=("RB-004",),
    hints=(r"after (the|a) (kernel )?(reboot|update|upgrade)|dkms|default_boot_kernel",),
    holds=holds.driver_status("not_loaded"),
)

SECURE_BOOT = Cause(
    id="log-module-rejected",
    title="Secure Boot refuses the unsigned module",
    why="A module that DKMS built is signed with the host's own key (MOK), which the firmware must "
    "know first.",
    proof="mokutil --sb-state; mokutil --list-enrolled | grep -c Subject; dmesg | grep -i "
    "'key was rejected\\|lockdown'",
    shows="SecureBoot enabled, and a rejected key in the kernel log",
    fix="Enrol the key and reboot into the firmware's MOK screen, install modules that the "
    "distribution has signed, or switch Secure Boot off.",
    commands=("mokutil --import /var/lib/dkms/mok.pub",),
    sources=("Debian wiki SecureBoot", "Ubuntu UEFI SecureBoot and DKMS"),
    hints=(r"secure ?boot", r"mok", r"key was rejected", r"required key not available"),
    holds=holds.confirms(holds.both(holds.secure_boot, holds.driver_status("not_loaded"))),
)

NOUVEAU = Cause(
    id="nouveau-bound",
    title="nouveau has the card",
    why="It was loaded first, mostly from the initramfs, and the NVIDIA driver cannot take over.",
    proof="lspci -k -d 10de: | grep 'in use'; lsmod | grep nouveau",
    shows="Kernel driver in use: nouveau",
    fix="Blacklist nouveau, rebuild the initramfs, reboot.",
    commands=(
        "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' "
        ">/etc/modprobe.d/blacklist-nouveau.conf",
        "update-initramfs -u || dracut --force",
    ),
    sources=("NVIDIA/gpu-operator issue 8",),
    cases=("DR-015",),
    hints=(r"nouveau",),
    holds=holds.module("nouveau"),
)

_VFIO = Cause(
    id="vfio-bound",
    title="vfio-pci has the card for a virtual machine",
    why="A card that is passed through belongs to the guest; the host's driver must not have it.",
    proof="lspci -nnk -d 10de: | grep -A2 -E 'VGA|3D'",
    shows="Kernel driver in use: vfio-pci",
    fix="Leave it where it is meant, or remove the card from vfio-pci.ids and reboot.",
    sources=("kernel VFIO documentation",),
    hints=(r"vfio", r"passthrough"),
)

GSP_FIRMWARE = Cause(
    id="gsp-firmware-missing",
    title="The GPU's firmware (GSP) did not start",
    why="The driver loads gsp_*.bin of exactly its own version from /lib/firmware/nvidia: packages "
    "that leave it out, an initramfs without it, or a GPU in a bad state stop it.",
    proof="ls /lib/firmware/nvidia/$(cat /sys/module/nvidia/version); dmesg | grep -iE "
    "'gsp|firmware' | tail",
    shows="no such directory, a load error -2, or a timeout",
    fix="Install the firmware package of the driver's version (nvidia-firmware-NNN, "
    "firmware-nvidia-gsp), rebuild the initramfs; after a hang power cycle. The proprietary module "
    "can do without: NVreg_EnableGpuFirmware=0 (up to Ampere).",
    commands=("update-initramfs -u",),
    sources=("NVIDIA driver README, GSP firmware", "NVIDIA/open-gpu-kernel-modules issue 789"),
    hints=(r"GSP", r"firmware load|gsp_\w+\.bin|Cannot initialize GSP"),
)

INIT_FAILED = Cause(
    id="log-gpu-init-failed",
    title="The driver could not initialise the GPU",
    why="Firmware files that are missing or of another version, a GPU in a bad state after a "
    "crash, "
    "insufficient power, or a passthrough without reset.",
    proof="dmesg | grep -E 'NVRM|nvidia' | tail -20; ls /lib/firmware/nvidia; cat "
    "/proc/driver/nvidia/version",
    shows="RmInitAdapter failed with its code, and what the driver says before it",
    fix="Power cycle; install the firmware package of exactly the driver's version; look at the "
    "lines before it for the open module or a legacy branch.",
    sources=("NVIDIA driver README",),
    hints=(r"RmInitAdapter",),
    holds=holds.gpu_error,
)

NO_WINDOW = Cause(
    id="pci-bar-not-assigned",
    title="The firmware gave the GPU no memory window",
    why="Big BARs need Above 4G Decoding; in a VM the guest's firmware needs a 64 bit MMIO window.",
    proof="lspci -vv -d 10de: | grep -E 'Region|Memory at'; dmesg | grep -iE 'BAR|NVRM' | tail",
    shows="<unassigned>, <ignored> or 0M @ 0x0",
    fix="Switch on Above 4G Decoding (and Resizable BAR) in the firmware; in a VM use UEFI with a "
    "bigger MMIO window; pci=realloc=off or pci=realloc may help.",
    sources=("NVIDIA driver README, BAR address invalid",),
    hints=(r"\bBAR\d?\b", r"above 4g|I/O region|0M @ 0x0"),
)

NO_CARD = Cause(
    id="lspci-no-nvidia-gpu",
    title="There is no NVIDIA GPU in this host",
    why="A command for NVIDIA was copied to a host with another graphics card, or the VM was "
    "started without a GPU.",
    proof="lspci -nn -d 10de:",
    shows="nothing",
    fix="Leave out --gpus, or use a host with a GPU. Installing the toolkit does not help.",
    sources=("fboulnois/stable-diffusion-docker issue 82",),
    cases=("TK-003",),
    hints=(r"Intel Corporation", r"UHD Graphics", r"VGA compatible controller: (?!NVIDIA)"),
    holds=holds.no_nvidia_on_bus,
)

OPEN_MODULE_OLD_CARD = Cause(
    id="log-open-module-needs-turing",
    title="The open kernel modules do not serve this card",
    why="They need a GPU with a GSP: Turing or newer. Pascal, Maxwell and Volta need the "
    "proprietary modules.",
    proof="dmesg | grep -A3 'not supported by open'; modinfo -F license nvidia",
    shows="Dual MIT/GPL (the open modules) and the kernel's sentence about the GSP",
    fix="Install the proprietary modules of a branch that knows the card; 580 is the last one for "
    "Maxwell, Pascal and Volta.",
    commands=("apt-get install nvidia-driver-580",),
    sources=("zzzhouuu/truenas-nvidia-drivers issue 20", "NVIDIA driver installation guide"),
    cases=("DR-012",),
    hints=(r"not supported by open", r"pascal", r"does not include the required GPU"),
)

LEGACY_BRANCH = Cause(
    id="log-legacy-driver-branch",
    title="This driver release has left the card behind",
    why="Support for Maxwell, Pascal and Volta ended with the 580 branch, for Kepler with 470.",
    proof="dmesg | grep -A3 'Legacy drivers'; lspci -nn -d 10de:",
    shows="the branch that is the last for this card",
    fix="Install that branch and hold it; keep upgrades from going past it.",
    commands=("apt-get install nvidia-driver-580", "apt-mark hold nvidia-driver-580"),
    sources=("NixOS/nixos-hardware PR 1843",),
    cases=("DR-013",),
    hints=(
        r"legacy driver",
        r"580\.xx",
        r"470\.xx",
        r"390\.xx",
        r"kepler|\bK[248]0\b|GTX (6|7)\d\d\b",
        r"maxwell|\bM(40|60)\b",
    ),
)

NEEDS_OPEN_MODULE = Cause(
    id="log-new-card-needs-open-module",
    title="The card needs the open kernel modules",
    why="Blackwell and newer have no proprietary kernel modules.",
    proof="modinfo -F license nvidia; dmesg | grep -i 'open kernel module'",
    shows="license NVIDIA (proprietary) on a Blackwell card",
    fix="Install the open flavour of the same branch.",
    commands=("apt-get install nvidia-driver-580-open",),
    sources=("NVIDIA driver installation guide, kernel modules",),
    hints=(r"blackwell", r"\b50[5-9]0\b", r"\bB[23]00\b", r"requires use of the NVIDIA open"),
)

_SCHEDULER = Cause(
    id="scheduler-hides-gpus",
    title="A job scheduler hides the GPUs from this session",
    why="Slurm and others constrain devices: a session without an allocation sees none. Nothing is "
    "broken.",
    proof="sudo nvidia-smi -L; cat /proc/self/cgroup",
    shows="the GPUs as root or in an allocation",
    fix="Look from an allocation (srun --gres=gpu:1 nvidia-smi) or as root before you call it a "
    "fault.",
    commands=("srun --gres=gpu:1 nvidia-smi -L",),
    sources=("NVIDIA/deepops driver diagnosis",),
    cases=("DR-018",),
    hints=(r"slurm", r"srun", r"\bssh\b", r"allocation"),
    holds=holds.confirms(holds.driver_hidden),
)

_SMI_NOT_MOUNTED = Cause(
    id="utility-capability-missing",
    title="NVIDIA_DRIVER_CAPABILITIES leaves out utility",
    why="nvidia-smi and NVML are mounted only with the capability utility.",
    proof="docker inspect -f '{{.Config.Env}}' CONTAINER | tr ' ' '\\n' | grep NVIDIA",
    shows="NVIDIA_DRIVER_CAPABILITIES without utility or all",
    fix="Set NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
    sources=("NVIDIA Container Toolkit documentation, driver capabilities",),
    hints=(r"NVIDIA_DRIVER_CAPABILITIES",),
)

_NO_GPU_ASKED = Cause(
    id="nvidia-variable-without-runtime",
    title="The container was started without a GPU",
    why="Without --gpus, --runtime=nvidia or a CDI device nothing of the driver is mounted, and "
    "NVIDIA_VISIBLE_DEVICES alone does nothing under runc.",
    proof="docker inspect -f '{{.HostConfig.Runtime}} {{json .HostConfig.DeviceRequests}}' "
    "CONTAINER",
    shows="runc and null (or [])",
    fix="Start it with --gpus all, --device nvidia.com/gpu=all, or runtime: nvidia.",
    sources=("moby daemon/devices_nvidia_linux.go",),
    cases=("RT-030",),
    hints=(r"in (the |a )?container",),
)

SYMPTOMS = (
    Symptom(
        id="nvml-permission",
        title="NVML: Insufficient Permissions",
        patterns=(
            r"nvml error: insufficient permissions",
            r"SELinux is preventing \S{0,80}nvidia",
            r"(cannot |failed to )?open(ing)? /dev/nvidia\S{0,80}: Permission denied",
            r"avc.{0,120}xserver_misc_device_t",
            r"Failed to initialize NVML: Insufficient Permissions",
            r"NVMLError_NoPermission",
            r"avc: ?denied.{0,200}nvidia",
            r"AVC denied.{0,40}nvidia",
        ),
        causes=(SELINUX, _NODE_MODE, _ROOTLESS_GROUPS),
        tell_apart="getenforce; ls -lZ /dev/nvidia*; id; ausearch -m avc -ts recent | grep nvidia",
        sources=("fedora-selinux/selinux-policy issue 1695",),
        cases=("TK-034",),
    ),
    Symptom(
        id="smi-cannot-communicate",
        title="nvidia-smi cannot reach the driver",
        patterns=(
            r"couldn.?t communicate with the NVIDIA driver",
            r"Failed to initialize NVML: Driver Not Loaded",
            r"NVMLError_DriverNotLoaded",
            r"NVIDIA driver is not loaded",
            r"nvidia-container-cli: initialization error: nvml error: driver not loaded",
            r"initialization error: driver error: failed to process request",
            r"NVIDIA driver cannot take over",
            r"Failed to find module .nvidia",
            r"Unable to load the .nvidia\S{0,20} kernel module",
            r"modprobe: (FATAL|ERROR): (Module nvidia\S{0,80} not found|could not insert .?nvidia)",
        ),
        causes=(
            NOT_LOADED,
            SECURE_BOOT,
            NOUVEAU,
            _VFIO,
            NO_CARD,
            LEGACY_BRANCH,
            OPEN_MODULE_OLD_CARD,
        ),
        tell_apart="lspci -nnk -d 10de:; lsmod | grep -E 'nvidia|nouveau|vfio'; dkms status; "
        "mokutil --sb-state; dmesg | grep -iE 'nvrm|nouveau|key was rejected' | tail",
        sources=("zen-kernel/zen-kernel issue 305",),
        cases=("RB-004", "DR-015"),
    ),
    Symptom(
        id="smi-no-devices",
        title="nvidia-smi finds no devices",
        patterns=(
            r"No devices? (were )?found",
            r"Module loads, no device",
            r"NVRM: No NVIDIA (GPU|devices?) (was )?found",
            r"No NVIDIA graphics adapter found",
        ),
        causes=(
            _SCHEDULER,
            OPEN_MODULE_OLD_CARD,
            LEGACY_BRANCH,
            NEEDS_OPEN_MODULE,
            GSP_FIRMWARE,
            INIT_FAILED,
            NO_WINDOW,
            NO_CARD,
            _VFIO,
            NOUVEAU,
        ),
        tell_apart="sudo nvidia-smi -L; lspci -nnk -d 10de:; dmesg | grep -A4 NVRM | tail -20",
        sources=("NVIDIA/deepops driver diagnosis",),
        cases=("DR-012", "DR-013", "DR-018"),
    ),
    Symptom(
        id="kernel-refuses-card",
        title="The kernel module refuses the card",
        patterns=(
            r"installed in this system is not supported by open",
            r"supported through the NVIDIA [0-9.x]+ Legacy drivers",
            r"installed in this system is not supported by the [0-9.]+ NVIDIA driver release",
            r"requires use of the NVIDIA open kernel modules",
            r"not supported by open nvidia\.ko",
            r"does not include the required GPU",
        ),
        causes=(OPEN_MODULE_OLD_CARD, LEGACY_BRANCH, NEEDS_OPEN_MODULE),
        tell_apart="lspci -nn -d 10de:; modinfo -F license nvidia; modinfo -F version nvidia; "
        "dmesg | grep -A4 'NVRM: The NVIDIA'",
        sources=("NVIDIA driver installation guide, kernel modules",),
        cases=("DR-012", "DR-013"),
    ),
    Symptom(
        id="smi-not-in-container",
        title="nvidia-smi or NVML is not in the container",
        patterns=(
            r"nvidia-smi (is )?not found in the container",
            r"nvidia-smi.{0,40}(executable file not found|command not found|not found in \$?PATH)",
            r"libnvidia-ml(\.so(\.1)?)?: cannot open shared object",
            r"NVML Shared Library Not Found",
            r"NVMLError_LibraryNotFound",
            r"couldn.?t find libnvidia-ml\.so",
        ),
        causes=(_NO_GPU_ASKED, _SMI_NOT_MOUNTED),
        tell_apart="docker inspect -f '{{.HostConfig.Runtime}} {{json .HostConfig.DeviceRequests}} "
        "{{.Config.Env}}' CONTAINER",
        sources=("NVIDIA Container Toolkit documentation, driver capabilities",),
    ),
)
