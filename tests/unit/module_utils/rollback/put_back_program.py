# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Puts paths back in copies of one tree, and is killed at each call that changes something.

``put_back_program.py TEMPLATE CUTS PLAN``: TEMPLATE is a tree, CUTS an empty directory that gets
one copy for each call, cut just before it, and PLAN holds the items in JSON. Prints how many.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from io import BytesIO
from typing import Any

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import Entry
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.way_back import put_back

CALLS = (
    *("chown", "fchmod", "fchown", "link", "mkdir", "open", "removexattr", "rename"),
    *("rmdir", "setxattr", "symlink", "unlink", "write"),
)


def items(plan: str) -> tuple[list[put_back.Item], dict[str, bytes]]:
    """What the plan says, and the contents by their digests."""
    with open(plan, encoding="utf-8") as handle:
        document = json.load(handle)
    contents = {digest: text.encode() for digest, text in document["contents"].items()}
    made = []
    for path, fields, conflict in document["items"]:
        xattrs = {name: value.encode() for name, value in fields.pop("xattrs").items()}
        made.append(put_back.Item(path, Entry(xattrs=xattrs, **fields), conflict))
    return made, contents


def arm(cut: int) -> None:
    """Let this process die just before the call number ``cut``."""
    left = [cut]

    def deadly(call: Any) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if call.__name__ != "open" or arguments[1] & os.O_CREAT:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return wrapped

    # Not waited for here: a kill loses nothing that was written.
    os.fsync = lambda _fd: None  # type: ignore[assignment]
    for name in CALLS:
        setattr(os, name, deadly(getattr(os, name)))


def main() -> None:
    """Cut at one call after the other until a run is not cut."""
    template, cuts, plan = sys.argv[1:]
    wanted, contents = items(plan)
    for cut in range(1, 1000):
        root = os.path.join(cuts, str(cut))
        shutil.copytree(template, root, symlinks=True)
        child = os.fork()
        if child == 0:
            arm(cut)
            for result in put_back.put_back_all(wanted, lambda d: BytesIO(contents[d]), root):
                if isinstance(result, Exception):
                    print(result, file=sys.stderr)
                    os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status):
            print(cut)
            sys.exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
