# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps and their context for the tests of actors."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ansible_collections.steadygpu.host.plugins.module_utils.process import (
    CommandMissingError,
    Completed,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback import codec
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    ABSENT,
    Checkpoint,
    Entry,
    Host,
    Reason,
    RestoreOptions,
    RollbackError,
    State,
    Step,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back.actors_api import (
    Context,
    token,
)


@dataclass
class Former:
    """A checkpoint to go back to, made up for one step."""

    contents: dict[str, bytes] = field(default_factory=dict)
    state: State = field(default_factory=State)

    def keep(self, content: bytes, mode: int = 0o644) -> Entry:
        """A file with this content, owned by who runs the tests."""
        digest = hashlib.sha256(content).hexdigest()
        self.contents[digest] = content
        owner = {"uid": os.getuid(), "gid": os.getgid()}
        return Entry("file", mode, digest=digest, size=len(content), **owner)

    def open(self, digest: str) -> BinaryIO:
        """As the store opens it."""
        if digest not in self.contents:
            raise RollbackError(f"there is no content {digest}")
        return io.BytesIO(self.contents[digest])

    def context(self, root: str = "/", **options: Any) -> Context:
        """What an actor gets beside its step."""
        checkpoint = Checkpoint("1-00000000", 1, 0.0, Host("m", "host"), Reason(), self.state)
        return Context(self.open, RestoreOptions(**options), checkpoint, root)

    def step(self, kind: str, path: str, entry: Entry = ABSENT) -> Step:
        """Bring a path back; what is there now is what the plan found."""
        now = ABSENT
        if os.path.isfile(path):
            now = self.keep(Path(path).read_bytes())
        details = {"entry": codec.entry_to_json(entry), "expected": token(now), "conflict": False}
        return Step(kind, path, "", details)


@dataclass
class Programs:
    """Programs of a host: what each answers, by the beginning of its command line.

    The longest beginning counts; one without an answer is not on the host.
    """

    answers: Mapping[str, Completed | str]
    asked: list[str] = field(default_factory=list)
    stdin: list[str] = field(default_factory=list)

    def run(
        self,
        argv: Sequence[str],
        deadline_s: float = 30.0,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """In place of :func:`process.run`."""
        line = " ".join(argv)
        known = [begin for begin in self.answers if line.startswith(begin)]
        if not known:
            raise CommandMissingError(f"{argv[0]}: no such program on this host")
        self.asked.append(line)
        if stdin is not None:
            self.stdin.append(stdin)
        answer = self.answers[max(known, key=len)]
        return Completed(list(argv), 0, answer, "") if isinstance(answer, str) else answer

    def ran(self, begin: str) -> list[str]:
        """The command lines that begin so."""
        return [line for line in self.asked if line.startswith(begin)]


def failed(text: str, rc: int = 1) -> Completed:
    """A program that says no."""
    return Completed([], rc, "", text)
