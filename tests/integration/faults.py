# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults that a lab host can be given, and how one notices each.

The story of a fault (test_faults.py): it is planted, the message is shown to ``steadygpu explain``
or the host to ``steadygpu check --host``, the printed commands are run as they stand, and then
the host must be healthy.
"""

from __future__ import annotations

from dataclasses import dataclass

_RUN = "docker run --rm {} busybox /bin/busybox true"
_CDI = _RUN.format("--device nvidia.com/gpu=0")
_LISTS = "docker ps >/dev/null"
# No driver is behind a simulated node: one that may be opened says that there is no such device.
_OPENS = "docker exec lost /bin/busybox head -c1 /dev/nvidiactl 2>&1 | grep -q 'No such device'"


@dataclass(frozen=True)
class Fault:
    """One fault. ``id`` is the cause or rule that must name it.

    ``says`` prints the message that a person would paste; "" where only the checks see it.
    ``healthy`` succeeds on a sound host. ``sweep``: not in the lane, where minutes are dear.
    """

    name: str
    plant: str
    says: str
    id: str
    healthy: str
    sweep: bool = True


FAULTS = (
    # First: dockerd must not have been restarted since the toolkit came.
    Fault(
        "--gpus with a toolkit that came after dockerd started",
        "true",
        _RUN.format("--gpus all"),
        "toolkit-absent",
        _RUN.format("--gpus all"),
    ),
    Fault(
        "the CDI specification is gone",
        "rm -f /run/cdi/nvidia.yaml",
        _CDI,
        "cdi-spec-missing",
        _CDI,
        sweep=False,
    ),
    Fault(
        "nvidia_uvm is not loaded",
        "simgpu fail uvm_missing",
        "",
        "uvm-missing",
        "test -c /dev/nvidia-uvm && grep -q nvidia-uvm /proc/devices",
        sweep=False,
    ),
    Fault(
        "Docker is stopped",
        "systemctl stop docker.socket docker.service",
        "docker ps",
        "docker-not-running",
        _LISTS,
        sweep=False,
    ),
    Fault(
        "dockerd has a flag of an article",
        "mkdir -p /etc/systemd/system/docker.service.d && printf '%s\\n' '[Service]' 'ExecStart=' "
        "'ExecStart=/usr/sbin/dockerd -H fd:// --ai-scheduler=enabled' "
        ">/etc/systemd/system/docker.service.d/ai.conf && systemctl daemon-reload; "
        "systemctl restart docker || true",
        "journalctl -b -u docker -n 20 -o cat",
        "dockerd-unknown-flag",
        _LISTS,
    ),
    Fault(
        "a runtime that nobody defined",
        "true",
        _RUN.format("--runtime nvidia"),
        "runtime-not-defined",
        _RUN.format("--runtime nvidia"),
    ),
    Fault(
        "NUMA balancing is on",
        "sysctl -qw kernel.numa_balancing=1",
        "",
        "numa-balancing-on",
        "test $(cat /proc/sys/kernel/numa_balancing) = 0",
    ),
    Fault(
        "real-time tasks have no limit",
        "sysctl -qw kernel.sched_rt_runtime_us=-1",
        "",
        "rt-runtime-unlimited-now",
        "test $(cat /proc/sys/kernel/sched_rt_runtime_us) -gt 0",
        sweep=False,
    ),
    Fault(
        "two specifications name the same device",
        "cp /run/cdi/nvidia.yaml /run/cdi/old.yaml",
        "",
        "cdi-device-twice",
        _CDI,
    ),
    Fault(
        "nothing refreshes the CDI specification",
        "systemctl disable -q --now nvidia-cdi-refresh.path",
        "",
        "cdi-refresh-off",
        "systemctl is-enabled -q nvidia-cdi-refresh.path",
    ),
    Fault(
        "no-cgroups on a rootful host",
        "sed -i 's/^#* *no-cgroups.*/no-cgroups = true/' /etc/nvidia-container-runtime/config.toml"
        " && grep -q '^no-cgroups = true' /etc/nvidia-container-runtime/config.toml",
        "",
        "no-cgroups-rootful",
        "! grep -q '^no-cgroups = true' /etc/nvidia-container-runtime/config.toml",
    ),
    Fault(
        # As it happens with NVIDIA's legacy hook: the grant is put behind the back of systemd, and
        # systemd 257 takes it away at a reload with the start of another container.
        "a container has lost its GPU",
        "systemctl restart docker && docker run -d --name lost --gpus all "
        "-e NVIDIA_VISIBLE_DEVICES=0 busybox /bin/busybox sleep 10000 >/dev/null && "
        "docker exec lost /bin/busybox mknod /dev/nvidia0 c 195 0 && "
        "docker exec lost /bin/busybox mknod /dev/nvidiactl c 195 255 && "
        "python3 /root/legacy_grant.py "
        "/sys/fs/cgroup/system.slice/docker-$(docker inspect -f {{.Id}} lost).scope && "
        f"{_OPENS} && docker inspect -f {{{{.State.Pid}}}} lost >/root/lost.pid && "
        f"systemctl daemon-reload && {_RUN.format('')} && ! {_OPENS}",
        "docker exec lost /bin/busybox head -c1 /dev/nvidiactl 2>&1; "
        "echo 'Failed to initialize NVML: Unknown Error'",
        "gpus-flag-and-systemd-reload",
        f"{_OPENS} && docker inspect -f {{{{.State.Pid}}}} lost | cmp - /root/lost.pid",
        sweep=False,
    ),
)
