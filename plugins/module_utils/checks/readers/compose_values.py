# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of one Compose service as Docker's flags, and what is wrong with how they are
written. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...trees.node import Key, Node
from ..documents.compose import ComposeFault
from ..documents.container import GpuRequest
from ..model import Given, Position
from .compose_keys import INSTEAD, NUMBERS_TOO, SERVICE, WORDS


@dataclass
class Found:
    """What is gathered of one service while its keys are read."""

    file: str
    service: str
    tagged: Callable[[Node], bool] = lambda node: False
    flags: dict[str, list[Given]] = field(default_factory=dict)
    env: dict[str, Given] = field(default_factory=dict)
    labels: dict[str, Given] = field(default_factory=dict)
    annotations: dict[str, Given] = field(default_factory=dict)
    gpus: list[GpuRequest] = field(default_factory=list)
    unknown: list[Given] = field(default_factory=list)
    faults: list[ComposeFault] = field(default_factory=list)

    def at(self, place: Node | Key) -> Position:
        """Where ``place`` is."""
        return Position(self.file, place.line, place.column)

    def give(self, flag: str, value: str, place: Node | Key, spelled: str) -> None:
        """Note a value of a flag."""
        self.flags.setdefault(flag, []).append(Given(value, self.at(place), spelled))

    def fault(
        self, kind: str, place: Node | Key, seen: str, fix: str = "", empty: bool = False
    ) -> None:
        """Note what Compose refuses or ignores."""
        self.faults.append(ComposeFault(self.at(place), kind, seen, fix, empty))

    def given(self, node: Node, key: str) -> Given | None:
        """The text of a key with its place; None where it is not there."""
        value = node.get(key)
        if value is None or value.is_map or value.is_list:
            return None
        place = node.keys.get(key, Key(key, node.line, node.column))
        return Given(value.words(), self.at(place), key)

    @property
    def path(self) -> str:
        """The service as Compose's messages name it."""
        return f"services.{self.service}"


def written(node: Node) -> str:
    """How a value is written: a letter of :data:`compose_keys.WORDS`."""
    if node.is_map:
        return "m"
    if node.is_list:
        return "l"
    if node.value is None:
        return "0"
    if isinstance(node.value, bool):
        return "b"
    return "t" if isinstance(node.value, str) else "n"


def fits(found: Found, path: str, key: Key, node: Node, shape: str) -> bool:
    """Is the value written in one of the ways of ``shape``? If not, note it.

    A value made of variables is text here and whatever it says there: it fits unless a list or a
    mapping is wanted.
    """
    how = written(node)
    if how in shape or found.tagged(node):
        return how in shape
    scalars = set(shape) & set("tnb")
    if how == "t" and "$" in node.text and scalars:
        return True
    wanted = " or ".join(WORDS[letter] for letter in shape if letter != "0")
    fix = f"Write {path} as {wanted}."
    if shape[0] == "t" and how in "nb":
        fix = f'Put quotes around it: {key.name}: "{node.text}".'
    elif shape[0] == "l" and how in "tn":
        fix = f"Write it as a list: {key.name}: [{_quoted(node)}]."
    elif how == "0":
        fix = f"Give {key.name} a value, or remove the key."
    seen = f"{path} is {WORDS[how]}; wanted is {wanted}."
    found.fault("compose-wrong-type", key, seen, fix, how == "0")
    return False


def _quoted(node: Node) -> str:
    return f'"{node.text}"' if written(node) == "n" or ":" in node.text else node.text


def strings(found: Found, path: str, node: Node) -> Iterator[tuple[str, Node]]:
    """The elements of a text or of a list of texts."""
    if not node.is_list:
        yield node.words(), node
        return
    for number, element in enumerate(node.elements()):
        if element.is_map or element.is_list:
            if not found.tagged(element):
                seen = f"{path} has {WORDS[written(element)]} in place {number}; wanted is a text."
                found.fault("compose-wrong-type", element, seen)
        elif element.value is not None:
            yield element.words(), element


def pairs(found: Found, path: str, node: Node) -> Iterator[tuple[str, str, Key | Node]]:
    """Name, value and place of a mapping or of a list of ``name=value``."""
    if node.is_map:
        for key, value in node.items():
            if value.is_map or value.is_list:
                seen = f"{path}.{key.name} is {WORDS[written(value)]}; wanted is a plain value."
                found.fault("compose-wrong-type", key, seen)
            else:
                yield key.name, value.words(), key
        return
    for number, element in enumerate(node.elements()):
        if element.is_map:
            names = ", ".join(key.name for key, _value in element.items())
            found.fault(
                "compose-environment-item",
                element,
                f"{path} is a list, and its place {number} is a mapping ({names}).",
                f"Write '- {names}=…' with an equals sign, or leave out the dashes.",
            )
        elif not element.is_list and element.value is not None:
            name, _equals, text = element.words().partition("=")
            yield name, text, element


def plain_keys(found: Found, service: Node) -> None:
    """Every key whose value is a plain one or a list of plain ones, and the keys there are not."""
    for key, node in service.items():
        known = SERVICE.get(key.name)
        if known is None:
            _no_such_key(found, key, node)
            continue
        shape, flag = known
        if not fits(found, f"{found.path}.{key.name}", key, node, shape):
            continue
        _elements_are_texts(found, key, node)
        if not flag:
            continue
        if node.is_list:
            path = f"{found.path}.{key.name}"
            for value, element in strings(found, path, node):
                found.give(flag, value, element, key.name)
        elif node.is_map:
            for name, value, place in pairs(found, f"{found.path}.{key.name}", node):
                joint = ":" if flag == "add-host" else "="
                found.give(flag, f"{name}{joint}{value}", place, key.name)
        elif node.value is not None:
            found.give(flag, node.words(), key, key.name)


def _elements_are_texts(found: Found, key: Key, node: Node) -> None:
    for number, element in enumerate(node.elements()):
        how = written(element)
        if how in "lmt" or found.tagged(element) or (how == "n" and key.name in NUMBERS_TOO):
            continue
        seen = f"Place {number} of {found.path}.{key.name} is {WORDS[how]}; wanted is a text."
        fix = f'Put quotes around it: "{element.text}".' if how in "nb" else "Give it a value."
        found.fault("compose-wrong-type", element, seen, fix, how == "0")


def _no_such_key(found: Found, key: Key, node: Node) -> None:
    if key.name.startswith(("x-", "(@", "{{")):  # an extension; a template's expression
        return
    value = "" if node.is_map or node.is_list else node.words()
    found.unknown.append(Given(value, found.at(key), key.name))
    instead = INSTEAD.get(key.name, "")
    fix = f"Instead of {key.name} write {instead}." if instead else ""
    if instead.startswith("nothing: "):
        fix = f"Remove {key.name}: {instead[len('nothing: ') :]}."
    found.fault("compose-unknown-key", key, f"{found.path} has the key {key.name}.", fix)


def named_values(found: Found, service: Node) -> None:
    """Variables, labels and annotations, and the flags that are pairs of name and value."""
    into: Mapping[str, dict[str, Given]] = {
        "environment": found.env,
        "labels": found.labels,
        "annotations": found.annotations,
    }
    for key, target in into.items():
        node = service.get(key)
        if node is not None:
            for name, value, place in pairs(found, f"{found.path}.{key}", node):
                target[name] = Given(value, found.at(place), key)
    for key, flag in (("sysctls", "sysctl"), ("storage_opt", "storage-opt")):
        node = service.get(key)
        if node is not None:
            for name, value, place in pairs(found, f"{found.path}.{key}", node):
                found.give(flag, f"{name}={value}", place, key)
    hosts = service.get("extra_hosts")
    for key_, value_ in hosts.items() if hosts is not None else ():
        for address, _node in strings(found, f"{found.path}.extra_hosts", value_):
            found.give("add-host", f"{key_.name}:{address}", key_, "extra_hosts")
    for address, element in _plain_list(hosts):
        found.give("add-host", address, element, "extra_hosts")


def _plain_list(node: Node | None) -> Iterator[tuple[str, Node]]:
    for element in node.elements() if node is not None else ():
        if not element.is_map and not element.is_list:
            yield element.words(), element


def structured(found: Found, service: Node) -> None:
    """The keys whose elements may be mappings: devices, ports, volumes, ulimits and others."""
    for element in _elements(service, "devices"):
        value = element.words() or _joined(element, ("source", "target", "permissions"), ":")
        if value:
            found.give("device", value, element, "devices")
    for element in _elements(service, "ports"):
        value = element.words() or _port(element)
        if value:
            found.give("publish", value, element, "ports")
    for element in _elements(service, "volumes"):
        if element.is_map:
            found.give("mount", _mount(element), element, "volumes")
        elif element.words():
            found.give("volume", element.words(), element, "volumes")
    for element in _elements(service, "security_opt"):
        option = element.words()
        if "=" not in option:
            option = option.replace(":", "=", 1)
        found.give("security-opt", option, element, "security_opt")
    networks = service.get("networks")
    if networks is not None:
        for key, _node in networks.items():
            found.give("network", key.name, key, "networks")
        for name, element in _plain_list(networks):
            found.give("network", name, element, "networks")
    _ulimits(found, service)
    _block_io(found, service)
    _logging_and_health(found, service)


def _elements(service: Node, key: str) -> list[Node]:
    node = service.get(key)
    return node.elements() if node is not None else []


def text_of(node: Node | None) -> str:
    """A scalar as text; "" for anything else."""
    return node.words() if node is not None else ""


def _joined(node: Node, keys: tuple[str, ...], by: str) -> str:
    return by.join(filter(None, (text_of(node.get(key)) for key in keys)))


def _port(node: Node) -> str:
    inside = text_of(node.get("target"))
    parts = [text_of(node.get("host_ip")), text_of(node.get("published")), inside]
    protocol = text_of(node.get("protocol"))
    return ":".join(part for part in parts if part) + (f"/{protocol}" if protocol else "")


def _mount(node: Node) -> str:
    parts = [f"type={text_of(node.get('type')) or 'volume'}"]
    parts += [f"{key}={text_of(node.get(key))}" for key in ("source", "target") if node.get(key)]
    if text_of(node.get("read_only")) == "true":
        parts.append("readonly")
    size = text_of(node.get("tmpfs", "size"))
    if size:
        parts.append(f"tmpfs-size={size}")
    propagation = text_of(node.get("bind", "propagation"))
    if propagation:
        parts.append(f"bind-propagation={propagation}")
    return ",".join(parts)


def _ulimits(found: Found, service: Node) -> None:
    node = service.get("ulimits")
    for key, value in node.items() if node is not None else ():
        if value.is_map:
            soft, hard = text_of(value.get("soft")), text_of(value.get("hard"))
            found.give("ulimit", f"{key.name}={soft}:{hard}", key, "ulimits")
        elif not value.is_list:
            found.give("ulimit", f"{key.name}={value.words()}", key, "ulimits")


def _block_io(found: Found, service: Node) -> None:
    node = service.get("blkio_config")
    for key, value in node.items() if node is not None else ():
        spelled = f"blkio_config.{key.name}"
        if key.name == "weight":
            found.give("blkio-weight", value.words(), key, spelled)
            continue
        flag = {"weight_device": "blkio-weight-device"}.get(key.name, key.name.replace("_", "-"))
        for element in value.elements():
            given = _joined(element, ("path", "rate", "weight"), ":")
            found.give(flag, given, element, spelled)


def _logging_and_health(found: Found, service: Node) -> None:
    driver = service.get("logging", "driver")
    if driver is not None:
        found.give("log-driver", driver.words(), driver, "logging.driver")
    options = service.get("logging", "options")
    for key, value in options.items() if options is not None else ():
        found.give("log-opt", f"{key.name}={value.words()}", key, "logging.options")
    test = service.get("healthcheck", "test")
    if test is not None:
        words = [element.words() for element in test.elements()] or [test.words()]
        # The brackets tell a list, whose first word says how the rest is run, from a text.
        spelled = "healthcheck.test[]" if test.is_list else "healthcheck.test"
        found.give("health-cmd", " ".join(words), test, spelled)


def command_words(found: Found, service: Node, key: str) -> tuple[Given, ...]:
    """``command`` or ``entrypoint`` as words; text is split at blanks, quotes kept."""
    node = service.get(key)
    if node is None or node.is_map:
        return ()
    if node.is_list:
        return tuple(Given(e.words(), found.at(e), key) for e in node.elements() if e.words())
    return tuple(Given(word, found.at(node), key) for word in _split(node.words()))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def scalar(node: Node | None) -> Any:
    """The value of a scalar; None for anything else."""
    return None if node is None or node.is_map or node.is_list else node.value
