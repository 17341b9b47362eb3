# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A containerd that outlives the process that asks it; ``/recorded/containerd.json`` has its state.

It reads its files as the one in memory of the unit tests does.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.atomic import write_atomic
from ansible_collections.steadygpu.host.tests.unit.module_utils.containerd import fake_containerd

RECORDED = "/recorded/containerd.json"
RELEASES = (fake_containerd.OLD, fake_containerd.NEW)
# Read while the files of this checkout can be reached: below another root they are not there.
DEFAULTS = {release: fake_containerd.default_of(release) for release in RELEASES}


class ScratchContainerd(fake_containerd.FakeContainerd):
    """Of the release that is recorded."""

    def __init__(self) -> None:
        recorded = _recorded()
        super().__init__(Path("/"), recorded["release"], started_at=recorded.get("started_at", 0.0))

    def restart(self) -> None:
        """Read all files, and record what they say."""
        super().restart()
        recorded = _recorded()
        recorded["started_at"] = self.started_at = time.time() + 1
        recorded["restarts"] = recorded.get("restarts", 0) + 1
        recorded["read"] = {
            name: text for name, text in self.texts().items() if name[-5:] == ".toml"
        }
        write_atomic(RECORDED, json.dumps(recorded, sort_keys=True))


def _recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(RECORDED).read_text())
    return found
