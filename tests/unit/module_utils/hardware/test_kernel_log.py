# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver's messages in the kernel log, as the field has seen them."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import kernel_log
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Xid

FALLEN = (
    "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
)
NO_GSP = (
    "NVRM: The NVIDIA GPU 0000:03:00.0 (PCI ID: 10de:1bb3)\n"
    "NVRM: installed in this system is not supported by open\n"
    "NVRM: nvidia.ko because it does not include the required GPU\n"
    "NVRM: System Processor (GSP)."
)
LEGACY = (
    "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1c94) installed in this system is\n"
    "NVRM: supported through the NVIDIA 580.xx Legacy drivers."
)


def record(text, microseconds=12_500_000):
    """One record as /dev/kmsg gives it."""
    escaped = text.replace("\n", "\\x0a")
    return f"4,1201,{microseconds},-;{escaped}\n SUBSYSTEM=pci\n".encode()


def test_dr_017_a_gpu_has_fallen_off_the_bus():
    records = kernel_log.parse([record("usb 1-1: new device"), record(FALLEN)])
    assert kernel_log.xids(records) == {
        "0000:01:00": [Xid(79, 12.5, "GPU has fallen off the bus.")]
    }


def test_an_xid_of_a_process():
    text = "NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python3, Ch 00000008, MMU Fault: ENGINE"
    (xid,) = kernel_log.xids(kernel_log.parse([record(text)]))["0000:3b:00"]
    assert (xid.xid, xid.text) == (31, "Ch 00000008, MMU Fault: ENGINE")


def test_xids_of_a_wide_domain_and_of_an_old_driver():
    records = kernel_log.parse(
        [
            record("NVRM: Xid (PCI:00010000:E1:00): 48, pid=1, name=x, DBE"),
            record("NVRM: Xid (0000:05:00): 62, 1d4c(1234)"),
        ]
    )
    assert {slot: one[0].xid for slot, one in kernel_log.xids(records).items()} == {
        "10000:e1:00": 48,
        "0000:05:00": 62,
    }


def test_dr_012_a_pascal_card_with_the_open_modules():
    reasons = kernel_log.refusals(kernel_log.parse([record(NO_GSP)]))
    assert set(reasons) == {"0000:03:00.0"}
    assert "open kernel modules" in reasons["0000:03:00.0"]
    assert "proprietary" in reasons["0000:03:00.0"]


def test_dr_012_when_each_line_is_a_record():
    records = kernel_log.parse([record(line) for line in NO_GSP.splitlines()])
    assert set(kernel_log.refusals(records)) == {"0000:03:00.0"}


def test_dr_013_a_release_that_ignores_the_card():
    reasons = kernel_log.refusals(kernel_log.parse([record(LEGACY)]))
    assert "580.xx" in reasons["0000:01:00.0"]


def test_a_card_that_is_named_by_its_model():
    text = (
        "NVRM: The NVIDIA GeForce GTX 870M GPU installed in this system is\n"
        "NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please"
    )
    reasons = kernel_log.refusals(kernel_log.parse([record(text)]))
    assert "470.xx" in reasons[None]


def test_a_card_that_could_not_be_initialised():
    text = "NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x24:0x65:1417)"
    reasons = kernel_log.refusals(kernel_log.parse([record(text)]))
    assert "0x24:0x65:1417" in reasons["0000:41:00.0"]


def test_the_log_is_read_to_its_end_and_not_waited_for(host):
    host.write("dev/kmsg", (record("other") * 2000 + record(FALLEN)).decode())
    messages = kernel_log.read(host.root)
    assert messages.reason is None
    assert len(messages.records) == 1


def test_a_log_nobody_may_read_says_so(host):
    messages = kernel_log.read(host.root)
    assert messages.records == []
    assert os.path.join(host.root, "dev/kmsg") in (messages.reason or "")


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_any_bytes_are_read_without_an_error(chunks):
    records = kernel_log.parse([b"NVRM" + chunk for chunk in chunks])
    kernel_log.xids(records)
    kernel_log.refusals(records)


@given(st.text(max_size=120))
def test_any_text_behind_the_mark_is_read_without_an_error(text):
    records = kernel_log.parse([record(f"NVRM: Xid ({text}): 79, {text}"), record("NVRM: " + text)])
    kernel_log.xids(records)
