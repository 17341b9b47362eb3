# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine import runtime_users
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    DockerClient,
    EngineError,
)


class Engine(DockerClient):
    """Knows containers by id; ``busy`` ones must not be asked about."""

    def __init__(self, known: dict[str, dict[str, Any]], busy: tuple[str, ...] = ()) -> None:
        super().__init__("/nowhere")
        self.known = known
        self.busy = busy

    def containers(self, include_stopped: bool = True, filters: Any = None) -> list[dict[str, Any]]:
        assert include_stopped
        return [{"Id": one, "Names": [f"/{one}-name"]} for one in self.known]

    def inspect(self, container: str) -> dict[str, Any]:
        assert container not in self.busy
        if not self.known[container]:
            raise EngineError(404, "GET", "No such container")
        return self.known[container]


def on_disk(directory: Path, identity: str, name: str | None, runtime: str) -> None:
    where = directory / "containers" / identity
    where.mkdir(parents=True)
    (where / "hostconfig.json").write_text(json.dumps({"Runtime": runtime}))
    if name:
        (where / "config.v2.json").write_text(json.dumps({"Name": "/" + name}))


def test_a_stopped_engine_is_known_by_its_files(tmp_path: Path) -> None:
    docker = tmp_path / "var/lib/docker"
    on_disk(docker, "a" * 64, "train", "nvidia")
    on_disk(docker, "b" * 64, "web", "runc")
    on_disk(docker / "100000.100000", "c" * 64, "remapped", "nvidia")
    on_disk(docker, "d" * 64, None, "nvidia")  # left over from a removal
    broken = docker / "containers" / ("e" * 64)
    broken.mkdir()
    (broken / "hostconfig.json").write_text("{")
    found = runtime_users.find(None, root=str(tmp_path))
    assert found == {"nvidia": ["remapped", "train"], "runc": ["web"]}


def test_a_running_engine_is_asked_only_for_what_is_not_on_the_disk(tmp_path: Path) -> None:
    known = "a" * 64
    on_disk(tmp_path / "data", known, "train", "nvidia")
    engine = Engine({known: {}, "b": {"HostConfig": {"Runtime": "kata"}}, "gone": {}}, (known,))
    found = runtime_users.find(engine, "/data", str(tmp_path))
    assert found == {"nvidia": ["train"], "kata": ["b-name"]}


@pytest.mark.parametrize(
    ("info", "flags", "text", "wanted"),
    [
        ({"DockerRootDir": "/srv/a"}, {"--data-root": "/srv/b"}, '{"data-root": "/c"}', "/srv/a"),
        ({}, {"--data-root": "/srv/b"}, '{"data-root": "/c"}', "/srv/b"),
        ({}, {}, '{"data-root": "/c"}', "/c"),
        ({}, {"--config-file": "/etc/none.json"}, '{"data-root": "/c"}', "/var/lib/docker"),
        ({}, {}, "{,}", "/var/lib/docker"),
        ({}, {}, None, "/var/lib/docker"),
    ],
)
def test_where_the_containers_are(
    tmp_path: Path, info: dict[str, str], flags: dict[str, str], text: str | None, wanted: str
) -> None:
    if text is not None:
        (tmp_path / "etc/docker").mkdir(parents=True)
        (tmp_path / "etc/docker/daemon.json").write_text(text)
    assert runtime_users.data_root(info, flags, root=str(tmp_path)) == wanted
