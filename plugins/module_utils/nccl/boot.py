# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit that withdraws a stale topology file at boot, before any engine starts.

Hardware changes while a host is off. The unit only orders itself before the engines: when it
fails, they start all the same.
"""

from __future__ import annotations

import os

from ..boot_unit import COMMAND, ENGINES, BootUnit
from . import carrier

UNIT = "steadygpu-nccl.service"
# systemd gives each command this long, and _STOP_S to end. The comparison takes far less.
_TIMEOUT_S = 40
_STOP_S = 10
_SETTLE_S = 30

# The specification, not the topology file: one whose topology file is gone keeps containers
# from starting, and is withdrawn too. Status 3 is "withdrawn", which is no failure.
_TEXT = """\
# Written by steadygpu.host.nccl_topology, which also removes it.
[Unit]
Description=Withdraw the NCCL topology file if it is not for this host
ConditionPathExists={spec}
ConditionPathExists={command}
After=local-fs.target systemd-modules-load.service systemd-udev-settle.service
Before={engines}

[Service]
Type=oneshot
TimeoutStartSec={timeout_s}
TimeoutStopSec={stop_s}
# PCI devices of some virtual machines (Hyper-V) are there only when udev has loaded a driver.
ExecStartPre=-/usr/bin/udevadm settle --timeout={settle_s}
ExecStart={command} nccl --withdraw{options}
SuccessExitStatus=3

[Install]
WantedBy=multi-user.target
"""


def unit(file_path: str, spec_path: str) -> BootUnit:
    """The unit for a pair of topology file and specification. Pure."""
    options = ""
    if file_path != carrier.FILE_PATH:
        options += f" --path {_quoted(file_path)}"
    if spec_path != carrier.SPEC_PATH:
        options += f" --spec-path {_quoted(spec_path)}"
    text = _TEXT.format(
        spec=spec_path.replace("%", "%%"),
        command=COMMAND,
        engines=ENGINES,
        timeout_s=_TIMEOUT_S,
        stop_s=_STOP_S,
        settle_s=_SETTLE_S,
        options=options,
    )
    return BootUnit(UNIT, text)


def warnings(root: str = "/") -> tuple[str, ...]:
    """What keeps the unit from doing its work, for a person."""
    if os.path.exists(os.path.join(root, COMMAND.lstrip("/"))):
        return ()
    return (
        f"there is no {COMMAND}: a file that goes stale while the host is off stays injected "
        "until the next play; the role steadygpu.host.agent installs the command",
    )


def _quoted(path: str) -> str:
    """One argument of ExecStart= (systemd.service(5), "Command lines")."""
    for mark, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        path = path.replace(mark, escaped)
    return f'"{path}"'
