# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where it is remembered which keys of dockerd's configuration are ours."""

from __future__ import annotations

from .daemon_json import CONFIG_PATH

RECORD_PATH = "/var/lib/steadygpu/owned/docker_daemon.json"


def record_path_of(path: str) -> str:
    """Where the record of a configuration file lies: each file has its own."""
    if path == CONFIG_PATH:
        return RECORD_PATH
    return RECORD_PATH.replace(".json", path.replace("/", "-") + ".json")
