# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on units of engines and on units that use GPUs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.units import UnitFile
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule

_GPU_PROGRAM = re.compile(r"nvidia|dcgm|nvml|nv-hostengine|rocm|amd-smi|gpu")
_TRUE = ("yes", "true", "1", "on")


@rule(
    "unit-private-devices",
    "The unit hides device files from a program that needs GPUs",
    Severity.ERROR,
    reads=UnitFile,
    reason="PrivateDevices gives the service a /dev without /dev/nvidia*, and DevicePolicy closed "
    "or strict denies what DeviceAllow does not name: the program finds no GPU.",
    fix="Remove it, or add DeviceAllow=char-nvidia rw, char-nvidia-uvm and char-nvidia-caps with "
    "PrivateDevices=no.",
    sources=("systemd.exec(5), PrivateDevices=", "systemd.resource-control(5), DevicePolicy="),
)
def unit_private_devices(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """A GPU program behind a closed /dev."""
    if not any(_GPU_PROGRAM.search(line.name) for line in unit.commands):
        return
    private = unit.last("Service", "PrivateDevices")
    if private is not None and private.value.lower() in _TRUE:
        yield Hit(private.at, f"PrivateDevices is {private.value}.")
    policy = unit.last("Service", "DevicePolicy")
    allowed = [s for s in unit.all("Service", "DeviceAllow") if _GPU_PROGRAM.search(s.value)]
    if policy is not None and policy.value in ("closed", "strict") and not allowed:
        yield Hit(policy.at, f"DevicePolicy is {policy.value}, and DeviceAllow names no GPU.")


@rule(
    "unit-delegate-off",
    "The engine's control group is not delegated",
    Severity.ERROR,
    reads=UnitFile,
    reason="Without Delegate=yes systemd takes the groups below the engine's unit for its own: at "
    "a reload it moves processes and removes controllers, and containers lose limits and devices.",
    fix="Delegate=yes in the service, as the packages' units have it.",
    sources=("systemd documentation, control group delegation", "moby contrib/init/systemd"),
)
def unit_delegate_off(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """A Delegate=no that somebody wrote for dockerd or containerd."""
    setting = unit.last("Service", "Delegate")
    engine = unit.unit in ("docker.service", "containerd.service")
    if setting is None or not (engine or unit.named("dockerd") or unit.named("containerd")):
        return
    if setting.value.lower() in ("no", "false", "0", "off"):
        yield Hit(setting.at, f"Delegate is {setting.value}.")


_LIMITS = ("MemoryMax", "MemoryHigh", "CPUQuota", "AllowedCPUs", "CPUAffinity", "CPUWeight")


@rule(
    "engine-unit-limits",
    "Limits of the engine's unit do not reach its containers",
    Severity.INFO,
    reads=UnitFile,
    reason="Containers have cgroups of their own (docker-….scope in system.slice or in their "
    "cgroup-parent), not inside docker.service or containerd.service: such limits bind the "
    "daemon alone.",
    fix="Put containers into a slice with these limits: cgroup-parent in daemon.json, or "
    "--cgroup-parent.",
    sources=("moby daemon/oci_linux.go", "systemd.resource-control(5)"),
    row="163",
)
def engine_unit_limits(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """MemoryMax= and the like in docker.service."""
    if unit.unit not in ("docker.service", "containerd.service"):
        return
    for name in _LIMITS:
        setting = unit.last("Service", name)
        if setting is not None and setting.value and setting.value != "infinity":
            yield Hit(setting.at, f"{unit.unit} has {name}={setting.value}.")


@rule(
    "engine-unit-kill-mode",
    "Stopping the engine kills its containers' shims",
    Severity.ERROR,
    reads=UnitFile,
    reason="Without KillMode=process systemd ends every process of the unit. The shims of an "
    "engine that starts its own containerd are among them: live-restore cannot keep a container.",
    fix="Write KillMode=process, as the packages' units have it.",
    sources=("moby contrib/init/systemd/docker.service", "containerd containerd.service"),
)
def engine_unit_kill_mode(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """A KillMode that somebody chose for containerd or dockerd."""
    setting = unit.last("Service", "KillMode")
    if setting is None or setting.value not in ("control-group", "mixed"):
        return
    seen = f"KillMode is {setting.value}."
    if unit.unit == "containerd.service" or unit.named("containerd"):
        yield Hit(setting.at, seen)
    elif any("containerd" not in line.flags for line in unit.named("dockerd")):
        # Where a containerd.service runs, dockerd uses it and the shims are not in this unit.
        assumed = ("no containerd.service",)
        yield Hit(setting.at, seen, severity=Severity.INFO, assumed=assumed)


@rule(
    "unit-docker-order",
    "A unit that starts a container before Docker is up",
    Severity.INFO,
    reads=UnitFile,
    reason="Without After=docker.service the unit is started at boot beside Docker, and its first "
    "attempt may fail.",
    fix="In [Unit]: After=docker.service and Wants=docker.service. With Requires= a restart of "
    "Docker would end the unit's job.",
    sources=("systemd.unit(5), After=",),
)
def unit_docker_order(unit: UnitFile, host: HostView) -> Iterator[Hit]:
    """A whole unit, with a [Unit] section, that says nothing of Docker."""
    sections = {setting.section for setting in unit.settings}
    if unit.drop_in or not {"Unit", "Install"} <= sections:
        return
    after = " ".join(s.value for s in unit.all("Unit", "After"))
    for line in unit.named("docker"):
        if "docker." not in after and line.sub[-1:] in (("run",), ("start",), ("up",)):
            yield Hit(line.at, "The unit runs docker and has no After=docker.service.")
            return
