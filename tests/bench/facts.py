# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the GPU facts cost: in process, and as a module against ``setup``.

Usage: ``make bench``, or ``python tests/bench/facts.py`` in the project's environment. It prints
two tables for eight simulated A100: milliseconds of one inventory in a process that has imported
everything, and seconds of a task of ``gpu_facts`` as a ratio to one of ``ansible.builtin.setup``
with ``gather_subset: min``, alternating in one play on localhost.

The module reads the true root, so the play runs in a mount namespace of its own, where a recorded
PCI bus and /proc/driver lie over the true ones. That needs root; without it the module's figure
is that of a host without GPUs, and the table says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COLLECTIONS = ROOT / "build" / "collections"
INVENTORIES = 30
TASKS = 10
# One inventory is warm-up: it imports pynvml, which a module pays once and a daemon never again.
IN_PROCESS = """
import json, sys, time
from ansible_collections.steadygpu.host.plugins.module_utils.hardware import inventory, model
seconds = []
for attempt in range(int(sys.argv[2]) + 1):
    began = time.perf_counter()
    facts = model.as_facts(inventory.collect(sys.argv[1]))
    seconds.append(time.perf_counter() - began)
assert facts["source"] == "nvml" and len(facts["devices"]) == 8, facts["driver"]
print(json.dumps(seconds))
"""
OVERLAY = """
set -e
mount --bind "$1/proc/driver" /proc/driver
mount --bind "$1/sys/bus/pci/devices" /sys/bus/pci/devices
shift
exec "$@"
"""


def main() -> None:
    """Measure and print."""
    sys.path.insert(0, str(COLLECTIONS))
    from ansible_collections.steadygpu.host.tests.unit.module_utils.hardware.recorded_host import (
        Host,
    )

    with tempfile.TemporaryDirectory() as scratch:
        host = Host(Path(scratch, "root"))
        host.dgx_a100()
        _join_to_this_machine(Path(host.root))
        env = _simulation(Path(scratch, "simgpu"))
        first, *rest = _in_process(host.root, env)
        print("| inventory of 8 GPUs | milliseconds |\n|---|---|")
        print(f"| first, with its imports | {1000 * first:.1f} |")
        print(f"| median of {len(rest)} more | {1000 * median(rest):.1f} |")
        print(f"| 90th percentile | {1000 * quantiles(rest, n=10)[-1]:.1f} |\n")
        _print_module(Path(scratch), Path(host.root), env)


def _join_to_this_machine(root: Path) -> None:
    """Processes and kernel log of the recorded host are those of this machine.

    Links below sys are made absolute: they must lead into the recorded tree from anywhere.
    """
    for name in os.listdir("/proc"):
        if name.isdigit() or name == "self":
            (root / "proc" / name).symlink_to(f"/proc/{name}")
    (root / "dev").mkdir()
    (root / "dev" / "kmsg").symlink_to("/dev/kmsg")
    for link in (root / "sys/bus/pci/devices").iterdir():
        target = link.resolve()
        link.unlink()
        link.symlink_to(target)


def _simulation(output: Path) -> dict[str, str]:
    """The environment in which the simulated library answers."""
    simgpu = [sys.executable, str(ROOT / "tests" / "simgpu")]
    subprocess.run(
        [*simgpu, "local", "--output", str(output), "--profile", "dgx-a100"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return dict(
        os.environ,
        PYTHONPATH=str(COLLECTIONS),
        ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS),
        LD_LIBRARY_PATH=str(output),
        SIMGPU_STATE=str(output / "state"),
    )


def _in_process(root: str, env: dict[str, str]) -> list[float]:
    argv = [sys.executable, "-c", IN_PROCESS, root, str(INVENTORIES)]
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True)
    seconds: list[float] = json.loads(done.stdout)
    return seconds


def _print_module(scratch: Path, root: Path, env: dict[str, str]) -> None:
    playbook = scratch / "facts.json"
    setup = {"ansible.builtin.setup": {"gather_subset": "min"}}
    ours: dict[str, Any] = {"steadygpu.host.gpu_facts": {}}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    playbook.write_text(json.dumps([{**play, "tasks": [setup, ours] * (TASKS + 1)}]))
    argv = ["ansible-playbook", "-i", "localhost,", str(playbook)]
    argv += ["-e", f"ansible_python_interpreter={sys.executable}"]
    simulated = os.geteuid() == 0 and shutil.which("unshare") is not None
    if simulated:
        argv = ["unshare", "--mount", "sh", "-c", OVERLAY, "sh", str(root), *argv]
    env = dict(env, ANSIBLE_STDOUT_CALLBACK="ansible.posix.json", ANSIBLE_LOAD_CALLBACK_PLUGINS="1")
    done = subprocess.run(argv, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} failed:\n{done.stdout}")
    answer, _end = json.JSONDecoder().raw_decode(done.stdout[done.stdout.index("{") :])
    tasks = answer["plays"][0]["tasks"]
    found = tasks[1]["hosts"]["localhost"]["ansible_facts"]["gpu_host"]["gpu"]["source"]
    if simulated and found != "nvml":
        raise SystemExit(f"the module did not see the simulated GPUs, its source is {found}")
    # The first pair fills Ansible's caches.
    times = [_seconds(task) for task in tasks[2:]]
    base, own = median(times[::2]), median(times[1::2])
    gpus = "8 GPUs" if simulated else "no GPU: not root"
    print(f"| module on localhost, {gpus}, median of {TASKS} | seconds | ratio |\n|---|---|---|")
    print(f"| ansible.builtin.setup, gather_subset min | {base:.3f} | 1 |")
    print(f"| steadygpu.host.gpu_facts | {own:.3f} | {own / base:.2f} |")


def _seconds(task: dict[str, Any]) -> float:
    begin, end = (
        datetime.fromisoformat(task["task"]["duration"][key].replace("Z", "+00:00"))
        for key in ("start", "end")
    )
    return (end - begin).total_seconds()


if __name__ == "__main__":
    main()
