# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks import assume
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView


def assumed(text, host=None):
    return assume.apply(host or HostView(), assume.parse(text))


def test_versions_and_words_of_a_host_that_is_not_at_hand():
    host = assumed("docker=26.1.5, os=Debian 12,cgroup=2,rootless=true,weights_work=no,cdi=true")
    assert host.version("docker") == host.version("docker_cli") == "26.1.5"
    assert host.os == "debian 12"
    assert host.version("cgroup") == "2"
    assert (host.rootless, host.weights_work, host.cdi_enabled) == (True, False, True)
    assert not host.live


def test_the_client_is_another_where_it_is_named():
    assert assumed("docker=29.0,docker_cli=26.1.5").version("docker_cli") == "26.1.5"
    known = HostView(versions={"docker_cli": "27.0.1", "docker": "27.0.1"})
    host = assumed("docker=29.0", known)
    assert (host.version("docker"), host.version("docker_cli")) == ("29.0", "27.0.1")


def test_gpus_and_mig_devices():
    host = assumed("gpus=4,mig=0:1g.10gb+2g.20gb+me;2:1c.3g.40gb")
    assert len(host.gpus) == 4
    assert [device.profile for device in host.gpus[0].mig_devices] == ["1g.10gb", "2g.20gb+me"]
    assert [gpu.mig for gpu in host.gpus] == [True, False, True, False]
    assert host.vendors == {"nvidia"}
    assert len(assumed("mig=1:7g.80gb").gpus) == 2
    assert assumed("gpus=2x NVIDIA A100").gpus[1].name == "NVIDIA A100"
    assert assumed("gpus=0").gpus == ()


def test_uuids_in_the_order_of_nvidia_smi():
    host = assumed("uuids=GPU-aaaaaaaa+MIG-11111111+MIG-22222222+GPU-bbbbbbbb,mig=0:1g.10gb")
    assert [gpu.uuid for gpu in host.gpus] == ["GPU-aaaaaaaa", "GPU-bbbbbbbb"]
    first, second = host.gpus[0].mig_devices
    assert (first.uuid, first.profile) == ("MIG-11111111", "1g.10gb")
    assert (second.uuid, second.index) == ("MIG-22222222", 1)
    assert [gpu.mig for gpu in host.gpus] == [True, False]


def test_commas_belong_to_a_value_when_no_key_follows():
    host = assumed("cpus=0-3,8-11,cmdline=isolcpus=2,3 nohz_full=4,numa=0:0-7;1:8-15")
    assert host.cpu_count == 8
    assert host.cmdline == "isolcpus=2,3 nohz_full=4"
    assert host.nodes == {0: "0-7", 1: "8-15"}
    assert assumed("cpus=16").cpus == "0-15"
    assert assumed("numa=0:0-3;1:4-7").cpu_count == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dokcer=28", "dokcer=28: not known"),
        ("docker=", "docker: there is no value"),
        ("docker=latest", "docker=latest"),
        ("gpus=many", "gpus=many"),
        ("cpus=0", "cpus=0"),
        ("cpus=8-4", "8-4"),
        ("mig=0:1g", "GPU:PROFILE"),
        ("mig=99999:1g.10gb", "GPU:PROFILE"),
        ("rootless=perhaps", "true or false"),
        ("cgroup=3", "cgroup=3: wanted is one of 1, 2"),
        ("os=windows", "os=windows: wanted is a Linux distribution"),
        ("os=13", "such as debian 12"),
        ("cgroup_driver=none", "systemd, cgroupfs"),
        ("numa=a:0", "NODE:CPUS"),
        ("uuids=MIG-11111111+GPU-aaaaaaaa", "in the order of nvidia-smi -L"),
        ("uuids=0", "in the order of nvidia-smi -L"),
        ("memory=much", "a size"),
        ("something", "wanted is key=value"),
        ("docker=26,what=1", "what=1: not known"),
    ],
)
def test_what_cannot_be_read_is_named(text, said):
    with pytest.raises(assume.AssumeError, match=r".*") as caught:
        assume.parse(text)
    assert said in str(caught.value)


def test_memory_in_the_usual_units():
    assert assumed("memory=64g").memory_mib == 65536
    assert assumed("memory=512M").memory_mib == 512


@settings(max_examples=3 * settings.default.max_examples // 2)
@given(
    st.text(max_size=60)
    | st.sampled_from(assume.KEYS).flatmap(
        lambda key: st.text(max_size=12).map(lambda value: f"{key}={value}")
    )
)
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(assume.AssumeError):
        assumed(text)
