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
  - Reads the NVIDIA driver, every GPU, the links between them, NUMA nodes and device nodes, and
    stores them in C(ansible_facts['gpu_host']).
  - Needs nothing on the host but Python. With C(pynvml), from a package of the host or from the
    agent that the role P(steadygpu.host.agent#role) installs, NVML is the source. Without it,
    C(/proc/driver/nvidia) and sysfs are, and memory, MIG and NVLink are V(null).
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
                memory_mib:
                  description: Frame buffer in MiB with C(total), C(used), C(free) and C(reserved).
                  type: dict
                  sample: {total: 40960, used: 4, free: 40300, reserved: 655}
                mig:
                  description: Whether MIG is possible, on now, and on after the next reset.
                  type: dict
                  sample: {supported: true, current: false, pending: false}
                nvlink:
                  description: Links that are up, their generation and where each one leads.
                  type: dict
                  sample:
                    count: 12
                    version: 3
                    peers: [{link: 0, type: switch, pci_address: "0000:c4:00.0", state: up}]
                error:
                  description: What this GPU answered instead of a value, such as V(GPU is lost).
                  type: str
            links:
              description:
                - A row for each device, with V(X), V(NV#), V(PIX), V(PXB), V(PHB), V(NODE) or
                  V(SYS) as C(nvidia-smi topo -m) prints them.
              type: list
              elements: list
              sample: [[X, NV12], [NV12, X]]
            pci:
              description: NVIDIA display devices on the PCI bus, with or without a driver.
              type: list
              elements: dict
              sample:
                - address: "0000:23:00.0"
                  vendor: 10de
                  device: 20b0
                  class: "030200"
                  driver: nvidia
            nodes:
              description: Device nodes that exist and those that are missing for the devices.
              type: list
              elements: dict
              sample: [{path: /dev/nvidia0, major: 195, minor: 0, exists: true}]
            numa_nodes:
              description: NUMA nodes of the host. One without CPUs holds memory only.
              type: list
              elements: dict
              sample: [{node: 0, cpus: 0-27, memory_mib: 515842}]
            modules:
              description: Which kernel modules of the driver are loaded.
              type: dict
              sample:
                nvidia: true
                nvidia_uvm: true
                nvidia_modeset: true
                nvidia_drm: false
                nvidia_peermem: false
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
