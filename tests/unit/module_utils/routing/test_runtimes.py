# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which runtimes are fit to run containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.packages import Installed, Package
from ansible_collections.steadygpu.host.plugins.module_utils.routing import programs
from ansible_collections.steadygpu.host.plugins.module_utils.routing.runtimes import (
    Program,
    judge,
    program_of,
)

RUNC = "runc version {}\ncommit: v1.0-0-g0\nspec: 1.2.0\ngo: go1.24\n"
NVIDIA = "NVIDIA Container Runtime version 1.17.4\ncommit: 0\nspec: 1.2.0\n\nrunc version 1.2.0\n"


def test_RC_005_a_runc_put_there_by_hand_is_judged_by_its_number() -> None:  # noqa: N802
    program = Program(
        "/usr/local/bin/runc-1.1.12", "/usr/local/bin/runc-1.1.12", RUNC.format("1.1.12")
    )
    # Row 56: what a distribution patched into its own package is not in this file.
    verdict = judge("runc-1.1", {"path": program.asked}, program, "debian 13")
    assert "CVE-2025-31133" in verdict.unsafe[0]
    assert "put 1.2.8 or newer there: no package updates it" in verdict.unsafe[0]
    assert (verdict.component, verdict.version, verdict.refused) == ("runc", "1.1.12", ())


def test_a_copy_of_a_distributions_build_that_no_package_owns_is_not_trusted() -> None:
    program = Program("/opt/runc", "/opt/runc", RUNC.format("1.1.15+ds1"))
    verdict = judge("copy", {"path": "/opt/runc"}, program, "debian 13")
    assert "no package updates it" in verdict.unsafe[0]


@pytest.mark.parametrize(
    ("package", "unsafe"),
    [("1.1.15+ds1-2+b4", 1), ("1.1.15+ds1-2+deb13u1", 0)],
)
def test_RC_009_a_package_is_judged_by_what_its_distribution_put_in(  # noqa: N802
    package: str, unsafe: int
) -> None:
    program = Program("runc", "/usr/sbin/runc", RUNC.format("1.1.15+ds1"), "runc", package)
    verdict = judge("second", {"path": "runc"}, program, "debian 13")
    assert len(verdict.unsafe) == unsafe
    if unsafe:
        assert "upgrade the package runc to 1.1.15+ds1-2+deb13u1" in verdict.unsafe[0]


def test_a_safe_release_is_safe() -> None:
    program = Program("/opt/runc", "/opt/runc", RUNC.format("1.3.6"))
    verdict = judge("new", {"path": "/opt/runc"}, program)
    assert (verdict.refused, verdict.unsafe, verdict.warnings) == ((), (), ())


def test_TK_025_nvidias_runtime_is_judged_by_the_toolkit() -> None:  # noqa: N802
    program = Program(
        "nvidia-container-runtime",
        "/usr/bin/n",
        NVIDIA,
        "nvidia-container-toolkit-base",
        "1.17.4-1",
    )
    verdict = judge("nvidia", {"path": "nvidia-container-runtime"}, program, "debian 13")
    assert (verdict.component, verdict.version) == ("toolkit", "1.17.4")
    assert "CVE-2026-24260" in verdict.unsafe[0]
    assert "runc" not in " ".join(verdict.unsafe)


def test_a_runtime_without_a_table_is_told_and_not_refused() -> None:
    program = Program("crun", "/usr/bin/crun", "crun version 1.21\n", "crun", "1.21-1")
    verdict = judge("crun", {"path": "crun"}, program)
    assert (verdict.refused, verdict.unsafe) == ((), ())
    assert "its version was not judged" in verdict.warnings[0]
    assert verdict.version == "1.21"


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        # Row 57 and row 58 of the articles.
        ({"path": "/x", "runtimeArgs": ["--systemd-cgroup"]}, "native.cgroupdriver=systemd"),
        ({"path": "/x", "runtimeArgs": ["--debug", "--no-pivot"]}, "no container would start"),
        ({"path": "/x", "runtimeArgs": "--debug"}, "no list of texts"),
        ({}, "neither path nor runtimeType"),
        ({"path": "/x", "runtimeType": "io.containerd.runc.v2"}, "both path and runtimeType"),
        ({"runtimeType": "io.containerd.runc.v1"}, "write io.containerd.runc.v2"),
        ("/x", "is no mapping"),
    ],
)
def test_definitions_that_break_containers_are_refused(definition: Any, words: str) -> None:
    program = Program("/x", "/x", RUNC.format("1.3.6"))
    verdict = judge("mine", definition, program)
    assert words in " ".join(verdict.refused)


def test_RT_011_the_name_runc_is_taken() -> None:  # noqa: N802
    assert "built into Docker" in judge("runc", {"path": "/x"}, None).refused[0]


@pytest.mark.parametrize(
    ("definition", "program"),
    [
        ({"path": "/opt/runc"}, "/opt/runc"),
        ({"runtimeType": "io.containerd.kata.v2"}, "containerd-shim-kata-v2"),
        ({"runtimeType": "/opt/shim"}, "/opt/shim"),
        (
            {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/opt/runc"}},
            "/opt/runc",
        ),
        ({}, None),
    ],
)
def test_which_program_runs_the_containers(definition: dict[str, Any], program: str | None) -> None:
    assert program_of(definition) == program


def test_what_is_not_there_is_missing() -> None:
    program = programs.look("/nowhere/runc", Installed(None, {}))
    verdict = judge("mine", {"path": "/nowhere/runc"}, program, containers=["train"])
    assert (verdict.missing, verdict.containers) == (True, ("train",))
    assert "no such program" in verdict.refused[0]


def test_a_program_by_hand_is_asked_and_its_directory_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "runc-1.1.12"
    path.write_text("#!/bin/sh\necho 'runc version 1.1.12'\n")
    path.chmod(0o755)
    found = programs.look(str(path), Installed("none", {"runc": Package("1", False)}))
    assert (found.said, found.package, found.writable) == ("runc version 1.1.12\n", "", False)
    path.chmod(0o757)
    open_to_all = programs.look(str(path), Installed("none", {}))
    assert (open_to_all.writable, open_to_all.said) == (True, "")
    verdict = judge("mine", {"path": str(path)}, open_to_all)
    assert "chmod o-w" in verdict.refused[0]


def test_each_program_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def look(name: str, installed: Installed, deadline_s: float) -> Program:
        asked.append(name)
        return Program(name)

    monkeypatch.setattr(programs, "look", look)
    found = programs.all_of({"a": "/x", "b": "/x", "c": None}, Installed(None, {}), 5)
    assert (sorted(found), asked) == (["a", "b"], ["/x"])
