# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""runc, crun and the control groups: what starts, execs and updates say. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from . import holds
from .causes import UVM_MAJOR
from .nvml import LOST_TO_RELOAD, RUNC_RULES

PTS = Cause(
    id="runc-pty-lost-on-reload",
    title="runc 1.1.3 leaves out the device rule for terminals",
    why="It stopped writing DeviceAllow=char-pts, so a systemd reload takes /dev/pts away.",
    proof="runc --version",
    shows="1.1.3",
    fix="Upgrade runc: 1.1.4 has the fix, 1.2.8, 1.3.3 and 1.4.0 are the security floors.",
    commands=("apt-get install --only-upgrade runc",),
    sources=("runc CHANGELOG 1.1.4 (3554)",),
    cases=("CG-017",),
    hints=(r"daemon-reload", r"1\.1\.3"),
    holds=holds.version("runc", "==1.1.3"),
)

LXC_PROC = Cause(
    id="runc-procfs-in-lxc",
    title="The new procfs handling of runc trips over LXC's AppArmor rules",
    why="runc 1.2.8, 1.3.3 and newer reopen files of /proc, which the profile of an unprivileged "
    "LXC "
    "container (Proxmox) denies.",
    proof="systemd-detect-virt -c; runc --version",
    shows="lxc, and one of these releases",
    fix="Update the outer host's LXC and AppArmor rules (nesting=1 with a fixed lxc-pve). Do not "
    "go "
    "back below the security fix.",
    commands=("runc --version",),
    sources=("runc issue 4972", "moby issue 51405", "containerd issue 12484"),
    cases=("RC-006",),
    hints=(r"\blxc\b", r"proxmox", r"apparmor"),
)

TMPFS_MODE = Cause(
    id="runc-tmpfs-mode",
    title="The November 2025 releases set tmpfs modes wrongly",
    why="The patches for CVE-2025-52881 set mode= where they should not; 1.2.9, 1.3.4 and 1.4.0 "
    "have the repair.",
    proof="runc --version",
    shows="1.2.8 or 1.3.3",
    fix="Upgrade runc to 1.2.9, 1.3.4, 1.4.0 or newer.",
    commands=("apt-get install --only-upgrade runc",),
    sources=("runc CHANGELOG 1.2.9, 1.3.4 (4971)",),
    cases=("RC-007",),
    hints=(r"1\.(2\.8|3\.3)\b", r"tmpfs"),
)

EXEC_HANG = Cause(
    id="runc-exec-stuck",
    title="runc 1.3.0 to 1.3.5 can hang on short-lived processes",
    why="A regression of 1.3.0; frequent execs (health checks) meet it. 1.3.6 and 1.4.2 have the "
    "fix.",
    proof="runc --version; ps -ef | grep 'runc.*exec'",
    shows="1.3.0 to 1.3.5, 1.4.0 or 1.4.1, and runc processes that stay",
    fix="Upgrade runc to 1.3.6, 1.4.2 or newer.",
    commands=("apt-get install --only-upgrade runc",),
    sources=("runc CHANGELOG 1.3.6, 1.4.2 (5208, 5210)",),
    cases=("RC-008",),
    hints=(r"health ?check", r"1\.[34]\.\d"),
    holds=holds.rules_out(holds.version("runc", ">=1.3.0,<1.4.2")),
)

INNER_NODE = Cause(
    id="cgroup-parent-holds-processes",
    title="The group holds processes and child groups",
    why="On control groups v2 a group either has processes or child groups with controllers.",
    proof="cat /sys/fs/cgroup/NAME.slice/cgroup.procs; cat /sys/fs/cgroup/NAME.slice/"
    "cgroup.subtree_control",
    shows="process ids in the slice itself",
    fix="Put containers into a leaf slice of their own, and processes into a service below.",
    commands=("docker run --cgroup-parent=jobs-gpu.slice IMAGE",),
    sources=("kernel cgroup-v2 documentation, no internal process constraint",),
    cases=("SY-003",),
    hints=(r"busy|inner node|(holds|has) processes|cgroup\.procs",),
)

V1 = Cause(
    id="cgroup-v1-deprecated",
    title="The host uses control groups v1 or the hybrid layout",
    why="Docker 29 and kubelets from 1.31 call it deprecated, kubelet 1.35 refuses it by default; "
    "some limits exist on v2 only.",
    proof="stat -fc %T /sys/fs/cgroup; cat /proc/cmdline",
    shows="tmpfs, or systemd.unified_cgroup_hierarchy=0",
    fix="Remove systemd.unified_cgroup_hierarchy=0 and reboot into v2.",
    commands=("stat -fc %T /sys/fs/cgroup",),
    sources=("Docker release notes 29.0", "Kubernetes KEP 4569"),
    hints=(r"cgroup ?v1", r"unified", r"hybrid"),
    holds=holds.cgroup_version("1"),
)

_SCOPE_LEFT = Cause(
    id="scope-left-over",
    title="A scope of the same name is left over",
    why="The container was killed or the engine crashed while systemd kept the failed unit.",
    proof="systemctl list-units --all 'docker-*.scope' --state=failed",
    shows="a failed scope",
    fix="Reset it.",
    commands=("systemctl reset-failed",),
    sources=("runc issue 3780",),
    hints=(r"already (exists|loaded)|was already loaded",),
)

_SD_BUS = Cause(
    id="systemd-bus-unreachable",
    title="runc cannot reach systemd",
    why="No D-Bus in a container or a minimal host, or a user session without a bus.",
    proof="busctl status; echo $XDG_RUNTIME_DIR $DBUS_SESSION_BUS_ADDRESS",
    shows="a failure to connect",
    fix="Start dbus (loginctl enable-linger for rootless), or use native.cgroupdriver=cgroupfs.",
    commands=("systemctl start dbus",),
    sources=("runc documentation, systemd",),
    hints=(r"d-?bus", r"message bus|Interactive authentication|disconnected|connect to bus"),
)

_DEVICE_NEW = Cause(
    id="runc-later-device-refused",
    title="The node was created after the container",
    why="Rules of a container are those of its start; runc 1.1.3 to 1.1.6 skip nodes that do not "
    "exist then.",
    proof="runc --version; systemctl --version | head -1; ls -l --time-style=full-iso /dev/nvidia*",
    shows="runc 1.1.3 to 1.1.6, or a systemd before 240",
    fix="Upgrade runc; make all nodes before containers start; recreate the container.",
    commands=("nvidia-modprobe -u -c 0",),
    sources=("runc CHANGELOG 1.1.7 (3845, 3708, 3671)",),
    cases=("RC-001",),
    hints=(r"created later", r"1\.1\.[3-6]", r"systemd"),
    holds=holds.rules_out(holds.version("runc", "<1.1.7")),
)

_SECCOMP = Cause(
    id="docker-refuses-clone3",
    title="libseccomp or the profile of the host is older than the image's C library",
    why="New system calls (clone3, statx, faccessat2) are answered with EPERM instead of ENOSYS.",
    proof="docker version; docker info -f '{{.SecurityOptions}}'; runc --version | grep seccomp",
    shows="an old engine or libseccomp before 2.5",
    fix="Upgrade docker, runc and libseccomp2.",
    commands=("apt-get install --only-upgrade libseccomp2 runc docker.io",),
    sources=("moby issue 42680",),
    hints=(r"clone3|pthread_create|statx|faccessat2", r"ubuntu 2[2-6]|glibc"),
)

SYMPTOMS = (
    Symptom(
        id="exec-pts",
        title="exec finds no terminal",
        patterns=(
            r"open /dev/pts/\d+: operation not permitted",
            r"/dev/(pts|ptmx|console).{0,40}(operation not permitted|permission denied)",
        ),
        causes=(PTS, RUNC_RULES),
        tell_apart="runc --version; systemctl show -p DeviceAllow docker-$(docker inspect -f "
        "'{{.Id}}' CONTAINER).scope",
        sources=("runc CHANGELOG 1.1.4",),
        cases=("CG-017",),
    ),
    Symptom(
        id="runc-procfs",
        title="runc may not write to /proc",
        patterns=(
            r"ip_unprivileged_port_start.{0,60}permission denied",
            r"open sysctl \S{1,80}.{0,40}(reopen fd|permission denied)",
            r"reopen fd \d+: permission denied",
        ),
        causes=(LXC_PROC,),
        tell_apart="systemd-detect-virt -c; runc --version; dmesg | grep -i apparmor | tail -3",
        sources=("runc issue 4972",),
        cases=("RC-006",),
    ),
    Symptom(
        id="tmpfs-mode",
        title="A tmpfs mount has wrong permissions",
        patterns=(
            r"(wrong|bad|unexpected) (permissions?|mode) on tmpfs",
            r"tmpfs.{0,40}(mode|0?755|"
            r"permission).{0,40}(wrong|denied|regression)",
        ),
        causes=(TMPFS_MODE,),
        tell_apart="runc --version; docker exec CONTAINER ls -ld /tmp /run",
        sources=("runc CHANGELOG 1.3.4",),
        cases=("RC-007",),
    ),
    Symptom(
        id="exec-hangs",
        title="docker exec or a health check hangs",
        patterns=(
            r"(docker exec|health ?checks?|runc (exec|run)).{0,40}(stuck|hangs?|hung|never return)",
            r"exec.{0,20}health check stuck",
            r"Health check exceeded timeout",
        ),
        causes=(EXEC_HANG,),
        tell_apart="runc --version; ps -eo pid,etime,args | grep '[r]unc'",
        sources=("runc CHANGELOG 1.3.6",),
        cases=("RC-008",),
    ),
    Symptom(
        id="systemd-scope",
        title="runc and systemd do not agree on a scope",
        patterns=(
            r"unable to (start unit|apply cgroup configuration)",
            r"Unit (docker|libpod|cri-containerd)-\S{1,80}\.scope.{0,40}(already|was)",
            r"error (creating|starting) systemd unit",
            r"(dial|connect).{0,40}(dbus|system_bus_socket|private).{0,60}(no such file|refused)",
        ),
        causes=(_SCOPE_LEFT, INNER_NODE, _SD_BUS, V1),
        tell_apart="systemctl list-units --all --state=failed 'docker-*.scope'; busctl status; "
        "stat "
        "-fc %T /sys/fs/cgroup",
        sources=("runc documentation, systemd",),
    ),
    Symptom(
        id="device-refused",
        title="A device is refused although it was asked for",
        patterns=(
            r"(GPU|device) node created later is refused",
            r"refused although it was in the spec",
            r"(lose|loses|lost|never get) (or never get )?device access",
            r"open(ing)? /dev/(nvidia|dri|kfd)\S{0,80}.{0,40}(operation not permitted|EPERM)",
            r"/dev/nvidia\S{0,80}.{0,20}operation not permitted",
        ),
        causes=(_DEVICE_NEW, RUNC_RULES, LOST_TO_RELOAD, UVM_MAJOR),
        tell_apart="runc --version; systemctl --version | head -1; systemctl show -p DeviceAllow "
        "docker-$(docker inspect -f '{{.Id}}' CONTAINER).scope; grep nvidia /proc/devices",
        sources=("runc CHANGELOG 1.1.7 and 1.2.5",),
        cases=("RC-001", "RC-002"),
    ),
    Symptom(
        id="seccomp-old",
        title="New system calls are refused",
        patterns=(
            r"(clone3|statx|faccessat2|pthread_create).{0,40}Operation not permitted",
            r"unable to init seccomp|seccomp.{0,40}(failed|error)",
            r"undefined symbol: seccomp_\w+",
            r"Problem executing scripts APT::Update::Post-Invoke",
        ),
        causes=(_SECCOMP,),
        tell_apart="docker version; runc --version",
        sources=("moby issue 42680",),
    ),
)
