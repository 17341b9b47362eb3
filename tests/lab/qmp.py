# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A client for qemu's monitor protocol, as much of it as the lab needs."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from .console import LabError


class Monitor:
    """One connection to the monitor socket ``qmp.sock`` in a machine's directory.

    Raises LabError when the machine does not answer or answers with an error.
    """

    def __init__(self, directory: Path, deadline_s: float = 10.0) -> None:
        # A path relative to an open directory stays short however deep the cache lies.
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self._socket = _connect(f"/proc/self/fd/{fd}/qmp.sock", deadline_s)
        except OSError as error:
            raise LabError(
                f"the monitor of the machine in {directory} does not answer: {error}"
            ) from error
        finally:
            os.close(fd)
        self._stream = self._socket.makefile("rwb")
        self._receive()
        self.execute("qmp_capabilities")

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
        self._socket.close()

    def execute(self, command: str, **arguments: Any) -> Any:
        """Run a command and return what it answers; events that come between are skipped."""
        message: dict[str, Any] = {"execute": command}
        if arguments:
            message["arguments"] = arguments
        try:
            self._stream.write(json.dumps(message).encode() + b"\n")
            self._stream.flush()
            while True:
                answer = self._receive()
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    raise LabError("qemu refused {}: {}".format(command, answer["error"]["desc"]))
        except OSError as error:
            raise LabError(f"the machine ended during {command}: {error}") from error

    def wait_until_resumable(self, deadline_s: float) -> None:
        """Wait until an incoming state has been read completely."""
        end = time.monotonic() + deadline_s
        while self.execute("query-status")["status"] == "inmigrate":
            if time.monotonic() > end:
                raise LabError(f"the frozen machine was not read in {deadline_s:g} s")
            time.sleep(0.02)

    def save_memory(self, path_command: str, deadline_s: float) -> None:
        """Stop the machine and feed its state to a shell command. It stays stopped."""
        self.execute("stop")
        self.execute("migrate-set-parameters", **{"max-bandwidth": 4 << 30})
        try:
            self._migrate("exec:" + path_command, deadline_s)
        except BaseException:
            self.execute("migrate_cancel")
            raise

    def _migrate(self, uri: str, deadline_s: float) -> None:
        self.execute("migrate", uri=uri)
        end = time.monotonic() + deadline_s
        while True:
            progress = self.execute("query-migrate")
            status = progress.get("status")
            if status == "completed":
                return
            if status in ("failed", "cancelled") or time.monotonic() > end:
                raise LabError(
                    "freezing the machine ended as {!r}: {}".format(
                        status, progress.get("error-desc", "no reason given")
                    )
                )
            time.sleep(0.1)

    def _receive(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            raise ConnectionResetError("the monitor was closed")
        message: dict[str, Any] = json.loads(line)
        return message


def _connect(path: str, deadline_s: float) -> socket.socket:
    """Connect as soon as the socket is there. Raises OSError after the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
