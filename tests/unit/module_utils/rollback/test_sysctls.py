# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.steadygpu.host.plugins.module_utils.rollback.model import RollbackError
from ansible_collections.steadygpu.host.plugins.module_utils.rollback.observation import sysctls


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A kernel with three settings, and a sysctl file of ours."""
    for path, value in (
        ("vm/swappiness", "60\n"),
        ("net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("net/ipv4/conf/eth0.1/forwarding", "0\n"),
    ):
        file = tmp_path / "proc/sys" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value)
    own = tmp_path / "etc/sysctl.d/60-steadygpu-nccl.conf"
    own.parent.mkdir(parents=True)
    own.write_text(
        "# ours\n-net.ipv4.tcp_rmem = 4096 131072 6291456\nnet/ipv4/conf/eth0.1/forwarding=1\n"
    )
    (own.parent / "10-theirs.conf").write_text("kernel.theirs = 1\n")
    return str(tmp_path)


def test_the_table_and_what_our_files_set(root: str) -> None:
    names = sysctls.names(root)
    assert set(names) == {*sysctls.NAMES, "net.ipv4.tcp_rmem", "net.ipv4.conf.eth0/1.forwarding"}
    assert sysctls.read(names, root) == {
        "vm.swappiness": "60",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.conf.eth0/1.forwarding": "0",
    }


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("vm.swappiness=10", ["vm.swappiness"]),
        ("  vm/swappiness = 10", ["vm.swappiness"]),
        ("- kernel.x = 1", ["kernel.x"]),
        ("; vm.swappiness=10", []),
        ("net.ipv4.conf.*.rp_filter = 2", []),
        ("-net.ipv4.conf.all.rp_filter", []),
        ("=5", []),
    ],
)
def test_names_of_a_line(line: str, names: list[str]) -> None:
    assert sysctls.set_by(line) == names


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    for name in sysctls.set_by(text):
        assert sysctls.read([name], "/nonexistent") == {}


def test_a_setting_goes_back_once(root: str) -> None:
    assert sysctls.write("vm.swappiness", "10", root) is True
    assert sysctls.write("vm.swappiness", "10", root) is False
    assert sysctls.write("net.ipv4.conf.eth0/1.forwarding", "1", root) is True
    assert Path(root, "proc/sys/net/ipv4/conf/eth0.1/forwarding").read_text() == "1\n"


def test_a_setting_that_this_kernel_lacks_is_not_made(root: str) -> None:
    with pytest.raises(RollbackError, match=r"kernel\.numa_balancing: this kernel has no such"):
        sysctls.write("kernel.numa_balancing", "0", root)
    assert not Path(root, "proc/sys/kernel/numa_balancing").exists()


def test_nothing_outside_is_read_or_written(root: str) -> None:
    Path(root, "secret").write_text("1\n")
    name = "vm////////secret"
    assert sysctls.read([name], root) == {}
    with pytest.raises(RollbackError):
        sysctls.write(name, "2", root)
    assert Path(root, "secret").read_text() == "1\n"


def test_a_value_that_does_not_stay_is_told(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(root, "proc/sys/vm/nr_hugepages").write_text("0\n")
    monkeypatch.setattr(sysctls, "read_text", lambda path: "0\n")
    with pytest.raises(RollbackError, match="wanted 512: the kernel made"):
        sysctls.write("vm.nr_hugepages", "512", root)


def test_a_refusal_names_what_was_seen_and_wanted() -> None:
    release = os.uname().release
    # Read-only for everybody, root included.
    with pytest.raises(RollbackError, match=rf"is {re.escape(release)}, wanted other: the kernel"):
        sysctls.write("kernel.osrelease", "other")


def test_the_real_kernel_is_read() -> None:
    found = sysctls.read(sysctls.names())
    assert found["vm.swappiness"].isdigit()
