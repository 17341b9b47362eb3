# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command ``steadygpu nccl``: is the topology file of this host still for this host?

Hardware changes while a host is off, and no playbook runs at boot. With ``--withdraw`` this is
what steadygpu-nccl.service runs before the container engine starts.
"""

from __future__ import annotations

import argparse
import sys

# Exit status of a file that is not for this host.
_STALE = 3


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``steadygpu``."""
    nccl = commands.add_parser(
        "nccl",
        help="check that the NCCL topology file is still for this host",
        description="Compare the host's GPUs and NICs with those the NCCL topology file was made "
        "for. The exit status is 0 when it fits or there is none, 3 when it is stale or foreign.",
    )
    nccl.add_argument(
        "--withdraw",
        action="store_true",
        help="keep a stale file out of containers that start from now on",
    )
    nccl.add_argument("--path", help="the topology file, where it is not the module's default")
    nccl.add_argument("--spec-path", help="its CDI specification, likewise")
    nccl.set_defaults(run=_check)


def _check(arguments: argparse.Namespace) -> int:
    from ansible_collections.steadygpu.host.plugins.module_utils.nccl import host, manage

    given = {"file_path": arguments.path, "spec_path": arguments.spec_path}
    wanted = manage.Wanted(**{key: path for key, path in given.items() if path is not None})
    plan = manage.withdraw_stale(host.read(), wanted)
    print(f"nccl topology: {plan.found.status}")
    if plan.failure:
        print(plan.failure)
    try:
        if arguments.withdraw:
            manage.carry_out(plan)
    except OSError as error:
        print(f"steadygpu: {wanted.spec_path}: {error}", file=sys.stderr)
        return 1
    for action in plan.actions:
        print(action if arguments.withdraw else f"with --withdraw: {action}")
    return 0 if plan.found.status in ("fresh", "absent") else _STALE
