# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ssh into lab hosts: the user's lab key, one known host identity, no agent, no user config."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from .cache import Cache
from .console import LabError, call

# Every lab host carries the same host key, made on this machine: so ssh can really check it,
# whatever port the host got.
HOST_ALIAS = "steadygpu-lab"

_ATTEMPTS = 5
# A busy machine's guest may take this long to greet; giving up earlier only makes it busier.
_GREETING_S = 10.0


@dataclass(frozen=True)
class Keys:
    """Paths of the user's key and of the hosts' key; public halves end in ``.pub``."""

    user: Path
    host: Path
    known_hosts: Path

    @classmethod
    def of(cls, cache: Cache) -> Keys:
        """The keys of a cache, made when missing."""
        directory = cache.directory("ssh")
        keys = cls(directory / "id_ed25519", directory / "host_ed25519", directory / "known_hosts")
        with cache.lock("ssh"):
            for path in (keys.user, keys.host):
                if not path.with_suffix(".pub").exists():
                    path.unlink(missing_ok=True)
                    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", HOST_ALIAS]
                    call([*argv, "-f", str(path)], "cannot make the lab's ssh keys")
            line = f"{HOST_ALIAS} {keys.host.with_suffix('.pub').read_text()}"
            if not keys.known_hosts.exists() or keys.known_hosts.read_text() != line:
                keys.known_hosts.write_text(line)
        return keys

    def options(self) -> list[str]:
        """Ssh options that tie a connection to these keys and to nothing of the user's."""
        settings = (
            f"HostKeyAlias={HOST_ALIAS}",
            f'UserKnownHostsFile="{self.known_hosts}"',
            "StrictHostKeyChecking=yes",
            "IdentitiesOnly=yes",
        )
        return ["-F", "/dev/null", *(word for item in settings for word in ("-o", item))]


@dataclass(frozen=True)
class Guest:
    """The way into one lab host."""

    keys: Keys
    port: int

    def argv(self, command: Sequence[str] = ()) -> list[str]:
        """The ssh command line for root on the host."""
        argv = ["ssh", *self.keys.options(), "-i", str(self.keys.user), "-p", str(self.port)]
        return [*argv, "-o", "BatchMode=yes", "root@127.0.0.1", *command]

    def run(self, script: str, deadline_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a shell script on the host; its exit status is an answer (255 = ssh itself).

        A connection closed before the server said who it is ran nothing, and is tried again.
        """
        for _attempt in range(_ATTEMPTS - 1):
            done = self._run(script, deadline_s)
            if done.returncode != 255 or "kex_exchange_identification" not in done.stderr:
                return done
            time.sleep(1)
        return self._run(script, deadline_s)

    def _run(self, script: str, deadline_s: float) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                self.argv([script]),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=deadline_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LabError(
                f"the lab host on port {self.port} did not finish in {deadline_s:g} s: "
                f"{script.strip().splitlines()[0]}"
            ) from error

    def answer(self, script: str, deadline_s: float) -> str | None:
        """What a script prints, None while the host does not answer in time or it fails."""
        try:
            done = self._run(script, deadline_s)
        except LabError:
            return None
        return done.stdout if done.returncode == 0 else None

    def check(self, script: str, failure: str, deadline_s: float = 60.0) -> str:
        """Run a script that must succeed and return its stdout. Raises LabError."""
        done = self.run(script, deadline_s)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-8:]
            raise LabError(f"{failure} (exit status {done.returncode}):\n  " + "\n  ".join(said))
        return done.stdout

    def wait(self, alive: Callable[[], bool], deadline_s: float) -> None:
        """Wait for the ssh server's greeting.

        ``alive`` tells whether the machine still runs. Raises LabError when it does not, or
        after the deadline. qemu accepts connections before the guest does, so only what the
        guest says counts.
        """
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            if not alive():
                raise LabError("the machine ended, or its kernel panicked, before ssh answered")
            try:
                with socket.create_connection(
                    ("127.0.0.1", self.port), timeout=_GREETING_S
                ) as greeting:
                    if greeting.recv(4) == b"SSH-":
                        return
            except OSError:
                pass
            time.sleep(0.1)
        raise LabError(f"ssh on port {self.port} did not answer in {deadline_s:g} s")
