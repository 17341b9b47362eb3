# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run of site.yml costs on a lab host, against the price of one ssh round trip.

Usage: ``make bench``. It starts a bare lab host, runs site.yml twice and prints a table: seconds,
tasks, tasks that went to the host, and seconds per remote task as a ratio to a remote task that
does nothing (``ansible.builtin.ping``) on the same host in the same run.
"""

from __future__ import annotations

from statistics import median

from plays import ansible, lab

HOST = "bench"


def main() -> None:
    """Measure and print."""
    lab("start", HOST, "--suite", "trixie", "--profile", "dgx-a100")
    try:
        first, second = (ansible(HOST, "ansible-playbook", "site.yml") for _run in range(2))
        pings = [
            ansible(HOST, "ansible", "gpu_hosts", "-m", "ansible.builtin.ping").tasks[0][1]
            for _attempt in range(5)
        ]
    finally:
        lab("stop", HOST)
    ping = median(pings)
    print("| run | seconds | tasks | remote tasks | seconds per remote task | against a ping |")
    print("|---|---|---|---|---|---|")
    for name, run in (("bare host", first), ("second run", second)):
        each = sum(seconds for _action, seconds in run.remote) / len(run.remote)
        print(
            f"| {name} | {run.seconds:.0f} | {len(run.tasks)} | {len(run.remote)} "
            f"| {each:.1f} | {each / ping:.1f} × |"
        )
    print(f"\nOne ping: {ping:.2f} s (median of {len(pings)}).")


if __name__ == "__main__":
    main()
