# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The converged lab host, frozen once and resumed for every story.

``converged.py name`` prints the snapshot's name, ``converged.py freeze HOST`` makes it. The name
holds the digest of everything that makes the host what it is, so a stale one is never resumed.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, str(ROOT / "tests" / "lab")]
_MAKERS = [
    "galaxy.yml",
    "agent",
    "inventories/lab",
    "playbooks",
    "plugins",
    "roles",
    "tests/lab",
    "tests/simgpu",
]


def snapshot_name() -> str:
    """``converged-<digest>`` of the working tree as it is, committed or not."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *_MAKERS],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    digest = hashlib.sha256()
    for name in sorted(filter(None, listed.split(b"\0"))):
        path = ROOT / name.decode()
        if path.is_file():
            digest.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return "converged-" + digest.hexdigest()[:12]


def main() -> int:
    """Name or freeze; the exit status."""
    if sys.argv[1:] == ["name"]:
        print(snapshot_name())
        return 0
    if len(sys.argv) == 3 and sys.argv[1] == "freeze":
        return subprocess.run(
            [*LAB, "freeze", sys.argv[2], snapshot_name()], check=False
        ).returncode
    print("usage: converged.py name | freeze HOST", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
