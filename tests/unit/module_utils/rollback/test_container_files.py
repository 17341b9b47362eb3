# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    DockerClient,
    EngineError,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import RollbackError
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import (
    container_files,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.rollback.recorded_bundles import (
    program,
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EngineServer]:
    with EngineServer(str(tmp_path / "docker.sock")) as running:
        yield running


@pytest.mark.parametrize(
    ("labels", "asks"),
    [
        ({"steadygpu.checkpoint": "files"}, True),
        ({"steadygpu.checkpoint": "memory"}, False),
        ({"steadygpu.checkpoint": ""}, False),
        ({}, False),
    ],
)
def test_who_asks(labels: dict[str, str], asks: bool) -> None:
    assert container_files.asks(labels) is asks


def test_docker_s_files_without_the_directories_above_them(server: EngineServer) -> None:
    server.routes["GET /v1.51/containers/c1/changes"] = lambda body: (
        200,
        [
            {"Path": "/etc", "Kind": 0},
            {"Path": "/etc/app.conf", "Kind": 0},
            {"Path": "/out", "Kind": 1},
            {"Path": "/out/model.pt", "Kind": 1},
            {"Path": "/usr", "Kind": 0},
            {"Path": "/usr/old", "Kind": 2},
        ],
    )
    client = DockerClient(server.path, 5)
    assert container_files.of_docker(client, "c1") == [
        "C /etc/app.conf",
        "A /out/model.pt",
        "D /usr/old",
    ]


def test_a_container_that_changed_nothing(server: EngineServer) -> None:
    server.routes["GET /v1.51/containers/c1/changes"] = lambda body: (200, None)
    client = DockerClient(server.path, 5)
    assert container_files.of_docker(client, "c1") == []
    with pytest.raises(EngineError, match="404"):
        container_files.of_docker(client, "gone")


def test_a_long_list_says_that_it_was_cut() -> None:
    names = [f"A /f{number:05}" for number in range(10_003)]
    told = container_files.capped(names)
    assert told[:-1] == names[:10_000]
    assert told[-1] == "… and 3 more"
    assert container_files.capped(names[:10_000]) == names[:10_000]


def layer() -> bytes:
    """A layer with a file, one with an odd name, a removed one, a link and directories."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (
            ("etc/", tarfile.DIRTYPE),
            ("etc/app.conf", tarfile.REGTYPE),
            ("etc/link", tarfile.SYMTYPE),
            ("usr/.wh.old", tarfile.REGTYPE),
            ("var/cache/.wh..wh..opq", tarfile.REGTYPE),
            ("data/größe\nzwei", tarfile.REGTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type = kind
            member.linkname = "app.conf" if kind == tarfile.SYMTYPE else ""
            member.size = 4 if kind == tarfile.REGTYPE and ".wh." not in name else 0
            archive.addfile(member, io.BytesIO(b"\x00\xff\xfe\n"))
    return out.getvalue()


@pytest.fixture
def ctr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``ctr`` that knows one container, ``job``, in the namespace ``k8s.io``."""
    info = json.dumps({"ID": "job", "Snapshotter": "overlayfs", "SnapshotKey": "job key"})
    (tmp_path / "layer").write_bytes(layer())
    directory = tmp_path / "programs"
    script = f"""
case "$*" in
"-n k8s.io containers list -q "*) echo job ;;
"-n k8s.io containers info job") echo '{info}' ;;
"-n k8s.io snapshots --snapshotter overlayfs diff --media-type "*"tar job key")
    cat {tmp_path}/layer ;;
*) echo "ctr: not found: $*" >&2; exit 1 ;;
esac
"""
    program(directory, "ctr", script)
    monkeypatch.setattr(process, "_SEARCH_PATH", f"{directory}:/usr/bin:/bin")
    return directory


@pytest.mark.skipif(shutil.which("tar") is None, reason="no tar here")
def test_containerd_s_files_from_the_layer(ctr: Path) -> None:
    assert container_files.asking("k8s.io", 5) == ["job"]
    assert container_files.of_containerd("k8s.io", "job", 5) == [
        r"C /data/größe\nzwei",
        "C /etc/app.conf",
        "C /etc/link",
        "D /usr/old",
        "D /var/cache",
    ]


@pytest.mark.parametrize("container", ["gone", "job"])
def test_a_containerd_that_says_no(ctr: Path, container: str) -> None:
    (ctr / "ctr").write_text(
        (ctr / "ctr").read_text().replace("diff --media-type", "diff --something-else")
    )
    with pytest.raises(RollbackError, match="not found"):
        container_files.of_containerd("k8s.io", container, 5)


def test_an_answer_of_another_form(ctr: Path) -> None:
    program(ctr, "ctr", "echo '[]'\n")
    with pytest.raises(RollbackError, match="wanted Snapshotter"):
        container_files.of_containerd("k8s.io", "job", 5)
