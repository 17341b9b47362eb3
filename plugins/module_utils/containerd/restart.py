# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""May containerd be restarted, and whom would it cost? Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ..engine.living import speaks
from ..trees.leaves import Path
from .names import show_path
from .tool import UNIT, ContainerdState

# What systemd leaves alone when it stops a unit.
_KEEPS_SHIMS = ("process", "none")

# Units that lose nothing by a restart.
_HARMLESS = ("kubelet.service",)

# Settings that containers live by: with another value containerd does not find them again.
_HELD_BY = frozenset((("root",), ("state",), ("disabled_plugins",), ("required_plugins",)))
_HELD_TABLES = ("grpc", "ttrpc", "proxy_plugins", "stream_processors")
_HELD_PLUGINS = (
    "io.containerd.snapshotter.",
    "io.containerd.metadata.",
    "io.containerd.content.",
    "io.containerd.runtime.",
    "io.containerd.internal.v1.opt",
    "io.containerd.server.",
    "io.containerd.shim.",
)


def reasons_against(state: ContainerdState, changed: Iterable[Path]) -> list[str]:
    """Why a restart now would cost somebody something, each with a way out; [] when it would not.

    ``changed`` are paths in the names of version 3.
    """
    reasons = []
    inside = [shim.name for shim in state.shims if shim.in_unit]
    if inside and state.kill_mode not in _KEEPS_SHIMS:
        reasons.append(
            f"{UNIT} has KillMode={state.kill_mode}, so that its stop ends {_containers(inside)}. "
            f"Give it KillMode=process (systemctl edit {UNIT}, as containerd's own unit has it)"
        )
    if inside and state.stops:
        listed = "; ".join(state.stops)
        reasons.append(
            f"a stop of {UNIT} runs {listed}, which may end {_containers(inside)}. Take ExecStop "
            "out of the unit"
        )
    newer = [shim.name for shim in state.shims if shim.version > speaks(state.release)]
    if newer:
        reasons.append(
            f"the installed containerd {state.release} does not understand the shims of a newer "
            f"one, and ends {_containers(newer)} when it starts. Install the release that runs, or "
            "stop these first"
        )
    if "docker.service" in state.along:
        reasons.extend(_docker(state))
    others = [one for one in state.along if one not in (*_HARMLESS, "docker.service")]
    if others:
        reasons.append(
            "systemd would stop {0} with it (Requires, BindsTo or PartOf). Stop {0} first, or "
            "loosen the dependency".format(", ".join(others))
        )
    held = [path for path in changed if is_held(path)]
    if held and state.shims:
        names = [shim.name for shim in state.shims]
        reasons.append(
            "containers live by {}, and containerd may not find {} again with another value".format(
                ", ".join(map(show_path, held)), _containers(names)
            )
        )
    return reasons


def is_held(path: Path) -> bool:
    """Do running containers depend on a setting?"""
    if path in _HELD_BY or path[0] in _HELD_TABLES:
        return True
    return path[0] == "plugins" and len(path) > 1 and path[1].startswith(_HELD_PLUGINS)


def _docker(state: ContainerdState) -> list[str]:
    if state.docker_reason is not None:
        return [
            f"systemd would stop docker.service with {UNIT}, and Docker does not say what runs "
            f"in it ({state.docker_reason})"
        ]
    if state.docker_running and not state.live_restore:
        return [
            f"systemd would stop docker.service with {UNIT} (Requires, BindsTo or PartOf), which "
            f"ends {_containers(state.docker_running)}. Set live-restore: true (role engine), or "
            "loosen the dependency"
        ]
    return []


def _containers(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    return "{} running container(s): {}{}".format(len(found), ", ".join(found[:10]), more)
