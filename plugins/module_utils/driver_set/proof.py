# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver that is kept, read back later: without the wish, which the record has."""

from __future__ import annotations

import os
from dataclasses import replace

from ..atomic import read_text
from ..settings.model import Setting
from ..settings.record import Record
from . import judge, look, names
from .model import INSTALL, Wish

OWNER = "driver"
BLACKLIST = "blacklist nouveau"
# Its key in the record, and what of it is needed to tell whether the host is as wished.
WISH = "wish"
WISH_KEYS = ("mode", "version", "hold", "uvm", "nouveau_off", "persistence")


def prove(kept: Record, root: str = "/") -> list[Setting]:
    """Every setting of the driver as the machine has it now. Raises OSError."""
    said = kept.extra.get(WISH)
    known = said if isinstance(said, dict) else {}
    wish = Wish(**{key: known[key] for key in WISH_KEYS if key in known})
    view = look.view(root)
    if wish.persistence is not None and view.loaded is not None:
        view = replace(view, persistence_mode=look.persistence_mode(root))
    asked = names.release_of(wish.version) if wish.mode == INSTALL and wish.version else None
    texts = {path: read_text(os.path.join(root, path.lstrip("/"))) for path in kept.files}
    return judge.settings(wish, view, asked or view.release, texts)
