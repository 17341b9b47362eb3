# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""May a Docker that does not run be started? Containers may live that its start would end."""

from __future__ import annotations

import os
from typing import Protocol

from ..atomic import read_text
from .daemon_control import EngineState
from .daemon_json import CONFIG_PATH, document
from .daemon_refusals import why_not_start
from .daemon_rules import Change
from .json_text import JsonTextError

_NOTHING_CHANGES = Change((), (), {})


class _Docker(Protocol):
    def state(self) -> EngineState:
        """The daemon now."""


def why_not(docker: _Docker, root: str = "/") -> str:
    """Whom a start with the configuration as it lies there would cost, in words; "" for nobody."""
    state = docker.state()
    if not state.living:
        return ""
    path = state.flags.get("--config-file", CONFIG_PATH)
    try:
        config = document(read_text(os.path.join(root, path.lstrip("/"))))
    except (OSError, JsonTextError):
        config = {}  # dockerd does not come up with it, and live-restore counts as off.
    return why_not_start(state, config, _NOTHING_CHANGES, forced="")
