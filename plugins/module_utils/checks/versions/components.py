# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has a version: the components, what people call them, and their packages. Data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# Component (a key of HostView.versions) to the name that a message gives it.
TITLES: Mapping[str, str] = MappingProxyType(
    {
        "docker": "Docker Engine",
        "docker_cli": "the Docker client",
        "compose": "Docker Compose",
        "containerd": "containerd",
        "runc": "runc",
        "toolkit": "the NVIDIA Container Toolkit",
        "libnvidia_container": "libnvidia-container",
        "driver": "the NVIDIA driver",
        "library": "the NVIDIA user-space driver",
        "nvidia_kernel_module": "the NVIDIA kernel module",
        "cuda": "the CUDA level of the driver",
        "fabric_manager": "the fabric manager",
        "device_plugin": "the NVIDIA device plugin",
        "gpu_operator": "the GPU Operator",
        "mig_manager": "the MIG manager",
        "dcgm": "DCGM",
        "dcgm_exporter": "dcgm-exporter",
        "nccl": "NCCL",
        "kernel": "the kernel",
        "systemd": "systemd",
        "cgroup": "the cgroup hierarchy",
        "podman": "Podman",
    }
)

# The packages that bring a component, whoever makes them. Ubuntu ships containerd and runc for
# its docker.io under names of their own; containerd.io brings a runc that has no package.
PACKAGES_OF: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "docker": ("docker-ce", "docker.io", "moby-engine"),
        "docker_cli": ("docker-ce-cli", "docker-cli"),
        "compose": ("docker-compose-plugin", "docker-compose-v2"),
        "containerd": ("containerd.io", "containerd", "containerd-app"),
        "runc": ("runc", "runc-app"),
        "toolkit": ("nvidia-container-toolkit", "nvidia-container-toolkit-base"),
        "libnvidia_container": ("libnvidia-container1", "libnvidia-container-tools"),
        "dcgm": (
            "datacenter-gpu-manager-4-core",
            "datacenter-gpu-manager",
        ),
        "dcgm_exporter": ("datacenter-gpu-manager-exporter",),
        "fabric_manager": ("nvidia-fabricmanager",),
        "nccl": ("libnccl2",),
        "podman": ("podman",),
    }
)
