# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Building, loading and replacing the driver: DKMS, Secure Boot, modules in use. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .causes import UVM_MISSING
from .nvml_refused import NOT_LOADED, NOUVEAU, SECURE_BOOT

_HEADERS = Cause(
    id="kernel-headers-missing",
    title="The headers of the kernel are not installed",
    why="DKMS builds a module only for kernels whose headers are there; after a kernel update they "
    "may come later or not at all.",
    proof="uname -r; ls -d /lib/modules/*/build; dkms status",
    shows="no build directory for the kernel",
    fix="Install the headers metapackage that follows the kernel, then build.",
    commands=("apt-get install linux-headers-$(uname -r)", "dkms autoinstall"),
    sources=("dkms(8)",),
    hints=(r"headers", r"kernel source"),
)

_COMPILER = Cause(
    id="compiler-differs",
    title="The compiler is not the one the kernel was built with",
    why="A newer kernel needs options that an older gcc does not know (HWE kernels of Ubuntu).",
    proof="cat /proc/version; gcc --version | head -1; tail -30 "
    "/var/lib/dkms/nvidia/*/build/make.log",
    shows="two major versions of gcc",
    fix="Install the compiler that /proc/version names, and make it the default or build with CC=.",
    commands=("apt-get install gcc-12", "CC=gcc-12 dkms autoinstall"),
    sources=("NVIDIA driver README, compiler mismatch",),
    hints=(r"gcc", r"cc version", r"unrecognized command.line option", r"compiler"),
)

_TOO_NEW_KERNEL = Cause(
    id="driver-too-old-for-kernel",
    title="The driver does not know this kernel yet",
    why="Internal interfaces of the kernel change; older branches stop compiling.",
    proof="uname -r; dkms status; grep -m5 error: /var/lib/dkms/nvidia/*/build/make.log",
    shows="errors about types or functions that are missing",
    fix="Use a newer driver of the branch, or boot and hold the previous kernel.",
    commands=("apt-get install --only-upgrade nvidia-driver", "apt-mark hold linux-image-amd64"),
    sources=("zen-kernel/zen-kernel issue 305",),
    cases=("RB-004",),
    hints=(r"implicit declaration", r"make\.log", r"bad exit status"),
)

IN_USE = Cause(
    id="driver-module-in-use",
    title="Clients or dependent modules hold the driver",
    why="nvidia_uvm, nvidia_drm, nvidia_modeset, nvidia_fs, nvidia_peermem, gdrdrv, and every "
    "process "
    "with the device open (persistenced, DCGM, a display server, containers) keep it loaded.",
    proof="lsmod | grep -E '^nvidia|nvidia$'; fuser -v /dev/nvidia*; nvidia-smi",
    shows="users of the modules, or processes",
    fix="Drain the host, stop the clients, unload the dependent modules first; otherwise reboot.",
    commands=(
        "systemctl stop nvidia-persistenced nvidia-dcgm",
        "modprobe -r nvidia_fs nvidia_peermem nvidia_drm nvidia_modeset nvidia_uvm nvidia",
    ),
    sources=("NVIDIA/gpu-operator issues 2166, 2433 and 416",),
    cases=("RB-002",),
    hints=(r"in use", r"dcgm", r"persistenced", r"loaded"),
)

DRM_HOLDS = Cause(
    id="nvidia-drm-holds-gpu",
    title="nvidia_drm or nvidia_modeset is itself a client",
    why="With modeset=1 the driver's own display part holds the GPU, and no user process is "
    "listed.",
    proof="lsmod | grep -E 'nvidia_(drm|modeset)'; cat /sys/module/nvidia_drm/parameters/modeset",
    shows="the modules are loaded, and Y",
    fix="On compute hosts set modeset=0 and unload both, then reset.",
    commands=(
        "echo 'options nvidia_drm modeset=0' >/etc/modprobe.d/nvidia-drm.conf",
        "modprobe -r nvidia_drm nvidia_modeset",
    ),
    sources=("NVIDIA/mig-parted issue 181",),
    cases=("MG-003",),
    hints=(r"drm", r"modeset", r"no (user )?process"),
    holds=holds.confirms(holds.both(holds.module("nvidia_drm"), holds.mig_pending)),
)

_TWO_INSTALLS = Cause(
    id="driver-installed-twice",
    title="A .run installation and packages, or two branches, are on one host",
    why="They overwrite each other's files and leave libraries of two versions.",
    proof="dpkg -l '*nvidia*' | grep ^ii; ls /usr/bin/nvidia-uninstall; find /usr -name "
    "'libnvidia-ml.so.*'",
    shows="nvidia-uninstall beside packages, or libraries of two versions",
    fix="Remove the .run installation (nvidia-uninstall) or purge the packages, then install one.",
    commands=("nvidia-uninstall",),
    sources=("NVIDIA driver installation guide",),
    hints=(r"alternate method", r"\.run", r"distribution-provided"),
)

_PERSISTENCED = Cause(
    id="persistenced-without-driver",
    title="nvidia-persistenced was started while driver and module do not agree",
    why="It opens the driver at start; after a package update the old module is still loaded.",
    proof="journalctl -u nvidia-persistenced -n 10 --no-pager; cat /proc/driver/nvidia/version",
    shows="a failure to query NVIDIA devices, and a module of another version",
    fix="Reboot or reload the modules, then start it. In a play, flush the reboot handler first.",
    commands=("systemctl restart nvidia-persistenced",),
    sources=("stackhpc/ansible-slurm-appliance issue 287",),
    cases=("PA-013",),
    hints=(r"persistenced?", r"ansible|task|play"),
)

_NO_SPACE = Cause(
    id="host-disk-full",
    title="No room to build the module or the initramfs",
    why="/boot or /var is full; a half-written initramfs or module is left.",
    proof="df -h /boot /var /usr",
    shows="100 %",
    fix="Remove old kernels and run the configuration again.",
    commands=("apt-get autoremove --purge", "dpkg --configure -a"),
    sources=("dkms(8)",),
    hints=(r"no space",),
)

SYMPTOMS = (
    Symptom(
        id="dkms-build",
        title="The kernel module does not build",
        patterns=(
            r"GPL-incompatible module nvidia|GPL-only symbol",
            r"error processing package (nvidia|linux-(headers|image))\S{0,80}",
            r"Could not resolve Linux kernel version",
            r"bad (exit status|return status) .{0,60}(module build|dkms|make)",
            r"dkms.{0,60}(build|install|autoinstall).{0,40}(fail|error)",
            r"Error! (Bad return status|Your kernel headers|Module|Could not locate)",
            r"kernel headers for (kernel|target) .{0,60}(cannot be found|not found|missing)",
            r"Unable to (find|locate) the (kernel source|kernel output|development tool)",
            r"The (CC version|compiler).{0,60}(differs|mismatch|does not match)",
            r"An error occurred while performing the step: .Building kernel modules",
            r"unable to build the NVIDIA kernel module",
            r"nvidia.{0,40}(module )?(was )?(not built|missing) for (the )?(this |running |new "
            r")?kernel",
            r"modprobe: FATAL: Module nvidia\S{0,80} not found in directory /lib/modules",
            r"g?cc\S{0,6}:? .{0,40}unrecognized command.line option.{0,60}",
        ),
        causes=(_HEADERS, _COMPILER, _TOO_NEW_KERNEL, _NO_SPACE, NOT_LOADED),
        tell_apart="uname -r; cat /proc/version; gcc --version | head -1; dkms status; ls -d "
        "/lib/modules/*/build; grep -m5 -i error /var/lib/dkms/nvidia/*/build/make.log; df -h "
        "/boot",
        sources=("NVIDIA/ansible-role-nvidia-driver issue 20",),
    ),
    Symptom(
        id="module-rejected",
        title="The kernel refuses the module",
        patterns=(
            r"key was rejected by service",
            r"Required key not available",
            r"module verification failed: (?!signature and/or required key missing)",
            r"Loading of (unsigned )?module.{0,40}(is )?(rejected|restricted)",
            r"Lockdown: (modprobe|insmod|systemd-modules).{0,80}restricted",
            r"secure boot.{0,80}(refus|reject|block|prevent|unsigned|not load)",
            r"PKCS#7 signature not signed with a trusted key",
        ),
        causes=(SECURE_BOOT,),
        tell_apart="mokutil --sb-state; mokutil --list-enrolled | grep Subject; modinfo nvidia | "
        "grep "
        "-E 'signer|sig_key'; dmesg | grep -iE 'lockdown|rejected|x.509' | tail",
        sources=("Ubuntu UEFI SecureBoot and DKMS",),
    ),
    Symptom(
        id="module-symbols",
        title="The module does not fit the running kernel",
        patterns=(
            r"nvidia\S{0,80}: (version magic|disagrees about version of symbol|Unknown symbol)",
            r"could not insert .?nvidia\S{0,80}: (Exec format error|Invalid argument|Unknown "
            r"symbol|"
            r"No such device)",
            r"Invalid module format",
        ),
        causes=(NOT_LOADED, _COMPILER, NOUVEAU),
        tell_apart="uname -r; modinfo -F vermagic nvidia; dkms status; dmesg | tail",
        sources=("modprobe(8)",),
    ),
    Symptom(
        id="module-in-use",
        title="The driver cannot be unloaded",
        patterns=(
            r"Could not unload NVIDIA driver kernel modules",
            r"driver is (currently )?in use",
            r"Module nvidia\w* is in use",
            r"nvidia-(uvm|drm|modeset)\S? appears? to already be loaded",
            r"(rmmod|modprobe): (ERROR|FATAL): Module nvidia\S{0,80} is (in use|builtin)",
            r"An NVIDIA kernel module .{0,40}already loaded in your kernel",
            r"GPU reset fails: in use",
            r"Unable to unload (the )?nvidia",
        ),
        causes=(IN_USE, DRM_HOLDS),
        tell_apart="lsmod | grep nvidia; fuser -v /dev/nvidia*; nvidia-smi; cat "
        "/sys/module/nvidia_drm/parameters/modeset",
        sources=("NVIDIA/gpu-operator issue 2166",),
        cases=("MG-003", "RB-002"),
    ),
    Symptom(
        id="nouveau-in-the-way",
        title="nouveau is in the way",
        patterns=(
            r"nouveau.{0,80}(in use|loaded|bound|conflict|disable|blacklist|is currently)",
            r"NVRM: .{0,120}nouveau",
            r"NVIDIA probe routine was not called for \d+ device",
            r"Kernel driver in use: nouveau",
            r"cannot take over the GPU",
        ),
        causes=(NOUVEAU,),
        tell_apart="lspci -k -d 10de:; lsmod | grep nouveau; lsinitramfs "
        "/boot/initrd.img-$(uname -r) "
        "| grep nouveau",
        sources=("NVIDIA/gpu-operator issue 8",),
        cases=("DR-015",),
    ),
    Symptom(
        id="driver-installed-twice",
        title="Two installations of the driver are in the way of each other",
        patterns=(
            r"alternate (driver installation|method of installing)",
            r"distribution-provided pre-?install script failed",
            r"existing driver (runfile|package) install(ation)? (found|detected)",
            r"appears to (already )?have been installed by .{0,40}(package|runfile)",
        ),
        causes=(_TWO_INSTALLS,),
        tell_apart="dpkg -l '*nvidia*' | grep ^ii; ls -l /usr/bin/nvidia-uninstall; find /usr "
        "-name "
        "'libnvidia-ml.so.*'",
        sources=("NVIDIA driver installation guide",),
    ),
    Symptom(
        id="persistenced-fails",
        title="nvidia-persistenced does not start",
        patterns=(
            r"nvidia-persistenced.{0,80}(fail|error|could not|unable)",
            r"Failed to query NVIDIA devices",
            r"NVIDIA Persistence Daemon.{0,40}fail",
            r"Unit nvidia-persistenced\.service (not found|could not be found)",
        ),
        causes=(_PERSISTENCED, NOT_LOADED, UVM_MISSING),
        tell_apart="journalctl -u nvidia-persistenced -n 10 --no-pager; cat "
        "/proc/driver/nvidia/version; ls -l /dev/nvidia*",
        sources=("stackhpc/ansible-slurm-appliance issue 287",),
        cases=("PA-013",),
    ),
    Symptom(
        id="gpu-node-missing",
        title="The driver's device nodes are missing",
        patterns=(
            r"nvidia-modprobe.{0,20}(not )?setuid",
            r"failed to (load NVIDIA kernel modules|create device nodes?)",
            r"create-dev-char-symlinks.{0,60}(fail|error)",
            r"failed to create symlink /dev/char",
            r"/dev/nvidia(ctl|0|-uvm)?: no such (file|device)",
            r"nvidia-modprobe.{0,60}(fail|error|not found)",
            r"(missing|no) /dev/nvidia(ctl|-uvm|0)\b",
            r"nvidia[-_]uvm (is |was )?not loaded",
            r"uvm .{0,30}(not (loaded|initiali[sz]ed)|missing)",
        ),
        causes=(UVM_MISSING, NOT_LOADED),
        tell_apart="lsmod | grep nvidia; ls -l /dev/nvidia*; grep nvidia /proc/devices; ls -l "
        "$(command -v nvidia-modprobe)",
        sources=("NVIDIA/enroot issue 106",),
        cases=("DR-001",),
    ),
)
