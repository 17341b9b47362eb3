# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between two checkpoints, or between one and the host as it is now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .. import scope
from ..model import Checkpoint, Difference, RollbackError, State
from ..observation.files import MemorySink
from ..storage.store import Store
from ..way_back.actors_api import RestoreHost
from . import diff

# Names the host as it is; no label may stand in its place.
NOW = "now"


def compare(store: Store, host: RestoreHost, before: str, after: str) -> Difference:
    """The difference of two selectors, of which :data:`NOW` looks at the host and saves nothing.

    Raises RollbackError when there is no such checkpoint, and when the host cannot be read.
    """
    saved = {name: store.get(name) for name in (before, after) if name != NOW}
    declared = tuple(sorted({path for one in saved.values() for path in one.declared}))
    sides: dict[str, tuple[str, State, Callable[[str], bytes | None]]] = {
        name: (one.id, one.state, content_of(store)) for name, one in saved.items()
    }
    if NOW in (before, after):
        sink = MemorySink()
        sides[NOW] = (NOW, host.observe(sink, declared), sink.content)
    for one in saved.values():
        # A path that a checkpoint did not look at is neither added nor removed.
        sides = {
            name: (told, _within(state, one), content)
            for name, (told, state, content) in sides.items()
        }
    (first, earlier, held), (second, later, holds) = sides[before], sides[after]
    return diff.difference(earlier, later, (first, second), held, holds, scope.areas(declared))


def _within(state: State, checkpoint: Checkpoint) -> State:
    """The state without the paths that ``checkpoint`` did not look at."""
    known = checkpoint.state.files
    files = {
        path: entry
        for path, entry in state.files.items()
        if path in known or scope.looked_at(path, checkpoint.looked)
    }
    return replace(state, files=files)


def content_of(store: Store) -> Callable[[str], bytes | None]:
    """What is in the store; None for what is not, as after an import without secrets."""

    def content(digest: str) -> bytes | None:
        try:
            return store.content(digest)
        except RollbackError:
            return None

    return content
