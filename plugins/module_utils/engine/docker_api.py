# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Docker Engine API over its unix socket: the few calls we need, and no Docker CLI.

The CLI hides what matters here: on 26.1.5 it silently drops ``--device-read-bps``, and
its errors are prose. The API answers with a status and a message, and one connection
costs a lab host a few milliseconds where one ``docker`` process costs seconds.

Field names and paths are those of the Engine API reference (v1.44 and later); requests
go to the newest version that both sides know.
"""

from __future__ import annotations

import http.client
import json
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

DEFAULT_SOCKET = "/var/run/docker.sock"

# The newest API version this client was written for (Docker 28.3). A newer daemon still
# speaks it; an older one is asked in its own newest version.
NEWEST_API = (1, 51)

_READ_SIZE = 65536
_FRAME_HEADER = struct.Struct(">BxxxL")


class EngineUnreachableError(Exception):
    """Nobody answered on the socket: not there, refused, not allowed, or too late."""


class EngineError(Exception):
    """The engine answered and said no.

    ``status`` is the HTTP status (0 when the refusal came inside a stream), ``reason``
    the engine's own words; the exception's text says what was asked as well.
    """

    def __init__(self, status: int, asked: str, reason: str, hint: str = "") -> None:
        self.status = status
        self.asked = asked
        self.reason = reason
        text = "the engine answered {} to {}: {}".format(status or "an error", asked, reason)
        super().__init__(f"{text}. {hint}" if hint else text)


@dataclass(frozen=True)
class ExecResult:
    """What a command inside a container left behind; both streams decoded as UTF-8."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class _Answer:
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body; None for an empty one. Raises EngineError for what is no JSON."""
        return _parsed(self.body.decode("utf-8", "replace")) if self.body.strip() else None


class _Deadline:
    """A point in time, asked for what is left of it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left. Raises TimeoutError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no answer within {self.seconds:g} s")
        return left


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket whose every wait ends with the request's deadline."""

    def __init__(self, path: str, deadline: _Deadline) -> None:
        super().__init__("localhost")
        self._path = path
        self._deadline = deadline
        # http.client forgets ``sock`` when an answer ends by closing, yet the timeout of
        # the reads that follow must still be set.
        self._raw: socket.socket | None = None

    def connect(self) -> None:
        self.sock = self._raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.limit()
        self.sock.connect(self._path)

    def limit(self) -> None:
        """Bound the next wait by what is left of the deadline."""
        if self._raw is not None:
            self._raw.settimeout(self._deadline.left())


class DockerClient:
    """One engine, reached through ``socket_path``; ``deadline_s`` bounds each request.

    Every method raises :class:`EngineUnreachableError` when nobody answers in time and
    :class:`EngineError` when the engine refuses. Containers are named by id or name.
    """

    def __init__(self, socket_path: str = DEFAULT_SOCKET, deadline_s: float = 30.0) -> None:
        self.socket_path = socket_path
        self.deadline_s = deadline_s
        self._api: tuple[int, int] | None = None

    # -- the engine ---------------------------------------------------------------------

    def ping(self) -> str:
        """The newest API version the daemon speaks, such as ``1.45``."""
        return self._send("GET", "/_ping").headers.get("api-version", "")

    def version(self) -> dict[str, Any]:
        """``GET /version``: Version, ApiVersion, MinAPIVersion, Components."""
        return self._object("GET", "/version")

    def info(self) -> dict[str, Any]:
        """``GET /info``: Runtimes, LiveRestoreEnabled, CgroupDriver, CDISpecDirs …."""
        return self._object("GET", "/info")

    def daemon_events(self, action: str, since: float) -> list[dict[str, Any]]:
        """The daemon's own events (``reload``) since a time in seconds since the epoch.

        The engine keeps the last 256 events of all kinds; it answers at once.
        """
        query = {
            "since": f"{since:.9f}",
            "until": f"{time.time():.9f}",
            "filters": json.dumps({"type": ["daemon"], "event": [action]}),
        }
        lines = self._call("GET", "/events", query).body.decode("utf-8", "replace").splitlines()
        return [_parsed(line) for line in lines if line.strip()]

    # -- containers ---------------------------------------------------------------------

    def containers(
        self,
        include_stopped: bool = True,
        filters: Mapping[str, Sequence[str]] | None = None,
    ) -> list[dict[str, Any]]:
        """``GET /containers/json``; the engine takes no container lock for it.

        ``filters`` as the API has them: ``{"label": ["steadygpu.probe=1"]}``.
        """
        query = {"all": "1" if include_stopped else "0"}
        if filters:
            query["filters"] = json.dumps({key: list(value) for key, value in filters.items()})
        return list(self._call("GET", "/containers/json", query).json() or [])

    def create_container(self, name: str, config: Mapping[str, Any]) -> str:
        """Create a container from an API ``ContainerConfig`` with ``HostConfig``; its id."""
        answer = self._object("POST", "/containers/create", {"name": name}, config)
        return str(answer["Id"])

    def start(self, container: str) -> None:
        """Start a container; starting a running one is no error."""
        self._call("POST", _container(container, "start"))

    def stop(self, container: str, grace_s: int = 30) -> None:
        """SIGTERM, and SIGKILL after ``grace_s`` seconds; stopping a stopped one is no error."""
        query = {"t": str(grace_s)}
        deadline_s = self.deadline_s + grace_s
        self._call("POST", _container(container, "stop"), query, deadline_s=deadline_s)

    def remove(self, container: str, force: bool = False) -> None:
        """Delete a container with its anonymous volumes; ``force`` kills it first."""
        query = {"force": "1" if force else "0", "v": "1"}
        self._call("DELETE", _container(container), query)

    def inspect(self, container: str) -> dict[str, Any]:
        """``GET /containers/{id}/json``. It waits for the container's lock."""
        return self._object("GET", _container(container, "json"))

    def changes(self, container: str) -> list[dict[str, Any]]:
        """``GET /containers/{id}/changes``: Path and Kind (0 changed, 1 added, 2 deleted).

        Directories above a change are in it. It waits for the container's lock, and some storage
        drivers compare the whole file system for it.
        """
        return list(self._call("GET", _container(container, "changes")).json() or [])

    def update(self, container: str, resources: Mapping[str, Any]) -> list[str]:
        """Change limits of a living container (``NanoCpus``, ``Memory`` …); the warnings."""
        answer = self._object("POST", _container(container, "update"), body=resources)
        return [str(line) for line in answer.get("Warnings") or []]

    def exec_run(
        self, container: str, argv: Sequence[str], deadline_s: float | None = None
    ) -> ExecResult:
        """Run ``argv`` in a running container without terminal or stdin, and wait for it."""
        deadline = _Deadline(self.deadline_s if deadline_s is None else deadline_s)
        config = {"Cmd": list(argv), "AttachStdout": True, "AttachStderr": True}
        created = self._object("POST", _container(container, "exec"), body=config)
        exec_path = "/exec/" + quote(str(created["Id"]))
        stream = self._call(
            "POST",
            exec_path + "/start",
            body={"Detach": False, "Tty": False},
            deadline_s=deadline.seconds,
        )
        out, err = demultiplex(stream.body)
        return ExecResult(
            self._exit_code(exec_path, deadline, argv),
            out.decode("utf-8", "replace"),
            err.decode("utf-8", "replace"),
        )

    def _exit_code(self, exec_path: str, deadline: _Deadline, argv: Sequence[str]) -> int:
        # The stream ends when the process closes its output; the daemon may learn of its
        # exit a moment later, and offers nothing to wait on.
        while True:
            state = self._object("GET", exec_path + "/json")
            if not state.get("Running") and state.get("ExitCode") is not None:
                return int(state["ExitCode"])
            try:
                time.sleep(min(0.05, deadline.left()))
            except TimeoutError as late:
                raise EngineUnreachableError(
                    "{} closed its output but did not end: {}".format(" ".join(argv), late)
                ) from late

    # -- images -------------------------------------------------------------------------

    def images(self) -> list[dict[str, Any]]:
        """``GET /images/json``: Id, RepoTags, Size (bytes) of each image."""
        return list(self._call("GET", "/images/json").json() or [])

    def import_image(self, tar: bytes, repo: str, tag: str) -> str:
        """Make an image of one layer from an uncompressed or gzip tar; its id."""
        answer = self._call(
            "POST", "/images/create", {"fromSrc": "-", "repo": repo, "tag": tag}, body=tar
        )
        image = ""
        for line in answer.body.decode("utf-8", "replace").splitlines():
            message = _parsed(line) if line.strip() else {}
            if "error" in message:
                asked = f"the import of image {repo}:{tag}"
                raise EngineError(0, asked, str(message["error"]))
            image = str(message.get("status", image))
        return image

    def remove_image(self, image: str, force: bool = False) -> None:
        """Untag an image and delete it when that was its last name."""
        self._call("DELETE", "/images/" + quote(image, safe=""), {"force": "1" if force else "0"})

    # -- the wire -----------------------------------------------------------------------

    @property
    def api(self) -> tuple[int, int]:
        """The API version in use: the newest that both sides know, asked once."""
        if self._api is None:
            major, _dot, minor = self.ping().partition(".")
            known = (int(major), int(minor)) if major.isdigit() and minor.isdigit() else NEWEST_API
            self._api = min(NEWEST_API, known)
        return self._api

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
    ) -> _Answer:
        target = "/v{}.{}{}".format(*self.api, path)
        if query:
            target += "?" + urlencode(query)
        return self._send(method, target, body, deadline_s)

    def _object(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        answer = self._call(method, path, query, body).json()
        if not isinstance(answer, dict):
            raise EngineError(200, method + " " + path, f"not a JSON object: {answer!r}")
        return answer

    def _send(
        self,
        method: str,
        target: str,
        body: bytes | Mapping[str, Any] | None = None,
        deadline_s: float | None = None,
    ) -> _Answer:
        asked = f"{method} {target}"
        deadline = _Deadline(self.deadline_s if deadline_s is None else deadline_s)
        connection = _UnixConnection(self.socket_path, deadline)
        try:
            status, answer = _exchange(connection, method, target, body)
        except (OSError, http.client.HTTPException) as error:
            raise EngineUnreachableError(self._unreachable(asked, error, deadline)) from error
        finally:
            connection.close()
        if status >= 400:
            raise EngineError(status, asked, _reason(answer))
        return answer

    def _unreachable(self, asked: str, error: Exception, deadline: _Deadline) -> str:
        if isinstance(error, FileNotFoundError):
            why, fix = "there is no such socket", "Is Docker installed and docker.service running?"
        elif isinstance(error, ConnectionRefusedError):
            why, fix = "nobody listens on it", "Start the engine: systemctl start docker"
        elif isinstance(error, PermissionError):
            why, fix = "permission denied", "Become root or join the socket's group"
        elif isinstance(error, (socket.timeout, TimeoutError)):
            why = f"no whole answer to {asked} within {deadline.seconds:g} s"
            fix = "Look at: journalctl -b -u docker"
        else:
            why = f"the connection broke during {asked}: {error}"
            fix = "Look at: journalctl -b -u docker"
        return f"Docker engine at {self.socket_path}: {why}. {fix}"


def _exchange(
    connection: _UnixConnection,
    method: str,
    target: str,
    body: bytes | Mapping[str, Any] | None,
) -> tuple[int, _Answer]:
    """One request and its whole answer, each single wait within the deadline."""
    # One request per connection: the answer then ends where the stream does, and Python
    # 3.9's read1(), which does not count, cannot wait for more.
    headers = {"Connection": "close"}
    payload: bytes | None = None
    if isinstance(body, bytes):
        payload, headers["Content-Type"] = body, "application/x-tar"
    elif body is not None:
        payload, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
    connection.request(method, target, payload, headers)
    connection.limit()
    response = connection.getresponse()
    parts = []
    # A response that has counted its last byte closes the socket under our hands.
    while not response.isclosed():
        connection.limit()
        part = response.read1(_READ_SIZE)
        if not part:
            break
        parts.append(part)
    whole = b"".join(parts)
    lowered = {key.lower(): value for key, value in response.getheaders()}
    promised = int(lowered.get("content-length", len(whole)))
    if len(whole) < promised:
        raise http.client.IncompleteRead(whole, promised - len(whole))
    return response.status, _Answer(lowered, whole)


def demultiplex(stream: bytes) -> tuple[bytes, bytes]:
    """Split Docker's framed stream into (stdout, stderr).

    A frame is one byte of stream number (1 out, 2 err), three of zero, a big-endian
    length of four bytes, and that many bytes. A cut last frame gives what is there.
    """
    out, err = bytearray(), bytearray()
    position = 0
    while position + _FRAME_HEADER.size <= len(stream):
        number, length = _FRAME_HEADER.unpack_from(stream, position)
        position += _FRAME_HEADER.size
        (err if number == 2 else out).extend(stream[position : position + length])
        position += length
    return bytes(out), bytes(err)


def _container(container: str, verb: str = "") -> str:
    return "/containers/" + quote(container, safe="") + ("/" + verb if verb else "")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise EngineError(0, "our question", f"no JSON but {text[:80]!r}") from error


def _reason(answer: _Answer) -> str:
    """The engine's own words: ``{"message": …}``, or the plain body of an odd answer."""
    try:
        parsed = answer.json()
    except EngineError:
        parsed = None
    if isinstance(parsed, dict) and "message" in parsed:
        return str(parsed["message"]).strip()
    return answer.body.decode("utf-8", "replace").strip() or "(no words)"
