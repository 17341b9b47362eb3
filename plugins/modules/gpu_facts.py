#!/usr/bin/python

# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_facts
short_description: Gather the GPUs of a host, their driver, topology and health, as facts
version_added: "0.1.0"
description:
  - Reads the NVIDIA driver, every GPU, the links between them and to the network cards, NUMA nodes,
    device nodes, and who holds each GPU, and stores them in C(ansible_facts['gpu_host']).
  - Needs nothing on the host but Python. With C(pynvml), from a package of the host or from the
    agent that the role P(steadygpu.host.agent#role) installs, NVML is the source. Without it,
    C(/proc/driver/nvidia) and sysfs are, and memory, MIG and NVLink are V(null).
  - Any user may run it. What only root may read is V(null) then. That is the kernel log and other
    users' processes, with the reason in C(errors) of each GPU, and the registers of bridges.
  - NVML is asked only when the kernel module is loaded, in a process of its own, and not longer
    than O(deadline_s). A driver that hangs is a status, not a hanging play.
  - What is missing or broken is a fact with a reason. The module does not fail for it.
  - Sections that M(steadygpu.host.runtime_facts) stored under the same key are kept.
options:
  deadline_s:
    description:
      - Seconds to wait for NVML. Without the persistence daemon a driver initialises each GPU
        when it is asked, which takes seconds per GPU.
    type: float
    default: 20
extends_documentation_fragment:
  - steadygpu.host.attributes.facts
  - steadygpu.host.attributes.action
seealso:
  - module: steadygpu.host.runtime_facts
author:
  - steadygpu.host contributors (@steadygpu)
"""

EXAMPLES = r"""
- name: GPUs are known
  steadygpu.host.gpu_facts:

- name: The driver works
  ansible.builtin.assert:
    that: ansible_facts['gpu_host'].gpu.driver.status == 'loaded'
    fail_msg: "{{ ansible_facts['gpu_host'].gpu.driver.reason }}"

- name: Pairs of GPUs behind one PCIe switch are shown
  ansible.builtin.debug:
    msg: "{{ ansible_facts['gpu_host'].gpu.links }}"
"""

RETURN = r"""
ansible_facts:
  description: Facts to add to the host.
  returned: always
  type: dict
  contains:
    gpu_host:
      description:
        - All facts of this collection. M(steadygpu.host.runtime_facts) fills the other sections.
      returned: always
      type: dict
      contains:
        schema:
          description: Version of the shape. It is raised when a key changes its meaning.
          type: int
          sample: 1
        gpu:
          description: The GPU side of the host.
          type: dict
          contains:
            driver:
              description: The kernel driver and its library.
              type: dict
              contains:
                status:
                  description:
                    - V(loaded), or V(not_loaded) when a GPU or the library is there and the
                      kernel module is not, or V(absent) when there is neither.
                    - V(unresponsive) when NVML did not answer in time, V(mismatch) when kernel
                      module and library are of two releases.
                  type: str
                  sample: loaded
                version:
                  description: Release of the loaded kernel module.
                  type: str
                  sample: 550.163.01
                flavour:
                  description: V(open) or V(proprietary) kernel modules.
                  type: str
                  sample: open
                library_version:
                  description: Release of C(libnvidia-ml).
                  type: str
                  sample: 550.163.01
                cuda_version:
                  description: Newest CUDA version the driver serves, from NVML.
                  type: str
                  sample: "12.4"
                reason:
                  description: Why the status is not V(loaded), or why NVML was not the source.
                  type: str
                hidden:
                  description:
                    - GPU nodes that this process may not open, as in the session of a job
                      scheduler. The driver is not at fault.
                  type: list
                  elements: str
                  sample: []
            source:
              description: Where the devices came from, V(nvml), V(procfs) or V(none).
              type: str
              sample: nvml
            devices:
              description: Every GPU in NVML's order, which is the order of PCI addresses.
              type: list
              elements: dict
              contains:
                index:
                  description: Index as NVML and C(nvidia-smi) count.
                  type: int
                uuid:
                  description: Name that stays when the order changes.
                  type: str
                  sample: GPU-5d1f1b3e-7a41-4b5c-9a52-3c1de4a8f0aa
                minor:
                  description: The C(0) of C(/dev/nvidia0).
                  type: int
                name:
                  description: Model.
                  type: str
                  sample: NVIDIA A100-SXM4-40GB
                architecture:
                  description: Architecture as NVML numbers it, by its name in lower case.
                  type: str
                  sample: ampere
                pci_address:
                  description: Address as sysfs writes it.
                  type: str
                  sample: "0000:23:00.0"
                pci_path:
                  description: Every PCI function from the root port to the GPU.
                  type: list
                  elements: str
                  sample: ["0000:20:00.0", "0000:21:00.0", "0000:22:00.0", "0000:23:00.0"]
                numa_node:
                  description: NUMA node next to the GPU, V(null) when the firmware names none.
                  type: int
                cpus:
                  description: CPUs next to the GPU, as the kernel lists them.
                  type: str
                  sample: 0-27,56-83
                memory_node:
                  description: NUMA node that the GPU's own memory forms, as on Grace hosts.
                  type: int
                memory_mib:
                  description: Frame buffer in MiB with C(total), C(used), C(free) and C(reserved).
                  type: dict
                  sample: {total: 40960, used: 4, free: 40300, reserved: 655}
                bar1_mib:
                  description: Window for access from other devices, in MiB.
                  type: dict
                  sample: {total: 65536, used: 1}
                compute_mode:
                  description:
                    - V(default), V(exclusive_thread), V(prohibited) or V(exclusive_process).
                  type: str
                  sample: default
                persistence:
                  description: Whether the driver keeps the GPU initialised without clients.
                  type: bool
                display:
                  description: Whether the driver has initialised a display on the GPU.
                  type: bool
                gsp:
                  description: Whether the GPU's own processor runs the driver's firmware.
                  type: bool
                ecc:
                  description:
                    - Error correction now and after the next reset, and errors since the driver was
                      loaded.
                  type: dict
                  sample: {current: true, pending: true, corrected: 0, uncorrected: 0}
                remapped_rows:
                  description: Rows of memory that were replaced.
                  type: dict
                  sample: {corrected: 0, uncorrected: 0, pending: false, failed: false}
                xids:
                  description:
                    - The driver's error reports that the kernel log still holds. V(null) when it
                      may not be read.
                  type: list
                  elements: dict
                  sample: [{xid: 79, seconds: 912.25, text: GPU has fallen off the bus.}]
                power:
                  description: Power limits in watts.
                  type: dict
                  sample: {limit_w: 400.0, default_w: 400.0, min_w: 100.0, max_w: 400.0}
                clocks:
                  description: Clocks in MHz, now and at most.
                  type: dict
                  sample: {sm_mhz: 210, memory_mhz: 1215, sm_max_mhz: 1410, memory_max_mhz: 1215}
                pcie:
                  description: Generation and lanes of the PCI Express link, now and possible.
                  type: dict
                  sample: {generation: 1, generation_max: 4, width: 16, width_max: 16}
                mig:
                  description:
                    - Whether MIG is possible, on now, and on after the next reset, and the MIG
                      devices there are. C(start) and C(size) count memory slices.
                  type: dict
                  sample:
                    supported: true
                    current: true
                    pending: true
                    devices:
                      - index: 0
                        uuid: MIG-2d9f1c3e-51f2-5c0a-9c43-4e0d1f4b8a77
                        profile: 3g.20gb
                        gpu_instance: 1
                        compute_instance: 0
                        start: 0
                        size: 4
                        memory_mib: 19968
                nvlink:
                  description: Links that are up, their generation and where each one leads.
                  type: dict
                  sample:
                    count: 12
                    version: 3
                    peers: [{link: 0, type: switch, pci_address: "0000:c4:00.0", state: up}]
                fabric:
                  description:
                    - Registration with the NVLink fabric. C(state) is V(not_supported),
                      V(not_started), V(in_progress), V(completed) or V(unknown).
                  type: dict
                  sample: {state: not_supported, status: null, cluster_uuid: null, clique_id: null}
                holders:
                  description:
                    - Processes that have the GPU open, and containers that were given it.
                    - C(kind) is V(process), V(display), V(persistence), V(dcgm), V(container) or
                      V(granted).
                  type: list
                  elements: dict
                  sample:
                    - pid: 733
                      name: nvidia-persiste
                      kind: persistence
                      container: null
                      used_mib: null
                error:
                  description: What a sick GPU answered instead of a value, such as V(GPU is lost).
                  type: str
                errors:
                  description: Why a field is V(null) that should have a value, by its name.
                  type: dict
                  sample: {}
            links:
              description:
                - A row for each device, with V(X), V(NV#), V(PIX), V(PXB), V(PHB), V(NODE) or
                  V(SYS) as C(nvidia-smi topo -m) prints them; null where nothing tells.
              type: list
              elements: list
              sample: [[X, NV12], [NV12, X]]
            topology:
              description:
                - The PCIe level of each pair of GPUs from C(sysfs) and from C(nvml), where the two
                  disagree, what else a reader should know, and C(affinity), how near each pair is
                  from 0 to 1.
                - C(affinity_basis) is V(derived), a rank from these levels, or V(measured), shares
                  of the best pair's bandwidth. Those the host remembers from
                  C(steadygpu topo --bandwidth FILE --remember), and C(affinity_tool) is the test
                  that measured.
              type: dict
              sample:
                sysfs: [[X, PIX], [PIX, X]]
                nvml: [[X, PIX], [PIX, X]]
                disagreements: []
                remarks: []
                affinity: [[1.0, 0.65], [0.65, 1.0]]
                affinity_basis: derived
                affinity_tool: null
            p2p:
              description:
                - Whether each pair of GPUs may read the other's memory, with V(X), V(OK), V(CNS),
                  V(GNS), V(TNS), V(NS), V(DR) or V(U) as C(nvidia-smi topo -p2p r) prints them.
              type: list
              elements: list
              sample: [[X, OK], [OK, X]]
            pci:
              description:
                - NVIDIA display devices on the PCI bus, with or without a driver. C(reason) is what
                  the kernel log says of one the driver refused.
              type: list
              elements: dict
              sample:
                - address: "0000:23:00.0"
                  vendor: 10de
                  device: 20b0
                  class: "030200"
                  driver: nvidia
                  reason: null
            bridges:
              description:
                - PCI bridges above the GPUs and network cards, with their Access Control Services.
              type: list
              elements: dict
              sample:
                - address: "0000:21:00.0"
                  vendor: "1000"
                  device: c010
                  acs:
                    supported: true
                    capability: [source_validation, request_redirect]
                    control: []
                    redirects: false
            iommu:
              description: Whether there is an IOMMU, and the groups of the functions listed here.
              type: dict
              sample: {enabled: true, groups: {"0000:23:00.0": 42}}
            nics:
              description: Physical network cards, with their level to each GPU.
              type: list
              elements: dict
              sample:
                - name: mlx5_0
                  interfaces: [ibp36s0]
                  rdma: [mlx5_0]
                  uverbs: [/dev/infiniband/uverbs0]
                  pci_address: "0000:24:00.0"
                  pci_path: ["0000:20:00.0", "0000:21:00.0", "0000:22:01.0", "0000:24:00.0"]
                  numa_node: 0
                  levels: [PIX, SYS]
            nodes:
              description: Device nodes that exist and those that are missing for the devices.
              type: list
              elements: dict
              sample: [{path: /dev/nvidia0, major: 195, minor: 0, exists: true}]
            numa_nodes:
              description:
                - NUMA nodes of the host. One of kind V(memory) has no CPUs, as the memory of a GPU.
              type: list
              elements: dict
              sample:
                - node: 0
                  cpus: 0-27
                  memory_mib: 515842
                  kind: cpu
                  hugepages: [{size_kib: 2048, total: 0, free: 0}]
            modules:
              description: Which kernel modules are there, of the driver and of what goes with it.
              type: dict
              sample:
                nvidia: true
                nvidia_uvm: true
                nvidia_modeset: true
                nvidia_drm: false
                nvidia_peermem: false
                nvidia_fs: false
                nouveau: false
                ib_umad: false
                mlx5_ib: false
            nvswitches:
              description: NVSwitches that the driver lists. V(null) when it has no place for them.
              type: int
              sample: 6
            fabric_manager:
              description:
                - C(status) is V(running), V(stopped) or V(absent). C(reason) is set on a host with
                  NVSwitches when it does not run or is of another release than the driver.
              type: dict
              sample: {status: running, version: 550.163.01, reason: null}
            persistence_daemon:
              description: Whether C(nvidia-persistenced) is V(running), V(stopped) or V(absent).
              type: dict
              sample: {status: running}
            secure_boot:
              description: V(enabled), V(disabled) or V(unknown).
              type: str
              sample: disabled
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.steadygpu.host.plugins.module_utils.hardware import inventory, model


def main() -> None:
    module = AnsibleModule(
        argument_spec={"deadline_s": {"type": "float", "default": inventory.DEFAULT_DEADLINE_S}},
        supports_check_mode=True,
    )
    deadline_s = module.params["deadline_s"]
    if deadline_s <= 0:
        module.fail_json(
            msg=f"deadline_s is {deadline_s:g}; wanted is a number of seconds above 0, such as 20"
        )
    gpu = model.as_facts(inventory.collect(deadline_s=deadline_s))
    module.exit_json(ansible_facts={"gpu_host": {"schema": model.SCHEMA, "gpu": gpu}})


if __name__ == "__main__":
    main()
