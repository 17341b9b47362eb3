# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.cdi_generate import (
    NO_GROUPS,
    SpecError,
    carry_out,
    plan_absent,
    plan_present,
    plan_without_tool,
)


def _spec(*names: str, version: str = "0.6.0") -> str:
    devices = [{"name": name} for name in names]
    return json.dumps({"cdiVersion": version, "kind": "nvidia.com/gpu", "devices": devices})


class Tool:
    """A stand-in program that prints ``text`` and ends with ``status``."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "nvidia-ctk")
        self.spec = str(directory / "cdi" / "nvidia.json")

    def says(self, text: str, status: int = 0, error: str = "") -> None:
        script = f"#!/bin/sh\ncat <<'END'\n{text}\nEND\necho '{error}' >&2\nexit {status}\n"
        Path(self.path).write_text(script)
        Path(self.path).chmod(0o755)


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)


def _run(tool: Tool, docker: str | None = "26.1.5") -> tuple[str, ...]:
    plan = plan_present(tool.spec, tool.path, ["index", "uuid"], docker, deadline_s=10)
    carry_out(plan)
    return plan.actions


def test_created_then_kept_then_replaced_on_drift_then_removed(tool: Tool) -> None:
    tool.says(_spec("0", "all"))
    assert _run(tool) == (f"create {tool.spec} with 2 device names",)
    assert _run(tool) == ()
    tool.says(_spec("0", "1", "all"))
    assert _run(tool) == (f"replace {tool.spec} with 3 device names",)
    assert '"1"' in Path(tool.spec).read_text()
    carry_out(plan_absent(tool.spec))
    assert not Path(tool.spec).exists()
    assert plan_absent(tool.spec).changed is False


@pytest.mark.parametrize(
    ("text", "status", "docker", "words"),
    [
        ("", 1, "26.1.5", r"failed: no NVML.*nvidia-smi -L"),
        ("", 0, "26.1.5", r"not usable"),
        (_spec(), 0, "26.1.5", r"names no device"),
        (_spec("all"), 0, "26.1.5", r"found no device. Is the driver loaded"),
        (_spec("0", version="0.7.0"), 0, "25.0.1", r"Docker 25\.0\.1 does not read"),
        (_spec("0"), 0, "20.10.24", r"upgrade Docker"),
    ],
)
def test_an_unusable_answer_keeps_the_former_spec(
    tool: Tool, text: str, status: int, docker: str, words: str
) -> None:
    tool.says(_spec("0"))
    _run(tool)
    tool.says(text, status, "no NVML")
    with pytest.raises(SpecError, match=words):
        _run(tool, docker)
    assert '"0"' in Path(tool.spec).read_text()


def test_without_docker_any_version_is_written(tool: Tool) -> None:
    tool.says(_spec("0", version="0.7.0"))
    assert _run(tool, docker=None) != ()


def test_check_mode_before_the_tool_is_there(tool: Tool) -> None:
    plan = plan_without_tool(tool.spec, "nvidia-ctk")
    assert plan.changed
    assert "once nvidia-ctk is installed" in plan.actions[0]


class OldEngineTool(Tool):
    """A tool of 1.19: version 0.7.0, and 0.5.0 where it is asked to leave out group ids."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        older, newer = _spec("0", version="0.5.0"), _spec("0", version="0.7.0")
        script = (
            f"#!/bin/sh\ncase \"$*\" in *--feature-flag={NO_GROUPS}*) echo '{older}' ;;\n"
            f"*) echo '{newer}' ;; esac\n"
        )
        Path(self.path).write_text(script)
        Path(self.path).chmod(0o755)


def test_an_older_engine_gets_an_older_version(tmp_path: Path) -> None:
    tool = OldEngineTool(tmp_path)
    plan = plan_present(tool.spec, tool.path, ["index"], "25.0.3", 10)
    assert (plan.cdi_version, plan.flags, plan.unread) == ("0.5.0", (NO_GROUPS,), None)
    plan = plan_present(tool.spec, tool.path, ["index"], "26.1.5", 10)
    assert (plan.cdi_version, plan.flags) == ("0.7.0", ())


def test_another_engine_gets_it_too_and_is_no_reason_to_refuse(tmp_path: Path) -> None:
    tool = OldEngineTool(tmp_path)
    plan = plan_present(tool.spec, tool.path, ["index"], "28.5.2", 10, {"podman": "4.9.3"})
    assert (plan.cdi_version, plan.flags, plan.unread) == ("0.5.0", (NO_GROUPS,), None)
    plan = plan_present(tool.spec, tool.path, ["index"], "28.5.2", 10, {"podman": "4.2.0"})
    assert plan.cdi_version == "0.5.0"
    assert "Podman 4.2.0 does not read (it reads up to 0.4.0)" in (plan.unread or "")


def test_a_tool_that_knows_no_other_version_is_refused(tool: Tool) -> None:
    tool.says(_spec("0", version="0.7.0"))
    with pytest.raises(SpecError, match=r"upgrade Docker to 26\.1\.0 or newer"):
        _run(tool, "25.0.3")
