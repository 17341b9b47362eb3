# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``agent_install`` as a play uses it: what travels, what changes, what is said."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest


def artifact(directory: Path, version: str) -> Path:
    """A little agent that prints its version."""
    files = {"__main__.py": f"print({version!r})\n"}
    manifest = {
        "version": version,
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()},
    }
    path = directory / f"{version}.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, "MANIFEST.json": json.dumps(manifest)}.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def task(tmp_path):
    """A task that installs below the test's directory; a failed one does not end the play."""

    def make(src: Path | None = None, **options: Any) -> dict[str, Any]:
        paths = {"libdir": str(tmp_path / "lib"), "bindir": str(tmp_path / "bin")}
        source = {"src": str(src)} if src else {}
        return {
            "steadygpu.host.agent_install": {**paths, **source, **options},
            "ignore_errors": True,
        }

    return make


def test_installed_with_two_round_trips_and_unchanged_with_one(controller, task, tmp_path):
    source = artifact(tmp_path, "1.0")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    first, second = controller.play(task(source), task(source))
    assert first["changed"]
    assert first["generation"] == {"sha256": digest, "version": "1.0"}
    assert first["actions"] == [
        f"unpack generation {digest[:12]} below {tmp_path}/lib",
        f"write {tmp_path}/bin/steadygpu",
        f"make {digest[:12]} the current generation",
    ]
    assert first["diff"]["before"] == {"current": None, "generations": [], "launcher": False}
    assert first["diff"]["after"] == {"current": digest, "generations": [digest], "launcher": True}
    assert not second["changed"]
    assert second["actions"] == []
    assert controller.round_trips == 2 + 1


def test_going_back_transfers_nothing(controller, task, tmp_path):
    old, new = artifact(tmp_path, "1.0"), artifact(tmp_path, "2.0")
    _old, _new, back = controller.play(task(old), task(new), task(old))
    assert back["changed"]
    assert back["generation"]["version"] == "1.0"
    assert controller.round_trips == 2 + 2 + 1


def test_check_mode_says_the_same_and_does_nothing(controller, task, tmp_path):
    source = artifact(tmp_path, "1.0")
    (dry,) = controller.play(task(source), check=True)
    assert controller.round_trips == 1
    assert not (tmp_path / "lib").exists()
    assert not (tmp_path / "bin").exists()
    (wet,) = controller.play(task(source))
    assert dry["changed"] is wet["changed"] is True
    assert dry["actions"] == wet["actions"]
    assert dry["diff"] == wet["diff"]


def test_absent_needs_no_artifact_and_leaves_nothing(controller, task, tmp_path):
    source = artifact(tmp_path, "1.0")
    _there, gone, again = controller.play(task(source), task(state="absent"), task(state="absent"))
    assert gone["changed"]
    assert not (tmp_path / "lib").exists()
    assert not (tmp_path / "bin" / "steadygpu").exists()
    assert not again["changed"]


def test_what_is_wrong_is_said_and_the_host_stays_as_it_was(controller, task, tmp_path):
    source, wrong = artifact(tmp_path, "1.0"), tmp_path / "wrong.pyz"
    wrong.write_text("hello")
    _there, missing, keep, damaged, still = controller.play(
        task(source),
        task(tmp_path / "missing.pyz"),
        task(source, keep=0),
        task(wrong),
        task(source),
    )
    assert missing["failed"]
    assert "missing.pyz is not on the controller; build it with 'make agent'" in missing["msg"]
    assert keep["failed"]
    assert "keep is 0; wanted is 1 or more" in keep["msg"]
    assert damaged["failed"]
    assert "is no zipapp" in damaged["msg"]
    assert not still["changed"]
