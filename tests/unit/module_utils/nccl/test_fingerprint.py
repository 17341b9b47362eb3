# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stamp: which tree a file is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.nccl import fingerprint, host, syntax
from ansible_collections.steadygpu.host.tests.unit.module_utils.nccl.fake_host import (
    TOPOLOGIES,
    FakeHost,
    recorded,
)

NICS = ["0000:05:00.0", "0000:85:00.0"]


def _stamp(fake: FakeHost) -> fingerprint.Stamp:
    return fingerprint.of_host(host.read(fake.root), NICS)


@pytest.fixture
def dgx(tmp_path: Path) -> FakeHost:
    fake = FakeHost(tmp_path)
    fake.dgx()
    return fake


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_nccl_reads_a_stamped_file_as_before(dgx: FakeHost, name: str) -> None:
    text = fingerprint.stamped(_stamp(dgx), recorded(name))
    read, before = syntax.read(text), syntax.read(recorded(name))
    assert [tag.attributes for tag in read.below("pci")] == [
        tag.attributes for tag in before.below("pci")
    ]
    assert fingerprint.split(text) == (_stamp(dgx), recorded(name))


def test_an_edited_stamp_is_none(dgx: FakeHost) -> None:
    text = fingerprint.stamped(_stamp(dgx), recorded(TOPOLOGIES[0]))
    assert fingerprint.split(text.replace("node 1", "node 0"))[0] is None


def test_the_same_tree_has_the_same_fingerprint(dgx: FakeHost, tmp_path: Path) -> None:
    other = FakeHost(tmp_path / "other")
    other.dgx()
    assert _stamp(dgx).fingerprint == _stamp(other).fingerprint
    assert len(_stamp(dgx).lines) == 6


def test_a_gpu_that_moved_changes_it_and_is_named(dgx: FakeHost) -> None:
    before = _stamp(dgx)
    dgx.remove("0000:03:00.0")
    after = _stamp(dgx)
    assert after.fingerprint != before.fingerprint
    assert fingerprint.difference(before, after) == (
        "was: gpu 0000:03:00.0 10de:20b0 node 0 path "
        "0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0"
    )


def test_another_numa_node_changes_it(dgx: FakeHost) -> None:
    before = _stamp(dgx)
    (node,) = Path(dgx.root).glob("sys/devices/**/0000:03:00.0/numa_node")
    node.write_text("1\n")
    assert "node 0" in fingerprint.difference(before, _stamp(dgx))


def test_a_nic_that_the_file_does_not_name_does_not(dgx: FakeHost) -> None:
    before = _stamp(dgx)
    dgx.add(["8000:00:02.0"], "020000", vendor="15b3", rdma=True)
    assert _stamp(dgx) == before
    dgx.remove(NICS[0])
    assert _stamp(dgx) != before
