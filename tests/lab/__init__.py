# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lab hosts: Debian virtual machines with a true NUMA and PCIe tree for simulated GPUs.

``python3 tests/lab --help`` is the way in. Standard library only, so that it runs before
anything of the project is installed. Who imports whom, from the ground up::

    console, apt, suites, machine      say, read, name; no state
    cache, ssh, qmp                    one resource each: the cache directory, ssh, a monitor
    vm                                 one qemu process
    kvm, image, snapshot               what is made once and cached
    host                               a running lab host of this checkout
    power                              down and up again
    inventory, cli                     faces
"""
