# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a probe container is asked to try, and how its answer is read. Pure.

Opening a device node is the only proof that counts: a node may be visible and denied, or
hidden and reachable by mknod. So the script opens what it sees, and then makes nodes with
the numbers of every GPU of the host and opens those. The kernel's answer tells who said no
(open(2)): EPERM is the device program of the cgroup, ENXIO is "allowed, but no driver
behind it".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

# Arguments: MAJOR:MINOR of each GPU on the host. It uses shell built-ins wherever it can:
# each process costs tens of milliseconds on a slow host. The redirection asks for read and
# write, as the CUDA driver does; the last part of the shell's message is strerror(3).
SCRIPT = r"""
attempt() {
    if said=$( { : <>"$2"; } 2>&1 ); then said=opened; fi
    echo "$1 $3 ${said##*: }"
}
for node in /dev/nvidia*; do
    if [ -c "$node" ]; then attempt node "$node" "$node"; fi
done
for number in "$@"; do
    made=/dev/steadygpu-$number
    if [ ! -c "$made" ]; then
        said=$(mknod "$made" c "${number%:*}" "${number#*:}" 2>&1) || {
            echo "made $number mknod: ${said##*: }"
            continue
        }
    fi
    attempt made "$made" "$number"
done
echo end
"""

OPENED = "opened"
NO_DRIVER = "No such device or address"
DENIED = "Operation not permitted"
# A node on a file system mounted nodev, or SELinux: denied too, though not by the cgroup.
DENIED_ELSEWHERE = "Permission denied"


class SightError(Exception):
    """The probe script gave no whole answer; the message holds what it said."""


@dataclass(frozen=True)
class Sight:
    """What one container saw at one moment.

    ``nodes``: path of each /dev/nvidia* character device → result of opening it.
    ``made``: ``MAJOR:MINOR`` → result of opening a node made by mknod; a refused mknod is
    ``mknod: REASON``. A result is ``opened`` or the text of errno in the C locale.
    """

    nodes: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> list[str]:
        """The whole-GPU nodes: /dev/nvidia0, not /dev/nvidiactl."""
        prefix = "/dev/nvidia"
        return sorted(path for path in self.nodes if path[len(prefix) :].isdigit())


def command(numbers: Sequence[str]) -> list[str]:
    """The argv that runs the script for GPUs with these ``MAJOR:MINOR`` numbers."""
    return ["/usr/bin/sh", "-c", SCRIPT, "sh", *numbers]


def parse(exit_code: int, stdout: str, stderr: str) -> Sight:
    """The script's lines as a :class:`Sight`. Raises SightError when the end is missing."""
    lines = stdout.splitlines()
    if exit_code != 0 or not lines or lines[-1] != "end":
        said = (stderr.strip() or stdout.strip() or "nothing")[-400:]
        raise SightError(f"the probe script ended with {exit_code} and said: {said}")
    sight = Sight()
    for line in lines[:-1]:
        kind, what, result = line.split(" ", 2)
        (sight.nodes if kind == "node" else sight.made)[what] = result
    return sight
