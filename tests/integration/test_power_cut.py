# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The power goes three times: while a change begins, while it is undone, while that is resumed.

A watcher on the host stops the process that holds the store's lock at the moment that the disk
shows; then the machine's power is cut. What had not reached the disk is lost, as it would be.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable

from conftest import LabHost
from converged import LAB

STORE = "/var/lib/steadygpu/rollback"
FILES = 60
# Each file has one of two contents, and is never anything else.
WRITE = """python3 - <<'END'
import os
os.makedirs("/etc/steadygpu", exist_ok=True)
for i in range({files}):
    with open(f"/etc/steadygpu/rules{{i}}.json", "w") as file:
        file.write(f"{word} {{i}}\\n" * 200)
os.sync()
END"""
# How many files have which content; one that is half of anything has a word of its own.
READ = """python3 - <<'END'
import collections, json
words = collections.Counter()
for i in range({files}):
    text = open(f"/etc/steadygpu/rules{{i}}.json").read()
    whole = [word for word in ("before", "after") if text == f"{{word}} {{i}}\\n" * 200]
    words[whole[0] if whole else f"half: {{text[:40]!r}}"] += 1
print(json.dumps(words))
END"""
# The moment comes and goes within a few milliseconds, so it is looked for without a pause. Whoever
# holds the lock has written its process id there; after a reboot the number is somebody else's.
WATCH = """python3 - <<'END'
import contextlib, fcntl, glob, os, signal, sys, time
store, files, began = "{store}/", "/etc/steadygpu/", time.time()
def held():
    with contextlib.suppress(FileNotFoundError), open(store + "lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
def fresh(pattern):
    count = 0
    for path in glob.glob(pattern):
        with contextlib.suppress(FileNotFoundError):
            count += os.lstat(path).st_ctime >= began
    return count
while not ({moment} and held()):
    if time.time() - began > 200:
        sys.exit("the moment did not come within 200 s")
os.kill(int(open(store + "lock").read()), signal.SIGSTOP)
print("stopped")
END"""
# Contents are being written, and no checkpoint names them yet.
WHILE_BEGINNING = "fresh(store + 'incoming/*') > 20"
# The journal is there, and files are on their way.
WHILE_GOING_BACK = "os.path.exists(store + 'restore.json') and fresh(files + '.rules*.steadygpu-*')"


def cut_power(host: LabHost, moment: str, during: Callable[[], object]) -> None:
    """Cut the host's power at a moment of what it is told to do; back when it has booted."""
    watch = WATCH.format(store=STORE, moment=moment)
    watcher = subprocess.Popen([*LAB, "ssh", host.name, watch], stdout=subprocess.PIPE, text=True)
    thread = threading.Thread(target=during)
    thread.start()
    said, _nothing = watcher.communicate()
    assert said.strip() == "stopped"
    subprocess.run([*LAB, "cut", host.name], check=True)
    # Its connection went with the host.
    thread.join()


def words(host: LabHost) -> dict[str, int]:
    """How many files have which content."""
    found: dict[str, int] = json.loads(host.sh(READ.format(files=FILES)))
    return found


def test_three_power_cuts_lose_nothing(host: LabHost) -> None:
    # This also brings to the disk what made the host this one, such as its machine-id.
    host.sh(WRITE.format(files=FILES, word="before"))
    begin = {"state": "begin", "what": "power-cut", "confirm_within": "1h"}
    cut_power(host, WHILE_BEGINNING, lambda: host.module("checkpoint", begin))
    assert words(host) == {"before": FILES}
    begun = host.module("checkpoint", begin)
    assert not begun.get("failed"), begun
    assert begun["opened"]

    host.sh("touch /etc/steadygpu/new.json; " + WRITE.format(files=FILES, word="after"))
    undo = "steadygpu checkpoint restore before-change"
    cut_power(host, WHILE_GOING_BACK, lambda: host.sh(undo, check=False))
    assert set(words(host)) <= {"before", "after"}
    cut_power(host, WHILE_GOING_BACK, lambda: host.sh("steadygpu checkpoint resume", check=False))
    assert set(words(host)) <= {"before", "after"}

    # Nothing is left to do after it, and what is now differs in nothing from what was begun with.
    host.sh(
        "steadygpu checkpoint resume && steadygpu checkpoint resume && "
        "steadygpu checkpoint diff " + begun["checkpoint"]
    )
    assert words(host) == {"before": FILES}
    left = "/etc/steadygpu/new.json /etc/steadygpu/.*.steadygpu-* /etc/steadygpu/*-conflict* "
    left += f"{STORE}/restore.json {STORE}/window.json {STORE}/incoming/*"
    assert host.sh(f"ls -d {left} 2>/dev/null || true") == ""
