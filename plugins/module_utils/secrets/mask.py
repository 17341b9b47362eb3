# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing secret is shown: source lines and messages as they may be printed. Pure."""

from __future__ import annotations

import re

from .tokens import BEGINNING

HIDDEN = "***"
_LONGEST = 4096
_WORD = (
    r"(?:passw(?:or)?d|passwd|passphrase|pwd|(?<![a-z])pass(?![a-z])|secret|token|credential|auth|bearer|cookie"
    r"|api[_-]?key|access[_-]?key|private[_-]?key|encryption[_-]?key|signing[_-]?key|dsn|webhook"
    r"|dockerconfigjson|dockercfg|luks\.key)"
)
_KEY = rf"[\w.-]{{0,64}}{_WORD}[\w.-]{{0,64}}"
_QUOTED = r"\"(?:[^\"\\\n]|\\.)*\"?|'[^'\n]*'?"
# NAME=value, "name": "value", name: value to the end of the line, --name value. A value is a word
# of the shell (a quotation in it, or a blank behind a backslash, is part of it), and ends earlier
# only where the whole assignment stands in quotation marks, or is an item of a list in YAML.
_VALUE = rf"(?:{_QUOTED}|\\[^\n]|[^\s\"'\\])+"
_ASSIGNED = re.compile(
    rf"(\"(?:[^\"=\n]{{0,300}} )?{_KEY}=)(?:[^\"\\\n]|\\.)+"
    rf"|('(?:[^'=\n]{{0,300}} )?{_KEY}=)[^'\n]+"
    rf"|(^[ \t]*-[ \t]+{_KEY}=)[^\n]+"
    rf"|({_KEY}[\"']?[ \t]*=[ \t]*){_VALUE}",
    re.IGNORECASE,
)
_MAPPED = re.compile(rf"({_KEY}[\"']?[ \t]*:[ \t]+|\b{_KEY}\"[ \t]*:)({_QUOTED}|[^\n]+)", re.I)
_FLAG = re.compile(rf"(--?{_KEY}[ \t]+)({_QUOTED}|[^\s\"'-]\S*)", re.IGNORECASE)
# Programs whose short flags take a password: docker login -p, mysql -p, curl -u NAME:PASSWORD.
_SHORT = re.compile(
    r"(\blogin\b[^\n|;&]{0,300}?[ \t]-p[ \t]*|\bmysql\w*\b[^\n|;&]{0,300}?[ \t]-p"
    r"|\b(?:curl|wget)\b[^\n|;&]{0,300}?[ \t]-u[ \t]*[\"']?[^\s:\"']{0,100}:)[^\s\"']+"
)
_BEARER = re.compile(r"\b((?:Bearer|Basic)[ \t]+)[\w.+/=~-]{6,}", re.IGNORECASE)
# Up to the last @ before the next blank: a password may hold an @ or a slash of its own.
_URL = re.compile(r"(://[^\s/@:\"']{0,256}:)(?!\d{1,5}/)[^\s\"']{1,256}@")
# A token alone, as git takes it; a name is shorter.
_URL_TOKEN = re.compile(r"(://)[^\s/@:\"']{20,256}@")
_KUBERNETES_VALUE = re.compile(rf"(\bvalue[\"']?[ \t]*:[ \t]*)({_QUOTED}|[^\s,}}]+)")
# A line of nothing but base64: the inside of a key.
_KEY_BODY = re.compile(r"^[ \t]*[A-Za-z0-9+/=]{40,}[ \t]*$")
_ENV_LINE = re.compile(r"^([ \t]*(?:export[ \t]+)?[A-Za-z_]\w*[ \t]*=).*$")


def message(text: str) -> str:
    """``text`` of ours without values that are secret by their shape."""
    text = _URL.sub(rf"\1{HIDDEN}@", text)
    text = _URL_TOKEN.sub(rf"\1{HIDDEN}@", text)
    text = BEGINNING.sub(rf"\g<start>{HIDDEN}", text)
    return _BEARER.sub(rf"\1{HIDDEN}", text)


def source(line: str, kind: str = "") -> str:
    """A line of an input without the values of what is secret by name or by shape.

    In a file of environment variables (``kind`` ``env_file``) no value is shown at all.
    """
    if len(line) > _LONGEST:
        # Nobody reads more of it, and the patterns are not made for megabytes.
        line = line[:_LONGEST] + "…"
    if kind == "env_file":
        return _ENV_LINE.sub(rf"\1{HIDDEN}", line)
    if _KEY_BODY.match(line):
        return HIDDEN
    if kind == "kubernetes":
        # The name, which alone could tell, stands on another line.
        line = _KUBERNETES_VALUE.sub(rf"\1{HIDDEN}", line)
    line = _ASSIGNED.sub(lambda found: next(filter(None, found.groups())) + HIDDEN, line)
    for pattern in (_MAPPED, _FLAG, _SHORT):
        line = pattern.sub(rf"\1{HIDDEN}", line)
    return message(line)


def printable(text: str) -> str:
    """``text`` with a dot for each character that a terminal would act on."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else " " if each == "\t" else "·"
        for each in text
    )
