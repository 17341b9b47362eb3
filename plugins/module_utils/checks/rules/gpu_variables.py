# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on variables of GPU libraries in a container. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Hit, Severity
from ..registry import rule
from .run_values import command_text, mounts, subject


@rule(
    "cuda-requirement-disabled",
    "The check of the driver is switched off",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The image says which CUDA it needs, and the toolkit compares that with the driver. "
    "Without the check the container starts and fails later, unless compatibility libraries apply.",
    fix="Drop the variable and use an image that fits the driver.",
    sources=("NVIDIA/nvidia-container-toolkit#152", "docs.nvidia.com container toolkit"),
    cases=("TK-014",),
)
def cuda_requirement_disabled(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note: it hides TK-014."""
    given = spec.env.get("NVIDIA_DISABLE_REQUIRE")
    if given and given.value.strip().lower() in ("1", "true"):
        yield Hit(given.at, f"{subject(spec)} sets NVIDIA_DISABLE_REQUIRE.")


@rule(
    "mps-limit-without-pipe",
    "MPS limits, and no way to the MPS server",
    Severity.INFO,
    reads=ContainerSpec,
    reason="The CUDA_MPS_ variables limit only clients of an MPS server. A container reaches that "
    "of its host through the pipe directory and the host's IPC namespace; without them it runs "
    "beside MPS, without a limit.",
    fix="Mount the host's /tmp/nvidia-mps and use ipc host.",
    sources=("docs.nvidia.com MPS", "NVIDIA/k8s-device-plugin MPS sharing"),
    row="152",
)
def mps_limit_without_pipe(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """A note: the server may also run inside the container."""
    names = ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
    name = next((name for name in names if name in spec.env), None)
    piped = any("mps" in target for _source, target, _given in mounts(spec))
    own = "nvidia-cuda-mps-control" in command_text(spec)
    if name and not piped and not own:
        yield Hit(spec.env[name].at, f"{name} is set, and no pipe directory is mounted.")
