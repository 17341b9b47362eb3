# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compose files: their services as container specs, with variables, ``extends`` and ``include``.

Pure: other files are asked for through a function. What Compose itself would refuse is noted as a
fault; a value that is not known stays in the text as ``${NAME}``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...trees import yaml_tree
from ...trees.node import Key, Node, TreeError
from ..documents.compose import ComposeFault
from ..documents.container import ComposeFile, ContainerSpec
from ..model import Given, Position, Problem, Reading
from .compose_gpus import deploy, gpus
from .compose_keys import SERVICE, TOP
from .compose_names import is_called_compose, stands_alone, undefined
from .compose_values import (
    Found,
    command_words,
    fits,
    named_values,
    plain_keys,
    structured,
    text_of,
    written,
)
from .dotenv import entries
from .interpolate import interpolate

ReadFile = Callable[[str], "str | None"]

# Files that include or extend one another without end are cut here; Compose itself refuses them.
_MOST_FILES = 50
# Keys whose last value counts in Docker: what extends a service replaces them.
_ONCE = frozenset(
    [flag for shape, flag in SERVICE.values() if flag and "l" not in shape]
    + ["blkio-weight", "log-driver", "health-cmd", "deploy.replicas", "deploy.mode"]
)


@dataclass(frozen=True)
class _Opened:
    """One file of a project: its name, its text in lines, its documents."""

    file: str
    lines: tuple[str, ...]
    roots: tuple[Node, ...]

    def tagged(self, node: Node) -> bool:
        """Does a tag such as ``!reset`` stand before the value?"""
        if not 0 < node.line <= len(self.lines):
            return False
        return self.lines[node.line - 1][node.column - 1 : node.column] == "!"

    def service(self, name: str) -> Node | None:
        """The service of that name; the last document that has it counts."""
        nodes = [root.get("services", name) for root in self.roots]
        return next((node for node in reversed(nodes) if node is not None), None)


@dataclass
class _Project:
    read_file: ReadFile | None
    known: Mapping[str, str]
    faults: list[ComposeFault] = field(default_factory=list)
    opened: dict[str, _Opened | None] = field(default_factory=dict)
    specs: dict[tuple[str, str], ContainerSpec] = field(default_factory=dict)

    def open(self, path: str) -> _Opened | None:
        """Another file of the project; None where it cannot be read."""
        if path not in self.opened and len(self.opened) < _MOST_FILES:
            text = self.read_file(path) if self.read_file else None
            try:
                self.opened[path] = None if text is None else _open(path, text)
            except TreeError:
                self.opened[path] = None  # said when that file itself is read
        return self.opened.get(path)


def read_compose(
    text: str,
    file: str,
    read_file: ReadFile | None = None,
    env: Mapping[str, str] | None = None,
) -> Reading:
    """The services of a Compose file, the file as a whole, and what Compose refuses in it.

    ``read_file`` gives the text of a file that this one names (its path joined to the directory
    of ``file``), or None where it cannot be had; ``env`` is what is known of the environment of
    the caller, which counts more than the ``.env`` beside the file.
    """
    try:
        opened = _open(file, text)
    except TreeError as error:
        return Reading(problems=(Problem(Position(file, error.line, error.column), error.said),))
    if not opened.roots:
        return Reading(problems=(Problem(Position(file, 1, 1), "a Compose file is a mapping"),))
    dotenv = read_file(_beside(file, ".env")) if read_file else None
    known = {**dict(entries(dotenv or "")), **(env or {})}
    project = _Project(read_file, known, opened={posixpath.normpath(file): opened})
    services: list[ContainerSpec] = []
    keys: dict[str, Position] = {}
    for root in opened.roots:
        keys.update({key.name: _at(file, key) for key, _node in root.items()})
        services += _services(project, opened, root)
    if len(opened.roots) == 1 and stands_alone(file, opened.roots[0], read_file):
        project.faults += undefined(file, opened.roots[0])
    included = [spec for other in _included(project, opened) for spec in other]
    root = opened.roots[0]
    whole = ComposeFile(Position(file, root.line, root.column), (*services, *included), keys)
    # Services that share an anchor share its faults: one place is named once.
    faults = {(fault.at, fault.kind): fault for fault in reversed(project.faults)}
    return Reading(documents=(*services, whole, *reversed(faults.values())))


def _at(file: str, place: Node | Key) -> Position:
    return Position(file, place.line, place.column)


def _beside(file: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), path))


def _open(file: str, text: str) -> _Opened:
    documents = yaml_tree.parse_all(text)
    roots = tuple(document for document in documents if document.is_map)
    return _Opened(file, tuple(text.splitlines()), roots)


def _services(project: _Project, opened: _Opened, root: Node) -> Iterator[ContainerSpec]:
    services = root.get("services")
    if services is None and "include" not in root.value:
        _first_format(project, opened.file, root)
        return
    found = Found(opened.file, "", opened.tagged)
    for key, node in root.items():
        if key.name in TOP:
            fits(found, key.name, key, node, TOP[key.name])
        elif not key.name.startswith("x-"):
            found.fault("compose-unknown-key", key, f"The file has the top-level key {key.name}.")
    project.faults += found.faults
    for key, node in services.items() if services is not None else ():
        if key.name.startswith("x-"):
            continue
        if node.is_map:
            yield _service(project, opened, key, node, ())
        elif not opened.tagged(node) and "$" not in node.text:
            seen = f"services.{key.name} is no mapping."
            empty = written(node) == "0" or node.text in ("...", "…")
            fault = ComposeFault(_at(opened.file, key), "compose-wrong-type", seen, empty=empty)
            project.faults.append(fault)


def _first_format(project: _Project, file: str, root: Node) -> None:
    named = [key for key, node in root.items() if node.get("image") or node.get("build")]
    if named:
        fix = "Write the services under services:, and remove version:."
        seen = f"The service {named[0].name} stands at the top of the file."
        project.faults.append(ComposeFault(_at(file, named[0]), "compose-first-format", seen, fix))
        return
    if not is_called_compose(file):
        return
    for key, _node in root.items():
        if key.name not in TOP and not key.name.startswith("x-"):
            seen = f"The file has the top-level key {key.name}, and no services."
            project.faults.append(ComposeFault(_at(file, key), "compose-unknown-key", seen))


def _service(
    project: _Project, opened: _Opened, key: Key, raw: Node, trail: tuple[tuple[str, str], ...]
) -> ContainerSpec:
    """One service with what it extends; ``trail`` are the files and services that led here."""
    found = Found(opened.file, key.name, opened.tagged)
    names: set[str] = set()
    node = _filled(raw, project.known, names, found, found.path)
    plain_keys(found, node)
    named_values(found, node)
    structured(found, node)
    deploy(found, node)
    gpus(found, node)
    spec = ContainerSpec(
        at=_at(opened.file, key),
        how="compose",
        name=key.name,
        image=found.given(node, "image"),
        command=command_words(found, node, "command"),
        flags={flag: tuple(given) for flag, given in found.flags.items()},
        unknown=tuple(found.unknown),
        gpus=tuple(found.gpus),
        env={**_env_files(project, opened, node), **found.env},
        labels=found.labels,
        annotations=found.annotations,
        shell=frozenset(names),
    )
    if not trail:
        # What is empty in a service that another one extends is filled there.
        whole = (node.get("image") or node.get("build")) and node.get("extends") is None
        project.faults += [fault for fault in found.faults if whole or not fault.empty]
    return _extended(project, opened, node, spec, trail)


def _key(node: Node, name: str) -> Key:
    return node.keys.get(name, Key(name, node.line, node.column))


def _filled(node: Node, known: Mapping[str, str], names: set[str], found: Found, path: str) -> Node:
    """``node`` with its variables put in; ``text`` of what had some stays as it is written."""
    if node.is_map:
        inside = {
            name: _filled(value, known, names, found, f"{path}.{name}")
            for name, value in node.value.items()
        }
        same = all(inside[name] is value for name, value in node.value.items())
        return node if same else replace(node, value=inside)
    if node.is_list:
        filled = [_filled(value, known, names, found, path) for value in node.value]
        same = all(new is old for new, old in zip(filled, node.value))
        return node if same else replace(node, value=filled)
    if not isinstance(node.value, str) or "$" not in node.value:
        return node
    result = interpolate(node.value, known)
    names |= result.open_names
    for part in result.invalid:
        shown = part if len(part) < 60 else f"{part[:57]}..."
        seen = f"{path} has {shown}, which is no form of a variable that Compose knows."
        found.fault("compose-bad-interpolation", node, seen, _doubled(part))
    return replace(node, value=result.text, text=node.value)


def _doubled(part: str) -> str:
    return f"Write ${part} where the shell in the container shall read it." if part else ""


def _env_files(project: _Project, opened: _Opened, node: Node) -> dict[str, Given]:
    """The variables of the service's ``env_file``, with their places there."""
    listed = node.get("env_file")
    if listed is None or project.read_file is None:
        return {}
    found: dict[str, Given] = {}
    for element in listed.elements() or [listed]:
        path = element.words() or text_of(element.get("path"))
        text = None
        if path and "$" not in path:
            path = _beside(opened.file, path)
            text = project.read_file(path)
        for number, (name, value) in _numbered(text or ""):
            found[name] = Given(value, Position(path, number, 1), "env_file")
    return found


def _numbered(text: str) -> Iterator[tuple[int, tuple[str, str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        for entry in entries(line):
            yield number, entry


def _extended(
    project: _Project,
    opened: _Opened,
    node: Node,
    spec: ContainerSpec,
    trail: tuple[tuple[str, str], ...],
) -> ContainerSpec:
    extends = node.get("extends")
    if extends is None or extends.is_list or written(extends) == "0":
        return spec
    name = text_of(extends.get("service")) or extends.words()
    named = text_of(extends.get("file"))
    path = _beside(opened.file, named) if named else opened.file
    at = _at(opened.file, _key(node, "extends"))
    other = project.open(path) if named else opened
    if not name or "$" in name + named:
        return spec
    here = (opened.file, spec.name)
    if (path, name) in (*trail, here):
        chain = " -> ".join(service for _file, service in (*trail, here, (path, name)))
        fix = "Take extends out of one of them."
        seen = f"The services extend one another in a circle: {chain}."
        project.faults.append(ComposeFault(at, "compose-extends-cycle", seen, fix))
        return spec
    if other is None:
        if project.read_file is not None:
            seen = f"services.{spec.name} extends {name} of {named}, which cannot be read here."
            project.faults.append(ComposeFault(at, "compose-extends-unread", seen))
        return spec
    base = other.service(name)
    if base is None or not base.is_map:
        seen = f"services.{spec.name} extends {name}, and {path} has no such service."
        project.faults.append(ComposeFault(at, "compose-extends-missing", seen))
        return spec
    if len(trail) > _MOST_FILES:
        return spec
    if (path, name) not in project.specs:
        key = Key(name, base.line, base.column)
        project.specs[path, name] = _service(project, other, key, base, (*trail, here))
    return _merged(project.specs[path, name], spec)


def _merged(base: ContainerSpec, over: ContainerSpec) -> ContainerSpec:
    """``over`` with what it has from ``base``, the service that it extends."""
    flags = dict(base.flags)
    for flag, given in over.flags.items():
        flags[flag] = given if flag in _ONCE else (*flags.get(flag, ()), *given)
    return replace(
        over,
        image=over.image or base.image,
        command=over.command or base.command,
        flags=flags,
        gpus=(*base.gpus, *over.gpus),
        env={**base.env, **over.env},
        labels={**base.labels, **over.labels},
        annotations={**base.annotations, **over.annotations},
        shell=base.shell | over.shell,
    )


def _included(project: _Project, opened: _Opened) -> Iterator[list[ContainerSpec]]:
    """The services of the files under ``include``, for rules across services."""
    waiting, seen = [opened], {opened.file}
    while waiting:
        current = waiting.pop()
        for root in current.roots:
            for path in _include_paths(current.file, root):
                other = None if path in seen else project.open(path)
                seen.add(path)
                if other is not None:
                    inner = _Project(project.read_file, project.known, opened=project.opened)
                    waiting.append(other)
                    yield [s for part in other.roots for s in _services(inner, other, part)]


def _include_paths(file: str, root: Node) -> Iterator[str]:
    include = root.get("include")
    for element in include.elements() if include is not None else ():
        named = element.get("path")
        nodes = [element] if named is None else (named.elements() or [named])
        for node in nodes:
            path = node.words()
            if path and "$" not in path and "://" not in path:
                yield _beside(file, path)
