# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a Compose service asks of GPUs, and ``deploy`` with its limits and reservations. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...trees.node import Key, Node
from ..documents.container import GpuRequest
from ..model import Given
from .compose_keys import DEPLOY, GPU_REQUEST, LIMITS, RESERVATIONS, RESOURCES
from .compose_values import Found, fits, strings, text_of, written

_COUNT = re.compile(r"[-+]?\d+")
# What people put under limits or reservations and where it belongs.
_ELSEWHERE = {
    "devices": "Move devices to deploy.resources.reservations.",
    "device_requests": "Write devices.",
    "gpus": "Write gpus: all at the service, or devices under deploy.resources.reservations.",
    "gpu": "Write gpus: all at the service, or devices under deploy.resources.reservations.",
    "nvidia.com/gpu": "That is Kubernetes; write devices under deploy.resources.reservations.",
    "generic_resources": "Move generic_resources to deploy.resources.reservations.",
    "pids": "Only limits has pids.",
    "mem": "Write memory.",
    "mem_limit": "Write memory.",
    "cpu": "Write cpus.",
    "gpu_memory": "No engine limits GPU memory per container: use MIG, MPS or a claim.",
    "capabilities": "It belongs into an element of devices.",
    "driver": "It belongs into an element of devices.",
    "runtime": "Write runtime at the service.",
}


def deploy(found: Found, service: Node) -> None:
    """``deploy``: its limits as flags, its device reservations as requests."""
    node = service.get("deploy")
    if node is None or not node.is_map:
        return
    path = f"{found.path}.deploy"
    _keys(found, path, node, DEPLOY)
    for name in ("replicas", "mode", "endpoint_mode"):
        value = text_of(node.get(name))
        if value:
            found.give(f"deploy.{name}", value, _key(node, name), f"deploy.{name}")
    for name in ("placement", "update_config", "rollback_config"):
        if name in node.keys:
            found.give(f"deploy.{name}", "", _key(node, name), f"deploy.{name}")
    resources = node.get("resources")
    if resources is None:
        return
    _keys(found, f"{path}.resources", resources, RESOURCES)
    limits, reserved = resources.get("limits"), resources.get("reservations")
    if limits is not None and limits.is_map:
        _keys(found, f"{path}.resources.limits", limits, LIMITS)
        for name, flag in (("cpus", "cpus"), ("memory", "memory"), ("pids", "pids-limit")):
            _limit(found, limits, name, flag, "deploy.resources.limits")
    if reserved is not None and reserved.is_map:
        _keys(found, f"{path}.resources.reservations", reserved, RESERVATIONS)
        spelled = "deploy.resources.reservations"
        _limit(found, reserved, "memory", "memory-reservation", spelled)
        _limit(found, reserved, "cpus", f"{spelled}.cpus", spelled)
        _generic(found, reserved)
        devices = reserved.get("devices")
        for number, element in enumerate(devices.elements() if devices is not None else ()):
            _request(found, element, "reservation", f"{path}.resources.reservations", number)


def _key(node: Node, name: str) -> Key:
    return node.keys.get(name, Key(name, node.line, node.column))


def _keys(found: Found, path: str, node: Node, table: Mapping[str, str]) -> None:
    for key, value in node.items():
        if key.name in table:
            fits(found, f"{path}.{key.name}", key, value, table[key.name])
        elif not key.name.startswith("x-"):
            fix = _ELSEWHERE.get(key.name, f"{path} may have: {', '.join(table)}.")
            found.fault("compose-unknown-key", key, f"{path} has the key {key.name}.", fix)


def _limit(found: Found, node: Node, name: str, flag: str, spelled: str) -> None:
    value = text_of(node.get(name))
    if value:
        found.give(flag, value, _key(node, name), f"{spelled}.{name}")


def _generic(found: Found, reserved: Node) -> None:
    node = reserved.get("generic_resources")
    for element in node.elements() if node is not None else ():
        spec = element.get("discrete_resource_spec") or element
        value = f"{text_of(spec.get('kind'))}={text_of(spec.get('value'))}"
        found.give("generic-resource", value, element, "generic_resources")


def gpus(found: Found, service: Node) -> None:
    """``gpus``: ``all``, or a list of requests."""
    node = service.get("gpus")
    if node is None:
        return
    at = _key(service, "gpus")
    if node.is_list:
        for number, element in enumerate(node.elements()):
            _request(found, element, "gpus", f"{found.path}.gpus", number)
    elif node.words() == "all":
        everything = Given("all", found.at(at), "gpus")
        request = GpuRequest(found.at(at), "gpus", "all", count=everything, capabilities=("gpu",))
        found.gpus.append(request)
    elif "$" not in node.text and written(node) == "t":
        fix = "Write gpus: all, or a list: gpus: [{driver: nvidia, device_ids: ['0']}]."
        seen = f"{found.path}.gpus is {node.text!r}; wanted is all, or a list of requests."
        found.fault("compose-wrong-type", at, seen, fix)


def _request(found: Found, node: Node, how: str, path: str, number: int) -> None:
    if not node.is_map:
        if not found.tagged(node):
            seen = f"Place {number} of {path} is no mapping; wanted is a device request."
            fix = "Write '- driver: nvidia' with count or device_ids, and capabilities: [gpu]."
            found.fault("compose-wrong-type", node, seen, fix)
        return
    errors = [
        Given(key.name, found.at(key), "unexpected-key")
        for key, _value in node.items()
        if key.name not in GPU_REQUEST and not key.name.startswith("x-")
    ]
    count, counting = _count(found, node)
    ids = _ids(found, node, path)
    if count is not None and "device_ids" in node.keys:
        errors.append(Given(count.value, count.at, "count-and-ids"))
    if counting is not None:
        errors.append(counting)
    capabilities, missing = _capabilities(found, node, how)
    if missing is not None:
        errors.append(missing)
    if count is None and not ids and "device_ids" not in node.keys and counting is None:
        count = Given("all", found.at(node), "default")
    options = node.get("options")
    found.gpus.append(
        GpuRequest(
            at=found.at(node),
            how=how,
            raw=",".join(given.value for given in ids) or (count.value if count else ""),
            driver=found.given(node, "driver"),
            count=count,
            device_ids=ids,
            capabilities=capabilities,
            options={k.name: v.words() for k, v in options.items()} if options else {},
            errors=tuple(errors),
        )
    )


def _count(found: Found, node: Node) -> tuple[Given | None, Given | None]:
    """What is counted, and what is wrong with it."""
    count = node.get("count")
    if count is None:
        return None, None
    at = found.at(_key(node, "count"))
    if count.is_map or count.is_list or count.value is None:
        return None, Given("", at, "bad-count")
    text = count.words()
    known = "$" in text or text.lower() == "all" or bool(_COUNT.fullmatch(text))
    wrong = not known or isinstance(count.value, (bool, float))
    given = Given("all" if text.lower() == "all" else text, at, "count")
    return given, Given(text, at, "bad-count") if wrong else None


def _ids(found: Found, node: Node, path: str) -> tuple[Given, ...]:
    ids = node.get("device_ids")
    if ids is None:
        return ()
    key = _key(node, "device_ids")
    if not ids.is_list:
        if "$" not in ids.text and not found.tagged(ids):
            seen = f"device_ids under {path} is {ids.text or 'empty'}; wanted is a list of texts."
            fix = f"Write device_ids: ['{ids.text or '0'}']."
            found.fault("compose-device-ids-not-text", key, seen, fix)
        return ()
    numbers = [e.text for e in ids.elements() if written(e) in "nb"]
    if numbers:
        listed = ", ".join(f"'{number}'" for number in numbers)
        seen = f"device_ids under {path} has numbers without quotes: {', '.join(numbers)}."
        fix = f"Write device_ids: [{listed}]."
        found.fault("compose-device-ids-not-text", key, seen, fix)
    return tuple(
        Given(value, found.at(element), element.text if "$" in element.text else "device_ids")
        for value, element in strings(found, f"{path}.device_ids", ids)
        if value
    )


def _capabilities(
    found: Found, node: Node, how: str
) -> tuple[tuple[str, ...] | None, Given | None]:
    """The capabilities asked for (None: the key is missing), and what is wrong with them."""
    given = node.get("capabilities")
    if given is None:
        if how == "gpus":
            return ("gpu",), None
        return None, Given("", found.at(node), "capabilities-missing")
    at = found.at(_key(node, "capabilities"))
    if not given.is_list:
        if "$" in given.text or found.tagged(given):
            return ("gpu",), None
        return (given.words(),), Given(given.words(), at, "capabilities-type")
    flat = [inner for e in given.elements() for inner in (e.elements() or [e])]
    words = tuple(element.words() for element in flat if element.words())
    nested = any(element.is_list for element in given.elements())
    return words, Given(" ".join(words), at, "capabilities-type") if nested else None
