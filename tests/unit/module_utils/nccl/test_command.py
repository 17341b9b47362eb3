# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command ``steadygpu nccl``: what a person reads, and what a boot unit relies on."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.nccl import host, manage
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_host import (
    FakeHost,
    recorded,
)
from steadygpu_agent import nccl

CONTENT = recorded("azure-ndv2-topo.xml")


def _run(directory: Path, *argv: str) -> int:
    """As the unit runs it, where the files are not in their usual places."""
    parser = argparse.ArgumentParser()
    nccl.register(parser.add_subparsers())
    places = ["--path", str(directory / "nccl.xml"), "--spec-path", str(directory / "nccl.json")]
    arguments = parser.parse_args(["nccl", *places, *argv])
    status: int = arguments.run(arguments)
    return status


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """A host whose topology file is in place."""
    made = FakeHost(tmp_path / "root")
    made.as_in(CONTENT)
    wanted = manage.Wanted(
        content=CONTENT,
        file_path=str(tmp_path / "nccl.xml"),
        spec_path=str(tmp_path / "nccl.json"),
        root=str(made.root),
    )
    read = host.read
    monkeypatch.setattr(host, "read", lambda: read(made.root, "x86_64"))
    manage.carry_out(manage.plan_present(host.read(), wanted))
    return made


def test_a_fresh_file_is_said_to_fit(
    fake: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, "--withdraw") == 0
    assert capsys.readouterr().out == "nccl topology: fresh\n"


def test_a_stale_file_is_named_and_withdrawn_only_when_asked(
    fake: FakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.remove("0008:00:00.0")
    assert _run(tmp_path) == 3
    said = capsys.readouterr().out
    assert "nccl topology: stale" in said
    assert "was: gpu 0008:00:00.0" in said
    assert "with --withdraw: withdraw" in said
    assert "NCCL_TOPO_FILE" in (tmp_path / "nccl.json").read_text()
    assert _run(tmp_path, "--withdraw") == 3
    assert "NCCL_TOPO_FILE" not in (tmp_path / "nccl.json").read_text()
    assert _run(tmp_path, "--withdraw") == 3
