# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""apt, dnf and the repositories of NVIDIA and Docker. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .causes import TOOLKIT_MIXED

_POLICY = "apt-mark showhold; apt-cache policy nvidia-container-toolkit libnvidia-container1"

SIGNED_BY = Cause(
    id="apt-signed-by-conflict",
    title="One repository is listed twice with different keys",
    why="An old list file (without signed-by, or with another keyring) and a new one name the same "
    "source.",
    proof="grep -rn -E 'libnvidia-container|nvidia-container-toolkit|docker' "
    "/etc/apt/sources.list.d",
    shows="the same address in two files",
    fix="Remove the old list file; let one task own all lists of NVIDIA.",
    commands=("rm /etc/apt/sources.list.d/libnvidia-container.list", "apt-get update"),
    sources=("NVIDIA/nvidia-container-toolkit issue 170", "NVIDIA/libnvidia-container issue 194"),
    cases=("PA-001",),
    hints=(r"signed-by",),
)

KEY_ROTATED = Cause(
    id="apt-cuda-key-rotated",
    title="NVIDIA replaced the key of its CUDA repositories",
    why="Since April 2022 they are signed by another key (3BF863CC); old images and hosts trust "
    "the "
    "old one (7FA2AF80).",
    proof="apt-key list 2>/dev/null | grep -i -B1 cudatools; ls /usr/share/keyrings | grep cuda",
    shows="only the old key",
    fix="Install the package cuda-keyring, and remove the old list and key.",
    commands=("apt-get install ./cuda-keyring_1.1-1_all.deb", "apt-get update"),
    sources=("NVIDIA/nvidia-docker issue 1631", "NVIDIA/cuda-repo-management issue 4"),
    cases=("PA-002",),
    hints=(r"A4B469963BF863CC", r"7fa2af80", r"cuda"),
)

KEY_MISSING = Cause(
    id="apt-key-missing",
    title="The key of the repository is not installed, or not readable",
    why="The keyring named by signed-by is missing, armoured under a .gpg name, or not "
    "world-readable.",
    proof="grep -rn signed-by /etc/apt/sources.list.d; ls -l /usr/share/keyrings /etc/apt/keyrings",
    shows="no such file, or mode 0600",
    fix="Install the key (dearmoured for .gpg) with mode 0644.",
    commands=("chmod 0644 /usr/share/keyrings/*.gpg /etc/apt/keyrings/*", "apt-get update"),
    sources=("apt-secure(8)",),
    hints=(r"NO_PUBKEY", r"not signed"),
)

HELD = Cause(
    id="apt-held-packages-change",
    title="Packages are held while another one wants them newer",
    why="The image holds one version and the repository offers the next; unattended installs "
    "refuse "
    "to change what is held.",
    proof=_POLICY,
    shows="held packages with a newer candidate",
    fix="Unhold the whole set, upgrade it together, hold it again; or ask for the held version by "
    "name.",
    commands=(
        "apt-mark unhold nvidia-container-toolkit nvidia-container-toolkit-base "
        "libnvidia-container-tools libnvidia-container1",
        "apt-get install --only-upgrade nvidia-container-toolkit nvidia-container-toolkit-base "
        "libnvidia-container-tools libnvidia-container1",
        "apt-mark hold nvidia-container-toolkit nvidia-container-toolkit-base "
        "libnvidia-container-tools libnvidia-container1",
    ),
    sources=("vanzod/ccslurm4ai issue 5", "GoogleCloudDataproc/initialization-actions PR 1323"),
    cases=("PA-011",),
    hints=(r"held", r"allow-change-held"),
)

TWO_BRANCHES = Cause(
    id="driver-branch-change",
    title="Packages of two driver branches conflict",
    why="The old branch stays installed when another is asked for; server and desktop flavours "
    "conflict, too.",
    proof="dpkg -l | grep -E 'nvidia-(driver|headless|utils|compute|kernel|dkms)|libnvidia'",
    shows="two branch numbers",
    fix="Purge the old branch in the same transaction, install the new one, reboot.",
    commands=(
        "apt-get install nvidia-headless-550-server nvidia-utils-550-server "
        "nvidia-headless-535-server- nvidia-utils-535-server-",
    ),
    sources=("NVIDIA/ansible-role-nvidia-driver PR 33 and PR 11",),
    cases=("PA-010",),
    hints=(r"branch", r"held broken", r"nvidia-\w+-\d{3}"),
)

PARTIAL_DOWNGRADE = Cause(
    id="toolkit-packages-in-part",
    title="Only one package of the set is downgraded",
    why="The toolkit's packages depend on each other's versions.",
    proof=_POLICY,
    shows="one version asked for, others newer",
    fix="Name the whole set with its versions and --allow-downgrades.",
    commands=TOOLKIT_MIXED.commands,
    sources=("NVIDIA/nvidia-docker issue 1492",),
    cases=("RB-001",),
    hints=(r"downgrad", r"nvidia-docker2", r"unmet"),
)

_LOCK = Cause(
    id="apt-lock",
    title="Another process of the package manager runs",
    why="unattended-upgrades or cloud-init hold the lock for minutes after boot.",
    proof="fuser -v /var/lib/dpkg/lock-frontend; systemctl status apt-daily-upgrade "
    "unattended-upgrades "
    "--no-pager",
    shows="its process",
    fix="Wait for it (Ansible's apt: lock_timeout=600; cloud-init status --wait); never remove the "
    "lock.",
    commands=("cloud-init status --wait", "apt-get -o DPkg::Lock::Timeout=600 install PACKAGE"),
    sources=("apt.conf(5), DPkg::Lock::Timeout",),
    hints=(r"lock", r"unattended|cloud-init"),
)

_INTERRUPTED = Cause(
    id="dpkg-interrupted",
    title="An installation was interrupted",
    why="A power cut, a kill or a failed script left packages half configured.",
    proof="dpkg --audit",
    shows="them",
    fix="Finish it.",
    commands=("dpkg --configure -a", "apt-get -f install"),
    sources=("dpkg(1)",),
    hints=(r"interrupted",),
)

_NO_PACKAGE = Cause(
    id="package-not-in-repository",
    title="The repository with this package is not configured",
    why="non-free (non-free-firmware, contrib) is off, the list of NVIDIA or Docker is missing, "
    "or the "
    "branch has been removed.",
    proof="grep -rhn -E 'Components|^deb ' /etc/apt/sources.list /etc/apt/sources.list.d; "
    "apt-cache "
    "search --names-only nvidia | head",
    shows="no non-free, or no list",
    fix="Add the component or list, update, and ask for a branch that exists.",
    commands=("apt-get update", "apt-cache policy PACKAGE"),
    sources=("Debian wiki, NvidiaGraphicsDrivers",),
    hints=(r"unable to locate", r"no installation candidate"),
)

_DNF_MODULE = Cause(
    id="dnf-module-stream",
    title="A module stream hides or mixes the driver's packages",
    why="The CUDA repository of EL 8 and 9 has streams (latest-dkms, open-dkms, 550-dkms): "
    "packages of "
    "other streams are filtered.",
    proof="dnf module list nvidia-driver; dnf repolist",
    shows="another stream enabled",
    fix="Reset the module and enable the stream that is meant.",
    commands=("dnf module reset nvidia-driver", "dnf module install nvidia-driver:open-dkms"),
    sources=("NVIDIA driver installation guide, module streams",),
    hints=(r"modular", r"module stream"),
)

_RUNC_CONTAINERD_IO = Cause(
    id="docker-packages-mixed",
    title="Docker's own packages and the distribution's are mixed",
    why="containerd.io contains runc and conflicts with containerd and runc; docker.io with "
    "docker-ce; "
    "podman-docker with docker-cli.",
    proof="dpkg -l | grep -E 'docker|containerd|runc' ; rpm -qa | grep -E 'docker|podman|runc'",
    shows="packages of both",
    fix="Remove one set before the other is installed.",
    commands=("apt-get remove docker.io containerd runc docker-compose podman-docker",),
    sources=("Docker documentation, uninstall old versions",),
    hints=(r"containerd\.io|docker-ce|podman-docker",),
)

_RELEASE_GONE = Cause(
    id="apt-release-file",
    title="The repository does not serve this release, or its file has expired",
    why="NVIDIA's old per-distribution lists ($distribution) are gone: the toolkit has one list "
    "for "
    "all, stable/deb.",
    proof="grep -rhn nvidia /etc/apt/sources.list.d",
    shows="a distribution's name in the address of the toolkit's list",
    fix="Write the one list of stable/deb with its keyring.",
    commands=("apt-get update",),
    sources=("NVIDIA Container Toolkit install guide",),
    hints=(r"release file", r"404", r"no longer has"),
)

SYMPTOMS = (
    Symptom(
        id="apt-signed-by",
        title="Conflicting values for Signed-By",
        patterns=(
            r"Conflicting values set for option Signed-By",
            r"Target Packages .{0,120}is configured multiple times",
        ),
        causes=(SIGNED_BY,),
        tell_apart="grep -rn signed-by /etc/apt/sources.list /etc/apt/sources.list.d",
        sources=("NVIDIA/nvidia-container-toolkit issue 170",),
        cases=("PA-001",),
    ),
    Symptom(
        id="apt-key",
        title="A repository's signature cannot be verified",
        patterns=(
            r"GPG check FAILED",
            r"The GPG keys listed for .{0,80} are already installed but",
            r"NO_PUBKEY",
            r"GPG error: ",
            r"is not signed",
            r"public key (is )?not (available|installed)",
            r"GPG key.{0,60}(failed|not correct|mismatch|rotat)",
            r"EXPKEYSIG|KEYEXPIRED",
        ),
        causes=(KEY_ROTATED, KEY_MISSING),
        tell_apart="grep -rn -E 'signed-by|cuda|nvidia' /etc/apt/sources.list.d; ls -l "
        "/usr/share/keyrings /etc/apt/keyrings",
        sources=("NVIDIA/nvidia-docker issue 1631",),
        cases=("PA-002",),
    ),
    Symptom(
        id="apt-held",
        title="Held packages stop an installation",
        patterns=(
            r"Held packages were changed and -y was used",
            r"following held packages will be changed",
        ),
        causes=(HELD,),
        tell_apart=_POLICY,
        sources=("vanzod/ccslurm4ai issue 5",),
        cases=("PA-011",),
    ),
    Symptom(
        id="apt-broken",
        title="Packages cannot be installed together",
        patterns=(
            r"you have held broken packages",
            r"Unable to correct problems",
            r"unmet dependencies",
            r"Depends: \S{1,80} .{0,60}(but|is not going to be installed)",
            r"trying to overwrite (?!\S{0,40}nvidia-c(tk|ontainer)).{0,80}which is also in package",
            r"nothing provides \S{1,80} needed by|conflicting requests|package \S{1,80} "
            r"conflicts with",
            r"filtered out by modular filtering",
        ),
        causes=(TWO_BRANCHES, PARTIAL_DOWNGRADE, HELD, _RUNC_CONTAINERD_IO, _DNF_MODULE),
        tell_apart="dpkg -l | grep -E 'nvidia|docker|containerd|runc'; apt-mark showhold; "
        "apt-get -s "
        "-o Debug::pkgProblemResolver=yes install PACKAGE | tail -20",
        sources=("NVIDIA/ansible-role-nvidia-driver PR 33",),
        cases=("PA-010", "RB-001"),
    ),
    Symptom(
        id="apt-locked",
        title="The package manager is locked",
        patterns=(
            r"Could not get lock /var/lib/(dpkg|apt)",
            r"Unable to (acquire|lock) .{0,40}(dpkg|apt)",
            r"Failed to lock apt for exclusive operation",
            r"is another process using it\?",
            r"waiting for (cache )?lock",
        ),
        causes=(_LOCK,),
        tell_apart="fuser -v /var/lib/dpkg/lock-frontend; systemctl list-units 'apt-*' "
        "'unattended-*'",
        sources=("apt.conf(5)",),
    ),
    Symptom(
        id="dpkg-interrupted",
        title="dpkg was interrupted",
        patterns=(r"dpkg was interrupted", r"Sub-process /usr/bin/dpkg returned an error"),
        causes=(_INTERRUPTED,),
        tell_apart="dpkg --audit; tail -20 /var/log/dpkg.log",
        sources=("dpkg(1)",),
    ),
    Symptom(
        id="package-missing",
        title="A package is not found",
        patterns=(
            r"Failed to download metadata for repo",
            r"Cannot prepare internal mirrorlist|All mirrors were tried",
            r"Unable to locate package (?!nvidia-docker)\S{1,80}",
            r"has no installation candidate",
            r"(No match for argument|Unable to find a match|No package \S{1,80} available)",
            r"Version .{0,60} for .{0,60} was not found",
            r"No package matching .{1,60} is available",
        ),
        causes=(_NO_PACKAGE, _DNF_MODULE),
        tell_apart="apt-cache policy PACKAGE; grep -rhn -E 'Components|^deb ' "
        "/etc/apt/sources.list.d",
        sources=("Debian wiki, NvidiaGraphicsDrivers",),
    ),
    Symptom(
        id="apt-release",
        title="A repository has no Release file",
        patterns=(
            r"does not have a Release file",
            r"no longer has a Release file",
            r"Unsupported distribution",
            r"Release file .{0,60}(expired|not valid yet)",
            r"404 .{0,20}Not Found.{0,120}(nvidia|docker|libnvidia)",
            r"(nvidia|docker|libnvidia)\S{0,80}.{0,120}404 .{0,20}Not Found",
        ),
        causes=(_RELEASE_GONE, _NO_PACKAGE),
        tell_apart="grep -rhn -E 'nvidia|docker' /etc/apt/sources.list.d; date",
        sources=("NVIDIA Container Toolkit install guide",),
    ),
    Symptom(
        id="toolkit-option-without-effect",
        title="An option of the toolkit has no effect",
        patterns=(
            r"(changed )?option such as no-cgroups has no effect",
            r"config\.toml.{0,60}(ignored|no effect|not (read|applied|honou?red))",
            r"settings? in config\.toml (is|are) ignored",
            r"(toolkit|nvidia-container-runtime).{0,60}(option|setting)s?.{0,30}(ignored|no "
            r"effect)",
        ),
        causes=(
            Cause(
                id="toolkit-config-ignored",
                title="Toolkit 1.14.0 ignores parts of its configuration file",
                why="A fault of that release; the next patch releases have the repair.",
                proof="nvidia-ctk --version",
                shows="1.14.0",
                fix="Upgrade to 1.19.1 or newer.",
                commands=("apt-get install --only-upgrade nvidia-container-toolkit",),
                sources=("NVIDIA/nvidia-container-toolkit issues 106 and 381",),
                cases=("CG-011",),
                hints=(r"1\.14\.0",),
                holds=holds.version("toolkit", "==1.14.0"),
            ),
            Cause(
                id="rootless-engine",
                title="Another configuration file is read",
                why="A rootless engine looks into $XDG_CONFIG_HOME/nvidia-container-runtime first, "
                "and the operator's toolkit container has its own file in "
                "/usr/local/nvidia/toolkit.",
                proof="ls ~/.config/nvidia-container-runtime /usr/local/nvidia/toolkit/.config",
                shows="a second file",
                fix="Change the file that is read.",
                commands=("nvidia-ctk config",),
                sources=("NVIDIA/nvidia-container-toolkit api/config/v1",),
                hints=(r"rootless|operator",),
            ),
        ),
        tell_apart="nvidia-ctk --version; ls ~/.config/nvidia-container-runtime "
        "/etc/nvidia-container-runtime /usr/local/nvidia/toolkit/.config",
        sources=("NVIDIA/nvidia-container-toolkit issue 106",),
        cases=("CG-011",),
    ),
)
