# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver of a host: adopted or installed, kept at one release, and ready before engines start.

- ``tables``: which modules and branches fit which GPU, and which packages make a driver; pure.
- ``names``: which packages must have one release; pure.
- ``kernels``, ``look``: what the host has.
- ``judge``: what is refused, what waits for a reboot, what is effective; pure.
- ``transaction``: packages to one release, with apt or dnf.
- ``daemon``: nvidia-persistenced.
- ``host``, ``manage``: all of it in order.
"""
