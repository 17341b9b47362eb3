# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is a specification still that of this host? Pure.

Every reason is one that a person can check. Where files cannot tell, that is a reason as well: the
tool is asked then, and what it makes decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from ..engine import cdi_generate
from ..engine.cdi import Spec
from .host import UVM, Gpu, Seen
from .named import Named

KIND = "nvidia.com/gpu"

_CAPABILITY = re.compile(r"/dev/nvidia-caps/nvidia-cap(\d+)$")
# The first two are for who configures and who watches MIG, not for an instance.
_MANAGEMENT = ("/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2")
# What no CUDA program can do without.
_PARTS = ("libcuda.so", "libnvidia-ml.so", "/dev/nvidiactl", "/dev/nvidia-uvm")
_SHAPES = {
    "index": re.compile(r"(\d+)(?::(\d+))?"),
    "type-index": re.compile(r"(?:gpu|mig)(\d+)(?::(\d+))?"),
    "uuid": re.compile(r"(?:GPU|MIG)-.+"),
}


def reasons(
    spec: Spec,
    named: Named,
    strategies: Sequence[str],
    engines: Mapping[str, str],
    seen: Seen,
) -> list[str]:
    """Why the specification is to be made anew; [] for one that is right.

    ``strategies`` are the wanted ways to name devices, ``engines`` the versions of who reads it.
    """
    if spec.status != "valid":
        return [f"it is not usable: {spec.reason}"]
    unread = cdi_generate.unread(spec.cdi_version, engines)
    found = [unread] if unread else []
    if seen.reason is not None:
        return [*found, f"{seen.reason}, so that only the tool can tell"]
    found += _libraries(named, seen)
    found += _names(spec.devices, strategies, seen.gpus)
    found += _capabilities(named, seen)
    found += _uvm(named, seen)
    found += _missing(seen)
    if seen.tool_is_newer:
        found.append("nvidia-ctk was installed after it was made")
    return found


def remarks(seen: Seen) -> list[str]:
    """What making it anew does not mend."""
    return [*_left_out(seen), *_wrong_node(seen)]


def _left_out(seen: Seen) -> list[str]:
    if not seen.left_out:
        return []
    # NVIDIA/nvidia-container-toolkit issue 1908: they are looked for beside libcuda alone.
    directories = sorted({os.path.dirname(path) for path in seen.left_out})
    return [
        f"it leaves out {_some(seen.left_out)}, which the host has: OpenGL and EGL in containers "
        "that get it draw without the GPU. For those, say where the files are: nvidia-ctk cdi "
        f"generate --library-search-path={','.join(directories)}"
    ]


def _wrong_node(seen: Seen) -> list[str]:
    """Engines take a node's number from the host."""
    if seen.uvm_major is None or seen.uvm_node in (None, seen.uvm_major):
        return []
    return [
        f"{UVM} has the major {seen.uvm_node}, and the kernel has {seen.uvm_major} for it: CUDA "
        f"fails in containers that get it. To make it anew: rm {UVM} {UVM}-tools; nvidia-modprobe "
        "-u -c 0"
    ]


def worse(before: Named, after: Named, seen: Seen) -> list[str]:
    """What a new specification lacks that the former one had and the host still has.

    A tool that cannot find the driver's files writes one without them, and ends with success.
    """
    found = []
    for part in _PARTS:
        had = [path for path in before.files if part in path]
        gone = part.startswith("/dev/") and set(had) <= set(seen.missing)
        if had and not gone and not any(part in path for path in after.files):
            found.append(part)
    return found


def _libraries(named: Named, seen: Seen) -> list[str]:
    version = seen.library or seen.driver
    if not named.drivers:
        return ["it mounts no library of the driver"]
    others = [one for one in named.drivers if one != version]
    if not others:
        return []
    return [f"it mounts libraries of driver {', '.join(others)}, and the host has {version}"]


def _names(names: Sequence[str], strategies: Sequence[str], gpus: Sequence[Gpu]) -> list[str]:
    found = []
    for strategy, shape in _SHAPES.items():
        of_it = [name for name in names if shape.fullmatch(name)]
        if strategy not in strategies:
            found += [f"it names devices by {strategy}, which is not wanted"] if of_it else []
        elif strategy == "uuid":
            found += _by_uuid(of_it, gpus)
        else:
            found += _by_index(of_it, shape, gpus)
    return found


def _by_index(names: Sequence[str], shape: re.Pattern[str], gpus: Sequence[Gpu]) -> list[str]:
    there = {(place, -1) for place, gpu in enumerate(gpus) if not gpu.parts}
    there |= {(place, part) for place, gpu in enumerate(gpus) for part in range(gpu.parts)}
    named = {}
    for name in names:
        match = shape.fullmatch(name)
        if match:
            named[int(match.group(1)), int(match.group(2) or -1)] = name
    gone = [name for key, name in named.items() if key not in there]
    new = sorted(there - set(named))
    spelled = [f"GPU {place}" if part < 0 else f"MIG device {place}:{part}" for place, part in new]
    return _differs(gone, spelled)


def _by_uuid(names: Sequence[str], gpus: Sequence[Gpu]) -> list[str]:
    if any(gpu.uuid is None for gpu in gpus):
        # The driver tells the UUID of a GPU once it has been used.
        return []
    whole = [str(gpu.uuid) for gpu in gpus if not gpu.parts]
    gone = [name for name in names if name.startswith("GPU-") and name not in whole]
    new = [uuid for uuid in whole if uuid not in names]
    found = _differs(gone, new)
    parts = sum(gpu.parts for gpu in gpus)
    named = sum(name.startswith("MIG-") for name in names)
    if named != parts:
        found.append(f"it names {named} MIG devices by UUID, and the host has {parts}")
    return found


def _differs(gone: Sequence[str], new: Sequence[str]) -> list[str]:
    found = [f"it names {_some(gone)}, which the host does not have"] if gone else []
    return found + ([f"it lacks {_some(new)}"] if new else [])


def _capabilities(named: Named, seen: Seen) -> list[str]:
    nodes = {path for path in named.nodes if _CAPABILITY.match(path)} - set(_MANAGEMENT)
    if seen.capabilities is None:
        return ["it is for MIG devices, and only the tool sees those"] if nodes else []
    gone = sorted(nodes - seen.capabilities)
    new = sorted(seen.capabilities - nodes)
    found = [f"it names {_some(gone)} of MIG instances that are gone"] if gone else []
    return found + ([f"it lacks {_some(new)} of MIG instances that are there"] if new else [])


def _uvm(named: Named, seen: Seen) -> list[str]:
    if seen.uvm_major is None:
        return []
    if UVM not in named.files:
        if "/dev/nvidiactl" in named.files:
            return [f"it was made before nvidia_uvm was loaded: it lacks {UVM}"]
        return []
    said = dict(named.majors).get(UVM)
    if said is not None and said != seen.uvm_major:
        return [f"it gives {UVM} the major {said}, and the kernel has {seen.uvm_major}"]
    return []


def _missing(seen: Seen) -> list[str]:
    if not seen.missing:
        return []
    return [f"it names {_some(seen.missing)}, and there is no such file"]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
