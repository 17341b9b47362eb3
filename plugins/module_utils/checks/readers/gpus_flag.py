# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The value of ``--gpus`` as docker/cli reads it (opts/gpus.go). Pure.

It is one record of comma-separated values: a list of devices needs double quotes that reach
Docker, so a second pair of quotes around them for the shell.
"""

from __future__ import annotations

import re

from ..documents.container import GpuRequest
from ..model import Given, Position

_MOST_ERRORS = 8
_INTEGER = re.compile(r"[+-]?[0-9]+$")


class CsvError(ValueError):
    """The value is no record of comma-separated values; the message is Go's."""


def fields_of(value: str) -> list[str]:
    """The fields of the first record in ``value`` as Go's encoding/csv reads it, quotes strict."""
    text = value.lstrip("\r\n")
    if not text:
        raise CsvError("EOF")
    fields: list[str] = []
    offset = 0
    while True:
        if text[offset : offset + 1] == '"':
            field, offset = _quoted(text, offset)
        else:
            match = re.compile(r"[^,\r\n]*").match(text, offset)
            field = match.group() if match else ""
            if '"' in field:
                raise CsvError('bare " in non-quoted field')
            offset += len(field)
        fields.append(field)
        if text[offset : offset + 1] != ",":
            return fields
        offset += 1


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The quoted field at ``start``, without its quotes, and the offset just behind it."""
    match = re.compile(r'"((?:[^"]|"")*)"').match(text, start)
    if match is None or text[match.end() : match.end() + 1] not in ("", ",", "\r", "\n"):
        raise CsvError('extraneous or missing " in quoted-field')
    return match.group(1).replace('""', '"'), match.end()


def parse_gpus(
    value: str, at: Position, spelled: str = "--gpus", how: str = "--gpus"
) -> GpuRequest:
    """The request that ``value`` makes; what Docker refuses is in its ``errors``.

    A value whose parts a shell would have put in (``$GPUS``) is kept as ``raw`` only.
    """
    if "$" in value:
        return GpuRequest(at=at, how=how, raw=value)
    try:
        fields = fields_of(value)
    except CsvError as error:
        bad = Given(str(error), at, "bad-csv")
        return GpuRequest(at=at, how=how, raw=value, errors=(bad,))
    return _Request(value, at, spelled, how).read(fields)


class _Request:
    def __init__(self, raw: str, at: Position, spelled: str, how: str) -> None:
        self.raw, self.at, self.spelled, self.how = raw, at, spelled, how
        self.errors: list[Given] = []
        self.count: Given | None = None
        self.driver: Given | None = None
        self.ids: tuple[Given, ...] = ()
        self.capabilities: tuple[str, ...] = ("gpu",)
        self.options: dict[str, str] = {}

    def given(self, value: str) -> Given:
        return Given(value, self.at, self.spelled)

    def refuse(self, kind: str, value: str) -> None:
        self.errors.append(Given(value, self.at, kind))

    def read(self, fields: list[str]) -> GpuRequest:
        seen: set[str] = set()
        for field in fields:
            # Docker itself stops at the first; a few more help, thousands do not.
            if len(self.errors) >= _MOST_ERRORS:
                break
            key, equals, value = field.partition("=")
            # As in docker/cli, a count alone is remembered under its own text and under "count".
            if key in seen:
                self.refuse("duplicate-key", key)
                continue
            seen.add(key)
            if not equals:
                seen.add("count")
                self._count(key)
            else:
                self._pair(key, value)
        if "count" not in seen and "device" not in seen:
            self.count = self.given("1")
        counted = self.count is not None and self.count.value.lstrip("+-0") != ""
        if counted and self.ids:
            self.refuse("count-and-ids", self.raw)
        return GpuRequest(
            at=self.at,
            how=self.how,
            raw=self.raw,
            driver=self.driver,
            count=self.count,
            device_ids=self.ids,
            capabilities=self.capabilities,
            options=self.options,
            errors=tuple(self.errors),
        )

    def _count(self, text: str) -> None:
        self.count = self.given(text)
        if text != "all" and not _INTEGER.match(text):
            self.refuse("bad-count", text)

    def _pair(self, key: str, value: str) -> None:
        if key == "driver":
            self.driver = self.given(value)
        elif key == "count":
            self._count(value)
        elif key == "device":
            self.ids = tuple(self.given(name) for name in value.split(","))
        elif key == "capabilities":
            self.capabilities = (*value.split(","), "gpu")
        elif key == "options":
            try:
                pairs = (pair.partition("=") for pair in fields_of(value))
                self.options = {name: said for name, _equals, said in pairs}
            except CsvError as error:
                self.refuse("bad-csv", str(error))
        else:
            self.refuse("unexpected-key", key)
