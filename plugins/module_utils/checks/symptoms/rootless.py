# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rootless engines, podman, SELinux and AppArmor around GPUs. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .nvml_refused import SELINUX

REGRESSION_118 = Cause(
    id="toolkit-rootless-1-18",
    title="Rootless GPU containers were reported broken by toolkit 1.18.0",
    why="They worked under 1.17.8; the mode auto became jit-cdi with 1.18.",
    proof="nvidia-ctk --version; docker info -f '{{.SecurityOptions}}'",
    shows="1.18.0 and name=rootless",
    fix="Use CDI names (--device nvidia.com/gpu=all) with a current 1.19, or pin the whole set "
    "at the "
    "last 1.17 that worked and mind its CVEs.",
    commands=("nvidia-ctk cdi generate --output=$HOME/.config/cdi/nvidia.yaml",),
    sources=("NVIDIA/nvidia-container-toolkit issue 1487",),
    cases=("CG-010",),
    hints=(r"1\.18", r"1\.17\.8"),
    holds=holds.rules_out(holds.version("toolkit", ">=1.18.0")),
)

NO_CGROUPS_NEEDED = Cause(
    id="rootless-needs-no-cgroups",
    title="The hook may not change device rules in a rootless engine",
    why="That needs root in the first user name space.",
    proof="grep -n no-cgroups /etc/nvidia-container-runtime/config.toml",
    shows="no-cgroups = false, or a comment",
    fix="Use CDI, or no-cgroups = true in a file that only the rootless engine reads.",
    commands=("nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place",),
    sources=("NVIDIA Container Toolkit install guide, rootless",),
    hints=(r"no-cgroups|device rules|bpf",),
    holds=holds.rules_out(holds.rootless),
)

_SUBUID = Cause(
    id="rootless-subuid",
    title="The user has no range of subordinate ids",
    why="/etc/subuid and /etc/subgid need at least 65536 ids for the user.",
    proof="grep $USER /etc/subuid /etc/subgid; command -v newuidmap",
    shows="no line",
    fix="Add a range and log in again.",
    commands=("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER",),
    sources=("rootlesscontaine.rs",),
    hints=(r"subuid|newuidmap|uid_map",),
)

_USERNS = Cause(
    id="userns-restricted",
    title="The host restricts user name spaces",
    why="Ubuntu 24.04's AppArmor restriction, or kernel.unprivileged_userns_clone=0.",
    proof="sysctl kernel.apparmor_restrict_unprivileged_userns kernel.unprivileged_userns_clone",
    shows="1, or 0",
    fix="Install the profile for rootlesskit or podman that the documentation gives.",
    commands=("sysctl kernel.apparmor_restrict_unprivileged_userns",),
    sources=("Docker rootless documentation",),
    hints=(r"userns|unshare|apparmor",),
)

_LINGER = Cause(
    id="rootless-linger",
    title="The user's services end with his session",
    why="Without linger systemd stops the user's manager, and with it a rootless engine.",
    proof="loginctl show-user $USER -p Linger",
    shows="Linger=no",
    fix="Switch it on.",
    commands=("loginctl enable-linger $USER",),
    sources=("Docker rootless documentation",),
    hints=(r"logout|session|linger",),
)

_HOOK_DIR = Cause(
    id="podman-hook-without-cdi",
    title="podman runs the old OCI hook beside CDI, or in its place",
    why="oci-nvidia-hook.json in /usr/share/containers/oci/hooks.d calls the hook; with CDI it "
    "is not "
    "needed and fails rootless.",
    proof="ls /usr/share/containers/oci/hooks.d /etc/containers/oci/hooks.d; podman info | grep "
    "-i hook",
    shows="oci-nvidia-hook.json",
    fix="Remove the hook file and use --device nvidia.com/gpu=all.",
    commands=("rm /usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",),
    sources=("NVIDIA/nvidia-container-runtime issue 85",),
    hints=(r"hooks?\.d|oci-nvidia-hook|podman",),
)

_LABEL = Cause(
    id="selinux-type-required",
    title="The SELinux type nvidia_container_t is not installed",
    why="It comes from a policy module of its own; a label that does not exist stops the start.",
    proof="semodule -l | grep -i nvidia; seinfo -t nvidia_container_t",
    shows="nothing",
    fix="Install the module (dgx-selinux, nvidia-container-selinux), or use container_t with "
    "container_use_xserver_devices on.",
    commands=("setsebool -P container_use_xserver_devices on",),
    sources=("zvonkok/nvidia-container-runtime hook/nvidia-container.te",),
    hints=(r"nvidia_container_t|invalid argument|attr/exec",),
    holds=holds.rules_out(holds.selinux_enforcing),
)

_APPARMOR = Cause(
    id="apparmor-denies",
    title="An AppArmor profile denies the device or file",
    why="The profile of the container, of a snap, or of the outer LXC.",
    proof="dmesg | grep -i 'apparmor=\"DENIED\"' | tail -3; aa-status | head",
    shows="its line",
    fix="Use another profile (--security-opt apparmor=NAME) or correct it.",
    commands=("dmesg | grep -i apparmor | tail",),
    sources=("Docker documentation, AppArmor",),
    hints=(r"apparmor",),
)

SYMPTOMS = (
    Symptom(
        id="rootless-gpu",
        title="GPU containers do not start in a rootless engine",
        patterns=(
            r"rootless(?!.{0,160}CDI devices).{0,120}"
            r"(no longer start|do(es)? not start|fail|broke|error)",
            r"no longer start rootless",
            r"(broke|fails?|error).{0,60}rootless",
        ),
        causes=(NO_CGROUPS_NEEDED, REGRESSION_118, _HOOK_DIR, SELINUX),
        tell_apart="nvidia-ctk --version; docker info -f '{{.SecurityOptions}}'; grep -n "
        "no-cgroups "
        "/etc/nvidia-container-runtime/config.toml; ls ~/.config/cdi /etc/cdi",
        sources=("NVIDIA/nvidia-container-toolkit issue 1487",),
        cases=("CG-010",),
    ),
    Symptom(
        id="rootless-setup",
        title="A rootless engine does not start",
        patterns=(
            r"setrlimit .?RLIMIT_NOFILE.?: Operation not permitted",
            r"(newuidmap|newgidmap).{0,60}(fail|not found|not permitted)",
            r"(subuid|subgid).{0,80}(no|not|missing|cannot)",
            r"\[rootlesskit:\w+\].{0,60}(fail|error)",
            r"(unshare|user ?namespaces?).{0,60}(not permitted|denied|restricted|disabled)",
            r"cannot clone: (Operation not permitted|Invalid argument)",
        ),
        causes=(_SUBUID, _USERNS, _LINGER),
        tell_apart="grep $USER /etc/subuid; sysctl kernel.apparmor_restrict_unprivileged_userns; "
        "loginctl show-user $USER -p Linger",
        sources=("rootlesscontaine.rs",),
    ),
    Symptom(
        id="podman-hook",
        title="podman calls the NVIDIA hook",
        patterns=(
            r"oci-nvidia-hook",
            r"hooks\.d.{0,60}nvidia",
            r"podman.{0,80}error executing hook",
        ),
        causes=(_HOOK_DIR, NO_CGROUPS_NEEDED),
        tell_apart="ls /usr/share/containers/oci/hooks.d; podman --version; ls /etc/cdi /run/cdi",
        sources=("NVIDIA/nvidia-container-runtime issue 85",),
    ),
    Symptom(
        id="selinux-label",
        title="The SELinux label cannot be set",
        patterns=(
            r"(write|open) \S{0,80}attr/exec\S{0,80}: (invalid argument|permission denied)",
            r"nvidia_container_t.{0,60}(invalid|not|unknown|does not)",
            r"failed to set (SELinux |selinux )?label",
        ),
        causes=(_LABEL, SELINUX),
        tell_apart="getenforce; semodule -l | grep -i nvidia; seinfo -t nvidia_container_t",
        sources=("zvonkok/nvidia-container-runtime hook/nvidia-container.te",),
    ),
    Symptom(
        id="apparmor",
        title="AppArmor denies",
        patterns=(r"apparmor=.?DENIED", r"apparmor.{0,60}(denied|fail|unable to apply)"),
        causes=(_APPARMOR,),
        tell_apart="dmesg | grep -i apparmor | tail; aa-status | head",
        sources=("Docker documentation, AppArmor",),
    ),
)
