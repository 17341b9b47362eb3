# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole modules as Ansible runs them, in a server; the scratch host is their root.

The verb ``module:<case>:<step>`` runs the module of a case with the arguments of a step. Nothing of
the module is replaced but the programs that it runs and, for Docker, the daemon that it asks.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.steadygpu.host.plugins.module_utils import process
from ansible_collections.steadygpu.host.tests.cuts import operation
from ansible_collections.steadygpu.host.tests.cuts.module_cases import CASES, Case
from ansible_collections.steadygpu.host.tests.cuts.tracing import MODULE

_COLLECTION = "ansible_collections.steadygpu.host.plugins"
_CLONE_NEWUSER = 0x10000000  # linux/sched.h


def perform(verb: str, root: str) -> Any:
    """Run the module; its result, or what it ended with instead."""
    name, step = verb[len(MODULE) :].split(":")
    case = CASES[name]
    _change_root(root)
    _replace_programs(case)
    case.replace()
    said = io.StringIO()
    arguments = patch_module_args(dict(case.steps[step]))
    with arguments, contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        case.main()
    return json.loads(said.getvalue().strip().splitlines()[-1])


def _warm_up() -> None:
    """Have everything imported that Ansible imports late: below another root it is not there."""
    for end in ("exit_json", "fail_json"):
        quiet = contextlib.redirect_stdout(io.StringIO())
        with patch_module_args({}), quiet, contextlib.suppress(SystemExit):
            module = AnsibleModule(argument_spec={}, supports_check_mode=True)
            module.warn("none")
            getattr(module, end)(msg="é")


def _change_root(root: str) -> None:
    """Only what lies below ``root`` is there any more. Raises OSError."""
    if os.geteuid() != 0:
        uid, gid = os.geteuid(), os.getegid()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_CLONE_NEWUSER) != 0:
            raise OSError(ctypes.get_errno(), "no user namespace for a root of its own")
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"0 {uid} 1"),
            ("gid_map", f"0 {gid} 1"),
        ):
            with open(f"/proc/self/{file}", "w", encoding="ascii") as handle:
                handle.write(text)
    os.chroot(root)
    os.chdir("/")


def _replace_programs(case: Case) -> None:
    """Programs are functions here: a child would be traced, and would find nothing to run."""
    real = process.run

    def run(
        argv: Sequence[str], deadline_s: float = 30.0, stdin: str | None = None, env: Any = None
    ) -> process.Completed:
        program = case.programs.get(os.path.basename(argv[0]))
        if program is None:
            raise process.CommandMissingError(f"{argv[0]}: no such program on this host")
        return program(argv, stdin)

    for name, module in list(sys.modules.items()):
        if name.startswith(_COLLECTION):
            for attribute, value in list(vars(module).items()):
                if value is real:
                    setattr(module, attribute, run)


if __name__ == "__main__":
    _warm_up()
    operation.main(perform)
