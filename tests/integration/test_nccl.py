# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NCCL's topology file as a container gets it, and what becomes of it when the host changes."""

from __future__ import annotations

from conftest import LabHost

BUSYBOX = "tar -C /usr -c bin/busybox | docker import - busybox"
READ = (
    "docker run --rm --device steadygpu.dev/nccl=topology busybox /bin/busybox sh -c "
    "'/bin/busybox cat \"$NCCL_TOPO_FILE\"'"
)


def test_a_container_reads_the_file_until_the_host_is_another_one(host: LabHost) -> None:
    made = host.module("nccl_topology")
    assert made["changed"], made
    assert made["gate"]["status"] == "not_measured"
    assert not host.module("nccl_topology")["changed"]

    host.sh(BUSYBOX)
    seen = host.sh(READ)
    addresses = host.sh(
        "cd /sys/bus/pci/devices && grep -l 0x10de */vendor | cut -d / -f 1"
    ).split()
    assert len(addresses) == 8
    assert all(f'busid="{address}"' in seen for address in addresses)

    # Other cards in the same slots: what runs before Docker at each boot takes the file away.
    host.sh("simgpu load t4")
    host.sh("systemctl start steadygpu-nccl.service")
    assert "withdrawn" in host.sh("cat /etc/cdi/steadygpu-nccl.json")
    assert host.sh(READ, check=False) == ""

    assert host.module("nccl_topology", {"state": "absent"})["changed"]
    assert host.sh("ls /etc/cdi", check=False) == ""
