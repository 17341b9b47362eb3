# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a specification names, in YAML by lines and in JSON alike."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.cdi.named import Named, named

TEXT = """---
cdiVersion: 0.7.0
containerEdits:
  deviceNodes:
  - hostPath: /run/nvidia/driver/dev/nvidiactl
    path: /dev/nvidiactl
  - path: /dev/nvidia-uvm
    major: 511
    minor: 0
  hooks:
  - args:
    - nvidia-cdi-hook
    - update-ldcache
    - --folder
    - /usr/lib/path
    env:
    - NVIDIA_CTK_DEBUG=false
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/lib/libcuda.so.550.163.01
    hostPath: /usr/lib/libcuda.so.550.163.01
    options:
    - ro
  - containerPath: /usr/lib/libnvidia-egl-gbm.so.1.1.1
    hostPath: /usr/lib/libnvidia-egl-gbm.so.1.1.1
devices:
- containerEdits:
    additionalGids:
    - 44
    deviceNodes:
    - path: "/dev/nvidia0"
    - path: /dev/dri/card1
  name: "0"
kind: nvidia.com/gpu
"""
FOUND = Named(
    (
        "/run/nvidia/driver/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/usr/bin/nvidia-cdi-hook",
        "/usr/lib/libcuda.so.550.163.01",
        "/usr/lib/libnvidia-egl-gbm.so.1.1.1",
        "/dev/nvidia0",
        "/dev/dri/card1",
    ),
    (("/dev/nvidia-uvm", 511),),
    ("550.163.01",),
)


def test_yaml_is_read_by_lines_and_json_the_same() -> None:
    assert named(TEXT) == FOUND
    yaml = pytest.importorskip("yaml")
    assert named(json.dumps(yaml.safe_load(TEXT), indent=2)) == FOUND


def test_indented_lists_are_read_too() -> None:
    text = (
        "containerEdits:\n  deviceNodes:\n    -   path: '/dev/a'\n        hostPath: /dev/b\n"
        "    -   path: /dev/c\n  mounts:\n    - hostPath: /lib/d # mine\n"
    )
    assert named(text).files == ("/dev/b", "/dev/c", "/lib/d")


@pytest.mark.parametrize("text", ["", "[", "a: b", "- path: relative", "{" * 100_000])
def test_what_is_not_understood_names_nothing(text: str) -> None:
    assert named(text) == Named()


_PATHS = st.sampled_from(["/dev/nvidia0", "/dev/dri/card1", "/usr/lib/libcuda.so.550.54", "/e"])
_NODES = st.lists(
    st.fixed_dictionaries(
        {"path": _PATHS}, optional={"hostPath": _PATHS, "major": st.integers(1, 511)}
    ),
    max_size=3,
)
_HOOKS = st.lists(
    st.fixed_dictionaries(
        {"hookName": st.just("createContainer"), "path": _PATHS},
        optional={"args": st.lists(_PATHS, max_size=2), "env": st.lists(_PATHS, max_size=2)},
    ),
    max_size=2,
)
_MOUNTS = st.lists(
    st.fixed_dictionaries(
        {"containerPath": _PATHS, "hostPath": _PATHS, "options": st.just(["ro"])}
    ),
    max_size=3,
)
_EDITS = st.fixed_dictionaries(
    {}, optional={"deviceNodes": _NODES, "hooks": _HOOKS, "mounts": _MOUNTS}
)
_DEVICES = st.lists(
    st.fixed_dictionaries({"containerEdits": _EDITS, "name": st.sampled_from(["0", "GPU-a"])}),
    max_size=3,
)


@settings(max_examples=50)
@given(_EDITS, _DEVICES)
def test_lines_say_what_the_document_says(edits: object, devices: object) -> None:
    yaml = pytest.importorskip("yaml")
    document = {"cdiVersion": "0.7.0", "containerEdits": edits, "devices": devices, "kind": "a/b"}
    # The generators' layout: keys in order, lists not indented.
    assert named(yaml.safe_dump(document)) == named(json.dumps(document, sort_keys=True))
