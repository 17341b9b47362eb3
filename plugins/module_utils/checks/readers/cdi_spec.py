# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDI specifications into their model; what an engine makes of one, engine/cdi.py says. Pure."""

from __future__ import annotations

import json
from dataclasses import replace

from ...engine import cdi
from ...trees import json_tree, yaml_tree
from ...trees.node import Node, TreeError
from ..documents.cdi import CdiSpec
from ..documents.tree_document import NOTHING, broken
from ..model import Position, Reading


def read_cdi_spec(text: str, file: str) -> Reading:
    """One :class:`CdiSpec`. Without PyYAML a YAML spec is known by its lines only."""
    at = Position(file, 1, 1)
    is_json = file.endswith(".json") or text.lstrip()[:1] == "{"
    if not is_json and not yaml_tree.available():
        return Reading((CdiSpec(at, NOTHING, text, spec=cdi.parse_spec(file, text)),))
    try:
        root = _tree(text, is_json)
    except TreeError as error:
        said = cdi.Spec(file, "invalid", f"not {'JSON' if is_json else 'YAML'}: {error.said}")
        return Reading((CdiSpec(at, NOTHING, text, broken(error, file), said),))
    # The engine's own reader judges the plain values: it knows neither places nor limits.
    spec = cdi.parse_spec("spec.json", json.dumps(root.plain()))
    if file.endswith(".yml"):
        spec = replace(cdi.parse_spec(file, ""), kind=spec.kind, devices=spec.devices)
    return Reading((CdiSpec(at, root, text, spec=replace(spec, path=file)),))


def _tree(text: str, is_json: bool) -> Node:
    if is_json:
        return json_tree.parse(text)
    documents = yaml_tree.parse_all(text)
    return documents[0] if documents else NOTHING
