# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`runtime configure --runtime docker`, with the habits of nvidia-ctk 1.20.0 that were seen.

It rewrites the whole file, replaces an existing runtime of that name, and `--cdi.enabled` drops
every other key of `features`: what a careful caller has to guard against.
"""

from __future__ import annotations

from typing import Any


def configure(
    config: dict[str, Any], *, name: str, path: str, set_as_default: bool, enable_cdi: bool
) -> dict[str, Any]:
    """daemon.json with the NVIDIA runtime in it."""
    changed = dict(config)
    changed["runtimes"] = {**config.get("runtimes", {}), name: {"args": [], "path": path}}
    if set_as_default:
        changed["default-runtime"] = name
    if enable_cdi:
        changed["features"] = {"cdi": True}
    return changed
