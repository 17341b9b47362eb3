# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who holds a GPU: real open files of real processes, and recorded control groups."""

from __future__ import annotations

import os
import subprocess
import sys
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

    monkeypatch.setattr(holders.os, "listdir", listdir)
    assert not holders.look(gpu, host.root).complete


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
