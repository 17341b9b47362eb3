# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fields of JSON that may be anybody's: as wanted, or a RollbackError that names the place.

``place`` is where in the document we are, in words; ``name`` is the field's.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..model import RollbackError

_MISSING = object()


def foreign(place: str, reason: str) -> RollbackError:
    """The error for a document that is not ours."""
    return RollbackError(f"this is not what steadygpu writes ({place}: {reason})")


def get(fields: Mapping[str, Any], name: str, place: str) -> Any:
    """A field that must be there, whatever it holds."""
    value = fields.get(name, _MISSING)
    if value is _MISSING:
        raise foreign(place, f"{name} is missing")
    return value


def mapping(value: object, place: str) -> Mapping[str, Any]:
    """An object."""
    if not isinstance(value, Mapping):
        raise foreign(place, "not an object")
    return value


def sequence(value: object, place: str) -> Sequence[Any]:
    """A list."""
    if not isinstance(value, list):
        raise foreign(place, "not a list")
    return value


def part(fields: Mapping[str, Any], name: str, place: str) -> Mapping[str, Any]:
    """A field that is an object."""
    return mapping(get(fields, name, place), name)


def mappings(
    fields: Mapping[str, Any], name: str, place: str
) -> list[tuple[str, Mapping[str, Any]]]:
    """The items of a field that is an object of objects."""
    return [(key, mapping(value, key)) for key, value in part(fields, name, place).items()]


def text_mapping(fields: Mapping[str, Any], name: str, place: str) -> dict[str, str]:
    """A field that is an object of texts."""
    inner = part(fields, name, place)
    return {key: text(inner, key, name) for key in inner}


def text(fields: Mapping[str, Any], name: str, place: str) -> str:
    """A field that is a text."""
    value = get(fields, name, place)
    if not isinstance(value, str):
        raise foreign(place, f"{name} is {value!r}, not a text")
    return value


def texts(fields: Mapping[str, Any], name: str, place: str) -> tuple[str, ...]:
    """A field that is a list of texts."""
    values = sequence(get(fields, name, place), name)
    if not all(isinstance(value, str) for value in values):
        raise foreign(place, f"{name} holds something that is not a text")
    return tuple(values)


def truth(fields: Mapping[str, Any], name: str, place: str) -> bool:
    """A field that is true or false."""
    value = get(fields, name, place)
    if not isinstance(value, bool):
        raise foreign(place, f"{name} is {value!r}, not true or false")
    return value


def whole(fields: Mapping[str, Any], name: str, place: str, otherwise: int | None = None) -> int:
    """A field that is a whole number, 0 or more; ``otherwise`` where it is missing."""
    if otherwise is not None and name not in fields:
        return otherwise
    value = get(fields, name, place)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise foreign(place, f"{name} is {value!r}, not a whole number")
    return value


def number(fields: Mapping[str, Any], name: str, place: str) -> float:
    """A field that is a finite number."""
    value = get(fields, name, place)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # An integer may be too large for a float.
        with contextlib.suppress(OverflowError):
            if math.isfinite(value):
                return float(value)
    raise foreign(place, f"{name} is {value!r}, not a number")
