# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on command lines that change GPUs: resets, MIG, limits of memory. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.commands import CommandLine
from ..host import HostView
from ..model import Hit, Needs, Severity
from ..registry import rule


@rule(
    "gpu-reset-needs-idle",
    "A GPU is reset only when nothing uses it",
    Severity.INFO,
    reads=CommandLine,
    reason="The driver refuses to reset a GPU with clients; GPUs that are joined by NVLink are "
    "reset together, so peers must be idle too.",
    fix="Stop what uses the GPUs first, and look that nothing is left.",
    sources=("NVML nvmlDeviceSetMigMode and GPU reset, IN_USE", "nvidia-smi(1)"),
    row="6",
)
def gpu_reset_needs_idle(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """A warning where containers with GPUs are known to run."""
    given = line.has("-r", "--gpu-reset")
    if line.name != "nvidia-smi" or given is None:
        return
    found = host.evidence.get("containers")
    listed = found if isinstance(found, list) else []
    busy = [str(c.get("name")) for c in listed if c.get("running") and c.get("gpus") != "none"]
    which = f" of {_value(line, '-i', '--id')}" if _value(line, "-i", "--id") else " of all GPUs"
    seen = f"A reset{which}." + (f" Containers with GPUs run: {', '.join(busy)}." if busy else "")
    yield Hit(
        given.at,
        seen,
        commands=("nvidia-smi --query-compute-apps=pid,gpu_uuid --format=csv",),
        severity=Severity.WARNING if busy else None,
    )


def _value(line: CommandLine, *names: str) -> str:
    given = line.option(*names)
    return given.value if given else ""


@rule(
    "mig-change-and-cdi",
    "After a change of MIG the CDI specification is stale",
    Severity.INFO,
    reads=CommandLine,
    reason="nvidia-cdi-refresh does not see MIG devices come and go: containers that name one "
    "by CDI fail, or get what is no longer there, until the specification is made anew. The mode "
    "itself changes only on an idle GPU.",
    fix="Make it anew after the change.",
    sources=("NVIDIA cloud-native documentation, cdi-support: limitations of nvidia-cdi-refresh",),
    row="P13",
)
def mig_change_and_cdi(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """nvidia-smi -mig, and mig -cgi, -cci, -dgi, -dci."""
    if line.name != "nvidia-smi":
        return
    given = line.has("-mig", "--multi-instance-gpu")
    if given is None and line.words[:1] and line.words[0].value == "mig":
        given = line.has("-cgi", "-cci", "-dgi", "-dci", "--create-gpu-instance")
    if given:
        yield Hit(
            given.at,
            f"nvidia-smi {given.value} changes the MIG layout.",
            commands=("systemctl restart nvidia-cdi-refresh.service",),
        )


@rule(
    "mig-gpu-instance-alone",
    "A GPU instance without a compute instance is no device",
    Severity.INFO,
    reads=CommandLine,
    reason="CUDA uses compute instances; nvidia-smi -L shows nothing for a GPU instance alone.",
    fix="Add -C, or create a compute instance in it with nvidia-smi mig -cci.",
    sources=("NVIDIA MIG user guide, creating GPU instances",),
)
def mig_gpu_instance_alone(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """``nvidia-smi mig -cgi`` without -C."""
    given = line.has("-cgi", "--create-gpu-instance")
    if line.name != "nvidia-smi" or given is None:
        return
    if not line.has("-C", "--default-compute-instance", "-cci"):
        yield Hit(given.at, "GPU instances are created, and no compute instances in them.")


@rule(
    "memory-limits-driver",
    "nvidia-smi memory-limits needs driver 615",
    Severity.ERROR,
    reads=CommandLine,
    reason="Limits of GPU memory per cgroup came with the R615 driver (CUDA 13.4); before it "
    "nvidia-smi does not know the command.",
    fix="Use MIG devices, or MPS with CUDA_MPS_PINNED_DEVICE_MEM_LIMIT.",
    sources=("docs.nvidia.com MPS v3 memory partitioning", "NVML change log v610 to v615"),
    needs=(Needs("driver", "<615"),),
    unknown=Severity.INFO,
    row="P19",
)
def memory_limits_driver(line: CommandLine, host: HostView) -> Iterator[Hit]:
    """Any use of it."""
    if line.name == "nvidia-smi" and line.words[:1] and line.words[0].value == "memory-limits":
        yield Hit(line.words[0].at, "nvidia-smi memory-limits is used.")
