# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.steadygpu.host.plugins.module_utils.slices import reader
from ansible_collections.steadygpu.host.plugins.module_utils.slices.properties import (
    parse_properties,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.squeeze import (
    MemoryUse,
    TaskUse,
)
from ansible_collections.steadygpu.host.plugins.module_utils.slices.tree import Host

SLICE = "sys/fs/cgroup/ai.slice/ai-workload.slice"


def tree(root: Path, files: dict[str, str]) -> str:
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return str(root)


def test_a_machine_without_swap_or_schedulers(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/meminfo": "MemTotal:        2015700 kB\nSwapTotal:             0 kB\n",
            "proc/sys/kernel/pid_max": "4194304\n",
            "proc/sys/kernel/threads-max": "15625\n",
            "sys/block/vda/queue/scheduler": "[none] mq-deadline\n",
        },
    )
    machine = reader.machine(parse_properties({"MemoryMax": "50%"}), root)
    assert machine.memory_bytes == 2015700 * 1024
    assert (machine.swap_bytes, machine.tasks_max) == (0, 15625)
    assert (machine.io_cost, machine.bfq) == (False, False)


def test_what_makes_io_weights_act_is_seen(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/meminfo": "",
            "proc/sys/kernel/pid_max": "1",
            "proc/sys/kernel/threads-max": "1",
            "sys/block/vda/queue/scheduler": "none [bfq]\n",
            "sys/fs/cgroup/io.cost.qos": "254:0 enable=1 ctrl=auto rpct=0.00\n",
        },
    )
    machine = reader.machine({}, root)
    assert (machine.io_cost, machine.bfq) == (True, True)


def test_a_file_counts_as_the_whole_disk_below_its_partition(tmp_path: Path) -> None:
    number = os.stat(tmp_path).st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    root = tree(
        tmp_path,
        {
            "scratch/file": "",
            "sys/devices/vda/dev": "254:0\n",
            "sys/devices/vda/vda1/dev": name + "\n",
            "sys/devices/vda/vda1/partition": "1\n",
        },
    )
    (tmp_path / "sys/dev/block").mkdir(parents=True)
    (tmp_path / "sys/dev/block" / name).symlink_to(tmp_path / "sys/devices/vda/vda1")
    assert reader.disk_number("/scratch/file", root) == "254:0"


def test_who_is_inside_is_told_with_the_place(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            SLICE + "/cgroup.procs": "",
            SLICE + "/docker-abc.scope/cgroup.procs": "41\n42\n",
            "proc/41/comm": "python3\n",
        },
    )
    inside = reader.processes("/ai.slice/ai-workload.slice", root)
    assert inside == {"docker-abc.scope": [41, 42]}
    assert reader.process_name(41, root) == "python3"
    assert reader.process_name(42, root) == "?"


def test_an_empty_slice_is_empty(tmp_path: Path) -> None:
    root = tree(tmp_path, {SLICE + "/cgroup.procs": ""})
    assert reader.processes("/ai.slice/ai-workload.slice", root) == {}


def test_drop_ins_of_all_layers_are_found(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "etc/systemd/system/ai-workload.slice.d/override.conf": "[Slice]\nTasksMax=1\n",
            "usr/lib/systemd/system/ai-.slice.d/vendor.conf": "[Slice]\nTasksMax=2\n",
            "etc/systemd/system/ai-workload.slice.d/notes.txt": "not read",
            "run/systemd/system.control/ai-workload.slice.d/50-TasksMax.conf": "[Slice]\n",
        },
    )
    found = {os.path.basename(path) for path in reader.drop_ins("ai-workload.slice", root)}
    assert found == {"override.conf", "vendor.conf"}
    control = reader.control_drop_ins("ai-workload.slice", root)
    assert [os.path.basename(path) for path in control] == ["50-TasksMax.conf"]


def test_a_host_with_cgroup_v1_is_told_what_to_change(tmp_path: Path) -> None:
    assert "unified_cgroup_hierarchy" in (reader.cgroup_fault(str(tmp_path)) or "")
    root = tree(tmp_path, {"sys/fs/cgroup/cgroup.controllers": "cpu io memory pids\n"})
    assert reader.cgroup_fault(root) is None


def test_what_a_slice_uses_of_memory(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            SLICE + "/memory.current": "6442450944\n",
            SLICE + "/memory.swap.current": "4096\n",
            SLICE + "/memory.stat": "anon 5\nfile 2147483648\nfile_mapped 7\n",
            SLICE + "/memory.high": "max\n",
            SLICE + "/memory.max": "8589934592\n",
        },
    )
    use = reader.memory_use("/ai.slice/ai-workload.slice", root)
    assert use == MemoryUse(6 << 30, 4096, 2 << 30, None, 8 << 30)
    assert reader.memory_use("/other.slice", root) is None


def test_how_many_tasks_a_slice_has_and_what_they_may_use(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            SLICE + "/pids.current": "300\n",
            SLICE + "/pids.max": "512\n",
            SLICE + "/cpu.max": "150000 100000\n",
            SLICE + "/cpuset.cpus.effective": "0-1\n",
            SLICE + "/cpuset.mems.effective": "1\n",
        },
    )
    use = reader.task_use("/ai.slice/ai-workload.slice", root)
    assert use == TaskUse(300, 512, 1.5, (0, 1), (1,))
    assert reader.task_use("/other.slice", root) is None


def test_the_least_protection_above_a_slice(tmp_path: Path) -> None:
    top = "sys/fs/cgroup/a.slice"
    root = tree(
        tmp_path,
        {
            "sys/fs/cgroup/memory.low": "0\n",
            top + "/memory.low": "4096\n",
            top + "/memory.min": "0\n",
            top + "/a-b.slice/memory.low": "8192\n",
        },
    )
    above = reader.protection_above("/a.slice/a-b.slice/a-b-c.slice", root)
    assert above == {"memory.low": ("a.slice", 4096), "memory.min": ("a.slice", 0)}
    assert reader.protection_above("/a.slice", root) == {}


def test_which_disks_heed_no_weight(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/io.cost.qos": "8:0 enable=1 ctrl=auto\n8:16 enable=0\n"}
    disks = {"sda": "8:0", "sdb": "8:16", "sdc": "8:32", "loop0": "7:0"}
    for name, number in disks.items():
        files[f"sys/block/{name}/dev"] = number + "\n"
        files[f"sys/block/{name}/queue/scheduler"] = "[none] bfq\n"
        if name != "loop0":
            files[f"sys/block/{name}/device/model"] = "x\n"
    files["sys/block/sdc/queue/scheduler"] = "none [bfq]\n"
    assert reader.heedless_disks(tree(tmp_path, files)) == ("sdb",)


def test_cores_with_their_threads_and_nodes(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemTotal: 4096 kB\n",
        "proc/sys/kernel/pid_max": "1000\n",
        "proc/sys/kernel/threads-max": "900\n",
        "sys/devices/system/cpu/online": "0-3\n",
        "sys/devices/system/node/node0/cpulist": "0,2\n",
        "sys/devices/system/node/node1/cpulist": "1,3\n",
    }
    for cpu in range(4):
        siblings = f"{cpu % 2},{cpu % 2 + 2}\n"
        files[f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"] = siblings
    host = reader.shareable(tree(tmp_path, files))
    assert host == Host(4096 * 1024, 900, ((0, (0, 2)), (1, (1, 3))))
