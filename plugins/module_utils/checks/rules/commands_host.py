# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on commands about units, packages, kernel settings and paths of a host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...versions import parse
from ..documents.commands import CommandLine
from ..host import HostView
from ..model import Given, Hit, Needs, Severity
from ..registry import rule

_RT = "kernel commits 5f6bd380c7bd, d741f297bcea; Documentation/scheduler/sched-rt-group.rst"
_BULLETIN = "NVIDIA security bulletin 5850 (CVE-2026-24260)"
_TOOLKIT_FLOOR = "1.19.1"

# Units that guides name and no package has: what there is instead, row of the reality map.
_UNITS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "nvidia-docker": ("Restart docker (with live-restore on).", "7"),
        "nvidia-docker2": ("Restart docker (with live-restore on).", "7"),
        "nvidia-container-runtime": (
            "It is a program that runs when a container starts: set debug = "
            '"/var/log/nvidia-container-runtime.log" below [nvidia-container-runtime] in '
            "/etc/nvidia-container-runtime/config.toml and read that file.",
            "10",
        ),
        "nvidia-container-toolkit": (
            "It is a set of programs without a unit; the unit that makes CDI specifications is "
            "nvidia-cdi-refresh.",
            "41",
        ),
        "nvidia-container-toolkit-daemon": ("The toolkit has no daemon.", "41"),
        "libnvidia-container": ("It is a library.", "1"),
        "dockerd-scheduler": ("No Docker release has a scheduler for GPUs.", "80"),
        "gpu-manager-nvidia": ("Docker has no GPU manager.", "45"),
    }
)

# Paths that are on no Linux, with what there is.
_PATHS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"/proc/sys/kernel/cgroup_version\b"), "stat -fc %T /sys/fs/cgroup"),
    (re.compile(r"/sys/fs/cgroup/gpu/|nvidia\.gpu\.memory\b"), "nvidia-smi memory-limits --get"),
    (
        re.compile(r"/sys/devices/pci[^/\s]*/topology\b"),
        "cat /sys/bus/pci/devices/*/numa_node",
    ),
    (
        re.compile(r"/physfn/(device|vendor)\b.*switch"),
        "realpath /sys/bus/pci/devices/0000:3b:00.0",
    ),
)
_V1_PATH = re.compile(
    r"/sys/fs/cgroup/(devices|memory|cpu|cpuset|blkio|cpu,cpuacct|pids)/"
    r"|/sys/fs/cgroup/\S*\b(devices\.(allow|deny)|memory\.limit_in_bytes|cpu\.rt_runtime_us"
    r"|cpu\.cfs_quota_us)\b"
)

_SET = (
    "libnvidia-container1",
    "libnvidia-container-tools",
    "nvidia-container-toolkit-base",
    "nvidia-container-toolkit",
)
_TOOLKIT_PACKAGES = (*_SET, "nvidia-container-runtime", "nvidia-docker2")
_PINNED = re.compile(
    r"(" + "|".join(sorted(_TOOLKIT_PACKAGES, key=len, reverse=True)) + r")[=-](\d[\w.~+-]*)$"
)


@rule(
    "unit-not-there",
    "No package has this unit",
    Severity.ERROR,
    reads=CommandLine,
    reason="systemctl fails with 'Unit … not found', and journalctl -u shows an empty log that "
    "looks as if all were well.",
    fix="Name the unit that is meant.",
    sources=(
        "files of the packages nvidia-container-toolkit, docker-ce and docker.io",
        "NVIDIA/nvidia-container-toolkit release 1.15 (nvidia-docker2 removed)",
    ),
    row="7, 10, 41",
)
def unit_not_there(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """In systemctl, service and journalctl -u."""
    if line.name == "journalctl":
        told = [line.option("-u", "--unit")]
    elif line.name in ("systemctl", "service"):
        told = list(line.args)
    else:
        return
    for given in told:
        name = re.sub(r"\.service$", "", given.value) if given else ""
        if given and name in _UNITS:
            yield Hit(given.at, f"There is no unit {name}.", fix=_UNITS[name][0])


@rule(
    "path-not-there",
    "No kernel has this file",
    Severity.ERROR,
    reads=CommandLine,
    reason="The file is on no Linux: a script that reads it takes its other branch always, and one "
    "that writes it fails.",
    fix="Read what there is instead.",
    sources=(
        "kernel admin-guide/cgroup-v2.rst, the list of controllers",
        "kernel sysctl/kernel.rst",
        "kernel ABI/testing/sysfs-bus-pci",
    ),
    row="13, 91, 92, 115",
)
def path_not_there(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """In any word, and behind < and >."""
    for given in (*line.words, *((line.reads,) if line.reads else ()), *line.writes):
        for pattern, instead in _PATHS:
            match = pattern.search(given.value)
            if match and " " not in given.value.strip():
                seen = f"{given.value} is not there on any kernel."
                yield Hit(given.at, seen, fix=f"Use: {instead}", commands=(instead,))


@rule(
    "cgroup-v1-path",
    "A file of cgroup v1",
    Severity.ERROR,
    reads=CommandLine,
    reason="On cgroup v2 there are no directories per controller and no devices.allow: devices are "
    "let through by a BPF program. Reading and writing these paths fails.",
    fix="Use memory.max, cpu.max and io.max of the group itself; give a running container a device "
    "with systemctl set-property --runtime docker-<id>.scope 'DeviceAllow=/dev/nvidia0 rwm'.",
    sources=("kernel admin-guide/cgroup-v2.rst",),
    needs=(Needs("cgroup", "==2"),),
    unknown=Severity.INFO,
    row="26, 120, 169",
)
def cgroup_v1_path(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A note where the version is not known."""
    for given in (*line.words, *((line.reads,) if line.reads else ()), *line.writes):
        if _V1_PATH.search(given.value) and line.name not in ("grep", "[["):
            yield Hit(given.at, f"{given.value} is of cgroup v1.")
            return


@rule(
    "toolkit-packages-in-part",
    "Only a part of the toolkit's packages gets this version",
    Severity.WARNING,
    reads=CommandLine,
    reason="The toolkit's packages depend on each other's exact version. With one of them pinned "
    "the package manager takes the newest of the others: unmet dependencies, or a mixed set that "
    "fails when containers start.",
    fix="Name all of them with the same version in one command.",
    sources=("NVIDIA/nvidia-docker issue 1492", "NVIDIA Container Toolkit installation guide"),
    cases=("RB-001",),
)
def toolkit_packages_in_part(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Installing some of the four with a version and not the others."""
    pinned = dict(_pinned(line))
    missing = [name for name in _needed(pinned) if name not in pinned]
    others = {given.value for given in line.args}
    if pinned and missing and not any("nvidia" in o and "*" in o for o in others):
        first, *_more = pinned.values()
        version = next((v for v in (_version(g) for g in pinned.values()) if v), "VERSION")
        joint = "=" if line.name in ("apt", "apt-get") else "-"
        names = " ".join(f"{name}{joint}{version}" for name in _SET)
        down = " --allow-downgrades" if joint == "=" else ""
        own = "nvidia-docker2" in pinned or "nvidia-container-runtime" in pinned
        # Versions of these two are counted differently: the set cannot be named from them.
        commands = () if own else (f"{line.name} install{down} {names}",)
        seen = f"{', '.join(pinned)} with a version, without {', '.join(missing)}."
        yield Hit(first.at, seen, commands=commands)


def _needed(pinned: Mapping[str, Given]) -> tuple[str, ...]:
    """The packages that a version is given together with; the base package came with 1.11."""
    told = [_version(pinned[name]) for name in _SET if name in pinned]
    old = [parse(v) < parse("1.11") for v in told if re.match(r"1\.\d+", v)]
    return tuple(n for n in _SET if not (old and all(old) and n.endswith("-base")))


def _installs(line: CommandLine) -> bool:
    words = [given.value for given in line.args]
    managers = ("apt", "apt-get", "aptitude", "dnf", "yum", "zypper")
    verbs = ("install", "downgrade", "upgrade")
    return line.name in managers and any(word in verbs for word in words[:1])


def _pinned(line: CommandLine) -> Iterator[tuple[str, Given]]:
    """The toolkit's packages that are installed with a version."""
    if not _installs(line):
        return
    for given in line.args:
        match = _PINNED.match(given.value)
        if match:
            yield match.group(1), given
        elif "=" in given.value and given.value.partition("=")[0] in _TOOLKIT_PACKAGES:
            yield given.value.partition("=")[0], given


def _version(given: Given) -> str:
    match = _PINNED.match(given.value)
    return match.group(2) if match else given.value.partition("=")[2].lstrip("=")


@rule(
    "toolkit-version-vulnerable",
    "This version of the toolkit lets containers out",
    Severity.WARNING,
    reads=CommandLine,
    reason="Before 1.19.1 a container can break out of the NVIDIA Container Toolkit, most gravely "
    "by CVE-2025-23266 (fixed in 1.17.8) and CVE-2026-24260 (fixed in 1.19.1).",
    fix=f"Install {_TOOLKIT_FLOOR} or newer.",
    sources=(_BULLETIN, "NVIDIA security bulletins 5582, 5585, 5599, 5616, 5659"),
    row="1, 46, 117",
)
def toolkit_version_vulnerable(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """An install line that pins one."""
    for name, given in _pinned(line):
        version = _version(given)
        counted = name in _SET
        if counted and re.match(r"1\.\d+\.\d+", version) and parse(version) < parse(_TOOLKIT_FLOOR):
            yield Hit(given.at, f"{name} {version} is installed.")
            return


@rule(
    "package-not-there",
    "No such package",
    Severity.ERROR,
    reads=CommandLine,
    reason="No repository of NVIDIA, Docker or a distribution has it: the installation fails.",
    fix="Install nvidia-container-toolkit; its library is libnvidia-container1.",
    sources=("NVIDIA/libnvidia-container packaging", "NVIDIA Container Toolkit installation guide"),
    row="1",
)
def package_not_there(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """``libgpucontainer`` and a daemon of the toolkit."""
    if not _installs(line):
        return
    for given in line.args[1:]:
        name = re.split(r"[=:]", given.value)[0]
        if name in ("libgpucontainer", "libgpucontainer1", "nvidia-container-toolkit-daemon"):
            yield Hit(given.at, f"There is no package {name}.")


@rule(
    "nvidia-docker-retired",
    "nvidia-docker is retired",
    Severity.INFO,
    reads=CommandLine,
    reason="The package nvidia-docker2 and its command were dropped with release 1.15 of the "
    "toolkit: new hosts do not have them.",
    fix="Install nvidia-container-toolkit and run docker run --gpus, or --runtime=nvidia.",
    sources=("NVIDIA/nvidia-container-toolkit release 1.15", "NVIDIA/nvidia-docker README"),
    row="7",
)
def nvidia_docker_retired(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """The command, and the package in an install line."""
    if line.name in ("nvidia-docker", "nvidia-docker2"):
        yield Hit(line.at, f"{line.name} is called.", fix="Write docker run --gpus all.")
    elif _installs(line):
        for given in line.args[1:]:
            if re.match(r"nvidia-docker2?([=:]|$)", given.value):
                yield Hit(given.at, f"{given.value} is installed.")


@rule(
    "gpu-manifest-vulnerable",
    "This version for Kubernetes lets containers out",
    Severity.WARNING,
    reads=CommandLine,
    reason="The device plugin before 0.17.3 and the GPU operator before 26.3.2 bring a toolkit "
    "with container escapes (CVE-2025-23266, CVE-2026-24260).",
    fix="Use k8s-device-plugin 0.17.3 or newer, GPU operator 26.3.2 or newer.",
    sources=(_BULLETIN, "NVIDIA security bulletin 5659"),
    row="32, 78",
)
def gpu_manifest_vulnerable(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Kubectl of a manifest on the web, and helm with --version."""
    if line.name == "kubectl":
        for word in line.words:
            match = re.search(r"k8s-device-plugin/v(\d+\.\d+\.\d+)/", word.value)
            if match and parse(match.group(1)) < parse("0.17.3"):
                yield Hit(word.at, f"k8s-device-plugin {match.group(1)} is applied.")
    if line.name == "helm" and line.args[:1] and line.args[0].value in ("install", "upgrade"):
        given = line.option("--version")
        floors = {"gpu-operator": "26.3.2", "nvidia-device-plugin": "0.17.3"}
        chart = next(
            (name for name in floors for a in line.args if a.value.rpartition("/")[2] == name), None
        )
        told = re.match(r"v?(\d+\.\d+(\.\d+)?)", given.value) if given else None
        if chart and given and told and parse(told.group(1)) < parse(floors[chart]):
            yield Hit(given.at, f"The chart {chart} {given.value} is installed.")


@rule(
    "rt-runtime-unlimited",
    "Real-time threads may take a whole CPU",
    Severity.ERROR,
    reads=CommandLine,
    reason="-1 does not switch real-time scheduling off, it takes the limit away: a SCHED_FIFO "
    "thread that does not sleep keeps everything else off its CPU, the watchdog and ssh with it.",
    fix="Leave it at 950000.",
    sources=(_RT,),
    row="169",
)
def rt_runtime_unlimited(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Sysctl -w, and echo into the file."""
    value, at = _rt_runtime(line)
    if at and value == "-1":
        yield Hit(
            at.at,
            "kernel.sched_rt_runtime_us becomes -1.",
            commands=("sysctl -w kernel.sched_rt_runtime_us=950000",),
        )


@rule(
    "rt-runtime-no-protection",
    "On this kernel the setting does not hold real-time threads back",
    Severity.WARNING,
    reads=CommandLine,
    reason="Since 6.12, without CONFIG_RT_GROUP_SCHED, SCHED_FIFO and SCHED_RR are not throttled "
    "by sched_rt_runtime_us; a deadline server (fair_server, 50 ms in each second) keeps other "
    "tasks alive. The setting only bounds SCHED_DEADLINE.",
    fix="Look at /sys/kernel/debug/sched/fair_server/cpu0/runtime, and keep real-time threads on "
    "CPUs of their own (cpuset).",
    sources=(_RT,),
    needs=(Needs("kernel", ">=6.12"),),
    unknown=Severity.INFO,
    row="169, 171",
)
def rt_runtime_no_protection(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Any value that is meant as a limit."""
    value, at = _rt_runtime(line)
    if at and re.fullmatch(r"\d+", value):
        yield Hit(at.at, f"kernel.sched_rt_runtime_us becomes {value}.")


def _rt_runtime(line: CommandLine) -> tuple[str, Given | None]:
    """The value that a command gives kernel.sched_rt_runtime_us, and where it stands."""
    if line.name == "sysctl":
        for word in line.words:
            match = re.match(r"kernel[./]sched_rt_runtime_us=(-?\d+)$", word.value)
            if match:
                return match.group(1), word
    file = "/proc/sys/kernel/sched_rt_runtime_us"
    if line.name in ("echo", "printf"):
        into = next((given for given in line.writes if given.value == file), None)
        return (line.words[-1].value.strip() if line.words else "", into)
    if line.name == "tee" and line.piped[:1] == ("echo",):
        into = next((given for given in line.words if given.value == file), None)
        return line.piped[-1], into
    return "", None


@rule(
    "kernel-argument-harmful",
    "A kernel argument that breaks the host",
    Severity.FATAL,
    reads=CommandLine,
    reason="pci=nomsi takes the interrupts of NVMe, network cards and GPUs away; "
    "cgroup_disable=memory takes every memory limit away, and the kubelet does not start.",
    fix="Leave it out. GPU traffic that ACS redirects is cured in ACS itself, not by interrupts.",
    sources=("kernel admin-guide/kernel-parameters.txt",),
    row="12, 14",
)
def kernel_argument_harmful(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Given with grubby, kernelstub or rpm-ostree; taking it away is right."""
    if line.name not in ("grubby", "kernelstub", "rpm-ostree"):
        return
    for place, word in enumerate(line.words):
        before = line.words[place - 1].value if place else ""
        if "remove" in word.value or "delete" in word.value or "remove" in before:
            continue
        match = re.search(r"pci=nomsi|cgroup_disable=\S*memory", word.value)
        if match:
            yield Hit(word.at, f"{match.group()} is added to the kernel's command line.")
