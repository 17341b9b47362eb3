# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of ours: known by their first line, written whole, removed whole."""

from __future__ import annotations

import os

from .. import vouched
from ..atomic import read_text
from .model import SettingsError

MARK = "# Kept by steadygpu.host"


def header(role: str) -> str:
    """The first line of a file that ``role`` keeps, with its line end."""
    return f"{MARK} (role {role}); changes made by hand are lost at the next run.\n"


def ensure_text(
    path: str, text: str | None, check_mode: bool = False, root: str = "/"
) -> tuple[list[str], list[dict[str, str]]]:
    """Make ``path`` hold ``text``, which begins with :data:`MARK`; None: take it away.

    Returns what was, or would be, done and the diffs. Raises SettingsError where the file is
    somebody else's; removing leaves such a file alone. Raises OSError.
    """
    place = os.path.join(root, path.lstrip("/"))
    before = read_text(place) if not os.path.islink(place) else None
    ours = is_ours(path, root)
    if text is None:
        if not ours:
            return [], []
        if not check_mode:
            vouched.remove(place, root)
        return [f"remove {path}"], [_difference(path, before or "", "")]
    if not text.startswith(MARK):
        raise SettingsError(f"the text for {path} does not begin with {MARK!r}")
    refuse_foreign(path, root)
    if before == text:
        return [], []
    if not check_mode:
        vouched.write(place, text, mode=0o644, root=root)
    return [f"write {path}"], [_difference(path, before or "", text)]


def refuse_foreign(path: str, root: str = "/") -> None:
    """Raises SettingsError where ``path`` is there and not ours, and OSError."""
    place = os.path.join(root, path.lstrip("/"))
    if os.path.lexists(place) and not is_ours(path, root):
        raise SettingsError(
            f"{path} is not of steadygpu.host (its first line does not begin with {MARK!r}, or it "
            "is a link) and was left alone; move it away, and run again"
        )


def is_ours(path: str, root: str = "/") -> bool:
    """Is there a file of ours at ``path``? Raises OSError."""
    place = os.path.join(root, path.lstrip("/"))
    # Written to, a link would change what it leads to.
    if os.path.islink(place):
        return False
    return (read_text(place) or "").startswith(MARK)


def _difference(path: str, before: str, after: str) -> dict[str, str]:
    return {"before_header": path, "after_header": path, "before": before, "after": after}
