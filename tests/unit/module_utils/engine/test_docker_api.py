# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.engine.docker_api import (
    DockerClient,
    EngineError,
    EngineUnreachableError,
    demultiplex,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.engine.engine_server import (
    EngineServer,
    Raw,
    frame,
)


@pytest.fixture
def server(tmp_path: object) -> Iterator[EngineServer]:
    with EngineServer(str(tmp_path) + "/docker.sock") as running:
        yield running


@pytest.fixture
def client(server: EngineServer) -> DockerClient:
    return DockerClient(server.path, deadline_s=5)


@pytest.mark.parametrize(
    ("daemon", "used"), [("1.41", "v1.41"), ("1.45", "v1.45"), ("1.51", "v1.51"), ("1.55", "v1.51")]
)
def test_speaks_the_newest_version_both_sides_know(
    server: EngineServer, client: DockerClient, daemon: str, used: str
) -> None:
    server.api = daemon
    server.routes[f"GET /{used}/info"] = lambda body: (200, {"LiveRestoreEnabled": True})
    assert client.info()["LiveRestoreEnabled"] is True


def test_containers_asks_for_stopped_ones_too(server: EngineServer, client: DockerClient) -> None:
    server.routes["GET /v1.51/containers/json"] = lambda body: (200, [{"Id": "a"}])
    assert client.containers(filters={"label": ["x=1"]}) == [{"Id": "a"}]
    assert "all=1" in server.asked[-1]
    assert "label" in server.asked[-1]


def test_create_and_start(server: EngineServer, client: DockerClient) -> None:
    server.routes["POST /v1.51/containers/create"] = lambda body: (
        201,
        {"Id": "c1", "Warnings": [], "Seen": json.loads(body)},
    )
    server.routes["POST /v1.51/containers/c1/start"] = lambda body: (204, None)
    container = client.create_container("probe", {"Image": "busybox"})
    client.start(container)
    assert container == "c1"
    assert json.loads(server.bodies[-2]) == {"Image": "busybox"}


def test_starting_a_started_container_is_no_error(
    server: EngineServer, client: DockerClient
) -> None:
    server.routes["POST /v1.51/containers/c1/start"] = lambda body: (304, None)
    client.start("c1")


def test_exec_returns_exit_code_and_both_streams(
    server: EngineServer, client: DockerClient
) -> None:
    stream = frame(1, b"out\n") + frame(2, b"err\n") + frame(1, b"more\n")
    states = iter([{"Running": True, "ExitCode": None}, {"Running": False, "ExitCode": 3}])
    server.routes["POST /v1.51/containers/c1/exec"] = lambda body: (201, {"Id": "e1"})
    server.routes["POST /v1.51/exec/e1/start"] = lambda body: (
        200,
        Raw(stream, "application/vnd.docker.multiplexed-stream"),
    )
    server.routes["GET /v1.51/exec/e1/json"] = lambda body: (200, next(states))
    result = client.exec_run("c1", ["cat", "/dev/nvidia0"])
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\nmore\n", "err\n")


def test_an_answer_that_is_no_json_is_an_error_of_the_engine(
    server: EngineServer, client: DockerClient
) -> None:
    server.routes["GET /v1.51/info"] = lambda body: (200, Raw(b"<html>proxy", "text/html"))
    with pytest.raises(EngineError, match="no JSON but '<html>proxy'"):
        client.info()


def test_import_reports_an_error_inside_the_stream(
    server: EngineServer, client: DockerClient
) -> None:
    server.routes["POST /v1.51/images/create"] = lambda body: (
        200,
        Raw(b'{"status":"reading"}\n{"error":"unexpected EOF"}\n', "application/json"),
    )
    with pytest.raises(EngineError, match=r"steadygpu/probe:1.*unexpected EOF"):
        client.import_image(b"not a tar", "steadygpu/probe", "1")


def test_a_refusal_carries_status_request_and_words(client: DockerClient) -> None:
    with pytest.raises(EngineError) as caught:
        client.inspect("gone")
    assert caught.value.status == 404
    assert "GET /v1.51/containers/gone/json" in str(caught.value)
    assert "page not found" in caught.value.reason


def test_no_socket_says_what_to_look_at(tmp_path: object) -> None:
    with pytest.raises(EngineUnreachableError, match=r"no such socket.*docker\.service running"):
        DockerClient(str(tmp_path) + "/none.sock").ping()


def test_a_socket_without_listener_is_refused(tmp_path: object) -> None:
    path = str(tmp_path) + "/stale.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    with pytest.raises(EngineUnreachableError, match="systemctl start docker"):
        DockerClient(path).ping()


@pytest.mark.skipif(os.geteuid() != 0, reason="drops privileges, which only root can")
def test_a_forbidden_socket_says_so(server: EngineServer) -> None:
    os.chmod(server.path, 0o600)
    os.seteuid(65534)
    try:
        with pytest.raises(EngineUnreachableError, match=r"permission denied|no such socket"):
            DockerClient(server.path).ping()
    finally:
        os.seteuid(0)


def _dribbling(path: str) -> socket.socket:
    """A server that answers one byte at a time and never ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(1)

    def dribble() -> None:
        connection, _peer = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                connection.sendall(b"x")
                time.sleep(0.05)

    threading.Thread(target=dribble, daemon=True).start()
    return listener


def test_the_deadline_holds_against_an_engine_that_dribbles(tmp_path: object) -> None:
    path = str(tmp_path) + "/slow.sock"
    with _dribbling(path):
        began = time.monotonic()
        with pytest.raises(
            EngineUnreachableError, match=r"no whole answer to GET /_ping within 0\.4 s"
        ):
            DockerClient(path, deadline_s=0.4).ping()
        assert time.monotonic() - began < 3


def test_a_cut_answer_is_not_taken_for_a_whole_one(tmp_path: object) -> None:
    path = str(tmp_path) + "/cut.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(1)

        def cut() -> None:
            connection, _peer = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}")

        threading.Thread(target=cut, daemon=True).start()
        with pytest.raises(EngineUnreachableError, match="connection broke"):
            DockerClient(path, deadline_s=5).ping()


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40))))
def test_demultiplex_gives_back_each_stream(frames: list[tuple[int, bytes]]) -> None:
    stream = b"".join(frame(number, payload) for number, payload in frames)
    out, err = demultiplex(stream)
    assert out == b"".join(payload for number, payload in frames if number == 1)
    assert err == b"".join(payload for number, payload in frames if number == 2)
