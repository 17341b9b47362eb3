# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entry point of ``python3 tests/lab VERB``.

Python runs a directory's ``__main__`` outside of any package. With the parent directory on the
path, the sibling modules are the package ``lab``.
"""

from __future__ import annotations

import importlib
import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

if __name__ == "__main__":
    sys.exit(importlib.import_module("lab.cli").main(sys.argv[1:]))
