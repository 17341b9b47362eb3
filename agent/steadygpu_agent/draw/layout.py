# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where every part of the picture stands. Pure geometry; pixels, y downwards.

Each NUMA node is a panel with its PCIe tree. Where NVLinks tie more than four GPUs together, the
panels stand in two rows that face each other, the GPUs towards the middle, and the NVLinks or the
NVSwitches lie between them. Without NVLinks the panels simply follow each other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import Machine
from steadygpu_agent.draw import card, route, tree
from steadygpu_agent.draw import fabric as nvlink
from steadygpu_agent.draw.columns import Column, Sizes, columns, columns_width, depth
from steadygpu_agent.draw.geometry import Box, Point, text_width

MARGIN = 36.0
WIDTH = 1200.0  # what a machine may take before its cards get as small as they can
HEADER = 104.0  # the picture's title
PANEL_PAD = 16.0
PANEL_TITLE = 38.0
PANEL_DETAIL = 18.0
BAR = 20.0
BAR_PITCH = 36.0
TITLE_SIZE = 14.0
DETAIL_SIZE = 12.0

_PANEL_GAP = 20.0
_LEAST_WIDTH = 640.0
_LEAST_PANEL = 190.0
_ROW_GAP = 24.0
_EDGE = PANEL_PAD + 10.0
_RIBBON = 26.0  # from a panel to the NVSwitches
_SWITCH_HEIGHT = 42.0
_GPU_WIDTHS = (176.0, 160.0, 148.0, 136.0, 126.0, 116.0, 106.0)
_FACING = 4  # beyond so many GPUs on NVLinks, rows face each other


@dataclass(frozen=True)
class PanelShape:
    """A NUMA node. ``header`` is the baseline of its title."""

    box: Box
    panel: tree.Panel
    header: float
    two_lines: bool


@dataclass(frozen=True)
class Bar:
    """A host bridge or a PCIe switch."""

    box: Box
    branch: tree.Branch


@dataclass(frozen=True)
class Device:
    """A GPU, or a network adapter, in its box."""

    box: Box
    leaf: tree.Leaf


@dataclass(frozen=True)
class Ribbon:
    """``count`` of ``expected`` NVLinks between a GPU and the NVSwitches: x, and both ends' y."""

    x: float
    top: float
    bottom: float
    count: int
    expected: int


@dataclass
class Scene:
    """Everything with its place. Boxes of one kind never overlap."""

    width: float = 0.0
    height: float = 0.0
    sizes: Sizes = field(default_factory=Sizes)
    panels: list[PanelShape] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    paths: list[tuple[Point, ...]] = field(default_factory=list)
    wires: list[route.Wire] = field(default_factory=list)
    ribbons: list[Ribbon] = field(default_factory=list)
    nvswitch: Box | None = None
    inside: bool = False  # the wires run within a panel


@dataclass(frozen=True)
class _Rows:
    """Panels beside each other; ``facing`` ones stand on their heads below the NVLinks."""

    upper: list[list[tree.Panel]]
    facing: list[tree.Panel]
    rest: list[list[tree.Panel]]
    halves: bool = False  # upper and facing are one panel cut in two


def arrange(machine: Machine, links: nvlink.Fabric, ills: Collection[int] = ()) -> Scene:
    """The scene of ``machine`` whose NVLinks are ``links``; the cards of ``ills`` say why."""
    found = tree.panels(machine)
    scene = Scene()
    for width in _GPU_WIDTHS:
        height = max(
            (card.height(gpu, width, index in ills) for index, gpu in enumerate(machine.gpus)),
            default=0.0,
        )
        scene.sizes = Sizes(gpu_width=width, gpu_height=height)
        rows = _rows(machine, found, links, scene.sizes)
        everything = [*rows.upper, rows.facing, *rows.rest]
        content = max((_row_width(row, scene.sizes) for row in everything if row), default=0.0)
        if content <= WIDTH - 2 * MARGIN:
            break
    scene.width = max(content, _LEAST_WIDTH) + 2 * MARGIN
    _place(scene, rows, links)
    return scene


def _rows(
    machine: Machine, found: Sequence[tree.Panel], links: nvlink.Fabric, sizes: Sizes
) -> _Rows:
    with_gpu = [panel for panel in found if not all(leaf.nic for leaf in panel.leaves)]
    without = [panel for panel in found if panel not in with_gpu]
    if not (links.switched or links.direct):
        return _Rows(_wrapped(found, sizes), [], [])
    rest = _wrapped(without, sizes)
    if len(machine.gpus) <= _FACING:
        return _Rows([with_gpu], [], rest)
    if len(with_gpu) > 1:
        upper, facing = _halved(with_gpu)
        return _Rows([upper], _faced(upper, facing, links), rest)
    if tree.is_flat(with_gpu[0]):
        first, second = _cut(tree.without_bars(with_gpu[0]))
        return _Rows([[first]], [second], rest, halves=True)
    return _Rows([with_gpu], [], rest)


def _wrapped(found: Sequence[tree.Panel], sizes: Sizes) -> list[list[tree.Panel]]:
    rows: list[list[tree.Panel]] = []
    for panel in found:
        if rows and _row_width([*rows[-1], panel], sizes) <= WIDTH - 2 * MARGIN:
            rows[-1].append(panel)
        else:
            rows.append([panel])
    return rows


def _gpus(panels: Sequence[tree.Panel]) -> list[int]:
    return [leaf.index for panel in panels for leaf in panel.leaves if not leaf.nic]


def _halved(found: Sequence[tree.Panel]) -> tuple[list[tree.Panel], list[tree.Panel]]:
    """The panels in two rows with about as many GPUs each."""
    total = len(_gpus(found))
    cut = min(range(1, len(found)), key=lambda number: abs(total - 2 * len(_gpus(found[:number]))))
    return list(found[:cut]), list(found[cut:])


def _cut(panel: tree.Panel) -> tuple[tree.Panel, tree.Panel]:
    """One panel as two: half of its GPUs each, the network adapters in the first."""
    gpus = [leaf for leaf in panel.leaves if not leaf.nic]
    nics = [leaf for leaf in panel.leaves if leaf.nic]
    half = (len(gpus) + 1) // 2
    return (
        tree.Panel(panel.title, panel.detail, (*gpus[:half], *nics)),
        tree.Panel(panel.title, panel.detail, tuple(gpus[half:])),
    )


def _faced(
    upper: Sequence[tree.Panel], facing: Sequence[tree.Panel], links: nvlink.Fabric
) -> list[tree.Panel]:
    """``facing`` with its parts turned so that linked GPUs stand opposite each other."""
    place = {index: number for number, index in enumerate(_gpus(upper))}

    def opposite(parts: Sequence[tree.Part]) -> float:
        gpus = {leaf.index for leaf in tree.leaves(parts) if not leaf.nic}
        peers = [
            place[peer]
            for link in links.direct
            for peer, own in ((link.one, link.other), (link.other, link.one))
            if own in gpus and peer in place
        ]
        return sum(peers) / len(peers) if peers else len(place)

    def turned(parts: Sequence[tree.Part]) -> tuple[tree.Part, ...]:
        inner = [
            tree.Branch(part.kind, part.label, turned(part.children))
            if isinstance(part, tree.Branch)
            else part
            for part in parts
        ]
        return tuple(sorted(inner, key=lambda part: (part.rank[0], opposite([part]), part.rank)))

    panels = [tree.Panel(one.title, one.detail, turned(one.children)) for one in facing]
    return sorted(panels, key=lambda panel: opposite(panel.children))


def _panel_width(panel: tree.Panel, sizes: Sizes) -> float:
    inner = max(
        columns_width(columns(panel.children, sizes), sizes),
        text_width(panel.title, TITLE_SIZE),
        _LEAST_PANEL,
    )
    return inner + 2 * PANEL_PAD


def _row_width(row: Sequence[tree.Panel], sizes: Sizes) -> float:
    return sum(_panel_width(panel, sizes) for panel in row) + _PANEL_GAP * (len(row) - 1)


def _place(scene: Scene, rows: _Rows, links: nvlink.Fabric) -> None:
    y = HEADER - _ROW_GAP
    for row in rows.upper:
        y = _row(scene, row, y + _ROW_GAP, mirrored=False)
    if links.switched:
        y = _switched(scene, rows, links, y)
    elif links.direct:
        y = _wired(scene, rows, links, y)
    if rows.halves:
        y = _joined(scene)
    for row in rows.rest:
        y = _row(scene, row, y + _ROW_GAP, mirrored=False)
    scene.height = y


def _switched(scene: Scene, rows: _Rows, links: nvlink.Fabric, y: float) -> float:
    """The NVSwitches under the upper row, and the facing row under them."""
    switch = Box(MARGIN, y + _RIBBON, scene.width - 2 * MARGIN, _SWITCH_HEIGHT)
    scene.nvswitch = switch
    upper = [device for device in scene.devices if not device.leaf.nic]
    y = switch.bottom
    if rows.facing:
        y = _row(scene, rows.facing, switch.bottom + _RIBBON, mirrored=True)
    for device in scene.devices:
        count = links.switched.get(device.leaf.index, 0)
        short = device.leaf.index in links.short
        if device.leaf.nic or not (count or short):
            continue
        top, bottom = (
            (device.box.bottom, switch.y) if device in upper else (switch.bottom, device.box.y)
        )
        scene.ribbons.append(Ribbon(device.box.middle, top, bottom, count, links.expected))
    return y


def _wired(scene: Scene, rows: _Rows, links: nvlink.Fabric, y: float) -> float:
    """The wires below the upper row, and the facing row below them."""
    top = y - PANEL_PAD  # the cards' lower edge
    upper = [device for device in scene.devices if not device.leaf.nic]
    if rows.facing:
        # The channel's height follows from where the facing cards stand, so place them twice.
        trial = Scene(width=scene.width, sizes=scene.sizes)
        _row(trial, rows.facing, y, mirrored=True)
        facing = [device for device in trial.devices if not device.leaf.nic]
    else:
        facing = []
    anchors = {
        device.leaf.index: route.Anchor(device.box.middle, device.box.width, device in upper)
        for device in (*upper, *facing)
    }
    channel = route.route(links.direct, anchors, _EDGE)
    scene.wires = [
        route.Wire(
            wire.link,
            tuple((x, top + down) for x, down in wire.points),
            (wire.label[0], top + wire.label[1]),
        )
        for wire in channel.wires
    ]
    bottom = top + channel.height
    if not rows.facing:
        return bottom
    return _row(scene, rows.facing, bottom - PANEL_PAD, mirrored=True)


def _joined(scene: Scene) -> float:
    """Both halves of a panel become the one they are; returns its lower edge."""
    upper = scene.panels[0]
    # The lower half has no title, so its room for one goes.
    bottom = max(device.box.bottom for device in scene.devices) + PANEL_PAD
    box = Box(upper.box.x, upper.box.y, upper.box.width, bottom - upper.box.y)
    scene.panels[:2] = [PanelShape(box, upper.panel, upper.header, upper.two_lines)]
    scene.inside = True
    return bottom


def _row(scene: Scene, row: Sequence[tree.Panel], y: float, mirrored: bool) -> float:
    """Place panels from the left; returns the lower edge."""
    sizes = scene.sizes
    share = (scene.width - 2 * MARGIN - _row_width(row, sizes)) / len(row)
    widths = [_panel_width(panel, sizes) + share for panel in row]
    two_lines = any(_needs_two_lines(panel, width) for panel, width in zip(row, widths))
    deep = max(depth(panel.children) for panel in row)
    tall = any(not leaf.nic for panel in row for leaf in panel.leaves)
    device_height = sizes.gpu_height if tall else sizes.stack_height(row)
    title = PANEL_TITLE + (PANEL_DETAIL if two_lines else 0)
    height = title + BAR_PITCH * deep + device_height + PANEL_PAD
    x = MARGIN
    for panel, width in zip(row, widths):
        box = Box(x, y, width, height)
        header = box.bottom - title + 26 if mirrored else y + 25
        scene.panels.append(PanelShape(box, panel, header, two_lines))
        used = columns(panel.children, sizes)
        place = _Placer(scene, box, title, deep, device_height, mirrored)
        spare = width - columns_width(used, sizes)
        place.columns(used, x + (spare / 2 if tall else PANEL_PAD), 0, None)
        x += width + _PANEL_GAP
    return y + height


def _needs_two_lines(panel: tree.Panel, width: float) -> bool:
    words = text_width(panel.title, TITLE_SIZE) + text_width(panel.detail, DETAIL_SIZE)
    return bool(panel.detail) and words + 14 > width - 2 * PANEL_PAD


@dataclass(frozen=True)
class _Placer:
    """Places the tree of one panel, the title's side first; mirrored that is the lower one."""

    scene: Scene
    box: Box
    title: float
    deep: int
    device_height: float
    mirrored: bool

    def columns(self, used: Sequence[Column], x: float, level: int, parent: Box | None) -> None:
        sizes = self.scene.sizes
        for column in used:
            width = sizes.width(column)
            if isinstance(column, tree.Branch):
                beam = self._at(x, self.title + BAR_PITCH * level, width, BAR)
                self.scene.bars.append(Bar(beam, column))
                self._path(parent, beam)
                self.columns(columns(column.children, sizes), x, level + 1, beam)
            elif isinstance(column, tree.Leaf):
                card = self._at(x, self._devices, width, sizes.gpu_height)
                self.scene.devices.append(Device(card, column))
                self._path(parent, card)
            else:
                self._stack(column, x, width, parent)
            x += width + sizes.gap

    @property
    def _devices(self) -> float:
        return self.title + BAR_PITCH * self.deep

    def _stack(
        self, leaves: Sequence[tree.Leaf], x: float, width: float, parent: Box | None
    ) -> None:
        sizes = self.scene.sizes
        above = parent
        for number, leaf in enumerate(reversed(leaves) if self.mirrored else leaves):
            y = self._devices + number * (sizes.nic_height + sizes.nic_gap)
            chip = self._at(x, y, width, sizes.nic_height)
            self.scene.devices.append(Device(chip, leaf))
            if parent is not None:
                self._path(above, chip)
                above = chip

    def _at(self, x: float, y: float, width: float, height: float) -> Box:
        if self.mirrored:
            return Box(x, self.box.bottom - y - height, width, height)
        return Box(x, self.box.y + y, width, height)

    def _path(self, parent: Box | None, child: Box) -> None:
        if parent is None:
            return
        x = child.middle
        ends = (parent.y, child.bottom) if self.mirrored else (parent.bottom, child.y)
        self.scene.paths.append(((x, ends[0]), (x, ends[1])))
