# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pasted output: what is found in it, and where."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.checks.documents.dumps import (
    DriverLog,
    PackageOutput,
    PciListing,
    TopologyTable,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.host import HostView
from ansible_collections.steadygpu.host.plugins.module_utils.checks.judge import judge
from ansible_collections.steadygpu.host.plugins.module_utils.checks.readers.dump import read_dump


def _one(text, kind):
    (found,) = [d for d in read_dump(text, "ticket").documents if isinstance(d, kind)]
    return found


def test_a_sentence_over_several_lines_has_the_place_where_it_begins():
    log = _one(
        "boot\n"
        "[ 7386.25] NVRM: API mismatch: the client has the version 515.48.07, but\n"
        "[ 7386.26] NVRM: this kernel module has the version 510.73.05.  Please\n",
        DriverLog,
    )
    (found,) = log.mismatches
    assert (found.library, found.module, found.at.line) == ("515.48.07", "510.73.05", 2)


def test_the_same_xid_is_told_once_with_its_number_of_times():
    line = "[1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen\n"
    (xid,) = _one(line * 3, DriverLog).xids
    assert (xid.number, xid.slot, xid.times, xid.at.line) == (79, "0000:3b:00", 3, 1)


def test_lspci_with_acs_and_drivers():
    listing = _one(
        "3a:00.0 PCI bridge: Broadcom / LSI PEX880xx PCIe Gen 4 Switch\n"
        "\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+\n"
        "0000:3b:00.0 3D controller [0302]: NVIDIA Corporation GA100 [10de:20b2] (rev a1)\n"
        "\tKernel driver in use: nvidia\n",
        PciListing,
    )
    bridge, gpu = listing.entries
    assert bridge.acs == {"SrcValid", "ReqRedir"}
    assert bridge.is_switch
    assert (gpu.is_nvidia_gpu, gpu.driver, gpu.at.line) == (True, "nvidia", 3)


def test_a_root_port_that_redirects_is_no_finding():
    text = (
        "00:01.0 PCI bridge: Intel Corporation Sky Lake-E PCI Express Root Port A\n"
        "\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+\n"
    )
    assert judge(read_dump(text, "ticket").documents, HostView()) == []


def test_a_topology_with_nvlinks_is_no_finding():
    text = "\tGPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n"
    assert _one(text, TopologyTable).words == {"NV12"}
    assert judge(read_dump(text, "ticket").documents, HostView()) == []


def test_held_packages_are_named():
    output = _one(
        "The following held packages will be changed:\n  libnvidia-container1 libcuda1\n"
        "E: Held packages were changed and -y was used without --allow-change-held-packages.\n",
        PackageOutput,
    )
    assert (output.what, output.names) == ("held", ("libnvidia-container1", "libcuda1"))


def test_a_broken_xml_is_a_problem_and_no_traceback():
    reading = read_dump("<nvidia_smi_log><gpu id='1'><product_name>A", "ticket")
    assert reading.problems


@settings(max_examples=settings.default.max_examples)
@given(st.text(max_size=400))
def test_any_text_can_be_read(text):
    read_dump(text, "ticket")
    read_dump(f"NVRM: Xid (PCI:0000:3b:00): 79, {text}\n<gpu {text}", "ticket")
