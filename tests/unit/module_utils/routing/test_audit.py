# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which containers are off their route, read from an engine that answers as Docker does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import DockerClient
from ansible_collections.steadygpu.host.plugins.module_utils.routing import containers, read
from ansible_collections.steadygpu.host.plugins.module_utils.routing.audit import (
    Audit,
    Container,
    Standing,
    audit,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
)

POLICY = {
    "routes": [
        {
            "name": "sandbox",
            "match": {"label": {"tier": "untrusted"}},
            "runtime": "runsc",
        },
        {"match": {"image": "vendor/*", "user": 0}, "runtime": "crun"},
    ],
    "default": "runc",
}


def standings(*given: Container, default: str = "runc") -> Audit:
    policy, faults = read.from_value(POLICY)
    assert policy is not None, faults
    return audit(policy, given, default, {"runc", "crun", "runsc"})


def one(**given: Any) -> Container:
    usual: dict[str, Any] = {
        "id": "a" * 64,
        "name": "job",
        "image": "nginx",
        "running": True,
        "runtime": "runc",
        "user": "",
    }
    return Container(**{**usual, **given})


@pytest.mark.parametrize(
    ("given", "standing", "wanted"),
    [
        ({}, Standing.ON, "runc"),
        ({"runtime": "crun"}, Standing.OFF, "runc"),
        ({"runtime": "io.containerd.runc.v2"}, Standing.ON, "runc"),
        ({"runtime": ""}, Standing.ON, "runc"),
        ({"labels": {"tier": "untrusted"}}, Standing.OFF, "runsc"),
        ({"labels": {"tier": "untrusted"}, "runtime": "runsc"}, Standing.ON, "runsc"),
        ({"image": "vendor/a:2"}, Standing.OFF, "crun"),
        ({"image": "vendor/a:2", "user": "root:0", "runtime": "crun"}, Standing.ON, "crun"),
        ({"image": "vendor/a:2", "user": "1000"}, Standing.ON, "runc"),
        # A name of the image's own is not root, whatever its number is.
        ({"image": "vendor/a:2", "user": "nobody"}, Standing.ON, "runc"),
        # The user was not told: crun or runc may be right, runsc is wrong.
        ({"image": "vendor/a:2", "user": None}, Standing.UNDECIDED, None),
        ({"image": "vendor/a:2", "user": None, "runtime": "runsc"}, Standing.OFF, None),
        ({"runtime": None}, Standing.UNREAD, "runc"),
    ],
)
def test_the_first_route_that_holds_decides(
    given: dict[str, Any], standing: Standing, wanted: str | None
) -> None:
    found = standings(one(**given)).containers[0]
    assert (found.standing, found.wanted) == (standing, wanted), found


def test_an_image_of_which_only_the_id_is_left_is_looked_up_or_undecided() -> None:
    ident = "sha256:" + "1" * 64
    nameless = {"image": ident, "image_id": ident}
    found = standings(one(**nameless)).containers[0]
    assert found.standing is Standing.UNDECIDED
    assert "has no name any more" in found.why
    named = standings(one(**nameless, image_names=("vendor/a:2",))).containers[0]
    assert (named.standing, named.wanted) == (Standing.OFF, "crun")
    # The beginning of an id, as `docker run 111111111111` leaves it.
    short = one(image="1" * 12, image_id=ident, image_names=("other:1",))
    assert standings(short).containers[0].wanted == "runc"
    # Without an id that begins so it is a name: cafe is a word too.
    assert standings(one(image="cafe")).containers[0].standing is Standing.ON


def test_complaint_07_a_container_whose_runtime_the_engine_has_lost_is_named() -> None:
    found = standings(one(name="train", runtime="nvidia"), one(name="web"))
    assert [(each.container.name, each.standing) for each in found.lost] == [
        ("train", Standing.OFF)
    ]


# -- reading an engine --------------------------------------------------------------------


def listed(ident: str, name: str, image: str = "nginx", **more: Any) -> dict[str, Any]:
    return {
        "Id": ident * 64,
        "Names": ["/" + name],
        "Image": image,
        "ImageID": "sha256:" + "9" * 64,
        "State": "running",
        "Labels": {},
        **more,
    }


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineServer]:
    """An engine with three containers, of which ``a`` is on the disk."""
    data = tmp_path / "data"
    known = data / "containers" / ("a" * 64)
    known.mkdir(parents=True)
    (known / "hostconfig.json").write_text(json.dumps({"Runtime": "crun"}))
    config = {"Config": {"User": "7", "Image": "ml/train:3"}, "Name": "/train"}
    (known / "config.v2.json").write_text(json.dumps(config))
    with EngineServer(str(tmp_path / "sock")) as server:
        info = {
            "DockerRootDir": "/data",
            "Runtimes": {"runc": {}, "crun": {}},
            "DefaultRuntime": "crun",
        }
        server.routes["GET /v1.51/info"] = lambda _body: (200, info)
        server.routes["GET /v1.51/containers/json"] = lambda _body: (
            200,
            [
                listed("a", "train", "sha256:" + "9" * 64, Labels={"tier": "x"}),
                listed("b", "web", State="exited"),
                listed("c", "gone"),
            ],
        )
        server.routes[f"GET /v1.51/containers/{'b' * 64}/json"] = lambda _body: (
            200,
            {"HostConfig": {"Runtime": "runc"}, "Config": {"User": "root", "Image": "nginx"}},
        )
        yield server


def test_the_engines_files_spare_the_inspections(engine: EngineServer, tmp_path: Path) -> None:
    client = DockerClient(engine.path, 5)
    memory = containers.Memory()
    seen = containers.read(client, 5, memory, str(tmp_path))
    by_name = {each.name: each for each in seen.containers}
    train = by_name["train"]
    assert (train.runtime, train.user, train.image) == ("crun", "7", "ml/train:3")
    assert (train.labels, train.running) == ({"tier": "x"}, True)
    assert (by_name["web"].runtime, by_name["web"].running) == ("runc", False)
    # Removed between the list and the question: nothing to complain of.
    assert (by_name["gone"].runtime, seen.unread) == (None, "")
    assert (seen.runtimes, seen.default_runtime) == ({"runc", "crun"}, "crun")
    assert not any("a" * 64 in asked for asked in engine.asked)
    assert any("all=1" in asked for asked in engine.asked)

    inspected = sum(f"{'b' * 64}/json" in asked for asked in engine.asked)
    containers.read(client, 5, memory, str(tmp_path))
    assert sum(f"{'b' * 64}/json" in asked for asked in engine.asked) == inspected
    assert client.deadline_s == 5


def test_what_is_not_answered_in_time_is_left_and_told(
    engine: EngineServer, tmp_path: Path
) -> None:
    moments = iter([0.0, 0.0, 99.0, 99.0])
    seen = containers.read(
        DockerClient(engine.path, 5), 10, None, str(tmp_path), clock=lambda: next(moments)
    )
    assert {each.name: each.runtime for each in seen.containers} == {
        "train": "crun",
        "web": "runc",
        "gone": None,
    }
    assert seen.unread.startswith("1 of 2 inspections were not answered within 10 s")
