# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""OCI hooks: ``hooks`` of a runtime's config.json, and files of podman's hooks directory. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...trees import json_tree
from ...trees.node import Node, TreeError
from ..documents.oci_hooks import OciHook, OciHooks
from ..model import Given, Position, Problem, Reading


def read_oci_hooks(text: str, file: str) -> Reading:
    """One :class:`OciHooks`; JSON that cannot be read is a problem."""
    try:
        root = json_tree.parse(text)
    except TreeError as error:
        place = Position(file, error.line, error.column)
        return Reading(problems=(Problem(place, f"not JSON: {error.said}"),))
    return Reading((OciHooks(Position(file, 1, 1), tuple(_hooks(root, file))),))


def _hooks(root: Node, file: str) -> Iterator[OciHook]:
    stages = root.get("hooks")
    for key, listed in stages.items() if stages is not None else ():
        stage = Given(key.name, Position(file, key.line, key.column), "hooks")
        for node in listed.elements():
            yield _hook(node, stage, file)
    # The format of oci-hooks(5): one hook, and a list of the stages it runs at.
    single, names = root.get("hook"), root.get("stages")
    if single is not None and names is not None:
        for name in names.elements():
            yield _hook(single, _given(name, file, "stages"), file)


def _hook(node: Node, stage: Given, file: str) -> OciHook:
    path = node.get("path")
    return OciHook(
        at=Position(file, node.line, node.column),
        stage=stage,
        path=None if path is None else _given(path, file, "path"),
        args=_list(node.get("args"), file, "args"),
        env=_list(node.get("env"), file, "env"),
    )


def _list(node: Node | None, file: str, spelled: str) -> tuple[Given, ...]:
    elements = node.elements() if node is not None else []
    return tuple(_given(element, file, spelled) for element in elements)


def _given(node: Node, file: str, spelled: str) -> Given:
    return Given(node.words(), Position(file, node.line, node.column), spelled)
