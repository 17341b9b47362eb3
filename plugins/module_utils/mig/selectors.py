# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which GPUs a person means: ``all``, an index, a UUID, a PCI address, a model."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from .model import ConfigError, GpuLayout

ALL = "all"

_PCI = re.compile(
    r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?", re.IGNORECASE
)

# How narrowly a selector names a GPU; the narrower one wins where several do.
_EVERY, _MODEL, _ONE = range(3)


def select(selector: object, gpus: Sequence[GpuLayout], where: str) -> list[GpuLayout]:
    """The GPUs that one selector names, in the order of ``gpus``.

    - ``all``
    - an index, as a number or in digits
    - a UUID: ``GPU-…``
    - a PCI address with a domain of any width, or without one: ``0000:07:00.0``, ``7:00``
    - a model: words of the name NVML gives (``A100-SXM4-40GB``; ``H20`` is no H200), or a
      pattern with ``*``, ``?`` or ``[`` for the whole of it; case does not count

    ConfigError when nothing matches, naming ``where`` and the GPUs that there are.
    """
    text = str(selector).strip()
    if isinstance(selector, float):
        # YAML 1.1 reads 0000:07:00.0 as a number to the base of sixty, 420.0.
        raise ConfigError(
            f"{where}: {selector!r} names no GPU; YAML makes a number of a PCI address such as"
            " 0000:07:00.0 unless it is written in quotes"
        )
    if isinstance(selector, bool) or not text:
        found = []
    elif text == ALL:
        return list(gpus)
    elif text.isdecimal():
        found = [gpu for gpu in gpus if str(gpu.index) == text]
    elif text.upper().startswith("MIG-"):
        raise ConfigError(f"{where}: {text} is a MIG device; a layout belongs to a GPU (GPU-…)")
    elif text.upper().startswith("GPU-"):
        found = [gpu for gpu in gpus if gpu.uuid.lower() == text.lower()]
    elif _PCI.fullmatch(text):
        found = [gpu for gpu in gpus if _address(gpu.pci_address) == _address(text)]
    else:
        found = [gpu for gpu in gpus if _is_model(gpu.name, text)]
    if not found:
        raise ConfigError(f"{where}: {selector!r} names no GPU here; {there_are(gpus)}")
    return found


def precision(selector: object) -> int:
    """How narrowly a selector names GPUs: ``all`` least, then a model, then one GPU."""
    text = str(selector).strip()
    if text == ALL:
        return _EVERY
    one = text.isdecimal() or text.upper().startswith("GPU-") or _PCI.fullmatch(text)
    return _ONE if one else _MODEL


def passes(gpu: GpuLayout, filters: Sequence[str], where: str) -> bool:
    """Does a GPU pass mig-parted's ``device-filter``? Without a filter it does.

    ConfigError for a filter by board where the board of the GPU is not known.
    """
    for one in filters:
        device, _colon, board = one.partition(":")
        if not _same_number(device, gpu.device_id):
            continue
        if board and gpu.subsystem_id is None:
            raise ConfigError(
                f"{where}: the filter {one} asks for a board, and that of GPU {gpu.index} could"
                " not be read; name the GPU by UUID or PCI address instead"
            )
        if not board or _same_number(board, gpu.subsystem_id or ""):
            return True
    return not filters


def there_are(gpus: Sequence[GpuLayout]) -> str:
    """The GPUs of this host, for an error."""
    listed = "; ".join(
        f"{gpu.index} = {gpu.name}, {gpu.pci_address}, {gpu.uuid}, {gpu.device_id}" for gpu in gpus
    )
    return f"there are: {listed}" if listed else "there is no GPU"


def _address(text: str) -> tuple[int, ...] | None:
    match = _PCI.fullmatch(text.strip())
    return tuple(int(part or "0", 16) for part in match.groups()) if match else None


def _is_model(name: str, pattern: str) -> bool:
    if re.search(r"[*?[]", pattern):
        return fnmatch.fnmatchcase(name.lower(), pattern.lower())
    # Whole words only: H20 is another GPU than H200, and a B200 is no GB200.
    return bool(re.search(rf"(?<!\w){re.escape(pattern)}(?!\w)", name, re.IGNORECASE))


def _same_number(one: str, other: str) -> bool:
    try:
        return int(one, 16) == int(other, 16)
    except ValueError:
        return False
