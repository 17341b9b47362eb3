# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit that sets at boot what only the running kernel holds: fair servers, the partition."""

from __future__ import annotations

from ..boot_unit import COMMAND, ENGINES, BootUnit
from ..settings.files import header

NAME = "steadygpu-realtime.service"

_TEXT = """\
{header}[Unit]
Description=Set the fair servers of the CPUs and the partition of real-time work
ConditionPathExists={command}
Wants=sys-kernel-debug.mount{slices}
After=local-fs.target sys-kernel-debug.mount{slices}
Before={engines}

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=180
ExecStart={command} realtime apply

[Install]
WantedBy=multi-user.target
"""


def unit(slice_name: str | None = None) -> BootUnit:
    """``slice_name`` is the slice that is to be a partition, if any."""
    text = _TEXT.format(
        header=header("realtime"),
        command=COMMAND,
        engines=ENGINES,
        slices=f" {slice_name}" if slice_name else "",
    )
    return BootUnit(NAME, text)
