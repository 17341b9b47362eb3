# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a topology file fits the host it is given to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.nccl import host as host_reader
from ansible_collections.steadygpu.host.plugins.module_utils.nccl import judge, syntax
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_host import (
    TOPOLOGIES,
    FakeHost,
    recorded,
)

NDV4 = "azure-ndv4-topo.xml"


def _judged(fake: FakeHost, text: str, machine: str = "x86_64") -> judge.Verdict:
    return judge.judge(syntax.read(text), host_reader.read(fake.root, machine))


@pytest.fixture
def ndv4(tmp_path: Path) -> FakeHost:
    fake = FakeHost(tmp_path)
    fake.as_in(recorded(NDV4))
    return fake


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_recorded_file_fits_the_machine_it_is_for(tmp_path: Path, name: str) -> None:
    fake = FakeHost(tmp_path)
    fake.as_in(recorded(name))
    if name == "aws-g5.48xl-topo.xml":  # it leaves the CPUs to NCCL, which needs the nodes
        fake.cpus(96, nodes=(0, 1))
    verdict = _judged(fake, recorded(name))
    assert verdict.errors == ()
    seen = host_reader.read(fake.root)
    assert set(verdict.nics) == {one.address for one in seen.nics}


def test_no_recorded_file_fits_another_machine(ndv4: FakeHost) -> None:
    for name in TOPOLOGIES:
        assert (_judged(ndv4, recorded(name)).errors == ()) == (name == NDV4)


def test_what_nccl_will_guess_is_a_warning(tmp_path: Path) -> None:
    fake = FakeHost(tmp_path)
    fake.as_in(recorded("azure-ncv4-topo.xml"))
    text = "\n".join(_judged(fake, recorded("azure-ncv4-topo.xml")).warnings)
    assert "line 3: <pci> 0001:00:00.0 has link_speed '', which NCCL takes for 8 GT/s" in text
    assert "link_width '0', which NCCL takes for 16 lanes" in text
    assert "NCCL_TOPO_DUMP_FILE" in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param('version="1"', 'version="2"', "version 2, NCCL wants 1", id="version"),
        pytest.param('"0003:00:00.0"', '"0009:00:00.0"', "is a GPU in the file", id="other-gpu"),
        pytest.param(
            '<pci busid="0003:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>',
            "",
            "does not name GPU 0003:00:00.0",
            id="gpu-left-out",
        ),
        pytest.param('"0103:00:00.0"', '"0193:00:00.0"', "is a NIC in the file", id="other-nic"),
        pytest.param('"000d:00:00.0"', '"000D:00:00.0"', "lower case", id="upper-case"),
        pytest.param('"000d:00:00.0"', '"0000000d:00:00.0"', "four digits", id="nvml-form"),
        pytest.param('"0003:00:00.0"', '"0004:00:00.0"', "is already on line 4", id="twice"),
        pytest.param(
            'busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s"',
            'busid="ffff:ff:01.0" class="0x060400"',
            "ffff:ff:01.0 has no link_speed",
            id="incomplete-switch",
        ),
        pytest.param(
            'busid="ffff:ff:01.0" class="0x060400"',
            'busid="ffff:ff:01.0"',
            "ffff:ff:01.0 has no class",
            id="switch-without-class",
        ),
        pytest.param('busid="ffff:ff:01.0" ', "", "has no busid", id="no-busid"),
        pytest.param("00000000,00000000,00ffffff", "0-23", "wanted are words", id="list-for-mask"),
        pytest.param(
            "ffffff00,00000000,00000000", "1,0,0,0", "has CPU 96 .* up to 95", id="cpu-too-high"
        ),
        pytest.param('numaid="3" ', "", "has no numaid", id="no-numaid"),
        pytest.param(
            'numaid="3" affinity="ffffff00,00000000,00000000"',
            'numaid="3"',
            "no affinity.*no such NUMA node",
            id="no-affinity",
        ),
        pytest.param('arch="x86_64"', 'arch="arm64"', "arch arm64, this host is x86_64", id="arch"),
        pytest.param(
            'busid="0103:00:00.0" class="0x020700"',
            'busid="0103:00:00.0" class="0x030200"',
            "on this host it is a device of class 020700",
            id="nic-as-gpu",
        ),
        pytest.param(
            'busid="0003:00:00.0" class="0x030200"',
            'busid="0003:00:00.0" class="0x060400"',
            "is a GPU of this host; the file gives it class 0x060400",
            id="gpu-as-bridge",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused(ndv4: FakeHost, old: str, new: str, said: str) -> None:
    text = recorded(NDV4)
    assert old in text
    errors = _judged(ndv4, text.replace(old, new)).errors
    assert re.search(said, "\n".join(errors))


def test_a_nic_the_file_does_not_name_is_only_a_warning(ndv4: FakeHost) -> None:
    """Azure's own Ethernet comes as an RDMA function that none of its files names."""
    ndv4.add(["8000:00:02.0"], "020000", vendor="15b3", rdma=True)
    verdict = _judged(ndv4, recorded(NDV4))
    assert verdict.errors == ()
    assert "RDMA NIC 8000:00:02.0" in verdict.warnings[0]


def test_a_gpu_given_to_a_virtual_machine_is_not_the_hosts(ndv4: FakeHost) -> None:
    ndv4.add(["000f:00:00.0"], driver="vfio-pci")
    assert _judged(ndv4, recorded(NDV4)).errors == ()
    named = recorded(NDV4).replace('"0003:00:00.0"', '"000f:00:00.0"')
    assert any("vfio-pci" in text for text in _judged(ndv4, named).errors)


def test_another_machine_architecture_is_refused(ndv4: FakeHost) -> None:
    assert "this host is arm64" in _judged(ndv4, recorded(NDV4), machine="aarch64").errors[0]
