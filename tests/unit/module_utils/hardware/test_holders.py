# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who holds a GPU: real open files of real processes, and recorded control groups."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import holders
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Holder

ID = "4a" * 32
# /dev/null plays the GPU with minor 3: every user may open it, and its major is 1.
NULL = os.stat(os.devnull).st_rdev


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(holders, "NVIDIA_MAJOR", os.major(NULL))
    return {os.minor(NULL): 0}


def process(host, pid, name, namespace="host", cgroup="0::/user.slice", opened=(), granted=()):
    host.write(f"proc/{pid}/comm", f"{name}\n")
    host.write(f"proc/{pid}/cgroup", f"{cgroup}\n")
    host.link(f"proc/{pid}/ns/mnt", f"mnt:[{namespace}]")
    Path(host.root, f"proc/{pid}/fd").mkdir()
    for number, target in enumerate(opened):
        Path(host.root, f"proc/{pid}/fd/{number}").symlink_to(target)
    for node in granted:
        Path(host.root, f"proc/{pid}/root/dev").mkdir(parents=True)
        Path(host.root, f"proc/{pid}/root/dev/{node}").symlink_to(os.devnull)
    if not os.path.lexists(os.path.join(host.root, "proc/self")):
        host.link("proc/self/ns/mnt", "mnt:[host]")


def test_a_process_that_has_the_node_open(host, gpu):
    process(host, 7, "python3", opened=[os.devnull])
    process(host, 8, "bash", opened=[os.devnull.replace("null", "zero"), "socket:[12]"])
    assert holders.find(gpu, host.root) == {0: [Holder(7, "python3", "process")]}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Xorg", "display"),
        ("gnome-shell", "display"),
        ("nvidia-persiste", "persistence"),
        ("nv-hostengine", "dcgm"),
        ("dcgm-exporter", "dcgm"),
        ("python3", "process"),
    ],
)
def test_the_kind_of_a_holder(host, gpu, name, kind):
    process(host, 7, name, opened=[os.devnull])
    assert holders.find(gpu, host.root)[0][0].kind == kind


def test_a_container_that_computes_and_one_that_was_only_given_the_gpu(host, gpu):
    other = "b7" * 32
    minor = os.minor(NULL)
    docker = f"0::/ai.slice/docker-{ID}.scope"
    process(host, 20, "python3", "c1", docker, [os.devnull], [f"nvidia{minor}"])
    process(host, 21, "sleep", "c1", docker, [], [f"nvidia{minor}"])
    libpod = f"0::/machine.slice/libpod-{other}.scope"
    process(host, 30, "sleep", "c2", libpod, [], [f"nvidia{minor}"])
    assert holders.find(gpu, host.root)[0] == [
        Holder(20, "python3", "container", ID),
        Holder(30, "sleep", "granted", other),
    ]


def test_a_container_whose_first_process_is_a_zombie_was_given_the_gpu_all_the_same(host, gpu):
    docker = f"0::/system.slice/docker-{ID}.scope"
    process(host, 20, "sh", "", docker)  # a zombie shows its control group, and no root
    process(host, 21, "sleep", "c1", docker, [], [f"nvidia{os.minor(NULL)}"])
    assert holders.find(gpu, host.root)[0] == [Holder(21, "sleep", "granted", ID)]


def test_a_sandbox_without_a_control_group_of_its_own_counts_by_its_dev(host, gpu):
    """A rootless engine without control groups, bubblewrap; a service shares the host's /dev."""
    Path(host.root, "dev").mkdir()
    node = f"nvidia{os.minor(NULL)}"
    process(host, 30, "sleep", "c1", "0::/user.slice/user@1000.service", [], [node])
    process(host, 31, "sleep", "c1", "0::/user.slice/user@1000.service", [], [node])
    process(host, 40, "service", "c2", "0::/system.slice/web.service")
    Path(host.root, "proc/40/root").symlink_to(host.root)
    Path(host.root, "dev", node).symlink_to(os.devnull)
    assert holders.find(gpu, host.root)[0] == [Holder(30, "sleep", "granted")]


def test_a_process_that_was_forked_during_the_search_is_seen(host, gpu, monkeypatch):
    process(host, 7, "parent")
    read = os.readlink

    def readlink(path, **more):
        if str(path).endswith("7/ns/mnt") and not Path(host.root, "proc/8").exists():
            process(host, 8, "child", opened=[os.devnull])
        return read(path, **more)

    monkeypatch.setattr(holders.os, "readlink", readlink)
    assert [one.pid for one in holders.find(gpu, host.root)[0]] == [8]


def test_root_without_ptrace_sees_names_and_no_targets(host, gpu, monkeypatch):
    process(host, 1, "init")
    process(host, 7, "python3", opened=[os.devnull])
    read = os.readlink

    def readlink(path, **more):
        if "/fd/" in str(path):
            raise PermissionError(13, "Permission denied")
        return read(path, **more)

    assert holders.look(gpu, host.root).complete
    monkeypatch.setattr(holders.os, "readlink", readlink)
    assert not holders.look(gpu, host.root).complete


def test_a_process_whose_first_thread_has_ended_is_seen(gpu):
    program = (
        "import ctypes, os, threading, time\n"
        "os.open('/dev/null', os.O_PATH)\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print('open', flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            wait_until(lambda: not os.listdir(f"/proc/{child.pid}/fd"))
            assert child.pid in [one.pid for one in holders.find(gpu)[0]]
        finally:
            child.kill()


def wait_until(done):
    end = time.monotonic() + 10
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_container_without_the_node_is_no_holder(host, gpu):
    process(host, 20, "sleep", "c1", f"0::/docker/{ID}", [], ["nvidia77"])
    assert holders.find(gpu, host.root) == {0: []}


def test_processes_of_others_make_the_sight_incomplete(host, gpu, monkeypatch):
    process(host, 7, "python3", opened=[os.devnull])
    allowed = os.listdir

    def listdir(path):
        if str(path).endswith("/fd"):
            raise PermissionError(13, "Permission denied")
        return allowed(path)

    process(host, 1, "systemd")
    assert holders.look(gpu, host.root).complete
    monkeypatch.setattr(holders.os, "listdir", listdir)
    assert not holders.look(gpu, host.root).complete


def test_a_proc_without_init_is_not_the_whole_of_it(host, gpu):
    """hidepid= shows a user his own processes, and "nobody holds it" would be a guess."""
    process(host, 7, "python3")
    sight = holders.look(gpu, host.root)
    assert (sight.holders, sight.complete) == ({0: []}, False)


@pytest.mark.parametrize(
    ("cgroup", "container"),
    [
        (f"0::/system.slice/docker-{ID}.scope", ID),
        (f"0::/docker/{ID}", ID),
        (f"12:devices:/docker/{ID}\n0::/", ID),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope", ID),
        (f"0::/kubepods.slice/kubepods-pod1.slice/crio-{ID}.scope/container", ID),
        (f"11:cpu:/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{ID}", ID),
        (f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope", ID),
        (f"0::/docker/{ID}/docker/{'b7' * 32}", ID),
        (f"0::/machine.slice/libpod-conmon-{ID}.scope", None),
        ("0::/lxc.payload.web/system.slice", "web"),
        ("0::/machine.slice/machine-web.scope/payload", "web"),
        ("0::/system.slice/docker.service", None),
        ("", None),
    ],
)
def test_the_container_of_a_control_group(cgroup, container):
    assert holders.container_of(cgroup) == container


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make device nodes")
def test_a_path_only_descriptor_of_a_real_node_counts(tmp_path):
    node = tmp_path / "nvidia0"
    try:
        os.mknod(node, 0o600 | 0o020000, os.makedev(195, 77))
    except PermissionError:
        pytest.skip("device nodes may not be made here")
    program = f"import os; os.open({str(node)!r}, os.O_PATH); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        found = holders.find({77: 4})[4]
        child.communicate("\n")
    assert [one.pid for one in found] == [child.pid]
    assert holders.find({77: 4})[4] == []
