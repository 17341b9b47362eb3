# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on environment variables that nothing reads, in scripts and in containers. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ..documents.commands import Variable
from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule

_SOURCES = ("NVIDIA/nccl env.rst and src/, searched for the name",)
_TORCH = (
    "pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp",
    "NVIDIA/nccl src/, searched for the name",
)
_REASON = "A variable of that name is read by nothing, so it changes nothing, and nobody says so."

# Name: what is meant, and the row of the reality map.
_UNREAD: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "NCCL_TOPO_DUMP": ("Use NCCL_TOPO_DUMP_FILE=/path/topo.xml.", "110"),
        "NCCL_TOPOLOGY": ("Use NCCL_TOPO_FILE=/path/topo.xml, or NCCL_ALGO.", "99"),
        "NVIDIA_CONTAINER_TOOLKIT_CACHE_DIR": ("The toolkit keeps no cache: leave it out.", "41"),
        "NVIDIA_GPU_MEMORY_LIMIT": (
            "GPU memory is limited by MIG, by MPS (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT), or with "
            "driver 615 and newer by nvidia-smi memory-limits.",
            "152",
        ),
        "DOCKER_AI_SCHEDULER": ("No Docker release has a scheduler for GPUs: leave it out.", "80"),
    }
)


# Names that PyTorch gave up in 2.2; it still takes them, and says so in its log.
_RENAMED = ("NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG")
_RENAMED_REASON = (
    "NCCL itself has no such variable. It is PyTorch's, and since 2.2 its name begins with TORCH_; "
    "the old one still works there, with a warning in the log, and nowhere else."
)


@rule(
    "variable-unread",
    "Nothing reads this variable",
    Severity.WARNING,
    reads=Variable,
    reason=_REASON,
    fix="Use the name that is read.",
    sources=_SOURCES,
    row="41, 99, 110, 152",
)
def variable_unread(variable: Variable, host: HostView) -> Iterator[Hit]:
    """In scripts."""
    if variable.name in _UNREAD:
        seen = f"{variable.name} is set."
        yield Hit(variable.at, seen, fix=_UNREAD[variable.name][0])


@rule(
    "container-variable-unread",
    "Nothing in the container reads this variable",
    Severity.WARNING,
    reads=ContainerSpec,
    reason=_REASON,
    fix="Use the name that is read.",
    sources=_SOURCES,
    row="41, 99, 110, 152",
)
def container_variable_unread(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """However the container is asked for."""
    for name, given in spec.env.items():
        if name in _UNREAD:
            yield Hit(given.at, f"{name} is set.", fix=_UNREAD[name][0])


@rule(
    "variable-renamed",
    "The variable is PyTorch's, under its old name",
    Severity.INFO,
    reads=Variable,
    reason=_RENAMED_REASON,
    fix="Use the name with TORCH_ in front.",
    sources=_TORCH,
    row="112",
)
def variable_renamed(variable: Variable, host: HostView) -> Iterator[Hit]:
    """In scripts."""
    if variable.name in _RENAMED:
        yield Hit(variable.at, f"{variable.name} is set.", fix=f"Use TORCH_{variable.name}.")


@rule(
    "container-variable-renamed",
    "The container's variable is PyTorch's, under its old name",
    Severity.INFO,
    reads=ContainerSpec,
    reason=_RENAMED_REASON,
    fix="Use the name with TORCH_ in front.",
    sources=_TORCH,
    row="112",
)
def container_variable_renamed(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """However the container is asked for."""
    for name in _RENAMED:
        if name in spec.env:
            yield Hit(spec.env[name].at, f"{name} is set.", fix=f"Use TORCH_{name}.")


@rule(
    "nccl-topology-file",
    "NCCL trusts a topology file blindly",
    Severity.INFO,
    reads=Variable,
    reason="NCCL_TOPO_FILE is read instead of what NCCL would find. It describes one machine, not "
    "the network between machines, and after a change of hardware it describes one that is no "
    "longer there.",
    fix="Make the file on the machine it is for (NCCL_TOPO_DUMP_FILE), and anew after each change.",
    sources=("NVIDIA/nccl env.rst, src/graph/topo.cc",),
    row="111",
)
def nccl_topology_file(variable: Variable, host: HostView) -> Iterator[Hit]:
    """A note."""
    if variable.name == "NCCL_TOPO_FILE" and variable.value:
        yield Hit(variable.at, f"NCCL_TOPO_FILE={variable.value}.")


@rule(
    "nccl-topology-file-in-container",
    "NCCL in the container trusts a topology file blindly",
    Severity.INFO,
    reads=ContainerSpec,
    reason="NCCL_TOPO_FILE is read instead of what NCCL would find, and its path is one inside the "
    "container: a file that is not mounted there is passed over without a word.",
    fix="Mount the file read-only at that path, and make it anew after each change of hardware.",
    sources=("NVIDIA/nccl env.rst, src/graph/topo.cc",),
    row="111",
)
def nccl_topology_file_in_container(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note; a warning where nothing is mounted that could hold the file."""
    given: Given | None = spec.env.get("NCCL_TOPO_FILE")
    if given and given.value.startswith("/") and "$" not in given.value:
        yield Hit(given.at, f"NCCL_TOPO_FILE={given.value} in the container.")
