# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scene written down as SVG: one file that needs nothing else. Pure, the same each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Machine
from steadygpu_agent.draw import card, fabric, layout, theme, tree, words
from steadygpu_agent.draw.elements import element, escaped, number, text
from steadygpu_agent.draw.geometry import (
    Point,
    beside,
    distance,
    fit,
    shortened,
    text_width,
    toward,
    wrap,
)

_RADIUS = 9.0
_STRAND = 2.0  # one NVLink, and the gap to the next
_STRANDS = 4  # more links than this are one broad line with a number
_BROAD = 7.0
_LINE = 20.0


def render(machine: Machine, sick: Mapping[int, str] | None = None) -> str:
    """A standalone SVG document of ``machine``, with a newline at its end.

    ``sick`` says by index what is wrong with a GPU, as the driver puts it; that a GPU lost
    NVLinks is seen without it.
    """
    links = fabric.read(machine)
    ills = {**fabric.losses(links), **(sick or {})}
    scene = layout.arrange(machine, links, ills)
    title, source = words.heading(machine), words.subtitle(machine)
    footer, height = _footer(machine, links, scene)
    parts = [
        element("rect", "page", width=scene.width, height=height),
        text("title ink", layout.MARGIN, 50, fit(title, 25, scene.width - 2 * layout.MARGIN)),
        text("source soft", layout.MARGIN, 76, fit(source, 13, scene.width - 2 * layout.MARGIN)),
        *_panels(scene),
        *_paths(scene),
        *_bars(scene),
        *_ribbons(scene),
        *_wires(scene),
        *_devices(machine, ills, scene),
        *_nvswitch(machine, links, scene),
        *footer,
    ]
    width = number(scene.width)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="t d" width="{width}"'
        f' height="{number(height)}" viewBox="0 0 {width} {number(height)}">',
        f'<title id="t">{escaped(title)}</title>',
        f'<desc id="d">{escaped(words.description(machine, links))}</desc>',
        f"<style>\n{theme.style()}</style>",
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _panels(scene: layout.Scene) -> Iterable[str]:
    for shape in scene.panels:
        box, panel = shape.box, shape.panel
        yield card.rectangle("panel", box, 10)
        x, room = box.x + layout.PANEL_PAD, box.width - 2 * layout.PANEL_PAD
        title = fit(panel.title, layout.TITLE_SIZE, room)
        yield text("node ink", x, shape.header, title)
        if not panel.detail:
            continue
        if shape.two_lines:
            y, at, side = shape.header + layout.PANEL_DETAIL, x, ""
        else:
            y, at, side = shape.header, box.right - layout.PANEL_PAD, " end"
            room -= text_width(title, layout.TITLE_SIZE) + 12
        shown = fit(panel.detail, layout.DETAIL_SIZE, room)
        hint = panel.detail if shown != panel.detail else ""
        yield text("detail soft" + side, at, y, shown, hint=hint)


def _paths(scene: layout.Scene) -> Iterable[str]:
    for (x, top), (right, bottom) in scene.paths:
        yield element(
            "path", "path", d=f"M{number(x)} {number(top)}L{number(right)} {number(bottom)}"
        )


def _bars(scene: layout.Scene) -> Iterable[str]:
    for beam in scene.bars:
        label = beam.branch.label
        if text_width(label, 11) > beam.box.width - 12:
            label = label.split(" 0")[0] if " 0" in label else label
        yield card.rectangle(
            "bridge" if beam.branch.kind == tree.HOST_BRIDGE else "switch", beam.box, 4
        )
        shown = fit(label, 11, beam.box.width - 8)
        yield text(
            "bar barink mid",
            beam.box.middle,
            beam.box.y + 14,
            shown,
            hint=beam.branch.label if shown != beam.branch.label else "",
        )


def _devices(machine: Machine, ills: Mapping[int, str], scene: layout.Scene) -> Iterable[str]:
    for device in scene.devices:
        if device.leaf.nic:
            yield from card.nic(machine.nics[device.leaf.index], device.box)
        else:
            index = device.leaf.index
            yield from card.gpu(machine.gpus[index], device.box, ills.get(index))


def _nvswitch(machine: Machine, links: fabric.Fabric, scene: layout.Scene) -> Iterable[str]:
    box = scene.nvswitch
    if box is None:
        return
    yield card.rectangle("nvswitch", box, 8)
    name = f"{machine.nvswitches} × NVSwitch" if machine.nvswitches > 1 else "NVSwitch"
    label = f"{name} · {words.counted(links.expected, 'NVLink')} to each GPU"
    if links.short:
        label = f"{name} · {words.counted(links.expected, 'NVLink')} to each healthy GPU"
    yield text("node nvswitchink mid", box.middle, box.y + 26, fit(label, 14, box.width - 20))


def _ribbons(scene: layout.Scene) -> Iterable[str]:
    """One line for each NVLink, so that they can be counted; a lost one is red."""
    for ribbon in scene.ribbons:
        left = ribbon.x - (ribbon.expected - 1) * _STRAND
        for strand in range(ribbon.expected):
            x = number(left + 2 * _STRAND * strand)
            kind = "link" if strand < ribbon.count else "sick"
            way = f"M{x} {number(ribbon.top)}V{number(ribbon.bottom)}"
            yield element("path", kind, d=way, stroke_width=_STRAND if kind == "link" else 1.4)


def _wires(scene: layout.Scene) -> Iterable[str]:
    """Each wire with an edge of its own, so that a crossing shows which one goes on."""
    under = "gap inside" if scene.inside else "gap"
    for wire in sorted(scene.wires, key=lambda one: (one.link.count, one.link.one)):
        count = wire.link.count
        strands = count if count <= _STRANDS else 1
        width = _STRAND if strands == count else _BROAD
        gap = _rounded(shortened(wire.points, layout.PANEL_PAD + 4), _RADIUS)
        yield "<g>"
        yield element("path", under, d=gap, stroke_width=width * (2 * strands - 1) + 5)
        for strand in range(strands):
            aside = (2 * strand - strands + 1) * _STRAND
            way = _rounded(beside(wire.points, aside), _RADIUS)
            yield element("path", "link", d=way, stroke_width=width)
        yield "</g>"
    for wire in scene.wires:
        x, y = wire.label
        label = f"NV{wire.link.count}"
        half = text_width(label, 10.5) / 2 + 6
        yield element("rect", "pill", x=x - half, y=y - 8.5, width=2 * half, height=17, rx=8.5)
        yield text("small strong linkink mid", x, y + 3.8, label)


def _rounded(points: Sequence[Point], most: float) -> str:
    """A path through ``points`` whose corners are rounded."""
    way = f"M{number(points[0][0])} {number(points[0][1])}"
    for before, corner, after in zip(points, points[1:], points[2:]):
        radius = min(most, distance(before, corner) / 2, distance(corner, after) / 2)
        start, end = toward(corner, before, radius), toward(corner, after, radius)
        way += f"L{number(start[0])} {number(start[1])}"
        way += f"Q{number(corner[0])} {number(corner[1])} {number(end[0])} {number(end[1])}"
    return way + f"L{number(points[-1][0])} {number(points[-1][1])}"


def _footer(machine: Machine, links: fabric.Fabric, scene: layout.Scene) -> tuple[list[str], float]:
    """What the reader should know, below the picture; and the height of the whole."""
    y = scene.height + 34
    room = scene.width - 2 * layout.MARGIN
    parts: list[str] = []
    for remark in [*machine.remarks, *_notes(machine, links)]:
        parts.append(element("circle", "soft", cx=layout.MARGIN + 3, cy=y - 4, r=2.2))
        for line in wrap(remark, 12.5, room - 16):
            parts.append(text("note soft", layout.MARGIN + 16, y, line))
            y += _LINE
        y += 3
    return parts, y + 6


def _notes(machine: Machine, links: fabric.Fabric) -> list[str]:
    """How to read what is not obvious."""
    notes = []
    shown = {node for gpu in machine.gpus for node in gpu.numa_nodes}
    shown |= {node for nic in machine.nics for node in nic.numa_nodes}
    empty = [node for node in machine.nodes if node.number not in shown]
    if empty:
        listed = ", ".join(f"{node.number} (CPUs {node.cpus})" for node in empty)
        notes.append(f"NUMA nodes without a GPU or network adapter: {listed}")
    if links.expected and not any(gpu.pci_path for gpu in machine.gpus):
        notes.append(
            "Drawn from the words of a matrix: NVLinks hide the PCIe level between two GPUs, and "
            "a switch is drawn only where a word proves it"
        )
    return notes
