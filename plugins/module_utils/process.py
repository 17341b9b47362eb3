# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a program with a deadline: the only place of the core that starts one."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class CommandMissingError(Exception):
    """The program is not on the host. The message names it."""


@dataclass(frozen=True)
class Completed:
    """What a finished program left behind.

    ``rc`` is the exit status, negative for a signal; ``timed_out`` says that the
    deadline passed and the whole process group was killed.
    """

    argv: Sequence[str]
    rc: int
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Did it end by itself with exit status 0?"""
        return self.rc == 0 and not self.timed_out

    @property
    def said(self) -> str:
        """The last lines a person needs to see: stderr, or stdout when that is empty."""
        text = (self.stderr.strip() or self.stdout.strip()).splitlines()
        if self.timed_out:
            text.append("(killed: no answer in time)")
        return "\n".join(text[-8:]) or f"exit status {self.rc}, no output"


# sbin is missing from the PATH of a non-login shell on Debian, and the engine lives there.
_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_program(name: str) -> str | None:
    """The absolute path of a program on the system path, or None."""
    return shutil.which(name, path=_SEARCH_PATH)


def run(
    argv: Sequence[str],
    deadline_s: float = 30.0,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run ``argv`` in the C locale and wait at most ``deadline_s`` seconds.

    A non-zero exit is an answer, not an error. Raises :class:`CommandMissingError` when the
    program is not there. A child that cannot even be killed (a driver call in
    uninterruptible sleep) is left behind rather than waited for.
    """
    path = argv[0] if os.path.isabs(argv[0]) else find_program(argv[0])
    if path is None or not os.path.exists(path):
        raise CommandMissingError(f"{argv[0]}: no such program on this host")
    full_env = dict(os.environ, LC_ALL="C", PATH=_SEARCH_PATH)
    full_env.update(env or {})
    # AnsibleModule.run_command has no deadline, and this also runs where there is no module.
    process = subprocess.Popen(  # pylint: disable=ansible-bad-function
        [path, *argv[1:]],
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=full_env,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        out, err = process.communicate(stdin, timeout=deadline_s)
        return Completed(list(argv), process.returncode, out, err)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            out, err = "", ""
        return Completed(list(argv), -signal.SIGKILL, out or "", err or "", timed_out=True)
