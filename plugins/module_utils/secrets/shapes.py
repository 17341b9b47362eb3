# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is a value a secret that should not stand here in plain text? Pure.

The answer never has the value in it. Three things are told apart: a token whose form its issuer
made recognisable, a value under a name that is one of a secret, and a well-known default. What
stands for a secret is none: an empty value, a variable, a path, a placeholder, encrypted text.
"""

from __future__ import annotations

import enum
import re

from . import tokens


class Secret(enum.Enum):
    """What a value is; ``value`` is the word for a message."""

    TOKEN = "token"
    LITERAL = "literal"
    DEFAULT = "default"


# More of a value is not looked at: the patterns are not made for megabytes.
_LONGEST = 4096
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z]+ )*PRIVATE KEY-----")
_NAME = re.compile(
    r"(^|[_.-])(pass(wd|word|phrase)?|pwd|secret|token|credentials?|api[_-]?key|access[_-]?key"
    r"|secret[_-]?key|private[_-]?key|auth[_-]?key|encryption[_-]?key|signing[_-]?key|apikey)"
    r"($|[_.-]?(id|value|plain)?$)",
    re.IGNORECASE,
)
# Names that end like a secret's and are none: a file, a place, a number, an identifier.
_NO_SECRET = re.compile(
    r"(^|[_.-])(tokenizers?|max|min|num|count|limit|length|size|expir\w*|ttl|timeout|policy|file|path|dir"
    r"|name|type|url|uri|endpoint|enabled?|disable[ds]?|required|header|prefix|public|sort|group"
    r"|primary|foreign|partition|cache)([_.-]|$)|access[_-]?key[_-]?id$|(^|[_.-])(pad|eos|bos"
    r"|unk|sep|cls|mask|stop|special|image|chunk)[_.-]token",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"(.*(your|change[ _-]?(me|it|this)|replace|example|sample|placeholder|insert|dummy|fake|todo"
    r"|redacted|xxx|\*\*\*|here\b|goes|secret[_-]?key[_-]?here|not[_-]?needed|no[_-]?key|unused"
    r"|set[_-]?me|fill|put[_-]).*|<.*>|\[.*\]|\{\{.*\}\}|\(.*\)|none|null|nil|empty|na|n/a|true"
    r"|false|yes|no|on|off|auto|default|ollama|lm-studio|sk-(no|111|123|local|test|none).*|x+|\.+"
    r"|-+|\d{1,4}|abc(123|def)?\d*|token|api[_-]?key|key|mytoken|my[_-]?(secret|key|token|pass)\w*)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\$|^(ENC[\[(]|vault:|op://|ssm:|arn:|secret(ref|s)?[:/]|!vault|\$ANSIBLE_VAULT|file:|env:"
    r"|sops:|AQ(IC|EC)A|AgA|sealed:|keyring:|projects/|doppler:|azure-kv:|ref\+)|^/[\w./-]+$"
    r"|^\.{1,2}/|^https?://[^@]*$",
    re.IGNORECASE,
)
_DEFAULTS = re.compile(
    r"admin|administrator|root|toor|password|passwd|pass|passw0rd|postgres|mysql|mariadb|redis"
    r"|mongo|rabbitmq|guest|user|test|minioadmin|minio|minio123|minio_secret|elastic|changeit"
    r"|neo4j|milvus|grafana|secret|123456789?|12345678|password123|difyai123456|infini_rag_flow"
    r"|jupyter|labelstudio|airflow|langfuse|admin123|root123|qwerty|letmein|welcome|docker|app"
    r"|dev|demo",
    re.IGNORECASE,
)


_FOR_SHOW = re.compile(
    r"passw|pass(word|phrase|\W|\d|$)|s[e3]c\w?r[e3]t|admin|default|t[o0]k[e3]n|root|user|test|demo|secure|login"
    r"|postgres|mysql|maria|mongo|redis|rabbit|elastic|minio|wordpress|nextcloud|qwer|1234|abcd",
    re.IGNORECASE,
)


def issuer(value: str) -> str | None:
    """What a recognisable token is (``Hugging Face token``); None where it is not one."""
    value = value[:_LONGEST]
    if _PRIVATE_KEY.search(value):
        return "private key"
    if len(value) < 16 or _worn(value):
        return None
    return next((name for name, pattern in tokens.ISSUERS if pattern.search(value)), None)


def names_a_secret(name: str) -> bool:
    """Is a variable of this name one that holds a secret?"""
    return bool(_NAME.search(name)) and not _NO_SECRET.search(name)


def classify(name: str, value: str) -> Secret | None:
    """What the value of a variable is; None where it is no secret, or only stands for one."""
    value = value[:_LONGEST].strip().strip("'\"")
    if not value:
        return None
    if issuer(value):
        return Secret.TOKEN
    if not names_a_secret(name) or _ELSEWHERE.search(value) or _PLACEHOLDER.fullmatch(value):
        return Secret.DEFAULT if _is_default(name, value) else None
    if _DEFAULTS.fullmatch(value) or value.lower() == name.lower():
        return Secret.DEFAULT
    return None if len(value) < 6 else Secret.LITERAL


def is_made(value: str) -> bool:
    """Does a value look as if a generator made it, and not somebody for a trial?

    Digits among letters, often changing, and none of the words that passwords for show consist of.
    """
    value = value.strip().strip("'\"")
    kinds = re.findall(r"[a-z]+|[A-Z]+|[0-9]+|[^a-zA-Z0-9]+", value[:_LONGEST])
    kinds = [kind for kind in kinds if kind not in ("_", "-", " ")]
    telling = len(value) >= 10 and len(kinds) >= 6 and any(kind.isdigit() for kind in kinds)
    return telling and not _FOR_SHOW.search(value)


def _is_default(name: str, value: str) -> bool:
    # MINIO_ACCESS_KEY and MINIO_ROOT_USER are no secrets, with the default they are half of one.
    return value.lower() == "minioadmin" and "minio" in name.lower()


def _worn(value: str) -> bool:
    """Is it an example: few different characters, or a run of one, or the words of one?"""
    tail = re.split(r"[_-]", value)[-1]
    if re.search(r"(.)\1{5,}", value) or len(set(tail)) < 6:
        return True
    words = r"your|example|xxxx|placeholder|changeme|replace|1234567890|abcdef(gh|0123)|dummy|fake"
    return bool(re.search(words, value, re.IGNORECASE))
