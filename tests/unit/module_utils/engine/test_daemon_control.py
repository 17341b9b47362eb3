# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.engine.daemon_control import (
    DockerDaemon,
)
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.units import UnitError
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)


@pytest.fixture(autouse=True)
def systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A systemctl that knows docker.service as running and obeys."""
    program = tmp_path / "systemctl"
    program.write_text(
        "#!/bin/sh\n"
        "[ $1 != show ] || printf 'Id=docker.service\\nLoadState=loaded\\nActiveState=active\\n'\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(process, "_SEARCH_PATH", str(tmp_path))


def test_a_daemon_too_busy_to_answer_has_not_reloaded_yet(tmp_path: Path) -> None:
    answers = iter([(500, {"message": "busy"}), (200, None), (200, {"Action": "reload"})])
    with EngineServer(str(tmp_path / "s")) as server:
        server.routes["GET /v1.51/events"] = lambda body: next(answers)
        DockerDaemon(DockerClient(server.path, 5), restart_timeout_s=10).reload()
    assert next(answers, None) is None


def test_a_reload_nobody_confirms_ends_with_the_deadline(tmp_path: Path) -> None:
    client = DockerClient(str(tmp_path / "none"), 5)
    with pytest.raises(UnitError, match=r"did not report a reload within 0\.1 s"):
        DockerDaemon(client, restart_timeout_s=0.1).reload()


@pytest.mark.parametrize("listed", [(500, {"message": "busy"}), (200, [{"Names": ["/train"]}])])
def test_a_daemon_that_cannot_list_containers_does_not_count_as_running(
    tmp_path: Path, listed: tuple[int, Any]
) -> None:
    with EngineServer(str(tmp_path / "s")) as server:
        server.routes["GET /v1.51/version"] = lambda body: (200, {"Version": "26.1.5"})
        server.routes["GET /v1.51/info"] = lambda body: (200, {})
        server.routes["GET /v1.51/containers/json"] = lambda body: listed
        state = DockerDaemon(DockerClient(server.path, 5), restart_timeout_s=1).state()
    expected = ("running", ("train",)) if listed[0] == 200 else ("unreachable", ())
    assert (state.status, state.running, state.has_unit) == (*expected, True)
