# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From what was seen to what it proves. Pure: observations in, checks out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .limits import Group, spelled, tightest
from .sight import DENIED, DENIED_ELSEWHERE, NO_DRIVER, OPENED, Sight

# CUDA opens both beside the GPU's own node.
CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")

_CDI = "generate the CDI spec again (nvidia-ctk cdi generate) and look at its deviceNodes"
_DRIVER = "the driver does not answer: look at nvidia-smi and at dmesg for NVRM and Xid lines"
_NOT_ISOLATED = (
    "the container may use a GPU that it was not given: look for --privileged, device rules "
    "of a default runtime, or an engine without cgroup device rules (rootless, LXC)"
)
_LOST = (
    "the container lost its GPU: it must be given by CDI (--device vendor.com/class=name), so "
    "that its device rule is in the container's own spec"
)


@dataclass(frozen=True)
class Check:
    """One promise: ``ok`` is true, false, or None where it could not honestly be judged."""

    id: str
    title: str
    ok: bool | None
    seen: str
    wanted: str
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The fields as a module returns them."""
        return asdict(self)


@dataclass(frozen=True)
class Expectation:
    """What the container with the device must find.

    ``node`` is its one GPU node; ``numbers`` maps each GPU node of the host to its
    ``MAJOR:MINOR``. ``accept_simulated`` takes "no driver behind the node" for opened, since
    a lab has nodes but no driver.
    """

    node: str
    numbers: Mapping[str, str]
    accept_simulated: bool = False

    @property
    def number(self) -> str:
        """``MAJOR:MINOR`` of the expected node."""
        return self.numbers[self.node]

    def opened(self, result: str | None) -> bool:
        """Does this result of an open() count as opened?"""
        return result == OPENED or (self.accept_simulated and result == NO_DRIVER)


@dataclass(frozen=True)
class SliceSight:
    """A running container's place, as the host sees it.

    ``wanted`` is the slice's cgroup path; ``path`` are the container's cgroup and those
    above it, the lowest first; ``limits`` are the slice's as systemd holds them, by cgroup
    file, only those that are set; ``tasks`` is the slice's pids.current.
    """

    name: str
    wanted: str
    path: Sequence[Group] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    tasks: int | None = None

    @property
    def containing(self) -> str:
        """The container's cgroup, or "" when it is gone."""
        return self.path[0].path if self.path else ""


def judge_device(sight: Sight, expected: Expectation) -> list[Check]:
    """The container that was given one device."""
    others = [number for number in expected.numbers.values() if number != expected.number]
    return [
        Check(
            "one_gpu_visible",
            "a container given one device sees exactly that GPU",
            sight.gpus == [expected.node],
            _listed(sight.gpus),
            expected.node,
            "" if sight.gpus == [expected.node] else _CDI,
        ),
        _opens(sight, expected),
        _control_nodes(sight, expected),
        _denied(
            "other_gpus_denied",
            "it cannot open another GPU, not even by a node it makes itself",
            sight,
            others,
            "the host has only this GPU",
        ),
    ]


def judge_bare(sight: Sight, expected: Expectation) -> list[Check]:
    """The container that was given nothing."""
    return [
        Check(
            "bare_sees_none",
            "a container without devices sees no GPU",
            not sight.gpus,
            _listed(sight.gpus),
            "none",
            _NOT_ISOLATED if sight.gpus else "",
        ),
        _denied(
            "bare_denied",
            "it cannot open one, not even by a node it makes itself",
            sight,
            list(expected.numbers.values()),
            "the host has no GPU",
        ),
    ]


def judge_later(
    check_id: str, after: str, device: Sight, bare: Sight, expected: Expectation
) -> Check:
    """Does everything still hold ``after`` something happened to the host?"""
    broken = [
        check
        for check in judge_device(device, expected) + judge_bare(bare, expected)
        if check.ok is False
    ]
    lost = any(check.id in ("gpu_opens", "control_nodes") for check in broken)
    return Check(
        check_id,
        f"both still hold after {after}",
        not broken,
        "; ".join(f"{check.title}: {check.seen}" for check in broken) or "unchanged",
        "unchanged",
        (_LOST if lost else broken[0].advice) if broken else "",
    )


def judge_slice(sight: SliceSight) -> list[Check]:
    """The place of a container and the limits around it."""
    inside = bool(sight.wanted) and sight.containing.startswith(sight.wanted + "/")
    place = Check(
        "in_slice",
        f"the containers run in {sight.name}",
        inside,
        sight.containing or "nowhere: the container is gone",
        f"{sight.wanted}/…" if sight.wanted else f"{sight.name} active",
        ""
        if inside
        else "look at the engine's cgroup driver (docker info) and at its cgroup-parent",
    )
    return [place, _limits(sight, place)]


def _limits(sight: SliceSight, place: Check) -> Check:
    """Does the kernel hold the slice's limits around the container?"""
    title = f"the limits of {sight.name} hold them"
    if not place.ok:
        return Check("slice_limits", title, None, "not inside", "inside", place.advice)
    if not sight.limits:
        return Check("slice_limits", title, None, "the slice has no limit", "memory, CPU or tasks")
    (own,) = (group for group in sight.path if group.path == sight.wanted)
    # The slice's own group is on the container's way up, so no limit in force is looser.
    held = all(own.limit(file) == limit for file, limit in sight.limits.items())
    fault = ""
    if not held:
        fault = "the kernel holds other values than systemd: run the slices role again"
    elif not sight.tasks:
        fault = "no task is accounted to the slice: is the pids controller enabled?"
    seen = [_limit_seen(sight, own, file) for file in sorted(sight.limits)]
    if sight.tasks is not None:
        seen.append(f"{sight.tasks} tasks inside")
    return Check(
        "slice_limits",
        title,
        not fault,
        ", ".join(seen),
        ", ".join(spelled(file, limit) for file, limit in sorted(sight.limits.items())),
        fault,
    )


def _limit_seen(sight: SliceSight, own: Group, file: str) -> str:
    """The slice's own limit, and where on the container's way up a tighter one comes first."""
    text = spelled(file, own.limit(file))
    limit, where = tightest(sight.path, file)
    if where not in ("", own.path) and limit < (own.limit(file) or math.inf):
        text += f" ({spelled(file, limit)} at {where})"
    return text


def skipped(check_id: str, title: str, reason: str) -> Check:
    """A check that was not made, and why."""
    return Check(check_id, title, None, "not tried", "", reason)


def summary(checks: Sequence[Check]) -> str:
    """One line: ``9 proved, 1 failed, 1 not judged``."""
    counts = [
        (sum(check.ok is True for check in checks), "proved"),
        (sum(check.ok is False for check in checks), "failed"),
        (sum(check.ok is None for check in checks), "not judged"),
    ]
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def failure_text(checks: Sequence[Check]) -> str:
    """The failed checks for a person: a paragraph each."""
    parts = ["GPU verification: " + summary(checks)]
    for check in checks:
        if check.ok is False:
            parts.append(
                f"- {check.title}\n"
                f"    seen:   {check.seen}\n"
                f"    wanted: {check.wanted}\n"
                f"    do:     {check.advice}"
            )
    return "\n".join(parts)


def _opens(sight: Sight, expected: Expectation) -> Check:
    result = sight.nodes.get(expected.node)
    ok = expected.opened(result)
    advice = ""
    if not ok:
        advice = _DRIVER if result not in (None, DENIED, DENIED_ELSEWHERE) else _CDI
    return Check(
        "gpu_opens",
        "it can open that GPU",
        ok,
        _result(expected.node, result, expected),
        f"{expected.node}: {OPENED}",
        advice,
    )


def _control_nodes(sight: Sight, expected: Expectation) -> Check:
    results = {node: sight.nodes.get(node) for node in CONTROL_NODES}
    ok = all(expected.opened(result) for result in results.values())
    missing = [node for node, result in results.items() if result is None]
    advice = ""
    if missing:
        advice = "make the nodes on the host (nvidia-modprobe -u -c 0), then " + _CDI
    elif not ok:
        advice = _DRIVER
    return Check(
        "control_nodes",
        "it can open the driver's control nodes",
        ok,
        ", ".join(_result(node, result, expected) for node, result in results.items()),
        ", ".join(f"{node}: {OPENED}" for node in CONTROL_NODES),
        advice,
    )


def _denied(
    check_id: str, title: str, sight: Sight, numbers: Sequence[str], none_reason: str
) -> Check:
    if not numbers:
        return skipped(check_id, title, none_reason)
    results = {number: sight.made.get(number, "not tried") for number in numbers}
    allowed = {number: result for number, result in results.items() if not _is_denial(result)}
    return Check(
        check_id,
        title,
        not allowed,
        _grouped(allowed or results),
        f"{DENIED}: {', '.join(sorted(numbers))}",
        _NOT_ISOLATED if allowed else "",
    )


def _grouped(results: Mapping[str, str]) -> str:
    """``REASON: 195:1, 195:2; OTHER: 195:3``, so that eight equal answers are one."""
    by_result: dict[str, list[str]] = {}
    for number, result in sorted(results.items()):
        by_result.setdefault(result, []).append(number)
    return "; ".join(f"{result}: {', '.join(named)}" for result, named in by_result.items())


def _is_denial(result: str) -> bool:
    reason = result[len("mknod: ") :] if result.startswith("mknod: ") else result
    return reason in (DENIED, DENIED_ELSEWHERE)


def _result(node: str, result: str | None, expected: Expectation) -> str:
    note = ""
    if result == NO_DRIVER and expected.accept_simulated:
        note = " (simulated: no driver behind the node, the cgroup allows it)"
    return f"{node}: {result or 'no such node'}{note}"


def _listed(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) or "none"
