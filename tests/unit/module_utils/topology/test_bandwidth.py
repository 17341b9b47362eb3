# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Output of nvbandwidth, of the CUDA sample and of the nccl-tests."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.topology import affinity, bandwidth
from ansible_collections.steadygpu.host.plugins.module_utils.topology.model import TopologyError

NVBANDWIDTH = """nvbandwidth Version: v0.4
Built from Git version: v0.4

CUDA Runtime Version: 12020
Driver Version: 570.133.20

Device 0: NVIDIA H100 80GB HBM3
Device 1: NVIDIA H100 80GB HBM3

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
          0         1
0     55.17     54.02

SUM host_to_device_memcpy_ce 109.19

Running device_to_device_memcpy_write_ce.
memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0      0.00    350.10
 1    351.20      0.00

SUM device_to_device_memcpy_write_ce 701.30

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    370.90
 1    372.05       N/A

SUM device_to_device_memcpy_read_ce 742.95
"""

SAMPLE = """[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 1540.16  11.10
     1  11.20 1543.12
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 1541.30  48.40
     1  48.38 1543.50
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 1560.20  96.01
     1  96.33 1559.80
"""

NCCL = """# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor)
#       size         count      type   redop    root     time   algbw   busbw #wrong
   134217728      33554432     float     sum      -1    857.6  156.51  273.90      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 220.921
#
"""


def test_one_way_reads_by_copy_engine_are_taken_first() -> None:
    found = bandwidth.parse(NVBANDWIDTH)
    assert found.tool == "device_to_device_memcpy_read_ce"
    assert found.gb_s == [[None, 370.9], [372.05, None]]


def test_another_one_way_test_is_taken_when_it_is_what_ran() -> None:
    text = NVBANDWIDTH[: NVBANDWIDTH.index("Running device_to_device_memcpy_read_ce")]
    found = bandwidth.parse(text)
    assert found.tool == "device_to_device_memcpy_write_ce"
    assert found.gb_s == [[None, 350.1], [351.2, None]]


def test_the_json_form_says_the_same() -> None:
    report = {
        "nvbandwidth": {
            "version": "v0.8",
            "testcases": [
                {"name": "host_to_device_memcpy_ce", "bandwidth_matrix": [["55.1", "54.0"]]},
                {
                    "name": "device_to_device_memcpy_read_ce",
                    "status": "Passed",
                    "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
                    "bandwidth_matrix": [["N/A", "370.9"], ["372.05", "N/A"]],
                },
            ],
        }
    }
    text = "some warning\n" + json.dumps(report, indent=3)
    assert bandwidth.parse(text) == bandwidth.parse(NVBANDWIDTH)


def test_the_cuda_sample_counts_with_peer_access_on() -> None:
    found = bandwidth.parse(SAMPLE)
    assert found.tool == "p2pBandwidthLatencyTest"
    assert found.gb_s == [[None, 48.4], [48.38, None]]


def test_what_was_measured_becomes_affinity() -> None:
    found = bandwidth.parse(NVBANDWIDTH)
    assert affinity.measured([["X", "NV18"], ["NV18", "X"]], found.gb_s) == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "matrices seen: none"),
        (
            NVBANDWIDTH[: NVBANDWIDTH.index("Running device_to_device_memcpy_write_ce")],
            "matrices seen: host_to_device_memcpy_ce",
        ),
        (
            NVBANDWIDTH[: NVBANDWIDTH.index(" 1    372.05")],
            "the matrix of device_to_device_memcpy_read_ce has 1 rows and is not square",
        ),
        ('{"nvbandwidth": {"testcases": [', "the JSON of nvbandwidth is cut off"),
        ('{"nvbandwidth": {"error": "no device"}}', "no matrix of copies from GPU to GPU"),
    ],
    ids=["empty", "host-only", "cut-off", "cut-json", "error-json"],
)
def test_what_holds_no_matrix_is_refused(text: str, said: str) -> None:
    with pytest.raises(TopologyError) as raised:
        bandwidth.parse(text)
    assert said in str(raised.value)


def test_the_bus_bandwidth_of_nccl_tests() -> None:
    assert bandwidth.bus_bandwidth(NCCL) == 220.921


def test_a_run_with_wrong_values_is_no_measurement() -> None:
    with pytest.raises(TopologyError, match="the run found 3 wrong values"):
        bandwidth.bus_bandwidth(NCCL.replace("values : 0 OK", "values : 3 FAILED"))


@pytest.mark.parametrize("text", ["", NCCL.replace("220.921", "nan"), NCCL.partition("# Avg")[0]])
def test_a_run_that_did_not_end_is_no_measurement(text: str) -> None:
    with pytest.raises(TopologyError, match="no line 'Avg bus bandwidth' with a number"):
        bandwidth.bus_bandwidth(text)


@given(st.sampled_from([NVBANDWIDTH, SAMPLE]), st.floats(0, 1), st.text(max_size=4))
def test_a_damaged_text_is_a_square_matrix_or_an_error(text: str, at: float, new: str) -> None:
    place = int(len(text) * at)
    try:
        found = bandwidth.parse(text[:place] + new + text[place + len(new) :])
    except TopologyError:
        return
    assert all(len(row) == len(found.gb_s) for row in found.gb_s)
    assert all(found.gb_s[i][i] is None for i in range(len(found.gb_s)))
