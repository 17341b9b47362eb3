# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.engine import cdi_versions


@pytest.mark.parametrize(
    ("engine", "version", "cdi", "reads"),
    [
        ("docker", "25.0.16", "0.7.0", False),
        ("docker", "25.0.17", "0.8.0", True),
        ("docker", "26.0.2", "0.7.0", False),
        ("docker", "26.1.5+dfsg1", "0.7.0", True),
        ("docker", "27.5.1", "0.8.0", True),
        ("docker", "28.0.4", "1.0.0", False),
        ("docker", "28.5.2", "1.0.0", True),
        ("docker", "29.2.0", "1.1.0", True),
        ("docker", "29.7.2", "1.2.0", True),
        ("containerd", "1.6.36", "0.5.0", False),
        ("containerd", "1.7.15", "0.7.0", False),
        ("containerd", "1.7.24", "0.7.0", True),
        ("podman", "5.0.3", "0.7.0", False),
        ("podman", "5.4.2", "0.7.0", True),
        ("crio", "1.29.1", "0.7.0", False),
        ("crio", "1.30.0", "0.7.0", True),
    ],
)
def test_who_reads_what(engine: str, version: str, cdi: str, reads: bool) -> None:
    assert cdi_versions.reads(engine, version, cdi) is reads


def test_from_which_release_on() -> None:
    assert cdi_versions.since("docker", "0.7.0") == "26.1.0"
    assert cdi_versions.since("containerd", "0.7.0") == "1.7.16"
    assert cdi_versions.since("podman", "1.1.0") is None
    assert cdi_versions.highest("docker", "20.10.24") is None
