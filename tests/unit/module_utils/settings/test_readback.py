# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a machine says of a setting, and what is said of what cannot act."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.settings.model import (
    Setting,
    SettingsError,
    Target,
    target_from_dict,
)
from ansible_collections.steadygpu.host.plugins.module_utils.settings.readback import (
    read_back,
    sysctl_path,
)

SCHEDULER = "/sys/block/sda/queue/scheduler"


def look(tmp_path: Path, kind: str, text: str | None, wanted: str, path: str = "/x") -> Setting:
    target = Target("a setting", kind, path, wanted)
    if text is not None:
        place = tmp_path / (sysctl_path(path) if kind == "sysctl" else path).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return read_back(target, str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "text", "wanted", "verdict", "effective"),
    [
        ("file", "a  b\n", "a b", "effective", "a b"),
        ("file", "a b c\n", "a b", "differs", "a b c"),
        ("choice", "none [bfq] mq-deadline\n", "bfq", "effective", "bfq"),
        ("choice", "[none] bfq\n", "bfq", "differs", "none"),
        ("choice", "none\n", "none", "effective", "none"),
        ("number", "0512\n", "512", "effective", "0512"),
        ("number", "300\n", "512", "differs", "300"),
        ("number", "max\n", "512", "differs", "max"),
        ("indices", "0-3,8\n", "0,1,2,3,8", "effective", "0-3,8"),
        ("indices", "0-3\n", "0-7", "differs", "0-3"),
        ("indices", "\n", "0", "differs", ""),
        ("line", "8:0 enable=1 ctrl=auto\n", "8:0 enable=1", "effective", "8:0 enable=1"),
        ("line", "8:16 enable=1\n", "8:0 enable=1", "differs", None),
        ("line", "8:0 enable=0\n", "8:0 enable=1", "differs", "8:0 enable=0"),
    ],
)
def test_a_live_value_is_compared_by_its_meaning(
    tmp_path: Path, kind: str, text: str, wanted: str, verdict: str, effective: str | None
) -> None:
    seen = look(tmp_path, kind, text, wanted)
    assert (seen.verdict, seen.effective, seen.source) == (verdict, effective, "/x")
    assert bool(seen.reason) == (verdict != "effective")


def test_a_sysctl_is_found_by_its_key(tmp_path: Path) -> None:
    seen = look(tmp_path, "sysctl", "4096\t87380\t6291456\n", "4096 87380 6291456", "net.ipv4.tcp")
    assert (seen.verdict, seen.source) == ("effective", "/proc/sys/net/ipv4/tcp")
    assert sysctl_path("net/ipv4/conf/eth0.1/x") == "/proc/sys/net/ipv4/conf/eth0.1/x"
    assert sysctl_path("net.ipv4.conf.eth0/1.x") == "/proc/sys/net/ipv4/conf/eth0.1/x"


def test_a_file_that_the_kernel_has_not_is_unsupported(tmp_path: Path) -> None:
    seen = look(tmp_path, "sysctl", None, "950000", "kernel.sched_rt_runtime_us")
    assert (seen.verdict, seen.effective) == ("unsupported", None)
    assert seen.reason == "this kernel has no /proc/sys/kernel/sched_rt_runtime_us"


def test_what_cannot_be_read_differs_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    seen = look(tmp_path, "file", None, "1")
    assert (seen.verdict, seen.effective) == ("differs", None)
    assert "cannot be read: Is a directory" in seen.reason


def test_a_boot_parameter_is_pending_until_the_reboot(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "cmdline").write_text("root=/dev/vda iommu=off quiet\n")
    pending = look(tmp_path, "boot_parameter", None, "iommu=pt")
    assert (pending.verdict, pending.effective) == ("pending", "iommu=off")
    assert "reboot" in pending.reason
    assert look(tmp_path, "boot_parameter", None, "nomce").effective == "not given"
    gone = look(tmp_path, "boot_parameter_absent", None, "quiet")
    assert (gone.verdict, gone.wanted) == ("pending", "no quiet")
    assert look(tmp_path, "boot_parameter_absent", None, "iommu=pt").verdict == "effective"
    (proc / "cmdline").write_text("root=/dev/vda iommu=pt\n")
    assert look(tmp_path, "boot_parameter", None, "iommu=pt").verdict == "effective"


def test_modules_are_loaded_absent_or_built_in(tmp_path: Path) -> None:
    for name in ("proc", "sys/module/loop"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/modules").write_text("nvidia_uvm 4096 0 - Live 0x0\n")
    assert look(tmp_path, "module_loaded", None, "", "nvidia-uvm").verdict == "effective"
    missing = look(tmp_path, "module_loaded", None, "", "gdrdrv")
    assert (missing.verdict, missing.effective) == ("differs", "absent")
    assert look(tmp_path, "module_loaded", None, "", "loop").effective == "built in"
    assert look(tmp_path, "module_absent", None, "", "nouveau").verdict == "effective"
    assert look(tmp_path, "module_absent", None, "", "nvidia_uvm").verdict == "pending"
    assert look(tmp_path, "module_absent", None, "", "loop").verdict == "unsupported"


@pytest.mark.parametrize("kind", ["inert", "unsupported"])
def test_what_cannot_act_is_said_with_its_reason(tmp_path: Path, kind: str) -> None:
    target = Target("io.weight", kind, "", "500", note="no disk has iocost or bfq")
    seen = read_back(target, str(tmp_path))
    assert seen == Setting("io.weight", "500", None, kind, "no disk has iocost or bfq")
    assert target_from_dict(target.as_dict()) == target


def test_a_kind_of_a_newer_version_is_refused_with_its_name() -> None:
    with pytest.raises(SettingsError, match="is of the kind 'oracle'"):
        target_from_dict({"name": "x", "kind": "oracle", "path": "/x", "wanted": "1"})
    with pytest.raises(SettingsError, match="wanted text for name"):
        target_from_dict({"name": "x", "kind": "file", "path": "/x", "wanted": 1})


def process(tmp_path: Path, pid: str, environment: str) -> None:
    place = tmp_path / "proc" / pid
    place.mkdir(parents=True)
    (place / "comm").write_text("irqbalance\n")
    (place / "environ").write_text(environment)


def test_a_program_is_asked_what_it_was_started_with(tmp_path: Path) -> None:
    wanted = "IRQBALANCE_BANNED_CPULIST=1"
    idle = look(tmp_path, "environment", None, wanted, "irqbalance")
    assert (idle.verdict, idle.effective) == ("inert", "not running")
    process(tmp_path, "700", f"PATH=/bin\0{wanted}\0")
    assert look(tmp_path, "environment", None, wanted, "irqbalance").verdict == "effective"
    process(tmp_path, "800", "PATH=/bin\0")
    other = look(tmp_path, "environment", None, wanted, "irqbalance")
    assert (other.verdict, other.effective) == ("differs", "no IRQBALANCE_BANNED_CPULIST")
    assert other.source == "/proc/800/environ"


def test_a_module_parameter_counts_from_the_next_load_on(tmp_path: Path) -> None:
    path = "dummy/numdummies"
    assert look(tmp_path, "module_parameter", None, "1", path).verdict == "pending"
    parameters = tmp_path / "sys/module/dummy/parameters"
    parameters.mkdir(parents=True)
    hidden = look(tmp_path, "module_parameter", None, "1", path)
    assert (hidden.verdict, hidden.reason) == (
        "unsupported",
        "the module dummy shows no parameter numdummies",
    )
    (parameters / "numdummies").write_text("1\n")
    assert look(tmp_path, "module_parameter", None, "1", path).verdict == "effective"
    waiting = look(tmp_path, "module_parameter", None, "2", path)
    assert (waiting.verdict, waiting.effective) == ("pending", "1")


def test_a_bridge_without_acs_is_unsupported(tmp_path: Path) -> None:
    seen = look(tmp_path, "acs", None, "0000", "0000:20:01.0")
    assert (seen.verdict, seen.effective) == ("unsupported", None)
    assert "0000:20:01.0" in seen.reason


def test_quotes_keep_a_boot_parameter_together(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cmdline").write_text('quiet "dyndbg=file a.c +p" x="unclosed\n')
    assert look(tmp_path, "boot_parameter", None, "quiet").verdict == "effective"
    (tmp_path / "proc/cmdline").write_text('quiet dyndbg="file a.c +p"\n')
    assert look(tmp_path, "boot_parameter", None, "dyndbg=file a.c +p").verdict == "effective"
