# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real HTTP server on a real unix socket that answers like an engine, for tests."""

from __future__ import annotations

import http.server
import json
import socketserver
import struct
import threading
from typing import Any, Callable

Handler = Callable[[bytes], tuple[int, Any]]


def frame(stream: int, payload: bytes) -> bytes:
    """One frame of a multiplexed stream."""
    return struct.pack(">BxxxL", stream, len(payload)) + payload


class Raw:
    """An answer with a content type of its own, ended by closing the connection."""

    def __init__(self, body: bytes, content_type: str) -> None:
        self.body = body
        self.content_type = content_type


class _QuietServer(socketserver.ThreadingUnixStreamServer):
    """A client that gives up is what some tests want to see, not an error of the server."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class EngineServer:
    """``routes`` maps ``"GET /v1.51/info"`` (no query) to a callable of the request body."""

    def __init__(self, path: str, api: str = "1.51") -> None:
        self.path = path
        self.api = api
        self.routes: dict[str, Handler] = {}
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        self._server: socketserver.ThreadingUnixStreamServer | None = None

    def __enter__(self) -> EngineServer:
        engine = self

        class _Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def address_string(self) -> str:
                return "unix"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                engine.asked.append(f"{self.command} {self.path}")
                engine.bodies.append(body)
                status, answer = engine.answer(self.command, self.path, body)
                self.send_response(status)
                self.send_header("Api-Version", engine.api)
                if isinstance(answer, Raw):
                    self.send_header("Content-Type", answer.content_type)
                    self.end_headers()
                    self.wfile.write(answer.body)
                    self.close_connection = True
                    return
                payload = b"" if answer is None else json.dumps(answer).encode()
                if status not in (204, 304):
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = _serve  # noqa: N815 - http.server's names
            do_POST = _serve  # noqa: N815
            do_DELETE = _serve  # noqa: N815

        self._server = _QuietServer(self.path, _Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Any]:
        """Status and JSON (or Raw) body of the answer to one request."""
        route = "{} {}".format(method, target.split("?")[0])
        if route == "GET /_ping":
            return 200, "OK"
        if route in self.routes:
            return self.routes[route](body)
        return 404, {"message": "page not found: " + route}
