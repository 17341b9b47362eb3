# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The units that keep a burst right: one service, and for each slice a path unit that wakes it.

The service runs at boot and whenever a watched quota changes, or what systemd was told of it: the
kernel refuses a quota below the burst, systemd only logs that, and then the service repairs it.
A slice that starts has its quota before anybody can watch the file (seen with systemd 257), so the
groups above it are watched for new ones. The text of a path unit depends on its slice alone, so
that none ever needs a daemon-reload.
"""

from __future__ import annotations

from ..boot_unit import COMMAND, ENGINES, BootUnit
from ..settings.files import header
from . import reader

SERVICE_NAME = "steadygpu-burst.service"

_SERVICE = """\
{header}[Unit]
Description=Set the CPU burst of slices to what their quota allows
ConditionPathExists={command}
After=local-fs.target
Before={engines}
# A quota may be changed often, and each change counts.
StartLimitIntervalSec=0

[Service]
Type=oneshot
TimeoutStartSec=180
ExecStart={command} burst apply

[Install]
WantedBy=multi-user.target
"""
_PATH = """\
{header}[Unit]
Description=Watch the CPU quota of {slice}

[Path]
{above}PathModified={cpu_max}
PathModified=/etc/systemd/system.control/{name}.d
PathModified=/run/systemd/system.control/{name}.d
Unit={service}

[Install]
WantedBy=multi-user.target
"""


def service() -> BootUnit:
    """What sets the bursts."""
    text = _SERVICE.format(header=header("realtime"), command=COMMAND, engines=ENGINES)
    return BootUnit(SERVICE_NAME, text)


def watch(name: str) -> BootUnit:
    """What wakes the service for one slice."""
    group = reader.predicted_group(name)
    above = ["/sys/fs/cgroup"]
    for part in group.split("/")[1:-1]:
        above.append(f"{above[-1]}/{part}")
    text = _PATH.format(
        header=header("realtime"),
        # In a unit file a bare % begins a specifier; a slice's name has none.
        slice=name,
        name=name,
        above="".join(f"PathChanged={path}\n" for path in above),
        cpu_max=reader.path_of(group, "cpu.max"),
        service=SERVICE_NAME,
    )
    return BootUnit(f"steadygpu-burst-{name[: -len('.slice')]}.path", text)
