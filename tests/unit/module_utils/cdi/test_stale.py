# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fresh or stale, told from files alone."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.cdi import host, stale
from ansible_collections.steadygpu.host.plugins.module_utils.cdi.named import named
from ansible_collections.steadygpu.host.plugins.module_utils.engine.cdi import parse_spec
from ansible_collections.steadygpu.host.tests.unit.module_utils.cdi.fake_gpu_host import (
    LIBRARIES,
    UUIDS,
    FakeHost,
    spec,
)

PATH = "/var/run/cdi/nvidia.yaml"


@pytest.fixture
def fake(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def _reasons(
    fake: FakeHost,
    text: str,
    strategies: Sequence[str] = ("index", "uuid"),
    docker: str = "28.5.2",
) -> list[str]:
    files = named(text)
    seen = host.read(PATH, files.files, None, str(fake.root))
    return stale.reasons(parse_spec(PATH, text), files, strategies, {"docker": docker}, seen)


def test_what_was_made_for_this_host_is_fresh(fake: FakeHost) -> None:
    assert _reasons(fake, spec()) == []
    assert _reasons(fake, spec(["gpu0", "gpu1", "all"]), ["type-index"]) == []


def test_TK_029_after_a_driver_upgrade_its_libraries_are_gone(fake: FakeHost) -> None:  # noqa: N802
    fake.library("580.65.06")
    fake.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x  580.65.06  R\n")
    found = _reasons(fake, spec())
    assert found[0] == ("it mounts libraries of driver 550.163.01, and the host has 580.65.06")
    assert "libcuda.so.550.163.01" in found[1]
    assert "there is no such file" in found[1]


def test_a_gpu_that_came_and_one_that_went(fake: FakeHost) -> None:
    fake.gpu(1, "GPU-22222222-cccc")
    fake.gpu(2, UUIDS[1])
    found = _reasons(fake, spec())
    assert found == ["it lacks GPU 2", "it lacks GPU-22222222-cccc"]
    found = _reasons(fake, spec(["0", "1", "2", "3", *UUIDS, "GPU-9"]))
    assert found[0] == "it names 3, which the host does not have"
    assert found[1] == "it names GPU-9, which the host does not have"


def test_a_uuid_that_the_driver_does_not_tell_yet_is_no_reason(fake: FakeHost) -> None:
    fake.gpu(1, "GPU-????????-????")
    assert _reasons(fake, spec()) == []


def test_other_names_are_wanted(fake: FakeHost) -> None:
    assert _reasons(fake, spec(), ["index"]) == ["it names devices by uuid, which is not wanted"]
    assert _reasons(fake, spec(["0", "1"])) == [f"it lacks {', '.join(UUIDS)}"]


def test_MG_008_the_mig_layout_is_another(fake: FakeHost) -> None:  # noqa: N802
    fake.mig(1, 1, 1)
    found = _reasons(fake, spec())
    assert found[0] == "it names 1, which the host does not have"
    assert found[1] == "it lacks MIG device 1:0, MIG device 1:1"
    assert f"it names {UUIDS[1]}, which the host does not have" in found
    assert "it names 0 MIG devices by UUID, and the host has 2" in found
    assert found[-1] == (
        "it lacks /dev/nvidia-caps/nvidia-cap10, /dev/nvidia-caps/nvidia-cap11, "
        "/dev/nvidia-caps/nvidia-cap20 and 1 more of MIG instances that are there"
    )
    caps = [f"/dev/nvidia-caps/nvidia-cap{number}" for number in (10, 11, 20, 21)]
    for path in caps:
        fake.write(path.lstrip("/"), "")
    names = ["0", "1:0", "1:1", UUIDS[0], "MIG-a", "MIG-b", "all"]
    nodes = ["/dev/nvidiactl", "/dev/nvidia-uvm", *caps]
    assert _reasons(fake, spec(names, nodes=nodes)) == []


def test_mig_instances_that_are_gone(fake: FakeHost) -> None:
    fake.mig(1, 1)
    nodes = [
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        *(f"/dev/nvidia-caps/nvidia-cap{n}" for n in (10, 11, 20)),
    ]
    for path in nodes:
        fake.write(path.lstrip("/"), "")
    text = spec(["0", "1:0", "1:1", UUIDS[0], "MIG-a"], nodes=nodes)
    assert _reasons(fake, text) == [
        "it names 1:1, which the host does not have",
        "it names /dev/nvidia-caps/nvidia-cap20 of MIG instances that are gone",
    ]


def test_made_before_nvidia_uvm_was_loaded(fake: FakeHost) -> None:
    text = spec(nodes=["/dev/nvidiactl", "/dev/nvidia0"])
    assert _reasons(fake, text) == [
        "it was made before nvidia_uvm was loaded: it lacks /dev/nvidia-uvm"
    ]
    fake.write("proc/devices", "Character devices:\n195 nvidia\n")
    assert _reasons(fake, text) == []


def test_F1_TK_02_a_major_of_an_earlier_boot(fake: FakeHost) -> None:  # noqa: N802
    text = spec().replace("- path: /dev/nvidia-uvm\n", "- path: /dev/nvidia-uvm\n    major: 507\n")
    assert _reasons(fake, text) == [
        "it gives /dev/nvidia-uvm the major 507, and the kernel has 511"
    ]


def test_tk_031_libraries_of_gl_that_it_leaves_out_are_told(fake: FakeHost) -> None:
    beside = f"{LIBRARIES}/nvidia/current/libnvidia-eglcore.so.550.163.01"
    fake.write(beside[1:], "")
    fake.write(f"{LIBRARIES[1:]}/libnvidia-tls.so.535.1.1", "")
    seen = host.read(PATH, named(spec()).files, None, str(fake.root))
    text = stale.remarks(seen)[0]
    for words in (beside, f"--library-search-path={LIBRARIES}/nvidia/current", "OpenGL"):
        assert words in text
    seen = host.read(PATH, (*named(spec()).files, beside), None, str(fake.root))
    assert not any("OpenGL" in one for one in stale.remarks(seen))


def test_a_node_of_another_major_is_told(fake: FakeHost) -> None:
    assert stale.remarks(host.Seen(uvm_major=511, uvm_node=511)) == []
    assert stale.remarks(host.Seen(uvm_major=None, uvm_node=507)) == []
    [text] = stale.remarks(host.Seen(uvm_major=511, uvm_node=507))
    assert "rm /dev/nvidia-uvm" in text


def test_F2_11_a_node_that_is_gone(fake: FakeHost) -> None:  # noqa: N802
    found = _reasons(fake, spec(nodes=["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dri/card1"]))
    assert found == ["it names /dev/dri/card1, and there is no such file"]


def test_an_engine_that_does_not_read_its_version(fake: FakeHost) -> None:
    [found] = _reasons(fake, spec(), docker="25.0.3")
    assert "Docker 25.0.3 does not read (it reads up to 0.6.0)" in found


def test_a_driver_that_does_not_answer_leaves_it_to_the_tool(tmp_path: Path) -> None:
    seen = host.read(PATH, (), None, str(tmp_path))
    files = named(spec())
    found = stale.reasons(parse_spec(PATH, spec()), files, ["index", "uuid"], {}, seen)
    assert found == ["the NVIDIA driver is not loaded, so that only the tool can tell"]


def test_a_file_that_no_engine_reads_is_made_anew(fake: FakeHost) -> None:
    [found] = _reasons(fake, "kind: nvidia.com/gpu\n")
    assert found.startswith("it is not usable: cdiVersion")


def test_a_tool_that_was_installed_later(tmp_path: Path) -> None:
    fake = FakeHost(tmp_path)
    made = tmp_path / PATH.lstrip("/")
    fake.write(PATH.lstrip("/"), spec())
    tool = tmp_path / "nvidia-ctk"
    tool.write_text("")
    os.utime(made, (time.time() - 60, time.time() - 60))
    assert host.read(PATH, (), str(tool), str(tmp_path)).tool_is_newer
    os.utime(made, (time.time() + 60, time.time() + 60))
    assert not host.read(PATH, (), str(tool), str(tmp_path)).tool_is_newer


def test_what_a_new_one_lacks(fake: FakeHost) -> None:
    before = named(spec())
    assert stale.worse(before, before, host.Seen()) == []
    after = named(spec(nodes=["/dev/nvidiactl"]).replace("libcuda", "libother"))
    assert stale.worse(before, after, host.Seen()) == ["libcuda.so", "/dev/nvidia-uvm"]
    gone = host.Seen(missing=("/dev/nvidia-uvm",))
    assert stale.worse(before, after, gone) == ["libcuda.so"]
