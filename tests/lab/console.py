# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lab says to a person (stderr; stdout belongs to answers) and how it fails."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence


class LabError(Exception):
    """Something the user can act on: what was seen, what was wanted, what to do next."""


def say(text: str) -> None:
    """One progress line."""
    print("lab: " + text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """One line that should not be overlooked."""
    say("WARNING: " + text)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a long step, and say how many seconds it took when it succeeded."""
    say(text + " ...")
    began = time.monotonic()
    yield
    say(f"{text}: {time.monotonic() - began:.1f} s")


@contextlib.contextmanager
def signals_held_back() -> Iterator[Callable[[], None]]:
    """Start a program inside: an interrupt between fork and return would lose its process.

    Yields what the program's ``preexec_fn`` calls to receive signals itself.
    """
    held_back = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held_back)

    def restore() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield restore
    finally:
        restore()


def call(
    argv: Sequence[str],
    failure: str,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end and return its stdout.

    Raises :class:`LabError`, starting with ``failure``, when the program is missing or exits
    non-zero; the last lines of its output are part of the message. When this process is
    interrupted, the program and its children get time to clean up, and then end.
    """
    try:
        with signals_held_back() as restore:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=env,
                start_new_session=True,
                preexec_fn=restore,
            )
    except FileNotFoundError as error:
        raise LabError(
            f"{failure}: the program {argv[0]} is missing; as root, run: python3 tests/lab setup"
        ) from error
    try:
        stdout, stderr = process.communicate()
    except BaseException:
        _end_group(process)
        raise
    if process.returncode != 0:
        lines = (stderr.strip() or stdout.strip()).splitlines()
        raise LabError(
            "{}: {} exited {}:\n  {}".format(
                failure, argv[0], process.returncode, "\n  ".join(lines[-12:])
            )
        )
    return stdout


def _end_group(process: subprocess.Popen[str]) -> None:
    """End a program that leads its process group, children included."""
    for number, grace_s in ((signal.SIGTERM, 10), (signal.SIGKILL, 2)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
