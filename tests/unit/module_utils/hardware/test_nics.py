# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network cards and how near they are to each GPU."""

from __future__ import annotations

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import nics
from ansible_collections.steadygpu.host.plugins.module_utils.hardware.model import Device

SWITCH = ["0000:20:00.0", "0000:21:00.0"]
GPU = Device(0, pci_path=[*SWITCH, "0000:22:00.0", "0000:23:00.0"], numa_node=0)
FAR = Device(1, pci_path=["0000:80:01.0", "0000:81:00.0"], numa_node=1)


def card(host, chain, interface=None, rdma=None, uverbs=None, numa_node=0):
    address = host.pci(chain, vendor="15b3", pci_class="020700", numa_node=numa_node)
    for kind, name in (("net", interface), ("infiniband", rdma), ("infiniband_verbs", uverbs)):
        if name:
            host.link(f"sys/class/{kind}/{name}/device", "/" + host.function(address))
    return address


def test_an_infiniband_card_beside_a_gpu(host):
    chain = [*SWITCH, "0000:22:01.0", "0000:24:00.0"]
    card(host, chain, "ibp36s0", "mlx5_0", "uverbs0")
    (nic,) = nics.read_nics([GPU, FAR], host.root)
    assert (nic.name, nic.interfaces, nic.rdma) == ("mlx5_0", ["ibp36s0"], ["mlx5_0"])
    assert nic.uverbs == ["/dev/infiniband/uverbs0"]
    assert (nic.pci_address, nic.pci_path, nic.numa_node) == ("0000:24:00.0", chain, 0)
    assert nic.levels == ["PIX", "SYS"]


def test_a_card_without_a_numa_node_and_without_rdma(host):
    card(host, ["0000:00:1f.6"], "eno1", numa_node=-1)
    (nic,) = nics.read_nics([], host.root)
    assert (nic.name, nic.numa_node, nic.uverbs, nic.levels) == ("eno1", None, [], [])


def test_a_virtio_card_is_found_by_the_function_that_carries_it(host):
    address = host.pci(["0000:00:03.0"], vendor="1af4", pci_class="020000")
    host.write(host.function(address) + "/virtio1/uevent", "")
    host.link("sys/class/net/eth0/device", f"/{host.function(address)}/virtio1")
    (nic,) = nics.read_nics([], host.root)
    assert (nic.name, nic.pci_address) == ("eth0", "0000:00:03.0")


def test_what_is_no_physical_card_is_left_out(host):
    host.write("sys/class/net/lo/type", "772\n")
    host.write("sys/class/net/docker0/type", "1\n")
    usb = host.pci(["0000:00:14.0"], vendor="8086", pci_class="0c0330")
    host.write(host.function(usb) + "/usb1/1-1/1-1:1.0/uevent", "")
    host.link("sys/class/net/usb0/device", f"/{host.function(usb)}/usb1/1-1/1-1:1.0")
    virtual = card(host, ["0000:80:01.0", "0000:81:00.1"], "ens1v0")
    host.link(host.function(virtual) + "/physfn", "/" + host.function(virtual))
    assert nics.read_nics([GPU], host.root) == []
