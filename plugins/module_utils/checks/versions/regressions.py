# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Releases that broke something and those that mended it. Data, with sources.

Each row becomes a rule of its name (``rules/versions_regressions.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...versions import parse
from ..model import Needs, Severity


@dataclass(frozen=True)
class Regression:
    """What some releases of one component do wrong.

    ``bad`` are ranges as :class:`Needs` reads them; one that covers the version is enough.
    ``only`` names what a host must have for it to matter, a key of ``matrix.EXPOSED``: where that
    is not known, the finding is an info.
    """

    id: str
    title: str
    component: str
    bad: tuple[str, ...]
    severity: Severity
    reason: str
    fix: str
    sources: tuple[str, ...]
    cases: tuple[str, ...] = ()
    only: str = ""

    def covers(self, version: str) -> bool:
        """Is ``version`` one of the bad releases? A branch alone (1.3) means its newest one."""
        numbers = parse(version)
        if len(numbers) < 3:
            version = ".".join(str(number) for number in (*numbers, 1 << 30))
        return bool(numbers) and any(
            Needs(self.component, wanted).covers(version) for wanted in self.bad
        )


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

REGRESSIONS: tuple[Regression, ...] = (
    Regression(
        "runc-pty-lost-on-reload",
        "runc 1.1.3 loses terminals of containers at a systemd reload",
        "runc",
        ("==1.1.3",),
        _W,
        "runc 1.1.3 does not write the device rule for terminals into the unit, so that systemd "
        "takes the access away when it next applies the unit: /dev/pts/0 answers Operation not "
        "permitted.",
        "Upgrade runc to 1.1.4 or newer; a release with its security fixes is newer still.",
        ("runc CHANGELOG 1.1.4 (#3554)",),
        ("CG-017",),
        only="systemd_driver",
    ),
    Regression(
        "runc-allowed-cpus-wrong",
        "runc gives systemd the wrong CPUs where a set reaches beyond the first eight",
        "runc",
        ("<1.1.5",),
        _W,
        "On control groups v2 with the systemd driver, runc before 1.1.5 turns a cpuset of more "
        "than 8 CPUs into a wrong AllowedCPUs= of the scope: the container runs elsewhere than "
        "asked, at the latest after a systemd reload.",
        "Upgrade runc to 1.1.5 or newer; a release with its security fixes is newer still.",
        ("runc CHANGELOG 1.1.5 (#3808)",),
        only="systemd_driver",
    ),
    Regression(
        "runc-unit-exists-ignored",
        "runc leaves a container outside its unit when one of that name exists",
        "runc",
        ("<1.1.6",),
        _I,
        "runc before 1.1.6 ignores that systemd refuses a unit which exists already: the container "
        "starts in another group, without its limits and device rules.",
        "Upgrade runc to 1.1.6 or newer, and remove failed scopes (systemctl reset-failed).",
        ("runc CHANGELOG 1.1.6 (#3780)",),
        only="systemd_driver",
    ),
    Regression(
        "runc-tun-device-gone",
        "runc 1.2.0 to 1.2.3 no longer allow /dev/net/tun by themselves",
        "runc",
        (">=1.2.0,<1.2.4",),
        _I,
        "These releases took tun and tap from the devices that every container may use; VPN "
        "clients and some network plugins in containers fail.",
        "Upgrade runc to 1.2.4 or newer, or give --device /dev/net/tun.",
        ("runc CHANGELOG 1.2.0 and 1.2.4",),
        only="tun",
    ),
    Regression(
        "runc-cpu-weight-changed",
        "CPU shares become other weights than before",
        "runc",
        (">=1.3.2,<1.4.0", ">=1.4.0"),
        _I,
        "From 1.3.2 on runc turns --cpu-shares into cpu.weight by another formula (1024 shares are "
        "weight 100, before: 39): containers started before and after the upgrade do not share "
        "CPUs as their shares say, and slices next to them gain or lose.",
        "Recreate the containers after the upgrade, so that one formula holds for all, and compare "
        "weights with those of units beside them.",
        ("runc CHANGELOG 1.3.2 (#4772, #4785)",),
        only="shares",
    ),
    Regression(
        "runc-later-device-refused",
        "runc drops the rule for a device node that does not exist yet",
        "runc",
        (">=1.1.3,<1.1.7",),
        _W,
        "runc 1.1.3 to 1.1.6 leave out the device rule of a node that is not there when the "
        "container starts, and NVIDIA nodes are often made later: they are then refused.",
        "Upgrade runc to 1.1.7 or newer, with systemd 240 or newer.",
        ("runc CHANGELOG 1.1.7",),
        ("RC-001",),
        only="systemd_driver",
    ),
    Regression(
        "runc-device-rules-late",
        "runc 1.2.0 to 1.2.4 write device rules that systemd applies at the next reload only",
        "runc",
        (">=1.2.0,<1.2.5",),
        _W,
        "systemd since 230 needs the properties of a unit in another order than these releases "
        "send; the device rules of GPU containers then wait for a reload.",
        "Upgrade runc to 1.2.5 or newer; 1.2.8 has the security fixes.",
        ("runc CHANGELOG 1.2.5 (#4568, #4612)",),
        ("RC-002",),
        only="systemd_driver",
    ),
    Regression(
        "runc-exec-stuck",
        "docker exec and health checks can hang with this runc",
        "runc",
        (">=1.3.0,<1.3.6", ">=1.4.0,<1.4.2"),
        _W,
        "runc exec or run can wait for ever when the process that it starts ends quickly, as that "
        "of a health check does.",
        "Upgrade runc to 1.3.6, 1.4.2 or newer.",
        ("runc CHANGELOG 1.3.6 and 1.4.2 (#5208, #5210)",),
        ("RC-008",),
    ),
    Regression(
        "runc-tmpfs-mode",
        "runc gives tmpfs mounts wrong permissions",
        "runc",
        ("==1.2.8", "==1.3.3"),
        _I,
        "The fix of CVE-2025-52881 sets a mode on tmpfs mounts over existing directories where it "
        "should not.",
        "Upgrade runc to 1.2.9, 1.3.4 or newer.",
        ("runc CHANGELOG 1.2.9 and 1.3.4",),
        ("RC-007",),
    ),
    Regression(
        "runc-procfs-in-lxc",
        "This runc fails inside LXC containers with their usual AppArmor profile",
        "runc",
        (">=1.2.8,<1.3.0", ">=1.3.3"),
        _W,
        "The safer way of these releases to open /proc is refused by LXC's AppArmor rules: "
        "reopening net.ipv4.ip_unprivileged_port_start gives permission denied.",
        "Update LXC and its AppArmor rules on the outer host, or allow nesting there. Do not go "
        "back below the security fix.",
        ("runc issue 4972; moby issue 51405",),
        ("RC-006",),
        only="lxc",
    ),
    Regression(
        "runc-pids-limit-zero",
        "A pids limit of 0 is a limit from runc 1.4 on",
        "runc",
        (">=1.4.0",),
        _I,
        "Until 1.3 a pids limit of 0 in an OCI configuration meant none; from 1.4 on it is one, "
        "of a single process under systemd.",
        "Leave the limit out, or write -1 for none.",
        ("runc CHANGELOG 1.4.0",),
        ("RC-010",),
        only="pids_zero",
    ),
    Regression(
        "runc-affinity-reset",
        "Containers no longer inherit the CPU affinity of the engine",
        "runc",
        (">=1.2.7,<1.3.0", ">=1.3.1"),
        _I,
        "From 1.2.7 and 1.3.1 on a container runs on all CPUs that its cpuset allows, whatever "
        "taskset or CPUAffinity= gave the engine.",
        "Pin containers with --cpuset-cpus, or a slice with AllowedCPUs=.",
        ("runc CHANGELOG 1.2.7 and 1.3.1",),
        ("RC-011",),
        only="affinity",
    ),
    Regression(
        "toolkit-config-ignored",
        "NVIDIA Container Toolkit 1.14.0 ignores changed options",
        "toolkit",
        ("==1.14.0",),
        _W,
        "1.14.0 does not read options such as no-cgroups from its configuration file.",
        "Upgrade the toolkit; 1.19.1 is the first release without a known escape.",
        ("nvidia-container-toolkit issues 106 and 381",),
        ("CG-011",),
    ),
    Regression(
        "toolkit-dropin-directory",
        "Toolkit 1.18.0 writes containerd's drop-in into a directory that is not imported",
        "toolkit",
        ("==1.18.0",),
        _I,
        "nvidia-ctk runtime configure --runtime=containerd of 1.18.0 writes to "
        "/etc/containerd/config.d, while containerd's own default imports conf.d: the runtime "
        "nvidia stays unknown.",
        "Upgrade the toolkit to 1.19.1 or newer and configure again, or move the file.",
        ("NVIDIA/nvidia-container-toolkit issue 1404, PR 1407",),
        only="cri",
    ),
    Regression(
        "toolkit-cdi-refresh-trigger",
        "Toolkit 1.18.0 does not write the CDI spec anew after every driver change",
        "toolkit",
        ("==1.18.0",),
        _I,
        "The path unit nvidia-cdi-refresh.path of 1.18.0 misses changes of the driver's modules: "
        "the spec keeps the state of an earlier boot. Later releases corrected the trigger.",
        "Upgrade the toolkit to 1.19.1 or newer; until then run nvidia-cdi-refresh.service after "
        "each driver change.",
        ("NVIDIA Container Toolkit CHANGELOG 1.19.0-rc.1",),
    ),
    Regression(
        "toolkit-hook-fails-1-17-0",
        "Hooks of NVIDIA Container Toolkit 1.17.0 fail on specs that were good",
        "toolkit",
        ("==1.17.0",),
        _W,
        "The create-symlinks hook of 1.17.0 refuses links that CDI specs ask for; containers with "
        "CDI devices do not start. 1.17.1 accepts them again.",
        "Upgrade the toolkit to 1.19.1 or newer and write the spec anew.",
        ("cncf-tags/container-device-interface issue 239", "nvidia-container-toolkit PR 776"),
    ),
    Regression(
        "toolkit-cdi-mig-1-16-0",
        "NVIDIA Container Toolkit 1.16.0 writes no CDI spec for MIG devices",
        "toolkit",
        ("==1.16.0",),
        _I,
        "nvidia-ctk cdi generate of 1.16.0 fails where MIG devices exist; 1.16.1 mends it.",
        "Upgrade the toolkit to 1.19.1 or newer and write the spec anew.",
        ("NVIDIA/nvidia-container-toolkit PR 619", "NVIDIA/k8s-device-plugin PR 839"),
    ),
    Regression(
        "driver-mig-calls-hang",
        "Driver 570.124.06 was reported to hang the device plugin on hosts with MIG",
        "driver",
        ("==570.124.06",),
        _I,
        "After the upgrade to this release pods on nodes with MIG were reported to stay pending, "
        "because a call of the device plugin never returned; other releases and hosts without MIG "
        "were not affected.",
        "Use another release of the branch, and see that the device plugin answers.",
        ("NVIDIA/gpu-operator issue 1361", "kubernetes/kubernetes issue 130855"),
    ),
    Regression(
        "toolkit-rootless-1-18",
        "GPU containers of a rootless engine fail with NVIDIA Container Toolkit 1.18.0",
        "toolkit",
        ("==1.18.0",),
        _W,
        "Containers of a rootless Docker that start with 1.17.8 were reported to fail with 1.18.0.",
        "Test a release after 1.18.0 that has the security fixes: 1.19.1 or newer.",
        ("nvidia-container-toolkit issue 1487",),
        ("CG-010",),
        only="rootless",
    ),
    Regression(
        "toolkit-ldconfig-killed",
        "The toolkit's ldconfig is killed on hosts with a new glibc or kernel",
        "toolkit",
        ("<1.18.0",),
        _I,
        "Before 1.18.0 the toolkit runs the host's ldconfig in a way that a new glibc or kernel "
        "ends with signal 9: ldcache error: process /sbin/ldconfig terminated with signal 9.",
        "Upgrade to 1.18.0 or newer (1.19.1 has the security fixes), or use CDI.",
        ("nvidia-container-toolkit issue 1246",),
        ("TK-008",),
    ),
    Regression(
        "toolkit-no-compat-libs",
        "NVIDIA Container Toolkit 1.17.4 leaves the compat libraries of images out",
        "toolkit",
        ("==1.17.4",),
        _I,
        "1.17.4 no longer puts an image's /usr/local/cuda/compat in place. An image whose CUDA is "
        "newer than the driver then fails; later releases bring the libraries back with a hook.",
        "Upgrade the toolkit (1.19.1 or newer); never go back below 1.17.4.",
        ("nvidia-container-toolkit issue 934",),
        ("TK-017",),
    ),
    Regression(
        "toolkit-cuda-999",
        "CUDA error 999 was reported with NVIDIA Container Toolkit 1.19.1",
        "toolkit",
        ("==1.19.1",),
        _I,
        "cuInit was reported to fail with error 999 since 1.19.1, also with 1.20.0, where 1.19.0 "
        "worked. The cause is open; access to /dev/nvidia-uvm is the first thing to look at.",
        "Where it happens, compare the major number of nvidia-uvm in /proc/devices with the "
        "container's rules. 1.19.0 has a known escape, so do not go back.",
        ("nvidia-container-toolkit issue 1967",),
        ("TK-027",),
    ),
    Regression(
        "docker-api-minimum",
        "Docker 29.0 to 29.2 refuse clients older than API 1.44",
        "docker",
        (">=29.0,<29.3",),
        _I,
        "29.0 raised the oldest API version to 1.44; 29.3 lowered it to 1.40. Clients built for "
        "1.41, as older agents and libraries are, get: client version 1.41 is too old.",
        "Upgrade the client or the engine, or set min-api-version in daemon.json for a while.",
        ("moby daemon/config/config.go at v29.0.0 and v29.3.0",),
        ("RT-022",),
    ),
    Regression(
        "docker-without-gpus-flag",
        "Docker before 19.03 has no --gpus",
        "docker",
        ("<19.3",),
        _E,
        "The flag came with 19.03: unknown flag: --gpus.",
        "Upgrade Docker Engine.",
        ("Docker release notes 19.03",),
    ),
    Regression(
        "docker-refuses-clone3",
        "New images fail on Docker before 20.10.10",
        "docker",
        (">=19.3,<20.10.10",),
        _W,
        "The seccomp profile of these releases answers clone3 of glibc 2.34 and newer in a way "
        "that programs take for a refusal: threads cannot be made, apt fails.",
        "Upgrade Docker Engine to 20.10.10 or newer.",
        ("Docker release notes 20.10.10",),
    ),
    Regression(
        "compose-without-gpus",
        "Docker Compose before 1.28 cannot give GPUs to services",
        "compose",
        ("<1.28",),
        _W,
        "Device reservations came with Compose 1.28: Unsupported config option, or: Additional "
        "properties are not allowed ('devices' was unexpected).",
        "Use Compose v2, docker compose.",
        ("Docker documentation, GPU support in Compose",),
    ),
    Regression(
        "podman-without-cdi",
        "Podman before 4.1 has no CDI",
        "podman",
        ("<4.1",),
        _W,
        "--device nvidia.com/gpu=all is taken for a path: no such file or directory.",
        "Upgrade Podman to 4.1 or newer; it needs 5.1 for the specs of nvidia-ctk 1.19.",
        ("NVIDIA container toolkit documentation, CDI support",),
    ),
    Regression(
        "cgroup-v1-deprecated",
        "Docker 29 has deprecated cgroup v1",
        "docker",
        (">=29.0",),
        _I,
        "Docker 29.0 deprecates cgroup v1; slices and device rules here need v2 anyway.",
        "Boot with systemd.unified_cgroup_hierarchy=1.",
        ("Docker release notes 29.0",),
        only="cgroup_v1",
    ),
)
