# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the slices code reads from a host. Every reader takes the root of the tree."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping

from .. import cgroups
from ..atomic import read_text
from ..hardware.numa import read_nodes
from .effective import EXTRA_FILES, FILES, Machine
from .properties import Setting
from .quantities import parse_indices
from .squeeze import MemoryUse, TaskUse
from .tree import Host
from .unit_text import drop_in_directories

# `systemctl set-property` writes here, and what it writes outranks the unit file.
CONTROL_DIRECTORIES = ("etc/systemd/system.control", "run/systemd/system.control")
_UNIT_DIRECTORIES = (
    "etc/systemd/system",
    "run/systemd/system",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
)


def has_systemd(root: str = "/") -> bool:
    """Is systemd the running init (sd_booted(3))?"""
    return os.path.isdir(os.path.join(root, "run/systemd/system"))


def cgroup_fault(root: str = "/") -> str | None:
    """Why slices cannot be read back on this host, or None on unified cgroup v2."""
    if cgroups.read_cgroups(root).version == 2:
        return None
    path = os.path.join(cgroups.directory("/", root), "cgroup.controllers")
    return (
        f"{path} does not exist: this host does not use cgroup v2 alone. Wanted the unified "
        "hierarchy: remove systemd.unified_cgroup_hierarchy=0 from the kernel command line "
        "and reboot"
    )


def _entries(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


def drop_ins(name: str, root: str = "/") -> dict[str, str]:
    """The text of each drop-in file of a slice, set-property's own left out."""
    return _conf_files(
        os.path.join(root, base, directory)
        for base in _UNIT_DIRECTORIES
        for directory in drop_in_directories(name)
    )


def control_drop_ins(name: str, root: str = "/") -> dict[str, str]:
    """The drop-ins that ``systemctl set-property`` left for a slice."""
    return _conf_files(os.path.join(root, base, name + ".d") for base in CONTROL_DIRECTORIES)


def _conf_files(directories: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for directory in directories:
        # On merged-usr hosts /lib is /usr/lib: each file once.
        real = os.path.realpath(directory)
        for entry in _entries(real):
            text = read_text(os.path.join(real, entry)) if entry.endswith(".conf") else None
            if text is not None:
                found[os.path.join(real, entry)] = text
    return found


def slice_files(control_group: str, root: str = "/") -> dict[str, str | None]:
    """The cgroup files a comparison needs, by name; None where there is none."""
    return cgroups.read_files(control_group, sorted({*FILES.values(), *EXTRA_FILES}), root)


def memory_use(control_group: str, root: str = "/") -> MemoryUse | None:
    """What a slice uses of memory, and its limits; None without the memory controller."""
    names = ("memory.current", "memory.swap.current", "memory.stat", "memory.high", "memory.max")
    files = cgroups.read_files(control_group, names, root)
    current, swap, stat_text, high, maximum = (files[name] for name in names)
    if current is None:
        return None
    file_cache = re.search(r"^file ([0-9]+)$", stat_text or "", re.MULTILINE)
    return MemoryUse(
        current=int(current),
        swap=int(swap or 0),
        file_cache=int(file_cache.group(1)) if file_cache else 0,
        high=_limit(high),
        maximum=_limit(maximum),
    )


def task_use(control_group: str, root: str = "/") -> TaskUse | None:
    """How many tasks a slice has, and what they may use; None without the pids controller."""
    names = (
        "pids.current",
        "pids.max",
        "cpu.max",
        "cpuset.cpus.effective",
        "cpuset.mems.effective",
    )
    files = cgroups.read_files(control_group, names, root)
    current, tasks_max, cpu_max, cpus, nodes = (files[name] for name in names)
    if current is None:
        return None
    quota, _space, period = (cpu_max or "max 100000").partition(" ")
    return TaskUse(
        tasks=int(current),
        tasks_max=_limit(tasks_max),
        quota=int(quota) / int(period) if quota.isdigit() else None,
        cpus=parse_indices(cpus or ""),
        memory_nodes=parse_indices(nodes or ""),
    )


def _limit(text: str | None) -> int | None:
    return int(text) if text is not None and text != "max" else None


def protection_above(control_group: str, root: str = "/") -> dict[str, tuple[str, int]]:
    """The least memory.min and memory.low of the groups above, with whose they are.

    {} for a group right below the root, whose protection nothing bounds.
    """
    found: dict[str, tuple[str, int]] = {}
    parent = os.path.dirname(control_group.rstrip("/"))
    while parent not in ("", "/"):
        for name, text in cgroups.read_files(parent, ("memory.min", "memory.low"), root).items():
            if text is not None and text.isdigit():
                amount = int(text)
                if name not in found or amount < found[name][1]:
                    found[name] = (os.path.basename(parent), amount)
        parent = os.path.dirname(parent)
    return found


def processes(control_group: str, root: str = "/") -> dict[str, list[int]]:
    """Who lives in a slice: cgroup path below it → process ids; {} when it is empty."""
    top = cgroups.directory(control_group, root)
    found: dict[str, list[int]] = {}
    for directory, _children, _files in os.walk(top):
        # A threaded cgroup answers EOPNOTSUPP; its processes are listed in its parent.
        try:
            text = read_text(os.path.join(directory, "cgroup.procs")) or ""
        except OSError:
            continue
        pids = [int(word) for word in text.split()]
        if pids:
            found[os.path.relpath(directory, top)] = pids
    return found


def process_name(pid: int, root: str = "/") -> str:
    """The short command name of a process, or ``?`` when it is gone."""
    return (read_text(os.path.join(root, "proc", str(pid), "comm")) or "?").strip()


def machine(settings: Mapping[str, Setting], root: str = "/") -> Machine:
    """Read what percentages and device paths in ``settings`` refer to.

    Raises OSError when a device path does not exist.
    """
    meminfo = read_text(os.path.join(root, "proc/meminfo")) or ""
    limits = [
        int((read_text(os.path.join(root, "proc/sys/kernel", name)) or "0").strip())
        for name in ("pid_max", "threads-max")
    ]
    return Machine(
        memory_bytes=_meminfo_bytes(meminfo, "MemTotal"),
        swap_bytes=_meminfo_bytes(meminfo, "SwapTotal"),
        tasks_max=min(limits),
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        devices={path: disk_number(path, root) for path in _device_paths(settings)},
        io_cost=_has_io_cost(root),
        bfq=_has_bfq(root),
        heedless=heedless_disks(root),
    )


def shareable(root: str = "/") -> Host:
    """What a tree of slices can share out: memory, tasks, and the cores that are online."""
    plain = machine({}, root)
    nodes: dict[int, int] = {}
    for node in read_nodes(root):
        for cpu in parse_indices(node.cpus):
            nodes[cpu] = node.node
    cpus = os.path.join(root, "sys/devices/system/cpu")
    cores = set()
    for cpu in parse_indices((read_text(os.path.join(cpus, "online")) or "0").strip()):
        topology = os.path.join(cpus, f"cpu{cpu}", "topology")
        siblings = read_text(os.path.join(topology, "thread_siblings_list")) or str(cpu)
        cores.add((nodes.get(cpu, 0), parse_indices(siblings.strip())))
    return Host(plain.memory_bytes, plain.tasks_max, tuple(sorted(cores)))


def _meminfo_bytes(text: str, field: str) -> int:
    match = re.search(rf"^{field}:\s+([0-9]+) kB", text, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else 0


def _device_paths(settings: Mapping[str, Setting]) -> list[str]:
    pairs: list[tuple[str, int]] = []
    for key, setting in settings.items():
        if FILES[key].startswith("io.") and isinstance(setting.value, tuple):
            pairs.extend(pair for pair in setting.value if isinstance(pair, tuple))
    return sorted({path for path, _value in pairs})


def disk_number(path: str, root: str = "/") -> str:
    """``MAJOR:MINOR`` of the whole disk that ``path`` is, or lies on.

    systemd limits whole disks: a partition counts as its disk, and a file as the disk of
    its file system, through one layer of device mapper such as LUKS. Raises OSError.
    """
    status = os.stat(os.path.join(root, path.lstrip("/")))
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    directory = os.path.realpath(os.path.join(root, "sys/dev/block", name))
    if not stat.S_ISBLK(status.st_mode):
        below = _entries(os.path.join(directory, "slaves"))
        if len(below) == 1:
            directory = os.path.realpath(os.path.join(directory, "slaves", below[0]))
    if os.path.exists(os.path.join(directory, "partition")):
        directory = os.path.dirname(directory)
    return (read_text(os.path.join(directory, "dev")) or name).strip()


def heedless_disks(root: str = "/") -> tuple[str, ...]:
    """The disks of the host on which IO weights do nothing.

    Only disks with a device behind them: a loop device or a logical volume hands its requests on.
    """
    blocks = os.path.join(root, "sys/block")
    found = []
    qos = cgroups.read_files("/", ["io.cost.qos"], root)["io.cost.qos"] or ""
    costed = [line.split()[0] for line in qos.splitlines() if "enable=1" in line.split()]
    for name in _entries(blocks):
        directory = os.path.join(blocks, name)
        if not os.path.exists(os.path.join(directory, "device")):
            continue
        scheduler = read_text(os.path.join(directory, "queue/scheduler")) or ""
        number = (read_text(os.path.join(directory, "dev")) or "").strip()
        if "[bfq]" not in scheduler and number not in costed:
            found.append(name)
    return tuple(found)


def _has_io_cost(root: str) -> bool:
    text = cgroups.read_files("/", ["io.cost.qos"], root)["io.cost.qos"]
    return "enable=1" in (text or "").split()


def _has_bfq(root: str) -> bool:
    blocks = os.path.join(root, "sys/block")
    texts = (read_text(os.path.join(blocks, name, "queue/scheduler")) for name in _entries(blocks))
    return any("[bfq]" in (text or "") for text in texts)
