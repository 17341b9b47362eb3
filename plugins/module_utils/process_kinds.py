# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What kind of process holds a GPU, by its name. Pure."""

from __future__ import annotations

# The kernel keeps 15 characters of a program's name (TASK_COMM_LEN).
_NAME_LENGTH = 15
_KINDS = {
    "Xorg": "display",
    "X": "display",
    "Xorg.bin": "display",
    "Xwayland": "display",
    "gnome-shell": "display",
    "kwin_wayland": "display",
    "kwin_x11": "display",
    "gdm-wayland-ses": "display",
    "sddm-greeter": "display",
    "sway": "display",
    "weston": "display",
    "nvidia-persiste": "persistence",
    "nv-hostengine": "dcgm",
    "dcgm-exporter": "dcgm",
    "dcgmi": "dcgm",
}


def kind_of(name: str, container: str | None) -> str:
    """process, display, persistence, dcgm or container, by the name of a process or program.

    ``container`` is the container the process runs in, None for a process of the host.
    """
    return _KINDS.get(name[:_NAME_LENGTH], "container" if container else "process")
