# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of keys and files that tell that what they hold is secret. Pure."""

from __future__ import annotations

import re

# A key with one of these in its name never shows its value. Look-arounds keep bypass, passthrough,
# author and Docker's authorization-plugins in sight.
STRONG = (
    r"(?:(?i:passw(?:or)?d|passphrase|passcode|secret|token|credential|cookie|bearer|webhook)"
    r"|(?<![Bb]y)(?<![Bb]Y)(?i:pass)(?![a-z]|[-_ ]?[Tt]hrough|THROUGH)"
    r"|(?<![A-Za-z])(?i:pwd|creds?|psk|jwt|dsn)(?![a-z])"
    r"|(?i:auth)(?!(?i:or(?!i[sz])|orization-plugins)))"
)
# Keys may be paths to keys, key types and counts: such a value is shown, see _harmless.
WEAK = r"(?i:keys?)(?![a-z])"
NAME = re.compile(f"(?P<strong>{STRONG})|{WEAK}")
_STRONG_NAME = re.compile(STRONG)

HARMLESS = re.compile(
    r"(?i:true|false|yes|no|on|off|none|null|\d{1,4}"
    r"|(?:https?|file)://[\w./%~:-]*|/[\w./+-]*\.(?:pem|key|crt|cert|cer|gpg|asc|conf|json|d)|/etc/[\w./-]*)"
)
# Files that hold nothing but a key, and forms whose name says nothing of their whole content.
_KEY_FILE = re.compile(r"(?i:\.(?:key|p12|pfx|jks|keytab|token|secret)|/id_[a-z0-9]+|netrc)$")
_FORM = re.compile(
    r"(?i:\.(?:conf|cfg|ini|json|toml|ya?ml|xml|env|list|sources|repo|service|socket|timer|path"
    r"|slice|mount|target|rules|sh|py|html?|md))$"
)


def whole_file_is_secret(path: str) -> bool:
    """Does the name of a file say that all of it is one secret, as ``registry.token`` does?"""
    name = "/" + path.rpartition("/")[2]
    if _KEY_FILE.search(name):
        return True
    return bool(_STRONG_NAME.search(name)) and not _FORM.search(name)


def secret_name(name: str, value: str) -> bool:
    """Is the value of this key secret?"""
    found = NAME.search(name)
    if found is None or not value.strip():
        return False
    return bool(_STRONG_NAME.search(name)) or not HARMLESS.fullmatch(value.strip())
