"""A refused host is as it was, and can still be looked at."""

from __future__ import annotations


def test_nothing_of_ours_was_installed(host):
    assert not host.file("/etc/docker/daemon.json").exists
    assert not host.file("/usr/local/lib/steadygpu").exists
    assert not host.package("nvidia-container-toolkit").is_installed


def test_the_slice_limits(host):
    group = "/sys/fs/cgroup/ai.slice/ai-workload.slice/"
    assert host.check_output(f"cat {group}pids.max") == "512"
