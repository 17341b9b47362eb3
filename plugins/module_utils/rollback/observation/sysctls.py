# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel settings below /proc/sys: those that a GPU host's roles set, live."""

from __future__ import annotations

import glob
import os

from ...atomic import read_text
from ...hardware import files
from ..model import RollbackError

# Only what this collection sets or will set: a restore writes back what differs, so a name too
# many would undo an administrator's tuning.
NAMES = (
    # Memory set aside for jobs that pin it.
    "vm.nr_hugepages",
    # Off where jobs are pinned to the GPU's node: the kernel would move their pages about.
    "kernel.numa_balancing",
    # Real-time share of the CPUs; since Linux 6.12 it bounds SCHED_DEADLINE alone.
    "kernel.sched_rt_period_us",
    "kernel.sched_rt_runtime_us",
    # Granularity in which CPU quota is handed out, which CPU burst is tuned with.
    "kernel.sched_cfs_bandwidth_slice_us",
    # cgroup v2 has no swappiness of its own: the host's holds for all containers.
    "vm.swappiness",
    # CUDA reserves as much address space as all GPUs and the host have memory; 2 refuses that.
    "vm.overcommit_memory",
)
# Not here: net.* and shared memory sizes. Containers have their own, and the engine sets those.

_OWN_FILES = "etc/sysctl.d/*steadygpu*.conf"


def names(root: str = "/") -> list[str]:
    """:data:`NAMES`, and what the sysctl files of ours set."""
    found = set(NAMES)
    for path in glob.glob(os.path.join(root, _OWN_FILES)):
        found.update(set_by(files.text(path)))
    return sorted(found)


def set_by(text: str) -> list[str]:
    """The settings that a sysctl.d file names, dotted (sysctl.d(5)); none that has wildcards."""
    found = []
    for line in text.splitlines():
        name, equals, _value = line.strip().partition("=")
        name = name.strip().lstrip("-").strip()
        if equals and name and name[0] not in "#;" and not set(name) & set("*?["):
            found.append(dotted(name))
    return found


def dotted(name: str) -> str:
    """``net/ipv4/conf/eth0.1/forwarding`` as ``net.ipv4.conf.eth0/1.forwarding``.

    What separates first is the separator, and the other sign then stands for it (sysctl.d(5)).
    """
    slash, dot = name.find("/"), name.find(".")
    if slash >= 0 and (dot < 0 or slash < dot):
        return name.translate(str.maketrans("/.", "./"))
    return name


def read(wanted: list[str], root: str = "/") -> dict[str, str]:
    """Live values by dotted name; what this kernel does not have or does not show is left out.

    Several values are separated by one space each.
    """
    found = {}
    for name in wanted:
        try:
            text = read_text(_path(name, root))
        except (OSError, ValueError):
            continue
        if text is not None:
            found[name] = " ".join(text.split())
    return found


def write(name: str, value: str, root: str = "/") -> bool:
    """Make the live value ``value``. True if it was another; the same again does nothing.

    Raises RollbackError when the kernel has no such setting, refuses it or makes something else
    of it, as it does with hugepages for which memory is too fragmented.
    """
    former = read([name], root).get(name)
    if former is None:
        raise RollbackError(f"sysctl {name}: this kernel has no such setting (wanted {value})")
    if former == value:
        return False
    try:
        # No O_CREAT: below a directory of /proc it would be told as a permission fault.
        descriptor = os.open(_path(name, root), os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, f"{value}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise RollbackError(
            f"sysctl {name} is {former}, wanted {value}: the kernel refused it "
            f"({error.strerror}). Set it by hand, or look at what forbids it"
        ) from error
    now = read([name], root).get(name)
    if now != value:
        raise RollbackError(
            f"sysctl {name} was {former}, wanted {value}: the kernel made {now} of it. "
            "Try again when memory is free, or after a reboot"
        )
    return True


def _path(name: str, root: str) -> str:
    # The dotted form back to a path: dots separate, and a slash is a dot within a name.
    path = name.translate(str.maketrans("/.", "./"))
    if ".." in path.split("/"):
        raise ValueError(f"{name} leaves /proc/sys")
    return os.path.join(root, "proc/sys", path)
