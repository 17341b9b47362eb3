# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two files that name one device: which is in the way, and whose it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.cdi import twins
from ansible_collections.steadygpu.host.plugins.module_utils.cdi.twins import Twins

PATH = "/var/run/cdi/nvidia.yaml"
KIND = "nvidia.com/gpu"


def _text(*names: str, kind: str = KIND) -> str:
    devices = [{"name": name} for name in names]
    return json.dumps({"cdiVersion": "0.5.0", "kind": kind, "devices": devices})


class Host:
    """A root whose /var/run is the link to /run that every host has."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "run/cdi").mkdir(parents=True)
        (root / "etc/cdi").mkdir(parents=True)
        (root / "var").mkdir()
        (root / "var/run").symlink_to("../run")
        self.put("/run/cdi/nvidia.json", _text("0", "1"))

    def put(self, path: str, text: str) -> None:
        (self.root / path.lstrip("/")).write_text(text)

    def find(self, path: str = "/var/run/cdi/nvidia.json", *names: str) -> Twins:
        return twins.find(path, KIND, names or ("0", "1"), root=str(self.root))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_alone_or_beside_other_devices_nothing_is_in_the_way(host: Host) -> None:
    host.put("/run/cdi/nccl.json", _text("0", kind="steadygpu.dev/nccl"))
    host.put("/run/cdi/other.json", _text("vgpu-7"))
    host.put("/run/cdi/broken.json", "{")
    assert host.find() == Twins()
    assert host.find("/run/cdi/nvidia.json") == Twins()


def test_F1_TK_07_a_foreign_one_of_the_same_directory_is_named(host: Host) -> None:  # noqa: N802
    host.put("/run/cdi/nvidia-old.json", _text("0", "1", "all"))
    found = host.find()
    assert found.ours == ()
    assert found.foreign is not None
    assert found.foreign.startswith(
        "/var/run/cdi/nvidia-old.json names nvidia.com/gpu=0 and 1 more"
    )
    assert "mv /var/run/cdi/nvidia-old.json /var/run/cdi/nvidia-old.json.off" in found.foreign


def test_what_this_collection_wrote_can_be_taken_away(host: Host) -> None:
    path = host.root / "run/cdi/before.json"
    vouched.write(str(path), _text("0"), root=str(host.root))
    assert host.find() == Twins(ours=("/var/run/cdi/before.json",))
    # Somebody has written it since.
    path.write_text(_text("0", "5"))
    assert host.find().foreign is not None


def test_a_directory_that_comes_later_wins(host: Host) -> None:
    host.put("/etc/cdi/nvidia.json", _text("0", "1"))
    assert host.find() == Twins()
    [text] = host.find("/etc/cdi/nvidia.json").warnings
    assert text.startswith("engines take nvidia.com/gpu=0 from /var/run/cdi/nvidia.json")


def test_names_that_only_an_earlier_directory_has_are_told(host: Host) -> None:
    host.put("/etc/cdi/nvidia.json", _text("0", "7"))
    [text] = host.find().warnings
    assert "/etc/cdi/nvidia.json also names nvidia.com/gpu=7" in text


def test_TK_040_a_directory_that_no_engine_reads(host: Host) -> None:  # noqa: N802
    (host.root / "opt").mkdir()
    host.put("/opt/a.json", _text("0"))
    host.put("/opt/b.json", _text("0"))
    found = host.find("/opt/a.json", "0")
    assert found.foreign is not None
    assert "/opt/b.json" in found.foreign
    assert found.warnings[0] == (
        "/opt/a.json: engines look in /etc/cdi, /var/run/cdi and not there"
    )
