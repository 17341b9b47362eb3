# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible plays, task files and variables. Pure: a requirements file is asked for by a function.

What a task runs as a command goes through the reader of commands, and docker_container through
the same model as a run line, so that their rules hold here too.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ...trees import yaml_tree
from ...trees.node import Key, Node, TreeError
from ..documents.ansible_tasks import AnsibleFile, AnsibleTask
from ..model import Given, Position, Problem, Reading
from .ansible_docker import container, settled

ReadFile = Callable[[str], "str | None"]

# What may stand in a task beside its module.
_KEYWORDS = (
    "action any_errors_fatal args async become become_exe become_flags become_method become_user "
    "changed_when check_mode collections connection debugger delay delegate_facts delegate_to diff "
    "environment failed_when ignore_errors ignore_unreachable listen local_action loop "
    "loop_control module_defaults name no_log notify poll port register remote_user retries "
    "run_once tags throttle timeout until vars when"
)
KEYWORDS = frozenset(_KEYWORDS.split())
_LISTS = ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always")
_COMMANDS = ("command", "shell", "raw")
_REQUIREMENTS = ("collections/requirements.yml", "requirements.yml")
_COMMENT = re.compile(r"(?:^|\s)#\s*(.*)$")
_COLLECTION = re.compile(r"\b([a-z][a-z0-9_]*\.[a-z][a-z0-9_]*)\b")
# A tree of variables is not searched deeper than this, and blocks are not nested deeper.
_DEEPEST = 40


def read_ansible(text: str, file: str, read_file: ReadFile | None = None) -> Reading:
    """A file of plays, tasks or variables, its containers and its commands."""
    try:
        roots = yaml_tree.parse_all(text, unique=False)
    except TreeError as error:
        return Reading(problems=(Problem(Position(file, error.line, error.column), error.said),))
    tasks: list[AnsibleTask] = []
    values: dict[str, Given] = {}
    for root in roots:
        tasks += _tasks(root, file)
        values.update(_values(root, file))
    document = AnsibleFile(
        at=Position(file, 1, 1),
        tasks=tuple(tasks),
        values=values,
        comments=tuple(_comments(text, file)),
        required=_required(file, read_file),
    )
    more = [one for task in tasks for one in _inside(task)]
    return Reading(documents=(document, *more))


def _tasks(node: Node, file: str, depth: int = 0) -> Iterator[AnsibleTask]:
    if depth > _DEEPEST:
        return
    for element in node.elements():
        if not element.is_map:
            continue
        inner = [node for key, node in element.items() if key.name in _LISTS]
        for one in inner:
            yield from _tasks(one, file, depth + 1)
        if inner or "hosts" in element.value:
            continue
        task = _task(element, file)
        if task is not None:
            yield task


def _task(element: Node, file: str) -> AnsibleTask | None:
    module: Key | None = None
    for key, _node in element.items():
        if key.name not in KEYWORDS and not key.name.startswith("with_"):
            module = key
            break
    name = element.get("name")
    keywords = {key.name: node for key, node in element.items() if key.name in KEYWORDS}
    if module is None:
        action = element.get("action") or element.get("local_action")
        if action is None or action.is_list or action.is_map:
            return None
        called, _blank, rest = action.words().partition(" ")
        args = Node(rest, action.line, action.column, rest)
        at = Position(file, action.line, action.column)
        return AnsibleTask(at, Given(called, at, "action"), args, _words(name), keywords)
    at = Position(file, module.line, module.column)
    given = Given(module.name, at, module.name)
    return AnsibleTask(at, given, element.value[module.name], _words(name), keywords)


def _words(node: Node | None) -> str:
    return node.words() if node is not None else ""


def _values(root: Node, file: str, depth: int = 0) -> Iterator[tuple[str, Given]]:
    """The variables of a file of them, of plays and blocks, and of an inventory."""
    if depth > _DEEPEST:
        return
    if root.is_map and not depth:
        yield from _scalars(root, file)
    for element in root.elements():
        yield from _values(element, file, depth + 1)
    for key, node in root.items():
        if key.name == "vars":
            yield from _scalars(node, file)
        elif key.name in (*_LISTS, "all", "children", "hosts") or depth:
            yield from _values(node, file, depth + 1)


def _scalars(node: Node, file: str) -> Iterator[tuple[str, Given]]:
    for key, value in node.items():
        if not value.is_map and not value.is_list:
            at = Position(file, key.line, key.column)
            yield key.name, Given(value.words(), at, key.name)


def _comments(text: str, file: str) -> Iterator[Given]:
    for number, line in enumerate(text.splitlines(), 1):
        match = _COMMENT.search(line) if "#" in line else None
        if match is not None:
            yield Given(match.group(1), Position(file, number, match.start(1) + 1), "#")


def _required(file: str, read_file: ReadFile | None) -> frozenset[str] | None:
    """The collections that a requirements file near ``file`` names; None: there is none."""
    if read_file is None:
        return None
    found: set[str] = set()
    seen = False
    above = [posixpath.dirname(file)]
    for _step in range(3):
        above.append(posixpath.join(above[-1], ".."))
    for folder in above:
        for name in _REQUIREMENTS:
            text = read_file(posixpath.normpath(posixpath.join(folder, name)))
            if text:
                seen = True
                found.update(_COLLECTION.findall(text))
    return frozenset(found) if seen else None


def _inside(task: AnsibleTask) -> Iterator[Any]:
    """The container or the commands of a task."""
    if task.short == "docker_container" and task.args.is_map:
        yield container(task)
    elif task.short in _COMMANDS and task.free.strip():
        # Imported here: most files of Ansible have no commands.
        from .shell import read_shell

        node = task.args if not task.args.is_map else task.args.get("cmd")
        if node is None:
            return
        # A text of several lines stands below its indicator; its places are those of its lines.
        folded = "\n" in task.free.strip()
        for document in read_shell(settled(task.free), task.at.file).documents:
            yield _moved(document, node.line if folded else node.line - 1, node.column - 1)


def _moved(value: Any, down: int, right: int) -> Any:
    """A document with every place in it moved; columns in its first line only."""
    if isinstance(value, Position):
        column = value.column + (right if value.line == 1 else 0)
        return Position(value.file, value.line + down, column)
    if isinstance(value, tuple):
        return tuple(_moved(one, down, right) for one in value)
    if isinstance(value, dict):
        return {name: _moved(one, down, right) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        inner = {one.name: getattr(value, one.name) for one in fields(value)}
        moved = {name: _moved(one, down, right) for name, one in inner.items()}
        return replace(value, **{name: one for name, one in moved.items() if one != inner[name]})
    return value
