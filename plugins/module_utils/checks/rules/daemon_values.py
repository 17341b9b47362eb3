# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on what daemon.json sets: cgroups, restarts, storage, CDI. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.daemon_keys import LOG_DRIVERS, api_range
from ...versions import at_least, parse
from ..documents.daemon import DaemonConfig
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule

_VERIFY = "moby daemon/daemon_unix.go verifyDaemonSettings"
_SEEN = "seen on Docker 26.1.5 and 28.5.2"


@rule(
    "cgroup-driver-unknown",
    "native.cgroupdriver has no such driver",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd knows systemd and cgroupfs, and does not start with another one; dockerd "
    "--validate does not notice.",
    fix='Write "exec-opts": ["native.cgroupdriver=systemd"].',
    sources=("moby daemon/daemon_unix.go verifyCgroupDriver", _SEEN),
)
def cgroup_driver_unknown(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A driver that is neither of the two."""
    for word in doc.texts("exec-opts"):
        name, _equals, value = word.value.partition("=")
        driver = value.strip()
        known = driver in ("systemd", "cgroupfs")
        if name.strip().lower() == "native.cgroupdriver" and not known:
            yield Hit(doc.place(word), f"native.cgroupdriver is {driver or 'empty'}.")


@rule(
    "exec-opt-unknown",
    "dockerd does not know this exec-opt",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="On Linux there is one exec-opt, native.cgroupdriver. From 28.0 on dockerd does not "
    "start with another one; older releases ignore it.",
    fix="Remove it.",
    sources=("moby daemon/config/config_linux.go validatePlatformExecOpt",),
)
def exec_opt_unknown(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Anything but native.cgroupdriver."""
    for word in doc.texts("exec-opts"):
        name, equals, _value = word.value.partition("=")
        if not equals or name.strip().lower() != "native.cgroupdriver":
            severity = Severity.FATAL if at_least(host.version("docker"), "28.0.0") else None
            seen = f'"{word.value}" is not native.cgroupdriver=….'
            yield Hit(doc.place(word), seen, severity=severity)


@rule(
    "cgroupfs-on-v2",
    "The cgroupfs driver on a systemd host",
    Severity.INFO,
    reads=DaemonConfig,
    reason="Two managers then write to one cgroup tree. The setting is a known workaround for "
    "containers that lose their GPU at systemctl daemon-reload; docker update and systemctl "
    "set-property take the GPU all the same.",
    fix="Give containers their GPU by CDI (--device nvidia.com/gpu=0) and go back to the systemd "
    "driver.",
    sources=(
        "NVIDIA/nvidia-container-toolkit issue 48",
        "NVIDIA container toolkit troubleshooting",
    ),
)
def cgroupfs_on_v2(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """native.cgroupdriver=cgroupfs."""
    for word in doc.texts("exec-opts") if host.version("cgroup") != "1" else ():
        if word.value.replace(" ", "").lower() == "native.cgroupdriver=cgroupfs":
            yield Hit(doc.place(word), "native.cgroupdriver is cgroupfs.")


@rule(
    "cgroup-parent-not-slice",
    "cgroup-parent must be a slice",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="With the systemd driver dockerd starts only when cgroup-parent ends in .slice.",
    fix='Write a slice, for example "cgroup-parent": "ai-workload.slice".',
    sources=(_VERIFY,),
    row="164",
)
def cgroup_parent_not_slice(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A path where a slice is wanted."""
    parent = doc.get("cgroup-parent")
    if parent is None or not isinstance(parent.value, str) or not parent.value:
        return
    driver = doc.cgroup_driver or host.cgroup_driver
    if driver == "systemd" and not _is_slice(parent.value):
        yield Hit(doc.place(parent), f"cgroup-parent is {parent.value}, the driver is systemd.")
    elif driver is None and not _is_slice(parent.value):
        seen = f"cgroup-parent is {parent.value}: right only with the cgroupfs driver."
        assumed = ("cgroup driver systemd",)
        yield Hit(doc.place(parent), seen, severity=Severity.INFO, assumed=assumed)


def _is_slice(name: str) -> bool:
    return name.endswith(".slice") and len(name) > len(".slice")


@rule(
    "cpu-rt-on-v2",
    "Docker's real-time limits need cgroup v1",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="The cpu controller of cgroup v2 has no real-time bandwidth; dockerd refuses the keys "
    "there.",
    fix="Remove them. Real-time programs need --cap-add SYS_NICE and --ulimit rtprio=N, or "
    "CPUSchedulingPolicy= in a unit.",
    sources=("kernel Documentation/scheduler/sched-rt-group.rst", _VERIFY, _SEEN),
    needs=(Needs("cgroup", ">=2"),),
    unknown=Severity.WARNING,
    row="P20",
)
def cpu_rt_on_v2(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Cpu-rt-period and cpu-rt-runtime."""
    for name in ("cpu-rt-period", "cpu-rt-runtime"):
        node = doc.get(name)
        if node is not None and node.value:
            yield Hit(doc.key_place(name), f"{name} is {node.text}.")


@rule(
    "live-restore-and-swarm",
    "live-restore and Swarm exclude each other",
    Severity.ERROR,
    reads=DaemonConfig,
    reason="dockerd refuses to be a Swarm node with live-restore on.",
    fix="Remove live-restore on Swarm nodes, or the Swarm keys on others.",
    sources=("moby daemon/config/config_linux.go IsSwarmCompatible", _SEEN),
)
def live_restore_and_swarm(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """Both in one file, or on a node of a swarm."""
    if doc.value("live-restore") is not True:
        return
    place = doc.key_place("live-restore")
    docker = host.facts.get("docker")
    swarm = docker.get("swarm") if isinstance(docker, dict) else None
    if isinstance(swarm, dict) and swarm.get("active") is True:
        yield Hit(place, "live-restore is on and this host is a node of a swarm.")
    elif swarm is None and doc.texts("node-generic-resources"):
        seen = "live-restore is on, and node-generic-resources is for Swarm only."
        yield Hit(place, seen, severity=Severity.WARNING, assumed=("a node of a swarm",))


@rule(
    "live-restore-limits",
    "What live-restore does not keep",
    Severity.INFO,
    reads=DaemonConfig,
    reason="live-restore keeps containers over a restart of dockerd with the same storage, bridge "
    "and containerd. It promises nothing over a change of release by more than a patch, a "
    "restart of containerd or a change of the driver.",
    fix="Stop GPU containers before such changes.",
    sources=("docs.docker.com, Live restore", "docker/for-linux issue 129"),
    cases=("RT-027",),
)
def live_restore_limits(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """live-restore beside a GPU runtime."""
    if doc.value("live-restore") is True and any(True for _runtime in doc.runtimes()):
        yield Hit(doc.key_place("live-restore"), "live-restore is on, with a runtime for GPUs.")


@rule(
    "data-root-mount",
    "data-root lies on a file system that may not be mounted yet",
    Severity.INFO,
    reads=DaemonConfig,
    reason="When the file system is mounted after dockerd has started, Docker works in the empty "
    "directory below it: images and containers seem to be gone.",
    fix="Let docker.service wait for it: RequiresMountsFor= in a drop-in.",
    sources=("systemd.unit(5)", "docs.docker.com, dockerd data-root"),
    cases=("F37",),
)
def data_root_mount(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A data-root outside of the system's own directories."""
    node = doc.get("data-root") or doc.get("graph")
    path = node.value if node is not None else None
    if node is None or not isinstance(path, str):
        return
    if path.startswith("/") and not path.startswith(("/var/lib/", "/home/")):
        fix = f"In /etc/systemd/system/docker.service.d/mount.conf: [Unit] RequiresMountsFor={path}"
        yield Hit(doc.place(node), f"data-root is {path}.", fix)


@rule(
    "cdi-feature-off",
    "CDI is switched off",
    Severity.WARNING,
    reads=DaemonConfig,
    reason="Without CDI --device nvidia.com/gpu=0 is refused, and --gpus falls back to the hook, "
    "whose containers lose their GPU when their cgroup is updated.",
    fix='Remove the setting, or write "features": {"cdi": true}, and restart Docker.',
    sources=("moby daemon/cdi.go at v25.0.0, v28.2.0 and 29.7.2",),
)
def cdi_feature_off(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """features.cdi false, or no directory for specs."""
    severity = None if _has_nvidia_runtime(doc) else Severity.INFO
    if doc.value("features", "cdi") is False:
        place = doc.key_place("features", "cdi")
        yield Hit(place, "features.cdi is false.", severity=severity)
    directories = doc.get("cdi-spec-dirs")
    if directories is not None and [n.value for n in directories.elements()] == [""]:
        yield Hit(doc.key_place("cdi-spec-dirs"), "cdi-spec-dirs is empty.", severity=severity)


def _has_nvidia_runtime(doc: DaemonConfig) -> bool:
    return any(name.startswith("nvidia") for name, _node in doc.runtimes())


@rule(
    "log-driver-plugin",
    "This log driver is none of Docker's own",
    Severity.INFO,
    reads=DaemonConfig,
    reason="A log driver that is not there makes every container fail to start; dockerd "
    "--validate does not notice.",
    fix="Install the plugin before Docker is restarted, or choose one of Docker's own.",
    sources=("moby daemon/logdrivers_linux.go", _SEEN),
)
def log_driver_plugin(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """A driver that only a plugin can bring."""
    node = doc.get("log-driver")
    name = node.value if node is not None else None
    if node is not None and isinstance(name, str) and name not in ("", *LOG_DRIVERS):
        own = ", ".join(sorted(LOG_DRIVERS))
        yield Hit(doc.place(node), f"log-driver is {name}; Docker's own are {own}.")


@rule(
    "min-api-version-range",
    "min-api-version is outside of what the daemon speaks",
    Severity.FATAL,
    reads=DaemonConfig,
    reason="dockerd does not start with a minimum below 1.24, above its highest version or "
    "written with a v.",
    fix="Write a version such as 1.44, without v.",
    sources=("moby daemon/config/config.go ValidateMinAPIVersion",),
    row="P4",
)
def min_api_version_range(doc: DaemonConfig, host: HostView) -> Iterator[Hit]:
    """For the daemon itself."""
    node = doc.get("min-api-version")
    if node is None or not isinstance(node.value, str):
        return
    version = parse(node.value)
    spoken = api_range(host.version("docker") or "29.7.2")
    highest = spoken[1] if spoken else "1.55"
    if node.value[:1].lower() == "v" or not version or version < (1, 24):
        yield Hit(doc.place(node), f"min-api-version is {node.value!r}; the lowest is 1.24.")
    elif host.version("docker") and not at_least(highest, node.value):
        yield Hit(doc.place(node), f"min-api-version is {node.value}; the highest is {highest}.")
