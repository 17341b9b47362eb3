# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is now. Changes nothing.

- The whole: ``observe``. Files: ``files``. Units: ``units_seen``. Kernel settings: ``sysctls``. MIG
  and GPU memory: ``gpu_seen``. Packages: ``package_names`` says which.
- What else tells whether a GPU host is well: ``fingerprint``, with the ``device_rules`` of running
  containers and the ``container_files`` that they have changed.
"""
