# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A store for tests, and states to keep in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import (
    Checkpoint,
    Entry,
    Host,
    Reason,
    State,
)
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.storage.store import Store

HOST = Host("0123456789abcdef", "gpu1")
REASON = Reason(who="me")


def take(
    store: Store, contents: dict[str, str], reason: Reason = REASON, host: Host = HOST
) -> Checkpoint:
    """Keep a host that has these files."""
    with store.locked():
        sink = store.sink
        files = {}
        for path, text in contents.items():
            digest, size = sink.put([text.encode()])
            files[path] = Entry("file", 0o644, digest=digest, size=size)
        return store.add(State(files=files), reason, host)


def contents_of(store: Store, checkpoint: Checkpoint) -> dict[str, str]:
    """What the files of a checkpoint hold."""
    return {
        path: store.content(entry.digest or "").decode()
        for path, entry in checkpoint.state.files.items()
    }


def names_below(directory: str) -> set[str]:
    """All files below a directory."""
    return {
        os.path.relpath(os.path.join(folder, name), directory)
        for folder, _folders, names in os.walk(directory)
        for name in names
    }


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    """A file system of that size at ``path``."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    path.mkdir(exist_ok=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)
