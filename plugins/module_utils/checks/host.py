# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of the host that an input is judged for. Pure.

Every field has a value for "not known" (None, or an empty collection where ``live`` is false),
and a rule must tell "known to be false" from "not known".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class MigDevice:
    """One MIG device of a GPU: ``profile`` as ``1g.10gb``, ``index`` counts on its GPU."""

    index: int
    uuid: str
    profile: str


@dataclass(frozen=True)
class Gpu:
    """One GPU. ``mig`` and ``mig_pending`` are the modes now and after the next reset."""

    index: int
    uuid: str | None = None
    name: str | None = None
    architecture: str | None = None
    memory_mib: int | None = None
    numa_node: int | None = None
    cpus: str | None = None
    mig: bool = False
    mig_pending: bool = False
    mig_devices: tuple[MigDevice, ...] = ()
    nvlink: bool = False
    error: str | None = None


@dataclass(frozen=True)
class HostPackage:
    """An installed package: its whole version, whether it is held, a newer one on offer."""

    version: str
    held: bool = False
    candidate: str | None = None


@dataclass(frozen=True)
class HostView:
    """What is known of one host.

    ``live``: built from facts, so that an empty collection means "there are none".
    ``versions``: component to version as the host spells it (``runc: 1.1.15+ds1``). Components:
    docker, docker_cli, compose, containerd, runc, toolkit, driver, library (user-space driver),
    cuda (what the driver serves), kernel, systemd, cgroup ("1" or "2"), nvidia_kernel_module,
    fabric_manager, device_plugin, gpu_operator, dcgm, dcgm_exporter, mig_manager, nccl, podman.
    ``os``: ``debian 12``, ``ubuntu 24.04``, ``rhel 9`` (the key of vendor patches).
    ``cpus``: the CPUs that are online as a kernel list; ``nodes``: NUMA node to its CPU list.
    ``weights_work``: whether io.weight is honoured (iocost enabled, or BFQ) on some disk.
    ``facts``: the raw ``gpu_host``, for rules about one fact; ``evidence``: what
    ``evidence/gather.py`` gathered beside it.
    """

    live: bool = False
    name: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, HostPackage] = field(default_factory=dict)
    os: str | None = None
    gpus: tuple[Gpu, ...] | None = None
    vendors: frozenset[str] = frozenset()  # of GPUs on the bus: nvidia, amd, intel
    cpus: str | None = None
    nodes: Mapping[int, str] = field(default_factory=dict)
    memory_mib: int | None = None
    cgroup_driver: str | None = None
    runtimes: frozenset[str] | None = None
    default_runtime: str | None = None
    live_restore: bool | None = None
    rootless: bool | None = None
    cdi_enabled: bool | None = None
    cdi_devices: frozenset[str] | None = None
    toolkit_mode: str | None = None
    hook_on_path: bool | None = None
    modules: Mapping[str, bool] = field(default_factory=dict)
    cmdline: str | None = None
    weights_work: bool | None = None
    selinux: str | None = None  # enforcing, permissive, disabled
    selinux_types: frozenset[str] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def version(self, component: str) -> str | None:
        """The version of a component as the host spells it; None when it is not known."""
        return self.versions.get(component)

    def with_versions(self, more: Mapping[str, str]) -> HostView:
        """The same host with further versions; those known already stay."""
        return replace(self, versions={**more, **self.versions})

    @property
    def cpu_count(self) -> int | None:
        """How many CPUs are online; None when it is not known."""
        return None if self.cpus is None else len(cpu_list(self.cpus))


def cpu_list(text: str) -> frozenset[int]:
    """The CPUs of a kernel list, ``0-3,8``; raises ValueError for anything else."""
    found: set[int] = set()
    for part in text.split(","):
        if not part.strip():
            continue
        first, dash, last = part.strip().partition("-")
        low, high = int(first), int(last) if dash else int(first)
        if not 0 <= low <= high < 1 << 16:
            raise ValueError(f"{part!r} is not a range of CPUs")
        found.update(range(low, high + 1))
    return frozenset(found)
