# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From what is seen of a host to what heals it. Pure.

Only what is known to be safe becomes a step: nothing that stops a process, nothing that makes
systemd reload (``systemctl daemon-reload`` can cost containers their GPU), nothing that takes a
device from anybody. All else is named with the commands for a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import given, specs
from .model import (
    CDI_ORDER,
    CDI_REFRESH,
    CDI_SPEC,
    GPU_ACCESS,
    KINDS,
    UVM,
    ByHand,
    GpuContainer,
    Plan,
    Sight,
    Step,
)

REFRESH_SERVICE = "nvidia-cdi-refresh.service"
REFRESH_PATH = "nvidia-cdi-refresh.path"
ENGINE = "docker.service"
DROP_IN = f"/etc/systemd/system/{REFRESH_SERVICE}.d/10-steadygpu-order.conf"
# A refresh that hangs must not keep the engine, and so every container, from starting at boot.
DROP_IN_TEXT = f"""\
# Written by steadygpu heal: containers that start at boot find their GPUs in the specification.
[Unit]
Before={ENGINE}

[Service]
TimeoutStartSec=120
"""
# The former specification stays beside the new one; engines read no file of this name.
KEPT = ".steadygpu-before"
UNITS = (REFRESH_SERVICE, REFRESH_PATH, ENGINE)

Found = Iterator[Any]


class UnknownStepError(ValueError):
    """``only`` names no kind of steps; says which there are."""


def make(sight: Sight, only: Sequence[str] = ()) -> Plan:
    """What heals this host. ``only`` keeps steps by id or by kind; raises UnknownStepError."""
    found = [
        *_uvm(sight),
        *_specs(sight),
        *_refresh(sight),
        *_order(sight),
        *_containers(sight),
    ]
    steps = [one for one in found if isinstance(one, Step)]
    # A step that is healed is not there any more; only a kind can be misspelled for sure.
    unknown = [name for name in only if name.partition(":")[0] not in KINDS]
    if unknown:
        raise UnknownStepError(
            f"no step {', '.join(unknown)}: kinds are {', '.join(KINDS)}, and an id is like "
            "gpu-access:NAME"
        )
    if only:
        steps = [one for one in steps if one.id in only or one.kind in only]
    return Plan(
        tuple(steps),
        tuple(one for one in found if isinstance(one, ByHand)),
        tuple(f"container {one.name}" for one in sight.containers if one.by_hook and one.lost),
        tuple(_unclear(sight)),
    )


# -- the driver's module for CUDA --------------------------------------------------------


def _uvm(sight: Sight) -> Found:
    gpu = _mapping(sight.facts.get("gpu"))
    # NVML must have answered: where the driver itself is wrong, uvm is not what helps.
    if (gpu.get("driver") or {}).get("status") != "loaded" or not gpu.get("devices"):
        return
    modules = gpu.get("modules") or {}
    nodes = {one.get("path"): one for one in gpu.get("nodes") or []}
    # WSL has a driver without the module and without its nodes.
    ours = modules.get("nvidia") or (nodes.get("/dev/nvidiactl") or {}).get("exists")
    loaded = modules.get("nvidia_uvm") if ours else None
    node = nodes.get("/dev/nvidia-uvm")
    if loaded is True and (node is None or node.get("exists")):
        return
    if loaded is None:
        return
    seen = (
        "the kernel module nvidia_uvm is not loaded"
        if loaded is False
        else "/dev/nvidia-uvm is missing"
    )
    modprobe = sight.programs.get("nvidia-modprobe") is not None
    commands = ("nvidia-modprobe -u -c 0",) if modprobe else ("modprobe nvidia_uvm",)
    yield Step(
        UVM,
        "",
        f"{seen}: until something loads it, CUDA in containers fails with error 999 or 100, while "
        "nvidia-smi works",
        "nvidia_uvm is loaded and /dev/nvidia-uvm is there",
        commands,
        "modprobe -r nvidia_uvm, while no CUDA program runs",
        "Containers that were started before have no /dev/nvidia-uvm: recreate those that use "
        "CUDA. To load it at every boot: echo nvidia_uvm > /etc/modules-load.d/nvidia-uvm.conf",
    )


# -- CDI specifications ------------------------------------------------------------------


def _specs(sight: Sight) -> Found:
    gpu = _mapping(sight.facts.get("gpu"))
    for spec in _mapping(sight.facts.get("cdi")).get("specs") or []:
        path, text = str(spec.get("path")), sight.spec_texts.get(str(spec.get("path")), "")
        if spec.get("kind") != specs.KIND or spec.get("status") != "valid":
            continue
        names = [str(name) for name in spec.get("devices") or []]
        wrong = specs.faults(names, text, gpu)
        if not wrong:
            continue
        ways = specs.strategies(names)
        command = " ".join(
            ["nvidia-ctk cdi generate", *(f"--device-name-strategy={one}" for one in ways)]
        )
        command += f" --output={path}"
        seen = f"{path} is stale: {'; '.join(wrong)}"
        if path not in specs.GENERATED:
            why = (
                "it is not where nvidia-ctk keeps its own, so somebody may have written it by hand"
            )
            yield ByHand(f"{CDI_SPEC}:{path}", seen, why, (command,))
        elif sight.programs.get("nvidia-ctk") is None:
            why = "nvidia-ctk, which makes it, is not on this host"
            yield ByHand(f"{CDI_SPEC}:{path}", seen, why, (command,))
        elif _all_empty(gpu):
            why = "MIG is on and no GPU has an instance, so there is no device to describe"
            yield ByHand(f"{CDI_SPEC}:{path}", seen, why, ("steadygpu mig show", command))
        else:
            yield Step(
                CDI_SPEC,
                path,
                seen,
                f"{path} describes the GPUs as they are",
                (command,),
                f"mv {path}{KEPT} {path}",
                "Running containers keep what they have; the file is read when one is started.",
            )


def _all_empty(gpu: Mapping[str, Any]) -> bool:
    migs = [one.get("mig") or {} for one in gpu.get("devices") or []]
    return bool(migs) and all(one.get("current") and not one.get("devices") for one in migs)


# -- the units that make them anew -------------------------------------------------------


def _refresh(sight: Sight) -> Found:
    for name in (REFRESH_PATH, REFRESH_SERVICE):
        unit = sight.units.get(name)
        if unit is None or not unit.there or unit.file_state != "disabled":
            continue
        commands = [f"systemctl enable --no-reload {name}"]
        if name == REFRESH_PATH:
            commands.append(f"systemctl start {name}")
        yield Step(
            CDI_REFRESH,
            name,
            f"{name} is disabled: the CDI specification stays as it is when the driver changes",
            f"{name} is enabled",
            tuple(commands),
            f"systemctl disable --no-reload {name}",
        )


def _order(sight: Sight) -> Found:
    service, engine = sight.units.get(REFRESH_SERVICE), sight.units.get(ENGINE)
    if service is None or engine is None or not service.there or not engine.there:
        return
    docker = _mapping(sight.facts.get("docker"))
    if not _mapping(docker.get("cdi")).get("enabled"):
        return
    if REFRESH_SERVICE in engine.after or _is_ordered(sight.drop_ins):
        return
    seen = (
        f"{ENGINE} is not ordered after {REFRESH_SERVICE}: a container with a restart policy may "
        "start at boot before the specification is there, and fail"
    )
    # Releases with After=multi-user.target would make a cycle, and systemd then leaves out one of
    # the two: Docker did not start any more (NVIDIA/nvidia-container-toolkit #1735).
    late = sorted({"multi-user.target", "graphical.target", ENGINE} & service.after)
    if late:
        yield ByHand(
            CDI_ORDER,
            seen,
            f"{REFRESH_SERVICE} itself waits for {', '.join(late)}, so that this order would be a "
            "cycle and Docker might not start at boot; a newer nvidia-container-toolkit has "
            "no such line",
            (f"systemctl cat {REFRESH_SERVICE}",),
        )
        return
    yield Step(
        CDI_ORDER,
        "",
        seen,
        f"{REFRESH_SERVICE} runs before {ENGINE} from the next boot on",
        (
            f"mkdir -p {DROP_IN.rpartition('/')[0]}",
            f"printf '%s\\n' '[Unit]' 'Before={ENGINE}' '[Service]' 'TimeoutStartSec=120' "
            f"> {DROP_IN}",
        ),
        f"rm {DROP_IN}",
        "No daemon-reload is needed, and none is made: it could cost a container its GPU.",
    )


def _is_ordered(drop_ins: Mapping[str, str]) -> bool:
    for path, text in drop_ins.items():
        words = {
            (key.strip(), word)
            for key, _equals, value in (line.partition("=") for line in text.splitlines())
            for word in value.split()
        }
        if f"/{REFRESH_SERVICE}" in path and ("Before", ENGINE) in words:
            return True
        if f"/{ENGINE}" in path and ("After", REFRESH_SERVICE) in words:
            return True
    return False


# -- containers that lost their GPU ------------------------------------------------------


def _containers(sight: Sight) -> Found:
    for one in sight.containers:
        if one.lost:
            yield _access(one, sight.majors)


def _unclear(sight: Sight) -> Iterator[str]:
    """What cannot be told is no fault. By CDI a GPU is never lost, so there is nothing to tell."""
    for one in sight.containers:
        if one.unclear and one.by_hook:
            ask = f"; docker exec {one.name} nvidia-smi -L shows it" if one.is_dockers else ""
            yield f"whether container {one.name} has its GPU: {one.unclear}{ask}"


def _access(one: GpuContainer, majors: Mapping[str, int]) -> Step | ByHand:
    paths = [given.host_path(node) for node in one.given]
    lost = ", ".join(node.path for node in one.lost)
    seen = f"container {one.name} was given {lost} and may not open it any more"
    recreate: tuple[str, ...] = (
        f"docker inspect {one.name}",
        "# make it anew with --device nvidia.com/gpu=… in place of --gpus",
    )
    why = ""
    if not one.is_dockers:
        why = "it is not Docker's, and its own engine or kubelet keeps its device rules"
    elif one.scope is None:
        why = "it has no systemd scope (Docker's cgroupfs driver), so there is no unit to set"
    elif one.barred:
        why = f"a slice above {one.scope} refuses {', '.join(one.barred)}: somebody's decision"
    elif one.decided:
        why = f"{one.decided} has set its devices since: a docker update, or somebody's decision"
    elif "DevicePolicy=auto" in one.allowed and len(one.allowed) == 1:
        why = f"systemd restricts nothing of {one.scope}, and a grant would begin to"
    elif not one.allowed:
        why = f"systemd does not say what it lets {one.scope} open"
    else:
        after = [*one.allowed, *(f"DeviceAllow={path} rwm" for path in paths)]
        dropped = [node for node in one.others if not given.systemd_allows(after, node, majors)]
        if dropped:
            names = ", ".join(node.path for node in dropped)
            why = f"systemd does not know that it may open {names}, and would take that from it"
    if why:
        if one.decided:
            recreate = (grant_command(str(one.scope), paths), *recreate)
        return ByHand(f"{GPU_ACCESS}:{one.name}", seen, why, recreate if one.is_dockers else ())
    return Step(
        GPU_ACCESS,
        one.name,
        seen,
        f"container {one.name} may open {', '.join(node.path for node in one.given)}",
        (grant_command(str(one.scope), paths),),
        "it ends with the container; at once: " + undo_command(str(one.scope), one.allowed),
        "It holds until the next docker update of the container. Recreate it at a good time with "
        "its GPU by CDI (--device nvidia.com/gpu=…), which is never lost.",
    )


def grant_command(scope: str, paths: Sequence[str]) -> str:
    """The line that gives the devices back. All in one call: each call makes the rules anew."""
    return f"systemctl set-property --runtime {scope} " + " ".join(
        f"'DeviceAllow={path} rwm'" for path in paths
    )


def undo_command(scope: str, allowed: Sequence[str]) -> str:
    """The line that makes the unit's device list what it was."""
    former = [line for line in allowed if line.startswith("DeviceAllow=")]
    return f"systemctl set-property --runtime {scope} DeviceAllow= " + " ".join(
        f"'{line}'" for line in former
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
