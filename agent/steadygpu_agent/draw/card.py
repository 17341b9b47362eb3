# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The boxes of devices: a GPU with its MIG slices, a network adapter. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Gpu, Nic
from steadygpu_agent.draw import words
from steadygpu_agent.draw.elements import element, text, titled
from steadygpu_agent.draw.geometry import Box, fit, text_width, wrap

_PAD = 12.0
_LINE = 14.0
_MODEL_SIZE = 11.5
_SLICE_HEIGHT = 18.0
_SLICES = 7
# The models that are cut into four.
_FOUR_SLICES = re.compile(r"\bA30\b|RTX PRO")


def rectangle(classes: str, box: Box, radius: float) -> str:
    """The box itself."""
    return element("rect", classes, x=box.x, y=box.y, width=box.width, height=box.height, rx=radius)


def gpu(one: Gpu, box: Box, ill: str | None) -> Iterable[str]:
    """A GPU's card; ``ill`` says what is wrong with it, shortly."""
    yield "<g>"
    yield titled(_hint(one))
    yield rectangle("sickcard" if ill else "gpu", box, 7)
    yield element(
        "rect",
        "sickedge" if ill else "edge",
        x=box.x + 1,
        y=box.y + 12,
        width=3,
        height=18,
        rx=1.5,
    )
    x, room = box.x + _PAD, box.width - 2 * _PAD
    y = box.y + 26
    name = re.sub(r"^GPU(?=\d)", "GPU ", one.name)
    yield text("name ink", x, y, fit(name, 15, room))
    memory = f"{round(one.memory_mib / 1024)} GiB" if one.memory_mib else ""
    if memory and text_width(name, 15) + text_width(memory, 11) + 8 <= room:
        yield text("small soft end", box.right - _PAD, y, memory)
    y += 21
    for line in _model(one, box.width):
        yield text("model ink", x, y, line)
        y += _LINE
    if one.pci_address:
        address = one.pci_address
        shown = address if len(address) * 6.1 <= room else address.split(":", 1)[-1]
        yield text("mono soft", x, y + 4, shown)
        y += _LINE + 4
    if ill:
        yield text("small strong sickink", x, y + 5, fit(ill, 10.5, room))
    if one.mig:
        foot = box.bottom - _SLICE_HEIGHT - 10
        yield from _slices(one, Box(x, foot, room, _SLICE_HEIGHT))
    yield "</g>"


def height(one: Gpu, width: float, ill: bool) -> float:
    """What a card of ``width`` needs for all that is known of the GPU."""
    lines = _LINE * (max(len(_model(one, width)), 1) - 1)
    address = _LINE + 4 if one.pci_address else 0.0
    return 68 + lines + address + (18 if ill else 0) + (_SLICE_HEIGHT + 6 if one.mig else 0)


def nic(one: Nic, box: Box) -> Iterable[str]:
    """A network adapter's chip: its name and the RDMA device programs ask for."""
    yield "<g>"
    names = [one.name, *(name for name in one.rdma if name != one.name)]
    hint = names + ([one.pci_address] if one.pci_address else [])
    yield titled(" · ".join(hint))
    yield rectangle("nic", box, 5)
    room = box.width - 12
    if len(names) == 1:
        yield text("small strong nicink mid", box.middle, box.y + 19, fit(names[0], 11, room))
    else:
        yield text("small strong nicink mid", box.middle, box.y + 13, fit(names[0], 11, room))
        yield text("small nicink mid", box.middle, box.y + 25, fit(" ".join(names[1:]), 10.5, room))
    yield "</g>"


def _model(one: Gpu, width: float) -> list[str]:
    """In one line or two; a hyphen is a good place to break."""
    room = width - 2 * _PAD
    model = words.short_model(one.model or "")
    if text_width(model, _MODEL_SIZE) <= room:
        return [model] if model else []
    lines = wrap(model.replace("-", "- "), _MODEL_SIZE, room, lines=2)
    return [line.replace("- ", "-") for line in lines]


def _slices(one: Gpu, box: Box) -> Iterable[str]:
    """The MIG devices in index order, each as wide as its share of the GPU's compute slices.

    Where a source does not name the profiles, all are of one width.
    """
    total = 4 if _FOUR_SLICES.search(one.model or "") else _SLICES
    known = [_compute_slices(profile) for profile in one.mig]
    sizes = known if all(known) else [1] * len(known)
    unit = box.width / (max(total, sum(sizes)) if all(known) else len(sizes))
    x = box.x
    yield rectangle("room", box, 4)
    for profile, size in zip(one.mig, sizes):
        part = Box(x + 0.75, box.y, max(size * unit - 1.5, 1.0), box.height)
        yield "<g>"
        yield titled(profile)
        yield rectangle("slice", part, 3)
        short = profile.split(".")[0]
        shown = profile if text_width(profile, 10) <= part.width - 6 else short
        if text_width(shown, 10) <= part.width:
            yield text("small linkink mid", part.middle, part.y + 12.8, shown)
        yield "</g>"
        x += size * unit


def _compute_slices(profile: str) -> int:
    """3 of ``3g.20gb``, 1 of ``1c.3g.20gb``; 0 where a source does not name the profile."""
    match = re.match(r"(?:(\d)c\.)?(\d)g\.", profile)
    return int(match.group(1) or match.group(2)) if match else 0


def _hint(one: Gpu) -> str:
    known = [one.name, one.model, one.pci_address, one.uuid, *one.mig]
    return " · ".join(word for word in known if word)
