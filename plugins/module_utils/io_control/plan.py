# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From wishes and disks to settings, the rule of udev, and which weights act. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..settings.files import header
from ..settings.model import CHOICE, LINE, UNSUPPORTED, Target
from ..settings.record import Former
from .model import ALL, Disk, IoError, Kernel, Wish

RULES = "/etc/udev/rules.d/90-steadygpu-io.rules"
QOS = "/sys/fs/cgroup/io.cost.qos"
MODEL = "/sys/fs/cgroup/io.cost.model"


@dataclass
class Plan:
    """What is to be kept. ``rules`` is the text of :data:`RULES`, None for none of it."""

    targets: list[Target] = field(default_factory=list)
    rules: str | None = None
    notes: list[str] = field(default_factory=list)
    at_boot: bool = False


def make_plan(wishes: Sequence[Wish], disks: Mapping[str, Sequence[Disk]], kernel: Kernel) -> Plan:
    """``disks`` has those behind each wish. Raises IoError where two wishes are for one disk."""
    plan = Plan()
    rules = []
    for disk, wish in _by_disk(wishes, disks):
        if disk.through:
            plan.notes.append(
                f"{wish.given} lies on {disk.name} ({' on '.join(disk.through)} on {disk.name}): "
                f"{disk.name} is what schedules, so it was taken"
            )
        if wish.scheduler is not None:
            rules += _schedule(plan, disk, wish.scheduler)
        if wish.iocost is not None:
            _cost(plan, disk, wish, kernel)
    if rules:
        plan.rules = header("io") + "".join(rules)
    return plan


def dropped_words(
    targets: Sequence[Target], formers: Sequence[Former]
) -> list[tuple[Target, list[str]]]:
    """Settings that go on with a ``qos``, with the words of before that it does not name."""
    before = {former.target.identity: former.target.wanted for former in formers}
    found = []
    for target in targets:
        if target.path == QOS and "ctrl=user" in target.wanted.split():
            keys = {word.partition("=")[0] for word in target.wanted.split()}
            old = before.get(target.identity, "").split()[1:]
            words = [word for word in old if word.partition("=")[0] not in keys]
            found += [(target, words)] if words else []
    return found


def weights(disks: Sequence[Disk], kernel: Kernel) -> dict[str, str]:
    """For each disk whether IO weights act on it, and by what, or why they do not."""
    return {disk.name: _weight(disk, kernel) for disk in disks}


def _weight(disk: Disk, kernel: Kernel) -> str:
    if kernel.fault:
        return f"inert: {kernel.fault}"
    costed = "enable=1" in kernel.costed.get(disk.number, "").split()
    if disk.scheduler == "bfq":
        also = ", and by iocost before it: switch one of them off" if costed else ""
        return f"io.weight acts by bfq{also}"
    if costed:
        return "io.weight acts by iocost"
    return (
        f"inert: the scheduler is {disk.scheduler or 'none of the kernel'} and iocost is off; "
        "IOReadBandwidthMax and its like act all the same"
    )


def _by_disk(
    wishes: Sequence[Wish], disks: Mapping[str, Sequence[Disk]]
) -> list[tuple[Disk, Wish]]:
    found: dict[str, tuple[Disk, Wish]] = {}
    for wish in sorted(wishes, key=lambda one: one.given == ALL):
        for disk in disks[wish.given]:
            if disk.name not in found:
                found[disk.name] = (disk, wish)
                continue
            former = found[disk.name][1]
            same = (former.scheduler, former.iocost, former.model, former.qos) == (
                wish.scheduler,
                wish.iocost,
                wish.model,
                wish.qos,
            )
            if wish.given != ALL and not same:
                raise IoError(
                    f"{former.given} and {wish.given} are both on {disk.name} and ask for "
                    "different things: wanted one entry for it"
                )
    return [found[name] for name in sorted(found)]


def _schedule(plan: Plan, disk: Disk, scheduler: str) -> list[str]:
    name = f"{disk.name} scheduler"
    path = f"/sys/block/{disk.name}/queue/scheduler"
    if scheduler not in disk.schedulers:
        has = ", ".join(disk.schedulers)
        why = (
            f"this kernel has no {scheduler} for {disk.name}; it has {has}"
            if has
            else f"{disk.name} has no scheduler to choose: the kernel passes its requests on"
        )
        plan.targets.append(Target(name, UNSUPPORTED, disk.scheduler or "", scheduler, why))
        plan.notes.append(f"{name}: {why}")
        return []
    plan.targets.append(Target(name, CHOICE, path, scheduler))
    # A name may be another disk after a boot; what the disk says of itself may not.
    known = f'KERNEL=="{disk.name}"'
    if disk.identity:
        known = f'ATTR{{{disk.identity[0]}}}=="{disk.identity[1]}"'
    return [
        f'ACTION=="add|change", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", {known}, '
        f'ATTR{{queue/scheduler}}="{scheduler}"\n'
    ]


def _cost(plan: Plan, disk: Disk, wish: Wish, kernel: Kernel) -> None:
    name = f"{disk.name} iocost"
    wanted = "enable=0"
    if wish.iocost:
        # Named, since words of before stay in the kernel until it is told to choose itself.
        wanted = " ".join(["enable=1", "ctrl=user" if wish.qos else "ctrl=auto", *wish.qos])
    why = kernel.fault
    if why is None and not kernel.io_cost:
        why = "this kernel has no iocost (CONFIG_BLK_CGROUP_IOCOST, no /sys/fs/cgroup/io.cost.qos)"
    if why is not None:
        plan.targets.append(Target(name, UNSUPPORTED, "", wanted, why))
        plan.notes.append(f"{name}: {why}")
        return
    if wish.iocost and wish.scheduler is None and disk.scheduler == "bfq":
        raise IoError(
            f"{disk.name} is scheduled by bfq now, which shares it out by weight already: wanted "
            "`scheduler: none` or mq-deadline with `iocost: true`"
        )
    costed = kernel.costed.get(disk.number)
    if not wish.iocost and costed is None:
        # The kernel has no line for a disk that never had iocost.
        return
    number = disk.number
    plan.at_boot = True
    if wish.iocost and not wish.model and disk.rotates:
        # block/blk-iocost.c chooses its parameters by this flag, which virtual disks often carry.
        plan.notes.append(
            f"{disk.name} says that it rotates, so iocost goes by the kernel's model of a hard "
            "disk. If it is none, as virtual disks often are, give a `model`, or it is held back"
        )
    neutral = f"{number} enable=0 ctrl=auto"
    plan.targets.append(Target(name, LINE, QOS, f"{number} {wanted}", neutral=neutral))
    if wish.model:
        said = " ".join(["ctrl=user", "model=linear", *wish.model])
        plan.targets.append(
            Target(
                f"{disk.name} iocost model",
                LINE,
                MODEL,
                f"{number} {said}",
                neutral=f"{number} ctrl=auto",
            )
        )
