# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on Compose services and files that Compose itself accepts or refuses as a whole. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...versions import at_least
from ..documents.container import ComposeFile, ContainerSpec
from ..host import HostView
from ..model import Given, Hit, Needs, Severity
from ..registry import rule
from .run_values import for_swarm, swarm_key

_SEEN = "seen on Compose 2.26.1 and 2.40.3"
_VALIDATE = "compose-spec/compose-go loader/validate.go"
_LIMITS, _RESERVED = "deploy.resources.limits.", "deploy.resources.reservations."
# Flag, the key of the service, the one under deploy that has to say the same.
_TWICE = (
    ("cpus", "cpus", f"{_LIMITS}cpus"),
    ("memory", "mem_limit", f"{_LIMITS}memory"),
    ("pids-limit", "pids_limit", f"{_LIMITS}pids"),
    ("memory-reservation", "mem_reservation", f"{_RESERVED}memory"),
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s?([kmgtp]?)(?:i?b)?", re.IGNORECASE)
_BINARY = re.compile(r"\d+(\.\d+)?\s?[kmgtp]i", re.IGNORECASE)
_SIZED = ("memory", "memory-reservation", "memory-swap", "shm-size")


def _amount(text: str) -> float | None:
    """A size or a number as a number; None for what is neither."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    power = "kmgtp".find(match.group(2).lower()) + 1 if match.group(2) else 0
    return float(match.group(1)) * 1024.0**power


@rule(
    "compose-distinct-values",
    "A limit at the service and another one under deploy",
    Severity.FATAL,
    reads=ContainerSpec,
    reason="Compose wants mem_limit, cpus, pids_limit and mem_reservation to be the same as what "
    "deploy.resources says. A limits or reservations block that does not say it at all counts as "
    "zero, also where it is there for a GPU only. Compose refuses: can't set distinct values.",
    fix="Write both under deploy.resources, and none at the service.",
    sources=(_VALIDATE, _SEEN),
)
def distinct_values(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """``mem_limit`` beside a ``deploy.resources.limits`` that says otherwise, or nothing."""
    if spec.how != "compose":
        return
    blocks = {given.spelled.rpartition(".")[0] + "." for given in _deployed(spec)}
    if any(request.how == "reservation" for request in spec.gpus):
        blocks.add(_RESERVED)
    for flag, short, long in _TWICE:
        own = _spelled(spec, flag, short)
        deployed = _spelled(spec, flag, long)
        if own is None or long.rpartition(".")[0] + "." not in blocks or "$" in own.value:
            continue
        amount = _amount(own.value)
        if not amount or (deployed is not None and "$" in deployed.value):
            continue
        if deployed is not None and _amount(deployed.value) in (amount, None):
            continue
        other = f"{long} is {deployed.value}" if deployed else f"{long} is not given"
        seen = f"services.{spec.name}: {short} is {own.value}, and {other}."
        yield Hit(own.at, seen, f"Remove {short} and write {long}: {own.value}.")


def _deployed(spec: ContainerSpec) -> Iterator[Given]:
    for given in spec.flags.values():
        for one in given:
            if one.spelled.startswith((_LIMITS, _RESERVED)):
                yield one
            elif one.spelled in (_RESERVED[:-1], "generic_resources"):
                yield Given(one.value, one.at, f"{_RESERVED}any")


def _spelled(spec: ContainerSpec, flag: str, spelled: str) -> Given | None:
    return next((given for given in spec.all(flag) if given.spelled == spelled), None)


@rule(
    "compose-network-mode-and-networks",
    "network_mode together with networks",
    Severity.FATAL,
    reads=ContainerSpec,
    reason="A service has either a mode or networks; Compose refuses both.",
    fix="Keep one of them.",
    sources=(_VALIDATE, _SEEN),
)
def network_mode_and_networks(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Both keys at one service."""
    mode = _spelled(spec, "network", "network_mode")
    if mode is not None and _spelled(spec, "network", "networks") is not None:
        yield Hit(mode.at, f"services.{spec.name} has network_mode {mode.value} and networks.")


@rule(
    "compose-container-name-replicas",
    "One container name for several replicas",
    Severity.FATAL,
    reads=ContainerSpec,
    reason="Names of containers are unique, so Compose refuses container_name for more than one.",
    fix="Remove container_name, or the replicas.",
    sources=(_VALIDATE, _SEEN),
)
def container_name_replicas(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """``container_name`` with ``scale`` or ``deploy.replicas`` above one."""
    many = spec.last("scale") or spec.last("deploy.replicas")
    name = spec.last("name")
    if spec.how != "compose" or many is None or name is None:
        return
    if for_swarm(spec):  # docker stack ignores container_name
        return
    if re.fullmatch(r"\d+", many.value) and int(many.value) > 1:
        seen = f"services.{spec.name} is called {name.value} and wanted {many.value} times."
        yield Hit(name.at, seen)


@rule(
    "compose-healthcheck-test",
    "A health check that does not begin with CMD, CMD-SHELL or NONE",
    Severity.FATAL,
    reads=ContainerSpec,
    reason="The first element of a list says how the rest is run; Compose refuses any other word.",
    fix="Write test: [CMD, nvidia-smi], or the whole as one text.",
    sources=(_VALIDATE, _SEEN),
)
def healthcheck_test(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A list that begins with the command itself."""
    for given in spec.all("health-cmd"):
        if given.spelled != "healthcheck.test[]" or "$" in given.value:
            continue
        first = given.value.split(" ")[0]
        if first not in ("CMD", "CMD-SHELL", "NONE"):
            fix = f"Write test: [CMD, {', '.join(given.value.split(' ')[:6])}]."
            yield Hit(given.at, f"services.{spec.name}: healthcheck.test begins with {first}.", fix)


@rule(
    "compose-size-suffix",
    "A size with a Kubernetes suffix",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Docker's sizes end in k, m, g or gb, gib; Ki, Mi and Gi without b are Kubernetes' own. "
    "Compose 2.40 refuses them as an invalid suffix; older builds read them as binary units.",
    fix="Write g for Gi, m for Mi.",
    sources=("docker/go-units size.go", _SEEN),
)
def size_suffix(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """``8Gi`` as a memory limit."""
    if spec.how != "compose":
        return
    for flag in _SIZED:
        for given in spec.all(flag):
            if _BINARY.fullmatch(given.value.strip()):
                right = given.value.strip()[:-1].lower()
                seen = f"services.{spec.name}: {given.spelled} is {given.value}."
                yield Hit(given.at, seen, f"Write {given.spelled.split('.')[-1]}: {right}.")


@rule(
    "compose-gpus-key",
    "The key gpus before Compose 2.30",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Compose has the key gpus since 2.30.0. Before, it is refused as an additional "
    "property or read and not passed on, so that the container has no GPU.",
    fix="Write devices under deploy.resources.reservations, or update Compose.",
    sources=("docs.docker.com/reference/compose-file/services gpus", "langflow-ai/openrag#779"),
    needs=(Needs("compose", "<2.30.0"),),
    unknown=Severity.INFO,
)
def gpus_key(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A service with ``gpus``."""
    if spec.how == "compose":
        for request in (r for r in spec.gpus if r.how == "gpus"):
            yield Hit(request.at, f"services.{spec.name} asks for GPUs by the key gpus.")
            return


@rule(
    "compose-cdi-devices",
    "CDI names under devices before Compose 2.30",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Compose passes a CDI name under devices on as a request since 2.30.0; before, it is "
    "taken for a path on the host, which is not there.",
    fix="Write a reservation with driver: cdi and device_ids, or update Compose.",
    sources=("docker/compose#12184",),
    needs=(Needs("compose", "<2.30.0"),),
    unknown=Severity.INFO,
)
def cdi_devices(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A service with ``devices: [nvidia.com/gpu=0]``."""
    if spec.how != "compose":
        return
    for given in spec.cdi_devices:
        if "$" not in given.value:
            yield Hit(given.at, f"services.{spec.name} has the CDI device {given.value}.")


@rule(
    "compose-reservation-too-old",
    "Device reservations before Compose 1.28",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="docker-compose reads deploy.resources.reservations.devices since 1.28.0 and refuses "
    "the key before: 'devices' was unexpected.",
    fix="Install Compose 2 (docker compose), or use runtime: nvidia with a file of version 2.4.",
    sources=("docker/compose#8142",),
)
def reservation_too_old(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A reservation where Compose is known to be older. Where it is not known: nothing."""
    have = host.version("compose")
    if have is None or at_least(have, "1.28.0"):
        return
    for request in spec.gpus:
        if request.how == "reservation":
            yield Hit(request.at, f"services.{spec.name} reserves a device; Compose is {have}.")


@rule(
    "obsolete-version-key",
    "The key version says nothing any more",
    Severity.INFO,
    reads=ComposeFile,
    reason="Compose since 2.0 does not use version; since 2.25 it warns that it is obsolete.",
    fix="Remove the line.",
    sources=("docs.docker.com/reference/compose-file/version-and-name", _SEEN),
)
def obsolete_version_key(file: ComposeFile, host: HostView) -> Iterator[Hit]:
    """A top-level ``version``."""
    if "version" in file.keys:
        yield Hit(file.keys["version"], "The file has the key version.")


@rule(
    "swarm-ignores-devices",
    "GPUs of a service that is meant for Swarm",
    Severity.INFO,
    reads=ContainerSpec,
    reason="docker stack deploy has no devices, gpus and runtime for a service and refuses device "
    "reservations; a Swarm task gets GPUs through generic resources and the default runtime of "
    "the worker. With docker compose up it is the other way round.",
    fix="For Swarm write generic_resources under deploy.resources.reservations, set "
    "node-generic-resources in daemon.json and make the NVIDIA runtime the default.",
    sources=("docker/cli cli/compose/schema", "seen on Docker 26.1.5 and 28.5.2"),
)
def swarm_ignores_devices(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Placement or update settings, which only Swarm reads, beside a GPU by Compose's keys."""
    mark = swarm_key(spec)
    if mark and spec.gpus:
        seen = f"services.{spec.name} has {mark}, which only Swarm reads, and asks for GPUs."
        yield Hit(spec.gpus[0].at, seen)


@rule(
    "compose-generic-resources",
    "Generic resources outside Swarm",
    Severity.INFO,
    reads=ContainerSpec,
    reason="Only Swarm reads generic_resources; docker compose up starts the container without.",
    fix="For docker compose up write a device reservation: driver: nvidia, count, capabilities.",
    sources=("seen on Docker 26.1.5 and 28.5.2", "compose-spec/compose-spec deploy.md"),
)
def generic_resources(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A service whose only request for a GPU is one that Swarm reads."""
    wanted = [g for g in spec.all("generic-resource") if "gpu" in g.value.lower()]
    if spec.how == "compose" and wanted and not spec.asks_nvidia:
        yield Hit(wanted[0].at, f"services.{spec.name} reserves {wanted[0].value}.")
