# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""apt's sources in both forms: one line each (.list) and stanzas (.sources). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..documents.kernel import AptSource, AptSources
from ..model import Given, Position, Reading

_ONE_LINE = re.compile(r"\s*(deb|deb-src)\s+(?:\[([^\]\n]*)\]\s*)?(\S+)\s+(\S+)")
# What NVIDIA's server once sent for a release that it had no list of.
_PLACEHOLDER = re.compile(r"# ?Unsupported distribution!")
_FIELD = re.compile(r"([A-Za-z][A-Za-z-]*)\s*:\s*(.*)$")

INLINE_KEY = "inline key"


def read_apt_sources(text: str, file: str) -> Reading:
    """One :class:`AptSources` with the sources that are switched on."""
    lines = text.split("\n")
    stanzas = any(line.lower().startswith(("types:", "uris:")) for line in lines)
    if stanzas:
        return Reading((AptSources(Position(file, 1, 1), tuple(_of_stanzas(lines, file))),))
    found = tuple(_of_lines(lines, file))
    wrong = tuple(_no_source(lines, file))
    return Reading((AptSources(Position(file, 1, 1), found, wrong),))


def _no_source(lines: list[str], file: str) -> Iterator[Given]:
    for number, line in enumerate(lines, 1):
        bare = line.partition("#")[0].strip()
        if _PLACEHOLDER.match(line):
            yield Given(line.strip(), Position(file, number, 1))
        elif bare and not _ONE_LINE.match(line):
            yield Given(bare, Position(file, number, len(line) - len(line.lstrip()) + 1))


def _of_lines(lines: list[str], file: str) -> Iterator[AptSource]:
    for number, line in enumerate(lines, 1):
        match = _ONE_LINE.match(line)
        if match is None:
            continue
        options = dict(
            option.lower().partition("=")[::2]
            if "signed-by" not in option.lower()
            else ("signed-by", option.partition("=")[2])
            for option in (match.group(2) or "").split()
        )
        yield AptSource(
            at=Position(file, number, match.start(1) + 1),
            uri=_uri(match.group(3)),
            suite=match.group(4),
            signed_by=options.get("signed-by") or None,
            trusted=options.get("trusted") == "yes",
            kinds=(match.group(1),),
        )


def _of_stanzas(lines: list[str], file: str) -> Iterator[AptSource]:
    stanza: dict[str, Given] = {}
    last = ""
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            yield from _of_stanza(stanza)
            stanza, last = {}, ""
        elif line[:1].isspace() and last:
            given = stanza[last]
            stanza[last] = Given(f"{given.value} {line.strip()}".strip(), given.at, last)
        else:
            match = _FIELD.match(line)
            if match:
                last = match.group(1).lower()
                stanza[last] = Given(match.group(2).strip(), Position(file, number, 1), last)


def _of_stanza(stanza: dict[str, Given]) -> Iterator[AptSource]:
    uris, suites = stanza.get("uris"), stanza.get("suites")
    enabled = stanza.get("enabled")
    off = enabled is not None and enabled.value.lower() in ("no", "false", "0", "off", "without")
    if uris is None or suites is None or off:
        return
    signed = stanza.get("signed-by")
    key = signed.value if signed is not None and signed.value else None
    if key is not None and "BEGIN PGP" in key:
        key = INLINE_KEY
    trusted, types = stanza.get("trusted"), stanza.get("types")
    for uri in uris.value.split():
        for suite in suites.value.split():
            yield AptSource(
                at=uris.at,
                uri=_uri(uri),
                suite=suite,
                signed_by=key,
                trusted=trusted is not None and trusted.value.lower() == "yes",
                kinds=tuple(types.value.split()) if types is not None else ("deb",),
            )


def _uri(uri: str) -> str:
    return uri.rstrip("/") + "/"
