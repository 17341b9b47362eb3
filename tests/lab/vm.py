# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One qemu process: started so that it cannot be lost, recognised before it is ended.

Everything of a machine lies in its directory: ``disk.qcow2``, ``qemu.pid``, ``qmp.sock``,
``console.log`` (what the guest says) and ``qemu.log`` (what qemu says).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from .console import LabError, signals_held_back
from .machine import MEMORY_MIB, QEMU
from .qmp import Monitor

DISK = "disk.qcow2"
PID_FILE = "qemu.pid"
CONSOLE_LOG = "console.log"
QEMU_LOG = "qemu.log"

# Seen after a resume: 0.5 GiB; what qemu itself adds to a guest that touched all its memory.
_OVERHEAD_MIB = 200
_PORT_ATTEMPTS = 8
_PANIC = b"Kernel panic - not syncing"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PORT_TAKEN = "Could not set up host forwarding rule"


def is_machine(pid: int, directory: Path, proc: str = "/proc") -> bool:
    """Whether process ``pid`` is the qemu whose disk lies in ``directory``.

    A pid file outlives its process, and the number is soon somebody else's.
    """
    try:
        words = Path(proc, str(pid), "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    disk = os.fsencode(str(directory / DISK).replace(",", ",,"))
    ours = any(word.endswith(b"file=" + disk) for word in words)
    return ours and os.path.basename(words[0]) == QEMU.encode()


def running_pid(directory: Path) -> int | None:
    """The process id of the machine in ``directory``, or None when it does not run."""
    try:
        pid = int((directory / PID_FILE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return pid if is_machine(pid, directory) else None


def is_alive(directory: Path) -> bool:
    """Whether the machine in ``directory`` runs and its kernel has not panicked."""
    console = (directory / CONSOLE_LOG).read_bytes()
    return running_pid(directory) is not None and _PANIC not in console


def require_memory(meminfo: str = "/proc/meminfo") -> None:
    """Raise LabError unless this machine can hold one more guest."""
    available_mib = 0
    with open(meminfo, encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                available_mib = int(line.split()[1]) >> 10
    wanted_mib = MEMORY_MIB + _OVERHEAD_MIB
    if available_mib < wanted_mib:
        raise LabError(
            f"a lab host needs {wanted_mib} MiB of memory and {available_mib} MiB are available; "
            "stop another one (`python3 tests/lab list`, `python3 tests/lab stop NAME`) or end "
            "other programs"
        )


def start(directory: Path, command_for: Callable[[int], list[str]], outlive: bool = True) -> int:
    """Start the machine in ``directory`` and return the local TCP port of its ssh.

    Unless it may ``outlive`` this process, it ends with it, even when that is killed.
    ``command_for`` makes the command line for a port. A port that somebody takes at the
    same moment is replaced by another. Raises LabError with qemu's own words when it does
    not start; then, and on an interrupt, no process is left.
    """
    for _attempt in range(_PORT_ATTEMPTS):
        port = _free_port()
        try:
            process = _spawn(command_for(port), directory, outlive)
        except FileNotFoundError as error:
            raise LabError(
                f"{QEMU} is not installed; as root, run: python3 tests/lab setup"
            ) from error
        try:
            _wait_for_monitor(process, directory)
            return port
        except BaseException as error:
            process.kill()
            process.wait()
            if not (isinstance(error, LabError) and _PORT_TAKEN in str(error)):
                raise
    raise LabError(
        f"no free TCP port on 127.0.0.1 after {_PORT_ATTEMPTS} attempts; see what listens with "
        "`ss -ltn`"
    )


def stop(directory: Path) -> None:
    """End the machine in ``directory``, if it runs. Its disk is left as it is at that moment."""
    _end(directory, ((signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0)))


def kill(directory: Path) -> None:
    """End the machine in ``directory``, if it runs, as a power cut does: without a last word."""
    _end(directory, ((signal.SIGKILL, 10.0),))


def _end(directory: Path, means: Sequence[tuple[signal.Signals, float]]) -> None:
    """Send each signal and wait so many seconds, until the machine has ended."""
    pid = running_pid(directory)
    if pid is None:
        return
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # From here on the number cannot be reused unnoticed; before, it could.
        if not is_machine(pid, directory):
            return
        for number, grace_s in means:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, number)
            if select.select([fd], [], [], grace_s)[0]:
                return
        raise LabError(f"qemu, process {pid}, cannot be ended even by SIGKILL")
    finally:
        os.close(fd)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _spawn(argv: list[str], directory: Path, outlive: bool) -> subprocess.Popen[bytes]:
    """Start qemu in its own session, so that it outlives this process and its terminal."""
    for name in (PID_FILE, "qmp.sock"):
        with contextlib.suppress(FileNotFoundError):
            (directory / name).unlink()
    with open(directory / QEMU_LOG, "wb") as log, signals_held_back() as restore:

        def prepare() -> None:
            restore()
            if not outlive:
                ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))

        return subprocess.Popen(
            argv,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=prepare,
        )


def _wait_for_monitor(process: subprocess.Popen[bytes], directory: Path) -> None:
    """Return once the monitor answers. Raises LabError when qemu ends before."""
    for _attempt in range(100):
        try:
            with Monitor(directory, deadline_s=0.1):
                return
        except LabError:
            if process.poll() is not None:
                log = (directory / QEMU_LOG).read_text(encoding="utf-8", errors="replace")
                raise LabError(
                    "qemu ended at once with status {}:\n  {}".format(
                        process.returncode, "\n  ".join(log.strip().splitlines()[-5:])
                    )
                ) from None
    raise LabError("qemu's monitor did not answer within 10 s")
