# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine import cdi, yaml_leaf

# The layout of nvidia-ctk 1.19 and 1.20: keys in alphabetical order inside an item.
GENERATED = """---
cdiVersion: 0.7.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  hooks:
  - args:
    - nvidia-cdi-hook
    hookName: createContainer
    name: not-a-device
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      name: neither-this
  name: "0"
- name: GPU-5d0a
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
kind: nvidia.com/gpu
"""


@pytest.mark.parametrize("with_yaml", [True, False])
def test_names_are_the_same_with_and_without_a_yaml_library(
    with_yaml: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if with_yaml:
        pytest.importorskip("yaml")
    else:
        monkeypatch.setattr(yaml_leaf, "yaml", None)
    spec = cdi.parse_spec("/var/run/cdi/nvidia.yaml", GENERATED)
    assert (spec.status, spec.cdi_version, spec.kind) == ("valid", "0.7.0", "nvidia.com/gpu")
    assert spec.devices == ["0", "GPU-5d0a"]
    assert (spec.reason is None) == with_yaml


def test_the_line_reader_takes_indented_lists_and_unquoted_names_too() -> None:
    text = "cdiVersion: '0.5.0'\nkind: a.b/c # ours\ndevices:\n  - name: x\n    n: 1\n  - name: y\n"
    assert cdi.skim(text) == {
        "cdiVersion": "0.5.0",
        "kind": "a.b/c",
        "devices": [{"name": "x"}, {"name": "y"}],
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "{", "not JSON"),
        ("a.json", "[]", "not an object"),
        ("a.yml", GENERATED, "rename it"),
        ("a.json", '{"cdiVersion": "1", "kind": "a/b"}', "wanted like 0.7.0"),
        ("a.json", '{"cdiVersion": "0.7.0", "kind": "gpu"}', "wanted like nvidia.com/gpu"),
        ("a.json", '{"cdiVersion": "0.7.0", "kind": "a/b", "devices": []}', "no device"),
        (
            "a.json",
            '{"cdiVersion": "0.7.0", "kind": "a/b", "devices": [{"name": "0"}, {"name": "0"}]}',
            "appear twice: 0",
        ),
    ],
)
def test_a_broken_spec_says_why(name: str, text: str, words: str) -> None:
    spec = cdi.parse_spec("/etc/cdi/" + name, text)
    assert spec.status == "invalid"
    assert words in (spec.reason or "")


def test_broken_yaml_says_why() -> None:
    pytest.importorskip("yaml")
    spec = cdi.parse_spec("/etc/cdi/a.yaml", "a: [")
    assert spec.status == "invalid"
    assert "not YAML" in (spec.reason or "")


def _spec(kind: str, *names: str) -> str:
    devices = [{"name": name} for name in names]
    return json.dumps({"cdiVersion": "0.6.0", "kind": kind, "devices": devices})


def test_the_same_device_in_two_specs_of_a_directory_is_told(tmp_path: Path) -> None:
    for directory in ("etc/cdi", "run/cdi", "var"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "var/run").symlink_to("../run")
    (tmp_path / "etc/cdi/a.json").write_text(_spec("n/gpu", "0", "1"))
    (tmp_path / "etc/cdi/b.json").write_text(_spec("n/gpu", "1"))
    (tmp_path / "run/cdi/c.json").write_text(_spec("n/gpu", "1"))
    directories = ["/etc/cdi", "/var/run/cdi", "/run/cdi"]
    specs = cdi.read_specs(directories, root=str(tmp_path))
    assert [spec.path for spec in specs] == [
        "/etc/cdi/a.json",
        "/etc/cdi/b.json",
        "/var/run/cdi/c.json",
    ]
    assert "n/gpu=1 is also in /etc/cdi/b.json" in (specs[0].reason or "")
    assert specs[2].reason is None


@pytest.mark.parametrize(
    ("docker", "version", "reads"),
    [
        ("20.10.24", "0.5.0", False),
        ("25.0.3", "0.6.0", True),
        ("25.0.3", "0.7.0", False),
        ("26.1.5+dfsg1", "0.7.0", True),
        ("26.1.5", "0.8.0", False),
        ("28.5.2", "1.0.0", True),
    ],
)
def test_which_docker_reads_which_spec(docker: str, version: str, reads: bool) -> None:
    assert cdi.docker_reads(docker, version) is reads
