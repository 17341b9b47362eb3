# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole of a specification: judged, made anew where needed, and what is beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.cdi import (
    env_file,
    host,
    keep,
    twins,
    units,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.cdi_generate import SpecError
from ansible_collections.steadygpu.host.tests.unit.module_utils.cdi.fake_gpu_host import (
    UUIDS,
    FakeHost,
    spec,
)


class World:
    """A pretended host, a tool that counts how often it is run, and a specification."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.fake = FakeHost(directory / "root")
        self.path = directory / "cdi/nvidia.yaml"
        self.path.parent.mkdir()
        self.tool = directory / "nvidia-ctk"
        self.log = directory / "log"
        read, find = host.read, twins.find
        root = str(self.fake.root)
        # The driver and its files are pretended; the specification and the tool are real.
        patch.setattr(
            host, "read", lambda path, named, tool: read(path, named, None, root), raising=True
        )
        where = [str(self.path.parent)]
        patch.setattr(twins, "find", lambda path, kind, devs, _where: find(path, kind, devs, where))

    def says(self, text: str) -> None:
        self.tool.write_text(f"#!/bin/sh\necho run >> {self.log}\ncat <<'END'\n{text}END\n")
        self.tool.chmod(0o755)

    @property
    def runs(self) -> int:
        return len(self.log.read_text().split()) if self.log.exists() else 0

    def plan(self, check_mode: bool = False, **options: Any) -> keep.KeepPlan:
        options.setdefault("engines", {"docker": "28.5.2"})
        wanted = keep.Wanted(str(self.path), str(self.tool), **options)
        return keep.plan_present(wanted, check_mode)

    def run(self, **options: Any) -> units.Done:
        return keep.carry_out(self.plan(**options), check_mode=False)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_a_fresh_one_is_told_without_the_tool(world: World) -> None:
    world.path.write_text(spec())
    world.says("broken")
    plan = world.plan()
    assert (plan.stale, plan.spec.changed, world.runs) == ((), False, 0)
    assert plan.spec.devices == ("0", "1", *UUIDS, "all")
    assert plan.spec.cdi_version == "0.7.0"
    world.tool.unlink()
    assert world.run().actions == []


def test_a_stale_one_is_made_anew_once(world: World) -> None:
    world.path.write_text(spec(["0", UUIDS[0]]))
    world.says(spec())
    plan = world.plan(check_mode=True)
    assert plan.stale == ("it lacks GPU 1", f"it lacks {UUIDS[1]}")
    assert world.run().actions == [f"replace {world.path} with 5 device names"]
    assert world.path.read_text() == spec()
    assert world.run().actions == []
    assert world.runs == 2


def test_what_the_tool_makes_all_the_same_is_not_stale(world: World) -> None:
    # MIG is on and has no instance: files cannot tell that from a GPU that was forgotten.
    world.path.write_text(spec(["0", UUIDS[0]]))
    world.says(spec(["0", UUIDS[0]]))
    plan = world.plan()
    assert (plan.stale, plan.spec.changed, plan.warnings) == ((), False, ())


def test_a_file_that_the_tool_names_and_nobody_has_is_told(world: World) -> None:
    nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dri/renderD129"]
    world.path.write_text(spec(nodes=nodes))
    world.says(spec(nodes=nodes))
    [text] = world.plan().warnings
    assert "/dev/dri/renderD129, which is not there" in text


def test_TK_030_a_new_one_that_lacks_the_drivers_files_is_refused(  # noqa: N802
    world: World,
) -> None:
    world.path.write_text(spec(["0", UUIDS[0]]))
    world.says(spec().replace("libcuda", "libother"))
    with pytest.raises(SpecError, match=r"now lacks libcuda\.so"):
        world.plan()
    assert world.path.read_text() == spec(["0", UUIDS[0]])


def test_the_specification_of_other_devices_is_left_alone(world: World) -> None:
    text = spec().replace("nvidia.com/gpu", "amd.com/gpu")
    world.path.write_text(text)
    world.says(spec())
    with pytest.raises(SpecError, match=r"describes amd\.com/gpu"):
        world.plan()
    with pytest.raises(SpecError, match="choose another path"):
        keep.plan_absent(keep.Wanted(str(world.path)))


def test_two_specifications_with_the_same_devices(world: World) -> None:
    world.says(spec())
    other = world.path.with_name("other.json")
    document = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0"}]}
    other.write_text(json.dumps(document))
    with pytest.raises(SpecError, match=r"other\.json names nvidia\.com/gpu=0"):
        world.plan()
    assert not world.path.exists()
    other.unlink()
    other = other.with_suffix(".yaml")
    # The same, made by an earlier play at another path.
    done = keep.Wanted(str(other), str(world.tool), ("index", "uuid"))
    keep.carry_out(keep.plan_present(done, check_mode=False), check_mode=False)
    assert world.run().actions[-1] == f"remove {other}, which named the same devices"
    assert not other.exists()
    assert world.path.exists()


def test_the_units_get_the_flags_that_the_engines_need(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "read_units", dict)
    monkeypatch.setattr(units, "read_drop_ins", dict)
    monkeypatch.setattr(env_file, "read", lambda: None)
    world.says(spec(version="0.5.0"))
    plan = world.plan(refresh=True, engines={"docker": "25.0.3"})
    assert plan.refreshed_by == "nobody"
    upkeep = keep._upkeep(keep.Wanted("/p", str(world.tool), engines={"docker": "25.0.3"}))
    assert upkeep.flags == ("no-additional-gids-for-device-nodes",)
    assert upkeep.ctk == str(world.tool)
    assert keep._upkeep(keep.Wanted("/p", engines={"docker": "26.1.5"})).flags == ()


def test_engines_that_read_no_cdi_ask_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"dockerd": "20.10.24", "podman": "3.4.4", "containerd": "1.6.36"}
    monkeypatch.setattr(keep, "program_version", versions.get)
    monkeypatch.setattr(keep, "find_program", lambda name: name if name == "kubelet" else None)
    assert keep.engines(None) == {"docker": "20.10.24"}
    versions.update(podman="5.4.2", containerd="1.7.24", crio="1.31.0")
    assert keep.engines("28.5.2") == {
        "docker": "28.5.2",
        "podman": "5.4.2",
        "crio": "1.31.0",
        "containerd": "1.7.24",
    }
    monkeypatch.setattr(keep, "find_program", lambda name: None)
    assert "containerd" not in keep.engines("28.5.2")
