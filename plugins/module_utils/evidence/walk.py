# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that a person names to be judged, and those of known kinds below directories he names."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence

from ..checks.readers import kinds
from .files import LIMIT_BYTES, read_regular

# Directories of tools and of others' code: nobody repairs what is in them.
_PASSED_BY = frozenset(
    (
        *(".git", ".hg", ".svn", "node_modules", "site-packages", "vendor", ".terraform"),
        *(".venv", "venv", ".tox", ".nox", "__pycache__", ".cache", ".ansible"),
        *(".mypy_cache", ".ruff_cache", ".pytest_cache"),
    )
)
_LIMIT_FILES = 5000
_LIMIT_TOTAL = 32 * 1024 * 1024


def read_paths(paths: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Path to text, and path to the reason why it was not read.

    A file that was named is read whatever it is called; below a directory only names of known
    kinds are. Links to directories are not followed, so a circle of them is no trouble.
    """
    texts: dict[str, str] = {}
    left_out: dict[str, str] = {}
    total = 0
    for path, named in _candidates(paths, left_out):
        if path in texts:
            continue
        if len(texts) >= _LIMIT_FILES or total >= _LIMIT_TOTAL:
            mib = _LIMIT_TOTAL // (1024 * 1024)
            left_out[path] = f"the rest was left out: more than {_LIMIT_FILES} files or {mib} MiB"
            break
        try:
            data = read_regular(path)
        except OSError as error:
            left_out[path] = error.strerror or str(error)
            continue
        refused = kinds.refused(data)
        if refused is None:
            texts[path] = data.decode("utf-8", "replace")
            total += len(data)
        elif named or len(data) > LIMIT_BYTES:
            left_out[path] = refused
    return texts, left_out


def below(folder: str, unlisted: Callable[[str, str], None]) -> Iterator[str]:
    """The files of known names at and below a directory, in the order of a listing.

    Links to directories are not followed. ``unlisted`` is told each directory that cannot be
    listed, and why.
    """
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            unlisted(here, error.strerror or str(error))
            continue
        deeper = []
        for entry in entries:
            path = os.path.normpath(os.path.join(here, entry.name))
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _PASSED_BY:
                        deeper.append(path)
                elif kinds.walked(path) and entry.is_file():
                    yield path
        waiting.extend(reversed(deeper))


def _candidates(paths: Sequence[str], left_out: dict[str, str]) -> Iterator[tuple[str, bool]]:
    """Each file, and whether it was named itself."""
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            left_out[path] = error.strerror or str(error)
            continue
        if not stat.S_ISDIR(mode):
            yield path, True
            continue
        for found in below(path, left_out.__setitem__):
            yield found, False
