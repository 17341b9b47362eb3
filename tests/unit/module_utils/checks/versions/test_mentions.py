# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks import mentions
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.checks.registry import all_rules

DOCKER_VERSION = """\
Client: Docker Engine - Community
 Version:           26.1.4
 API version:       1.45
Server: Docker Engine - Community
 Engine:
  Version:          26.1.3
  API version:      1.45 (minimum version 1.24)
 containerd:
  Version:          1.6.33
 runc:
  Version:          1.1.12
 docker-init:
  Version:          0.19.0
"""
DOCKER_INFO = """\
 Server Version: 26.1.5+dfsg1
 Cgroup Driver: systemd
 Cgroup Version: 2
 containerd version: 1.7.24~ds1-6+b4
 runc version: 1.1.15+ds1-2+b4
 Kernel Version: 6.12.48+deb13-amd64
 Operating System: Debian GNU/Linux 13 (trixie)
"""
DPKG = """\
ii  docker-ce                      5:28.1.1-1~debian.12~bookworm  amd64  Docker
ii  runc                           1.1.5+ds1-1+deb12u1            amd64  OCI runtime
hi  libnvidia-container1:amd64     1.17.7-1                       amd64  library
"""


def versions(text):
    return {name: given.value for name, given in mentions.find(text).versions.items()}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            DOCKER_VERSION,
            {"docker_cli": "26.1.4", "docker": "26.1.3", "containerd": "1.6.33", "runc": "1.1.12"},
        ),
        (
            DOCKER_INFO,
            {
                "docker": "26.1.5+dfsg1",
                "containerd": "1.7.24~ds1-6+b4",
                "runc": "1.1.15+ds1-2+b4",
                "kernel": "6.12.48",
                "cgroup": "2",
            },
        ),
        (
            DPKG,
            {
                "docker": "5:28.1.1-1~debian.12~bookworm",
                "runc": "1.1.5+ds1-1+deb12u1",
                "libnvidia_container": "1.17.7-1",
            },
        ),
        (
            "NVIDIA-SMI 550.54.14  Driver Version: 550.54.14  CUDA Version: 12.4",
            {"driver": "550.54.14", "cuda": "12.4"},
        ),
        ("NVIDIA Container Toolkit CLI version 1.17.8", {"toolkit": "1.17.8"}),
        ("Docker Compose version v2.26.1", {"compose": "2.26.1"}),
        ("Docker version 26.1.5, build a72d7cd", {"docker": "26.1.5"}),
        ('{"nvidia_container_toolkit": "1.16.1"}', {"toolkit": "1.16.1"}),
        ("runc version 1.1.5", {"runc": "1.1.5"}),
        ("Docker 29 and driver 535.x", {"docker": "29", "driver": "535"}),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06",
            {"nvidia_kernel_module": "570.124.06"},
        ),
        ("NVML library version: 565.57", {"library": "565.57"}),
        ("docker run -p 8080:80 --gpus 2 image 10.0.0.1", {}),
        ("containerd[123]: failed 20 times, CUDA Toolkit 12.4", {}),
    ],
)
def test_versions_as_people_paste_them(text, found):
    assert versions(text) == found


def test_each_version_has_its_place():
    given = mentions.find(DOCKER_VERSION, "paste").versions["runc"]
    assert (given.at.file, given.at.line, given.at.column) == ("paste", 11, 21)


def test_a_mentioned_version_is_judged_where_it_stands():
    found = mentions.find("x\nwe have runc 1.1.11", "paste")
    (view, rules) = (mentions.view(found), all_rules())
    (finding,) = [f for f in judge([view], HostView(), rules) if f.severity.label == "error"]
    assert finding.rule == "runc-vulnerable"
    assert (finding.at.line, finding.at.column) == (2, 14)


def test_a_text_says_which_distribution_patched_a_package():
    view = mentions.view(mentions.find(DPKG))
    rules = all_rules()
    said = [f for f in judge([view], HostView(), rules) if f.rule == "runc-vulnerable"]
    assert said
    assert not any("CVE-2024-21626" in finding.seen for finding in said)


def test_a_view_says_nothing_of_what_was_not_mentioned():
    assert list(judge([mentions.view(mentions.Mentioned())], HostView())) == []


@settings(max_examples=settings.default.max_examples)
@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(
            ["docker", "runc", " ", ":", "1.2.3", "²", "999999999999", "\n Version: ", "-"]
        ),
        max_size=12,
    ).map("".join)
)
def test_any_text_can_be_looked_at(text):
    mentions.view(mentions.find(text))


def test_a_long_text_ends_soon():
    start = time.monotonic()
    for piece in ("kernel module  ", '":" ', "\n Engine:"):
        mentions.find(piece * 100_000)
    assert time.monotonic() - start < 30


def test_docker_info_tells_the_distribution_that_packed_runc():
    view = mentions.view(mentions.find(DOCKER_INFO))
    said = [f for f in judge([view], HostView(), all_rules()) if f.rule == "runc-vulnerable"]
    worst = max(said, key=lambda finding: finding.severity)
    assert worst.severity.label == "error"
    assert "1.1.15+ds1-2+deb13u1" in worst.fix
    assert worst.commands == ("apt-get update", "apt-get install --only-upgrade runc")
