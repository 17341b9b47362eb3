# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import (
    package_names,
)

RELEASE = "6.12.41+deb13-amd64"


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-driver-550-server",
        "nvidia-kernel-open-dkms",
        "nvidia-open",
        "nvidia-fabricmanager-550",
        "nvidia-fabric-manager",
        "nvidia-compute-utils-535",
        "nvidia-persistenced",
        "nvidia-imex",
        "libnvidia-compute-550",
        "libnvidia-cfg1-550",
        "libnvidia-ml1",
        "cuda-drivers-580",
        "libcuda1",
        "kmod-nvidia-open-dkms",
        "linux-modules-nvidia-550-6.8.0-45-generic",
        "linux-image-amd64",
        "linux-headers-" + RELEASE,
        "kernel-core",
        "kernel",
    ],
)
def test_driver_and_kernel_are_nobody_else_s(name: str) -> None:
    assert package_names.never_alone(name)


@pytest.mark.parametrize(
    "name",
    [
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base",
        "libnvidia-container1",
        "libnvidia-container-tools",
        "docker.io",
        "containerd",
        "runc",
        "linux-libc-dev",
    ],
)
def test_engine_and_toolkit_may_go_back(name: str) -> None:
    assert not package_names.never_alone(name)


def test_what_a_checkpoint_names() -> None:
    installed = [
        "docker.io",
        "docker-compose-plugin",
        "nvidia-container-toolkit",
        "libnvidia-ml1",
        "linux-image-" + RELEASE,
        "linux-image-6.1.0-old-amd64",
        "linux-image-amd64",
        "bash",
        "nvidia-driver",
    ]
    assert package_names.recorded(installed, RELEASE) == set(installed) - {
        "linux-image-6.1.0-old-amd64",
        "linux-image-amd64",
        "bash",
    }
