# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on a container's disk traffic. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule
from .run_values import number, shown

_THROTTLES = ("device-read-bps", "device-write-bps", "device-read-iops", "device-write-iops")


@rule(
    "blkio-weight-range",
    "blkio-weight out of range",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The weight is from 10 to 1000; the engine refuses others.",
    fix="Choose a weight from 10 to 1000; 0 leaves it unset.",
    sources=("moby daemon/daemon_unix.go verifyPlatformContainerResources",),
    row="162",
)
def blkio_weight_range(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Docker's range, which is neither io.weight's nor BFQ's."""
    given = spec.last("blkio-weight")
    value = number(given)
    if given and value is not None and value != 0 and not 10 <= value <= 1000:
        yield Hit(given.at, f"{shown(given)} is not between 10 and 1000.")


@rule(
    "blkio-weight-inert",
    "A disk weight that no disk honours",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Weights act only on disks with the BFQ scheduler or with iocost enabled; elsewhere "
    "the value is stored and changes nothing.",
    fix="Enable iocost for the disk (io.cost.qos) or choose the bfq scheduler; a hard limit is "
    "device-read-bps and device-write-bps.",
    sources=("kernel admin-guide/cgroup-v2.rst io.weight", "runc cgroups/fs2/io.go"),
    row="162",
)
def blkio_weight_inert(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A disk weight that no disk honours."""
    given = spec.last("blkio-weight") or spec.last("blkio-weight-device")
    if given is None or given.value in ("", "0") or host.weights_work:
        return
    if host.weights_work is False:
        seen = f"{shown(given)}, and no disk of the host has BFQ or iocost."
        yield Hit(given.at, seen, commands=("cat /sys/fs/cgroup/io.cost.qos",))
    else:
        seen = f"{shown(given)} acts only where the disk has BFQ or iocost enabled."
        yield Hit(given.at, seen, severity=Severity.INFO, assumed=("the host is not known",))


@rule(
    "io-maxbandwidth-windows",
    "The flag is for Windows containers",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="On Linux the engine refuses the two io-max flags with 'Invalid QoS settings'.",
    fix="Use --device-read-bps, --device-write-bps, --device-read-iops and --device-write-iops.",
    sources=("moby daemon/daemon_unix.go verifyPlatformContainerResources",),
    row="162",
)
def io_maxbandwidth_windows(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Known to the command, not to Linux."""
    for flag in ("io-maxbandwidth", "io-maxiops"):
        given = spec.last(flag)
        if given and given.value not in ("", "0"):
            yield Hit(given.at, f"{shown(given)} is given.")


@rule(
    "device-throttle-dropped",
    "This docker command drops the disk limits",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="The docker command of 26.1.4 to 27.1.1 reads device-read-bps and its like and does "
    "not send them: the container runs without the limit, and nothing says so.",
    fix="Update the docker command to 27.1.2 or newer, or set the limit with Compose or the API.",
    sources=(
        "docker/cli commit 946d1097b8, opts/throttledevice.go",
        "Docker Engine 27.1.2 release notes",
        "seen on Docker 26.1.5, works on 28.5.2",
    ),
    needs=(Needs("docker_cli", ">=26.1.4,<27.1.2"),),
    unknown=Severity.INFO,
    row="162",
)
def device_throttle_dropped(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only the command is at fault, so Compose files are not."""
    if spec.how not in ("run", "create") or spec.engine != "docker":
        return
    for flag in _THROTTLES:
        for given in spec.all(flag)[:1]:
            yield Hit(given.at, f"{shown(given)} may be dropped by the docker command.")
