# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether KVM really boots a lab host here: asked by booting one, and remembered.

A usable ``/dev/kvm`` proves little. Under nested virtualisation a stock kernel was seen to stop
with an emulation failure in its decompressor while the device looked fine.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from . import image as images
from . import machine
from .cache import Cache, Entry, key
from .console import LabError, call, say

ACCELERATOR_VARIABLE = "STEADYGPU_LAB_ACCEL"
DEVICE = "/dev/kvm"

# A kernel that runs on the CPU reaches its initrd in about 2 s, emulated in about 8 s.
_DEADLINE_S = 20.0
_BOOTED = b"Run /init as init process"
_BROKEN = b"KVM internal error"


def qemu_version() -> str:
    """Qemu's own words about its version. Raises LabError when it is not installed."""
    return call([machine.QEMU, "--version"], "looking for qemu").splitlines()[0]


def choose(cache: Cache, image: Entry, environ: Mapping[str, str]) -> str:
    """``kvm`` or ``tcg`` (emulation, about 8 times slower); STEADYGPU_LAB_ACCEL decides if set."""
    wanted = environ.get(ACCELERATOR_VARIABLE)
    if wanted in ("kvm", "tcg"):
        return wanted
    if wanted:
        raise LabError(f"{ACCELERATOR_VARIABLE}={wanted!r} is not an accelerator; give kvm or tcg")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return "tcg"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    verdict_key = key(boot_id, image.manifest["kernel"], qemu_version())
    with cache.lock("kvm"):
        verdict_file = cache.directory("kvm") / (verdict_key + ".json")
        if verdict_file.exists():
            verdict = json.loads(verdict_file.read_text(encoding="utf-8"))
            return "kvm" if verdict["works"] else "tcg"
        say(f"trying KVM with a real boot (at most {_DEADLINE_S:g} s) ...")
        works, reason = _probe(images.boot_of(image), verdict_file.parent)
        say("KVM {}: {}".format("works" if works else "does not work, emulating", reason))
        for former in verdict_file.parent.glob("*.json"):
            if boot_id not in former.read_text(encoding="utf-8"):
                former.unlink()
        verdict_file.write_text(
            json.dumps({"works": works, "reason": reason, "boot_id": boot_id}), encoding="utf-8"
        )
    return "kvm" if works else "tcg"


def _probe(boot: machine.Boot, directory: Path) -> tuple[bool, str]:
    """Boot the kernel without a disk until its initrd starts. Returns (works, reason)."""
    argv = [machine.QEMU, "-M", "q35", "-cpu", "max", "-accel", "kvm", "-m", "512"]
    argv += ["-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio", *boot.argv()]
    with tempfile.TemporaryFile(dir=directory) as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            end = time.monotonic() + _DEADLINE_S
            while time.monotonic() < end:
                said = os.pread(log.fileno(), 1 << 20, 0)
                if _BOOTED in said:
                    return True, "the kernel started its initrd"
                if _BROKEN in said:
                    at = said.index(_BROKEN)
                    return False, said[at:].splitlines()[0].decode("utf-8", "replace")
                if process.poll() is not None:
                    last = said.strip().splitlines()[-1:] or [b"qemu ended without a word"]
                    return False, last[0].decode("utf-8", "replace")
                time.sleep(0.1)
            return False, f"no initrd after {_DEADLINE_S:g} s"
        finally:
            process.kill()
            process.wait()
