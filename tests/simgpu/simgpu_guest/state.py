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
    uvm loaded|missing                 whether the "module" nvidia_uvm is there; only the guest asks
    caps_major NUMBER                  character major of /dev/nvidia-caps/*, 0: no such nodes
    boot ID                            optional, this boot's identity instead of the kernel's
    gpu INDEX KEY VALUE                one line per key, GPU_KEYS
    gpu INDEX levels N N …             NVML topology level to each GPU
    gpu INDEX cpu_mask WORD…           near CPUs, 64 to a word, lowest first
    link GPU LINK gpu|switch ADDRESS up|down
    mig GPU PROFILE NAME NUMBER…       a kind of GPU instance: profiles.MIG_NUMBERS, then its starts
    holder GPU[/GI[/CI]] PID NAME      a process that counts as having it open while it lives

What MIG calls change is kept apart, in the file of this name with `.mig` appended: the library
writes it (nvml/mig_store.h).
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
#: Keys of a GPU that `simgpu set gpu.N.KEY` may change (memory in bytes, power in mW, clocks in
#: MHz; the rest are NVML's own numbers).
MUTABLE_KEYS = (
    *("memory_reserved", "memory_used", "bar1_used", "pcie_gen", "pcie_width"),
    *("power_limit_mw", "clock_sm", "clock_memory", "persistence", "compute_mode"),
    *("display_active", "display_mode", "ecc_enabled", "ecc_pending"),
    *("ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected"),
    *("remapped_pending", "remapped_failed", "fabric_state", "fabric_status", "fabric_clique"),
    *("p2p_status", "gsp", "lost"),
)
#: What a change of the MIG mode needs: nothing, a reset that an idle GPU gets, or a reboot.
MIG_RESETS = ("none", "reset", "reboot")


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
    #: The rest of its `mig` lines by NVML_GPU_INSTANCE_PROFILE_*.
    mig: dict[int, str] = field(default_factory=dict)


@dataclass
class State:
    """Everything in the file."""

    settings: dict[str, str] = field(default_factory=dict)
    gpus: list[Gpu] = field(default_factory=list)
    #: What follows the word `holder` on its lines.
    holders: list[str] = field(default_factory=list)

    @property
    def uvm_loaded(self) -> bool:
        """Does the module nvidia_uvm count as loaded?"""
        return self.settings.get("uvm", "loaded") == "loaded"

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
        lines += [f"mig {index} {profile} {rest}" for profile, rest in gpu.mig.items()]
    lines += [f"holder {holder}" for holder in state.holders]
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
            elif key == "mig":
                index, profile, numbers = rest.split(" ", 2)
                _gpu(state, int(index)).mig[int(profile)] = numbers
            elif key == "holder":
                state.holders.append(rest)
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


def forget_mig(path: Path) -> None:
    """Take away what MIG calls have changed: every mode off, no instances."""
    for suffix in (".mig", ".mig.new", ".mig.lock"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def mig_lines(path: Path) -> list[str]:
    """The library's file of MIG modes and instances, for a person to read."""
    try:
        return path.with_name(path.name + ".mig").read_text(encoding="ascii").splitlines()[1:]
    except FileNotFoundError:
        return []


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
    if key == "mig_reset":
        _set_mig_reset(gpu, value)
        return
    if key not in MUTABLE_KEYS:
        known = ", ".join((*MUTABLE_KEYS, "mig_reset"))
        raise StateError(f"{key}: cannot be set; known keys: {known}")
    if not value.isdecimal():
        raise StateError(f"{key}: {value!r} seen, a whole number wanted")
    gpu.values[key] = value


def _set_mig_reset(gpu: Gpu, value: str) -> None:
    if "mig_reset" not in gpu.values:
        raise StateError("mig_reset: this GPU has no MIG")
    if value not in MIG_RESETS:
        raise StateError(f"mig_reset: {value!r} seen, one of {', '.join(MIG_RESETS)} wanted")
    gpu.values["mig_reset"] = value


def _set_link(state: State, index: int, number: int, value: str) -> None:
    """A link has two ends: the other GPU's end goes up or down with it."""
    if value not in ("up", "down"):
        raise StateError(f"link: {value!r} seen, up or down wanted")
    gpu = state.gpus[index]
    link = gpu.links[number]
    link.up = value == "up"
    if link.kind == "gpu":
        peer = state.gpus[state.addresses().index(link.remote)]
        nth = _links_to(gpu, link.remote).index(number)
        peer.links[_links_to(peer, gpu.values["pci"])[nth]].up = link.up


def _links_to(gpu: Gpu, address: str) -> list[int]:
    """Numbers of a GPU's links to another: the nth of them ends in the other's nth to it."""
    return [number for number, link in gpu.links.items() if link.remote == address]
