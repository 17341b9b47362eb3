# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state file: what the simulated driver knows. Written here, read by libnvidia-ml.

One fact a line, blank-separated; `#` starts a comment. nvml/state.c reads the same lines:

    format 1
    profile NAME
    fail none|driver_not_loaded|not_supported|timeout
    check_nodes 0|1                    1: a GPU is visible only if /dev/nvidia<minor> may be opened
    module VERSION                     version of the "kernel module"
    cuda NUMBER                        12040 = CUDA 12.4
    uvm_major NUMBER                   character major of /dev/nvidia-uvm
    gpu INDEX KEY VALUE                one line per key, GPU_KEYS
    gpu INDEX levels N N …             NVML topology level to each GPU
    gpu INDEX cpu_mask WORD…           near CPUs, 64 to a word, lowest first
    link GPU LINK gpu|switch ADDRESS up|down
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

FORMAT = "1"
HEADER = (
    "# SIMULATED GPUs of the steadygpu lab. Written by `simgpu`; the simulated NVML reads it.\n"
)

#: Modes the library answers by itself. `wrong_library` is told by `module`, `gpu_lost` by `lost`.
LIBRARY_MODES = ("none", "driver_not_loaded", "not_supported", "timeout")

TEXT_KEYS = ("uuid", "name", "serial", "pci", "vbios")
#: Keys of a GPU that `simgpu set gpu.N.KEY` may change (memory in bytes, power in mW).
MUTABLE_KEYS = (
    "memory_reserved",
    "memory_used",
    "bar1_used",
    "pcie_gen",
    "pcie_width",
    "power_limit_mw",
    "persistence",
    "compute_mode",
    "ecc_enabled",
    "gsp",
    "lost",
)


class StateError(Exception):
    """The state file, or what somebody wants to write into it, makes no sense."""


@dataclass
class Link:
    """One NVLink of a GPU: what is at its other end, and whether it is up."""

    kind: str
    remote: str
    up: bool


@dataclass
class Gpu:
    """One GPU: its lines by key, and its links by number."""

    values: dict[str, str] = field(default_factory=dict)
    links: dict[int, Link] = field(default_factory=dict)


@dataclass
class State:
    """Everything in the file."""

    settings: dict[str, str] = field(default_factory=dict)
    gpus: list[Gpu] = field(default_factory=list)

    def addresses(self) -> list[str]:
        """PCI addresses of the GPUs, in index order."""
        return [gpu.values["pci"] for gpu in self.gpus]


def render(state: State) -> str:
    """The file's text."""
    lines = [f"format {FORMAT}"]
    lines += [f"{key} {value}" for key, value in state.settings.items()]
    for index, gpu in enumerate(state.gpus):
        lines += [f"gpu {index} {key} {value}" for key, value in gpu.values.items()]
        lines += [
            f"link {index} {number} {link.kind} {link.remote} {'up' if link.up else 'down'}"
            for number, link in gpu.links.items()
        ]
    return HEADER + "\n".join(lines) + "\n"


def parse(text: str) -> State:
    """The file's content; StateError names the line that is not understood."""
    state = State()
    formats: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        key, _space, rest = line.partition(" ")
        try:
            if key == "format":
                formats.append(rest)
            elif key == "gpu":
                index, name, value = rest.split(" ", 2)
                _gpu(state, int(index)).values[name] = value
            elif key == "link":
                index, link, kind, remote, status = rest.split(" ")
                _gpu(state, int(index)).links[int(link)] = Link(kind, remote, status == "up")
            else:
                state.settings[key] = rest
        except ValueError:
            raise StateError(f"state file, line {number}: cannot read {line!r}") from None
    if formats != [FORMAT]:
        raise StateError(
            f"state file: format {formats} seen, {FORMAT!r} wanted; run `simgpu unload`"
        )
    return state


def _gpu(state: State, index: int) -> Gpu:
    while len(state.gpus) <= index:
        state.gpus.append(Gpu())
    return state.gpus[index]


def read(path: Path) -> State | None:
    """The state, or None where no profile is loaded."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write(path: Path, state: State) -> None:
    """Replace the file by rename, so that a reader or a kill -9 meets the old or the new whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".state-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(render(state))
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_directory(path.parent)


def remove(path: Path) -> None:
    """Forget the state for good; fine if there is none."""
    path.unlink(missing_ok=True)
    if path.parent.is_dir():
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make renames and unlinks in a directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_value(state: State, key: str, value: str) -> None:
    """`gpu.N.KEY NUMBER` or `link.GPU.LINK up|down`; StateError says what would have been right."""
    words = key.split(".")
    try:
        if words[0] == "gpu" and len(words) == 3:
            _set_gpu(state.gpus[int(words[1])], words[2], value)
            return
        if words[0] == "link" and len(words) == 3:
            _set_link(state, int(words[1]), int(words[2]), value)
            return
    except (ValueError, IndexError, KeyError):
        raise StateError(f"{key}: no such GPU or link, {len(state.gpus)} GPUs are loaded") from None
    raise StateError(f"{key}: want gpu.N.KEY or link.GPU.LINK")


def _set_gpu(gpu: Gpu, key: str, value: str) -> None:
    if key not in MUTABLE_KEYS:
        raise StateError(f"{key}: cannot be set; known keys: {', '.join(MUTABLE_KEYS)}")
    if not value.isdecimal():
        raise StateError(f"{key}: {value!r} seen, a whole number wanted")
    gpu.values[key] = value


def _set_link(state: State, index: int, number: int, value: str) -> None:
    """A link has two ends: the other GPU's end goes up or down with it."""
    if value not in ("up", "down"):
        raise StateError(f"link: {value!r} seen, up or down wanted")
    link = state.gpus[index].links[number]
    link.up = value == "up"
    if link.kind == "gpu":
        peer = state.gpus[state.addresses().index(link.remote)]
        peer.links[number].up = link.up
