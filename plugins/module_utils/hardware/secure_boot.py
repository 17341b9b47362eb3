# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is UEFI Secure Boot on? Then the kernel loads no module without a known signature."""

from __future__ import annotations

import os

from . import files

# UEFI Specification: global variables, of which SecureBoot is one, have this GUID.
_VARIABLE = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def read(root: str = "/") -> str:
    """``enabled``, ``disabled`` (also on a machine that did not boot by UEFI) or ``unknown``."""
    # A container shows an empty directory here, a machine always something.
    firmware = files.names(os.path.join(root, "sys/firmware"))
    if "efi" not in firmware:
        return "disabled" if firmware else "unknown"
    try:
        with open(os.path.join(root, _VARIABLE), "rb") as handle:
            content = handle.read()
    except OSError:
        return "unknown"
    # efivarfs puts four bytes of attributes before the value.
    return {b"\x00": "disabled", b"\x01": "enabled"}.get(content[4:5], "unknown")
