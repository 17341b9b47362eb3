# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Huge pages, limits, balancing and interrupts on hosts made of plain files."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils import vouched
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory import (
    hugepages,
    irqbalance,
    limits,
    manage,
)
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.model import NumaError
from ansible_collections.steadygpu.host.plugins.module_utils.numa_memory.parse import parse_wish
from ansible_collections.steadygpu.host.plugins.module_utils.settings import apply
from ansible_collections.steadygpu.host.plugins.module_utils.settings.survey import survey

GROUP = "sys/fs/cgroup/ai.slice/ai-workload.slice"
PAGES = "sys/devices/system/node/node{}/hugepages/hugepages-2048kB/nr_hugepages"
_MEMINFO = """\
Node {node} MemTotal:        1024000 kB
Node {node} MemFree:          600000 kB
Node {node} Active(file):      80000 kB
Node {node} Inactive(file):   100000 kB
Node {node} SReclaimable:      20000 kB
"""
FULL: Mapping[str, Any] = {
    "hugepages": [{"node": "1", "size": "2M", "count": 64}, {"node": "all", "count": 8}],
    "slice_limits": {"ai-workload.slice": {"2M": "65M"}},
    "numa_balancing": False,
}


def write(root: Path, path: str, text: str) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def add_node(root: Path, node: int, used: int = 0) -> None:
    base = f"sys/devices/system/node/node{node}"
    write(root, f"{base}/meminfo", _MEMINFO.format(node=node))
    write(root, f"{base}/hugepages/hugepages-2048kB/nr_hugepages", f"{used}\n")
    # A tree of plain files does not count: there are always enough that nobody has.
    free = "0" if used else "9999"
    write(root, f"{base}/hugepages/hugepages-2048kB/free_hugepages", f"{free}\n")


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Two nodes with cgroup v2 and one slice; irqbalance is not installed."""
    for node in (0, 1):
        add_node(tmp_path, node)
    write(tmp_path, "proc/sys/kernel/numa_balancing", "1\n")
    write(tmp_path, "proc/cpuinfo", "flags\t: fpu vme\n")
    (tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB").mkdir(parents=True)
    write(tmp_path, "sys/fs/cgroup/cgroup.controllers", "cpu memory hugetlb\n")
    for group in ("", "ai.slice/"):
        write(tmp_path, f"sys/fs/cgroup/{group}cgroup.subtree_control", "cpu memory hugetlb\n")
    write(tmp_path, f"{GROUP}/hugetlb.2MB.max", "max\n")
    write(tmp_path, f"{GROUP}/hugetlb.2MB.current", "0\n")
    return tmp_path


def tree(root: Path) -> dict[str, str]:
    """All files but the ledger of the rollback."""
    paths = [path for path in root.rglob("*") if path.is_file() and "rollback" not in path.parts]
    return {str(path.relative_to(root)): path.read_text() for path in paths}


def ensure(root: Path, options: Mapping[str, Any], check_mode: bool = False) -> manage.Result:
    return manage.ensure(parse_wish(options), check_mode, str(root))


def refused(root: Path, options: Mapping[str, Any]) -> str:
    before = tree(root)
    with pytest.raises(NumaError) as error:
        ensure(root, options)
    assert tree(root) == before
    return str(error.value)


def verdicts(result: manage.Result) -> dict[str, tuple[str, str | None]]:
    return {one.name: (one.verdict, one.effective) for one in result.outcome.settings}


def test_what_was_asked_acts_at_once_and_at_boot_and_goes_again(host: Path) -> None:
    before = tree(host)
    foreseen = ensure(host, FULL, check_mode=True)
    assert tree(host) == before
    done = ensure(host, FULL)
    assert foreseen.outcome.actions == done.outcome.actions
    assert foreseen.outcome.diff == done.outcome.diff
    assert verdicts(done) == {
        "hugepages-2048kB node 0": ("effective", "8"),
        "hugepages-2048kB node 1": ("effective", "64"),
        "kernel.numa_balancing": ("effective", "0"),
        # 65 MiB are 32 whole pages.
        "ai-workload.slice hugetlb.2MB.max": ("effective", str(64 << 20)),
    }
    boot = (host / "etc/tmpfiles.d/steadygpu-hugepages.conf").read_text()
    assert f"w! /{PAGES.format(1)} - - - - 64\n" in boot
    rules = (host / "etc/steadygpu/hugetlb.conf").read_text()
    assert "w /sys/fs/cgroup/ai.slice/cgroup.subtree_control - - - - +hugetlb\n" in rules
    assert f"w /{GROUP}/hugetlb.2MB.max - - - - {65 << 20}\n" in rules
    unit = (host / "etc/systemd/system/steadygpu-hugetlb.service").read_text()
    assert "After=ai-workload.slice" in unit
    assert not ensure(host, FULL).outcome.actions
    gone = manage.take_back(False, str(host))
    assert gone.outcome.actions
    assert tree(host) == before
    assert not manage.take_back(False, str(host)).outcome.actions


def test_what_is_no_longer_asked_goes_and_the_rest_stays(host: Path) -> None:
    ensure(host, FULL)
    fewer = ensure(host, {"hugepages": [{"node": "1", "count": 64}]})
    assert verdicts(fewer) == {"hugepages-2048kB node 1": ("effective", "64")}
    files = tree(host)
    assert files[PAGES.format(0)].strip() == "0"
    assert files["proc/sys/kernel/numa_balancing"].strip() == "1"
    assert files[f"{GROUP}/hugetlb.2MB.max"].strip() == "max"
    assert not [path for path in files if "hugetlb.service" in path or "sysctl.d" in path]


def test_a_value_changed_by_hand_is_found_and_repaired(host: Path) -> None:
    ensure(host, FULL)
    write(host, PAGES.format(1), "10\n")
    found = {one.setting.name: one.setting for one in survey(str(host))}
    assert found["hugepages-2048kB node 1"].verdict == "differs"
    again = ensure(host, FULL)
    assert again.outcome.actions == ["set hugepages-2048kB node 1 to 64 (was 10)"]


def test_memory_of_running_work_is_not_taken(host: Path) -> None:
    said = refused(host, {"hugepages": [{"node": "1", "count": 301}]})
    # 600000 free and half of 200000 kB, less a tenth of 1024000 kB: 583 MiB, 291 pages.
    assert "NUMA node 1: the huge pages would take 602 more MiB" in said
    assert "683 MiB available" in said
    assert "leaves 583 MiB" in said
    assert not ensure(host, {"hugepages": [{"node": "1", "count": 291}]}).outcome.warnings


def test_a_page_in_use_is_not_given_back(host: Path) -> None:
    add_node(host, 1, used=32)
    write(host, "proc/77/status", "Name:\tvllm\nHugetlbPages:\t   65536 kB\n")
    write(host, "proc/77/comm", "vllm\n")
    said = refused(host, {"hugepages": [{"node": "1", "count": 16}]})
    assert "there would be 16, and 32 of 32 are in use" in said
    assert "vllm (pid 77, 64 MiB)" in said


def test_pages_in_use_are_not_taken_back_either(host: Path) -> None:
    ensure(host, {"hugepages": [{"node": "1", "count": 16}]})
    write(host, PAGES.format(1).replace("nr_", "free_"), "4\n")
    for again in (lambda: manage.take_back(False, str(host)), lambda: ensure(host, {})):
        with pytest.raises(NumaError, match="there would be 0, and 12 of 16 are in use"):
            again()
    assert (host / PAGES.format(1)).read_text() == "16\n"


def test_fewer_pages_than_asked_are_none_at_all(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = apply.write_live

    def stingy(target: Any, value: str, root: str = "/") -> None:
        real(target, "40" if value == "64" else value, root)

    ensure(host, {"hugepages": [{"node": "0", "count": 4}]})
    monkeypatch.setattr(apply, "write_live", stingy)
    with pytest.raises(NumaError) as error:
        ensure(host, {"hugepages": [{"node": "1", "count": 64}]})
    said = str(error.value)
    assert "the kernel gave 40 of 64" in said
    assert "hugepagesz=2M hugepages=1:64" in said
    assert (host / PAGES.format(1)).read_text().strip() == "0"
    assert (host / PAGES.format(0)).read_text().strip() == "4"
    boot = (host / "etc/tmpfiles.d/steadygpu-hugepages.conf").read_text()
    assert boot.endswith(f"w! /{PAGES.format(0)} - - - - 4\n")


def test_fewer_pages_on_a_first_run_leave_no_trace(
    host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(host)
    real = apply.write_live
    monkeypatch.setattr(
        apply,
        "write_live",
        lambda target, value, root="/": real(target, "40" if value == "64" else value, root),
    )
    with pytest.raises(NumaError, match="gave 40 of 64"):
        ensure(host, {"hugepages": [{"node": "1", "count": 64}]})
    assert tree(host) == before


def test_a_machine_that_hides_its_nodes_says_so(tmp_path: Path) -> None:
    add_node(tmp_path, 0)
    write(tmp_path, "proc/sys/kernel/numa_balancing", "0\n")
    done = ensure(tmp_path, {"hugepages": [{"node": "1", "count": 4}], "numa_balancing": False})
    said = {one.name: one for one in done.outcome.settings}
    assert said["hugepages-2048kB node 1"].verdict == "unsupported"
    assert "virtual machine" in said["hugepages-2048kB node 1"].reason
    assert said["kernel.numa_balancing"].verdict == "inert"
    assert "one NUMA node" in said["kernel.numa_balancing"].reason
    assert not (tmp_path / "etc").exists()


def test_a_kernel_without_numa_or_without_the_size_says_so(tmp_path: Path, host: Path) -> None:
    bare = tmp_path / "bare"
    (bare / "proc").mkdir(parents=True)
    done = ensure(bare, {"hugepages": [{"count": 4}], "numa_balancing": True})
    assert {one.verdict for one in done.outcome.settings} == {"unsupported"}
    done = ensure(host, {"hugepages": [{"node": "0", "size": "1G", "count": 1}]})
    (said,) = done.outcome.settings
    assert said.verdict == "unsupported"
    assert said.reason == "this CPU and kernel have no huge pages of 1048576 kB, they have 2048 kB"


def test_a_node_that_is_not_there_among_several_is_a_slip(host: Path) -> None:
    assert "no NUMA node 3 here, only 0, 1" in refused(
        host, {"hugepages": [{"node": "3", "count": 1}]}
    )


@pytest.mark.parametrize(
    ("controllers", "reason"),
    [(None, "need cgroup v2"), ("cpu memory\n", "no hugetlb controller")],
    ids=["cgroup_v1", "no_controller"],
)
def test_limits_without_their_controller_are_unsupported(
    host: Path, controllers: str | None, reason: str
) -> None:
    path = host / "sys/fs/cgroup/cgroup.controllers"
    path.unlink()
    if controllers:
        path.write_text(controllers)
    done = ensure(host, {"slice_limits": {"ai-workload.slice": {"2M": "64M"}}})
    (said,) = done.outcome.settings
    assert said.verdict == "unsupported"
    assert reason in said.reason
    # Nothing is switched on, and nothing waits for the next boot.
    assert not (host / "etc").exists()
    assert [one for one in done.outcome.actions if "controller" in one] == []


def test_a_limit_below_what_the_slice_uses_is_refused(host: Path) -> None:
    write(host, f"{GROUP}/hugetlb.2MB.current", f"{128 << 20}\n")
    said = refused(host, {"slice_limits": {"ai-workload.slice": {"2M": "64M"}}})
    assert "SIGBUS" in said


def test_the_controller_is_switched_on_above_the_slice(host: Path) -> None:
    write(host, "sys/fs/cgroup/ai.slice/cgroup.subtree_control", "cpu memory\n")
    wish = parse_wish({"slice_limits": {"ai-workload.slice": {"2M": "64M"}}})
    assert limits.switch_on(wish.slice_limits, True, str(host)) == [
        "switch the hugetlb controller on below /ai.slice"
    ]
    limits.switch_on(wish.slice_limits, False, str(host))
    assert (host / "sys/fs/cgroup/ai.slice/cgroup.subtree_control").read_text() == "+hugetlb"


def test_check_mode_foresees_a_limit_whose_file_comes_with_the_controller(host: Path) -> None:
    (host / GROUP / "hugetlb.2MB.max").unlink()
    write(host, "sys/fs/cgroup/ai.slice/cgroup.subtree_control", "cpu memory\n")
    asked = {"slice_limits": {"ai-workload.slice": {"2M": "64M"}}}
    told = ensure(host, asked, check_mode=True).outcome.actions
    assert f"set ai-workload.slice hugetlb.2MB.max to {64 << 20} (was max)" in told


def test_a_slice_that_is_not_there_yet_is_told(host: Path) -> None:
    done = ensure(host, {"slice_limits": {"gpu.slice": {"2M": "64M"}}})
    assert "gpu.slice not active" in done.outcome.warnings[0]
    assert verdicts(done)["gpu.slice hugetlb.2MB.max"][0] == "unsupported"


def test_a_later_sysctl_file_would_win_and_is_named(host: Path) -> None:
    write(host, "etc/sysctl.d/99-tuning.conf", "# ours\nkernel/numa_balancing=1\n")
    before = tree(host)
    with pytest.raises(apply.SettingsError, match=r"/etc/sysctl\.d/99-tuning\.conf sets"):
        ensure(host, {"numa_balancing": False})
    assert tree(host) == before


def test_going_back_to_more_huge_pages_takes_no_memory_of_running_work(host: Path) -> None:
    write(host, PAGES.format(1), "400\n")
    ensure(host, {"hugepages": [{"node": "1", "count": 0}]})
    for again in (lambda: manage.take_back(False, str(host)), lambda: ensure(host, {})):
        with pytest.raises(NumaError, match="NUMA node 1: the huge pages would take 800 more MiB"):
            again()
    assert (host / PAGES.format(1)).read_text() == "0\n"
    # Somebody else has set it since: that is theirs, and nothing is refused for it.
    write(host, PAGES.format(1), "5\n")
    assert manage.take_back(False, str(host)).outcome.warnings
    assert (host / PAGES.format(1)).read_text() == "5\n"


def test_a_unit_of_that_name_of_somebody_else_is_refused_before_anything(host: Path) -> None:
    write(host, "etc/systemd/system/steadygpu-hugetlb.service", "[Unit]\n")
    assert "not of steadygpu.host" in refused(host, FULL)


def test_a_file_of_ours_that_is_somebody_elses_is_left_alone(host: Path) -> None:
    write(host, "etc/tmpfiles.d/steadygpu-hugepages.conf", "w /sys/x - - - - 1\n")
    with pytest.raises(apply.SettingsError, match=r"not of steadygpu\.host"):
        ensure(host, {"hugepages": [{"node": "0", "count": 1}]})
    assert (host / PAGES.format(0)).read_text() == "0\n"


class Killed(BaseException):
    """The power went."""


def test_a_run_that_is_killed_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    reference: dict[str, str] | None = None
    for cut in itertools.count():
        root = tmp_path / str(cut)
        for node in (0, 1):
            add_node(root, node)
        write(root, "proc/sys/kernel/numa_balancing", "1\n")
        write(root, "sys/fs/cgroup/cgroup.controllers", "hugetlb\n")
        (root / "sys/kernel/mm/hugepages/hugepages-2048kB").mkdir(parents=True)
        for group in ("", "ai.slice/"):
            write(root, f"sys/fs/cgroup/{group}cgroup.subtree_control", "hugetlb\n")
        write(root, f"{GROUP}/hugetlb.2MB.max", "max\n")
        before = tree(root)
        survived = _ensure_until(root, cut)
        ensure(root, FULL)
        after = tree(root)
        reference = reference or after
        assert after == reference
        manage.take_back(False, str(root))
        assert tree(root) == before
        if survived:
            assert cut > 8
            break


def _ensure_until(root: Path, cut: int) -> bool:
    """Run, and be killed before the write number ``cut``. True where there are fewer."""
    left = itertools.count()

    def counted(real: Any) -> Any:
        def call(*words: Any, **named: Any) -> Any:
            if next(left) == cut:
                raise Killed
            return real(*words, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vouched, "write_atomic", counted(vouched.write_atomic))
        patch.setattr(apply, "write_live", counted(apply.write_live))
        patch.setattr(os, "symlink", counted(os.symlink))
        with contextlib.suppress(Killed):
            ensure(root, FULL)
            return True
    return False


def test_daemon_keys_are_remembered_until_they_are_dropped(host: Path) -> None:
    keys = ["default-shm-size", "default-ulimits.memlock"]
    assert ensure(host, {"daemon_keys": keys}).dropped_daemon_keys == []
    assert ensure(host, {"daemon_keys": keys[:1]}).dropped_daemon_keys == keys[1:]
    assert manage.take_back(False, str(host)).dropped_daemon_keys == keys[:1]
    assert manage.take_back(False, str(host)).dropped_daemon_keys == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hugepages": [{"node": "x", "count": 1}]}, "node is 'x'"),
        ({"hugepages": [{"node": "0", "size": "3M", "count": 1}]}, "power of two"),
        ({"hugepages": [{"count": -1}]}, "count is -1"),
        ({"slice_limits": {"ai": {"2M": "1G"}}}, "slice_limits"),
        ({"slice_limits": {"ai.slice": "1G"}}, "wanted page size to limit"),
        ({"banned_cpus": "a-b"}, "banned_cpus"),
        ({"banned_drivers": ["a b"]}, "no kernel module"),
        ({"memory_bandwidth": {"Half": 50}}, "no name of a class"),
        ({"memory_bandwidth": {"half": 0}}, "percentage"),
        ({"keep_free_percent": 91}, "keep_free_percent"),
    ],
)
def test_what_nobody_can_mean_is_refused(options: Mapping[str, Any], words: str) -> None:
    with pytest.raises(NumaError, match=words):
        parse_wish(options)


def test_available_memory_counts_half_of_what_can_be_dropped(host: Path) -> None:
    node = hugepages.read_nodes(str(host))[1]
    assert (node.total_kib, node.available_kib) == (1024000, 700000)


RUNS = irqbalance.View(True, True, "/etc/default/irqbalance", "#IRQBALANCE_ARGS=\n", True)


def test_irqbalance_is_kept_away_and_released(tmp_path: Path) -> None:
    planned = irqbalance.plan(RUNS, "0-3,8", ("nvidia", "mlx5_core"))
    assert planned.after is not None
    assert 'IRQBALANCE_BANNED_CPULIST="0-3,8"\n' in planned.after
    assert 'IRQBALANCE_ARGS="--banmod=nvidia --banmod=mlx5_core"\n' in planned.after
    assert [target.kind for target in planned.targets] == ["environment", "environment"]
    ours = irqbalance.View(True, True, RUNS.path, planned.after, True)
    assert not irqbalance.plan(ours, "0-3,8", ("nvidia", "mlx5_core")).changed
    assert irqbalance.plan(ours, "", ()).after == RUNS.text
    write(tmp_path, RUNS.path, planned.after)
    assert irqbalance.apply(irqbalance.plan(ours, "", ()), RUNS, True, str(tmp_path)) == [
        "write /etc/default/irqbalance",
        "restart irqbalance.service",
    ]


def test_irqbalance_that_is_not_there_is_told() -> None:
    view = irqbalance.View(False, False, RUNS.path, None, False)
    planned = irqbalance.plan(view, "0-3", ("nvidia",))
    assert not planned.changed
    assert {target.kind for target in planned.targets} == {"inert"}
    assert "not installed" in planned.targets[0].note


def test_a_unit_that_takes_no_arguments_still_heeds_the_cpus() -> None:
    view = irqbalance.View(True, True, RUNS.path, None, False)
    planned = irqbalance.plan(view, "0-3", ("nvidia",))
    assert planned.after is not None
    assert "BANNED_CPULIST" in planned.after
    assert "ARGS" not in planned.after
    assert [target.kind for target in planned.targets] == ["environment", "inert"]
    assert "does not pass IRQBALANCE_ARGS on" in planned.targets[1].note


def test_irqbalance_that_is_stopped_now_keeps_its_bans(tmp_path: Path) -> None:
    planned = irqbalance.plan(RUNS, "0-3", ())
    stopped = irqbalance.View(True, False, RUNS.path, planned.after, True)
    again = irqbalance.plan(stopped, "0-3", ())
    assert not again.changed
    assert irqbalance.apply(again, stopped, False, str(tmp_path)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("IRQBALANCE_ARGS=--powerthresh=4\n", "sets IRQBALANCE_ARGS=--powerthresh=4"),
        # The old mask would be discarded beside a list.
        ("IRQBALANCE_BANNED_CPUS=000000f0\n", "sets IRQBALANCE_BANNED_CPUS=000000f0"),
    ],
)
def test_cp_001_lines_of_others_are_not_overridden(text: str, words: str) -> None:
    view = irqbalance.View(True, True, RUNS.path, text, True)
    with pytest.raises(NumaError, match=words):
        irqbalance.plan(view, "8-15", ("nvidia",))
